#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""windows.py KYMO TARGET DEMO [NAME...]: every call of the last ten milliseconds before a function is called, before a crash and
before Ctrl-C, of every thread: of window_target.c, whose calls are known one by one, of redis and of the demo.

Exit 1 when a check failed, 77 when nothing could run."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import traced  # noqa: E402  (beside this folder)

TARGET, DEMO = (os.path.realpath(path) for path in sys.argv[2:4])
BEFORE_NS = 10_000_000
WINDOW = ("--before", "10ms", "--hot", "0")


def snapshot(path):
    """When the last snapshot was taken, and its name."""
    rows = traced.query(path, "select s.ts, s.name from slice s join track t on s.track_id = t.id where t.name = 'snapshots' "
                              "order by s.ts desc limit 1")
    if not traced.check("a snapshot", rows, path):
        raise RuntimeError("no snapshot")
    return int(rows[0][0]), rows[0][1]


def check_whole(path, threads, at):
    """Each thread is there from the window's first moment on, in a step or off the CPU, and its steps are in turn, with none
    missing. Between two steps is no span, unless walk() was seen to begin: some hundred nanoseconds."""
    tracks = traced.query(path, "select track_id, min(ts) from slice where track_id in (select track_id from slice where name like "
                                "'step_%') group by track_id")
    traced.check("threads", 0 < len(tracks) <= threads, tracks)
    for track, first in tracks:
        rows = traced.query(path, f"select name from slice where track_id = {track} and name like 'step_%' order by ts")
        numbers = [int(row[0][5:]) for row in rows]
        missing = [i for i in range(1, len(numbers)) if numbers[i] != (numbers[i - 1] + 1) % 16]
        traced.check("no call is missing", not missing, f"thread {track}: {len(missing)} of {len(numbers)}, first {missing[:3]}")
        traced.check("ten milliseconds", int(first) <= at - BEFORE_NS + 100_000, f"{(at - int(first)) / 1e6} ms")
    return len(tracks)


def lost(path):
    """What the trace itself says is missing in it."""
    done = traced.kymo("info", path)
    return [line for line in done.stdout.splitlines() if "lost" in line and " 0 " not in line]


def target_at_symbol(folder):
    path = f"{folder}/a.kymo"
    with traced.running([TARGET, "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        words = [traced.KYMO, "attach", "-q", "-p", str(process.pid), "--functions", "--trigger", "symbol:trigger_here", *WINDOW,
                 "--snapshots", "1", "-o", path]
        with traced.running(words) as kymo:
            traced.wait_for("jumps", lambda: bool(traced.text_differs(process.pid)), kymo)
            # The ring must have so much in it; and the trigger may be set a little later than the jumps.
            traced.wait_for("a snapshot", lambda: process.stdin.write(b"x") + (process.stdin.flush() or 0) and
                            kymo.poll() is not None)
            traced.check("kymo ends well", kymo.wait(traced.LIMIT_S) == 0, kymo.returncode)
        traced.check("its code is the file's again", not traced.text_differs(process.pid))
        process.stdin.close()
        traced.check("it ends well", process.wait(traced.LIMIT_S) == 0, process.returncode)
    traced.check_trace(path)
    at, name = snapshot(path)
    traced.check("the function's name", "trigger_here" in name, name)
    check_whole(path, 3, at)


def target_interrupted(folder):
    path = f"{folder}/a.kymo"
    with traced.running([TARGET, "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        words = [traced.KYMO, "attach", "-q", "-p", str(process.pid), "--functions", "--trigger", "interrupt", *WINDOW, "-o", path]
        with traced.running(words) as kymo:
            traced.wait_for("jumps", lambda: bool(traced.text_differs(process.pid)), kymo)
            fill(process.pid, 3)
            kymo.send_signal(signal.SIGINT)
            traced.check("kymo ends well", kymo.wait(traced.LIMIT_S) == 0, kymo.returncode)
        traced.check("its code is the file's again", not traced.text_differs(process.pid))
    traced.check_trace(path)
    check_whole(path, 3, snapshot(path)[0])


def fill(pid, busy=1):
    """Until so many threads of the process have run long enough to fill the window: by their own time on the CPU."""
    def spent():
        times = {}
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="utf-8") as file:
                times[task] = int(file.read().split()[0])
        return times
    before = spent()
    traced.wait_for("the threads run", lambda: sum(time - before.get(task, 0) > 5 * BEFORE_NS
                                                   for task, time in spent().items()) >= busy)


def target_crashes(folder):
    path = f"{folder}/a.kymo"
    words = [traced.KYMO, "run", "-q", "--functions", "--trigger", "crash", *WINDOW, "-o", path, "--", TARGET, "3", "crash"]
    with traced.running(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as kymo:
        kymo.stdout.readline()
        pid = child_of(kymo.pid)
        if pid:
            fill(pid, 3)
        kymo.stdin.write(b"x")
        kymo.stdin.flush()
        traced.check("exit code", kymo.wait(traced.LIMIT_S) == 128 + signal.SIGSEGV, kymo.returncode)
    traced.check_trace(path)
    at, name = snapshot(path)
    traced.check("the signal's name", "SIGSEGV" in name, name)
    check_whole(path, 3, at)
    walks = traced.query(path, "select ts from slice where name = 'walk'")
    # A thread that ran for long has overwritten where walk() began: then it has no name.
    traced.check("what was open begins with the window", all(int(row[0]) <= at - BEFORE_NS for row in walks) and len(walks) <= 3,
                 walks)
    traced.check("where it crashed", traced.calls(path, "crash_now") == 1, traced.calls(path, "crash_now"))


def child_of(pid):
    """The program that kymo runs; it has helpers of its own, too."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        found = [int(word) for word in file.read().split()]
    for child in found:
        with contextlib.suppress(OSError):  # one that has just ended
            if os.readlink(f"/proc/{child}/exe") != traced.KYMO:
                return child
    return None


# ---- redis ----


def redis_words(folder):
    return ["redis-server", "--port", "0", "--unixsocket", f"{folder}/s", "--save", "", "--dir", folder, "--daemonize", "no"]


def ask(folder, *words):
    return subprocess.run(["redis-cli", "-s", f"{folder}/s", *words], capture_output=True, text=True, timeout=60, check=False)


def busy(folder):
    return traced.running(["redis-benchmark", "-s", f"{folder}/s", "-l", "-n", "1000000", "-c", "10", "-q", "-t", "set,get"],
                          stdout=subprocess.DEVNULL)


def check_redis(path):
    at, name = snapshot(path)
    first = int(traced.query(path, "select min(ts) from slice where track_id in (select track_id from slice where name = "
                                   "'processCommand')")[0][0])
    traced.check("ten milliseconds", first <= at - BEFORE_NS + 100_000, f"{(at - first) / 1e6} ms")
    traced.check("nothing is lost", not lost(path), lost(path))
    for function in ("processCommand", "readQueryFromClient"):
        traced.check(function, traced.calls(path, function) > 0)
    return name


def redis_installed():
    absent = [name for name in ("redis-server", "redis-benchmark", "redis-cli") if not shutil.which(name)]
    return f"{', '.join(absent)} is not installed" if absent else None


def redis_at_symbol(folder):
    if redis_installed():
        return redis_installed()
    path = f"{folder}/a.kymo"
    with traced.running(redis_words(folder), stdout=subprocess.DEVNULL) as server:
        traced.wait_for("redis", lambda: ask(folder, "ping").stdout == "PONG\n", server)
        with busy(folder), traced.running([traced.KYMO, "attach", "-q", "-p", str(server.pid), "--functions", "--trigger",
                                           "symbol:echoCommand", *WINDOW, "--snapshots", "1", "-o", path]) as kymo:
            traced.wait_for("jumps", lambda: bool(traced.text_differs(server.pid)), kymo)
            fill(server.pid)
            traced.wait_for("a snapshot", lambda: ask(folder, "echo", "hello").stdout and kymo.poll() is not None)
            traced.check("kymo ends well", kymo.wait(traced.LIMIT_S) == 0, kymo.returncode)
        traced.check("it answers", ask(folder, "ping").stdout == "PONG\n")
    traced.check_trace(path)
    traced.check("the function's name", "echoCommand" in check_redis(path))
    return None


def redis_interrupted(folder):
    if redis_installed():
        return redis_installed()
    path = f"{folder}/a.kymo"
    with traced.running(redis_words(folder), stdout=subprocess.DEVNULL) as server:
        traced.wait_for("redis", lambda: ask(folder, "ping").stdout == "PONG\n", server)
        with busy(folder), traced.running([traced.KYMO, "attach", "-q", "-p", str(server.pid), "--functions", "--trigger",
                                           "interrupt", *WINDOW, "-o", path]) as kymo:
            traced.wait_for("jumps", lambda: bool(traced.text_differs(server.pid)), kymo)
            fill(server.pid)
            kymo.send_signal(signal.SIGINT)
            traced.check("kymo ends well", kymo.wait(traced.LIMIT_S) == 0, kymo.returncode)
        traced.check("it answers", ask(folder, "ping").stdout == "PONG\n")
    traced.check_trace(path)
    check_redis(path)
    return None


def redis_crashes(folder):
    if redis_installed():
        return redis_installed()
    path = f"{folder}/a.kymo"
    words = [traced.KYMO, "run", "-q", "--functions", "--trigger", "crash", *WINDOW, "-o", path, "--",
             *redis_words(folder), "--enable-debug-command", "yes"]
    with traced.running(words, stdout=subprocess.DEVNULL) as kymo:
        traced.wait_for("redis", lambda: ask(folder, "ping").stdout == "PONG\n", kymo)
        with busy(folder):
            fill(child_of(kymo.pid))
            ask(folder, "debug", "segfault")
            traced.check("exit code", kymo.wait(traced.LIMIT_S) == 128 + signal.SIGSEGV, kymo.returncode)
    traced.check_trace(path)
    traced.check("the signal's name", "SIGSEGV" in check_redis(path))
    return None


# ---- the demo ----


def demo(folder):
    """Its trace points and its functions together; at Ctrl-C, in a crash, and when a transaction is rolled back."""
    for trigger in ("interrupt", "crash", "symbol:db_rollback"):
        path = f"{folder}/a.kymo"
        seconds = "2" if trigger.startswith("symbol") else "20"
        words = [traced.KYMO, "run", "-q", "--functions", "--trigger", trigger, *WINDOW, "-o", path, "--", DEMO, "--seconds", seconds]
        with traced.running(words, stdout=subprocess.DEVNULL) as kymo:
            if not trigger.startswith("symbol"):
                traced.wait_for("the demo", lambda: child_of(kymo.pid) and threads_of(child_of(kymo.pid)) > 4, kymo)
                fill_some(child_of(kymo.pid))
            if trigger == "interrupt":
                os.killpg(kymo.pid, signal.SIGINT)
            elif trigger == "crash":
                os.kill(child_of(kymo.pid), signal.SIGSEGV)
            kymo.wait(traced.LIMIT_S)
        traced.check_trace(path)
        at, _ = snapshot(path)
        first = int(traced.query(path, "select min(ts) from slice where ts > 0")[0][0])
        traced.check("ten milliseconds", first <= at - BEFORE_NS, f"{(at - first) / 1e6} ms")
        traced.check("nothing is lost", not lost(path), lost(path))


def threads_of(pid):
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task"))
    return 0


def fill_some(pid):
    """Its threads sleep most of the time: until they have run a little."""
    def spent():
        total = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/schedstat", encoding="utf-8") as file:
                total += int(file.read().split()[0])
        return total
    before = spent()
    traced.wait_for("the demo runs", lambda: spent() > before + BEFORE_NS)


SCENARIOS = (target_at_symbol, target_interrupted, target_crashes, redis_at_symbol, redis_interrupted, redis_crashes, demo)

if __name__ == "__main__":
    sys.exit(traced.run_scenarios([(scenario.__name__, scenario) for scenario in SCENARIOS], sys.argv[4:]))
