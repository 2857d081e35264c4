# SPDX-License-Identifier: MIT
"""traced.py: a program whose function calls are traced, and what must hold then. Imported by the drivers of the torture programs
and of the programs of others; they count what failed here and end with it.

    bare run ──▶ output, exit code ─┐
    kymo run --functions ───────────┴─▶ equal; the trace is valid; spans nest; known functions so often, exactly
    kymo attach --functions, N times ─▶ the program goes on and ends well; its code is the file's again, byte for byte"""
import contextlib
import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 600  # ends what hangs: a busy machine may be slow
KYMO = os.path.realpath(sys.argv[1]) if len(sys.argv) > 1 else "kymo"
failures = 0


def cycles(short):
    """How often each program is attached to: so often in the short form, fifty times in the long one, or --cycles=N."""
    asked = [int(word[9:]) for word in sys.argv if word.startswith("--cycles=")]
    return asked[0] if asked else 50 if "--slow" in sys.argv else short


def check(what, fine, seen=""):
    global failures
    if not fine:
        failures += 1
        print(f"  FAILED: {what}: {str(seen)[:2000]}", flush=True)
    return fine


def kymo(*words, **more):
    # A program that is killed for taking too long leaves no children behind: its input and outputs are ours.
    return subprocess.run([KYMO, *words], capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False,
                          **more)


def query(path, sql):
    done = kymo("query", "--quiet", "--csv", path, sql)
    if done.returncode:
        raise RuntimeError(f"{path}: {done.stderr.strip()}")
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


def number(path, sql):
    rows = query(path, sql)
    return float(rows[0][0]) if rows and rows[0][0] else 0


def calls(path, name):
    return number(path, f"select count(*) from slice where name = '{name}'")


def lost(path):
    """How many events are not in the trace: of a program that went on before a library that it loaded was patched, too."""
    found = json.loads(kymo("validate", "--json", path).stdout)["problems"]
    return sum(problem["count"] for problem in found if problem["name"] == "events_lost")


def wait_for(what, condition, process=None):
    """Until the condition holds; a failure when it never does, or when the process ended before."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if condition():
            return True
        if process and process.poll() is not None:
            return check(what, False, f"ended with {process.returncode}")
        time.sleep(0.005)
    return check(what, False, "it never happened")


def possible():
    """Why functions of programs cannot be patched on this machine, or None."""
    if os.uname().machine != "x86_64":
        return "not x86-64"
    with tempfile.TemporaryDirectory() as folder:
        done = kymo("run", "-q", "--functions", "--engine", "patch", "-o", f"{folder}/a.kymo", "--", "/bin/true")
    return None if done.returncode == 0 else f"no engine patch here: {done.stderr.strip()[-300:]}"


def no_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# ---- what a trace must be ----


def problems(path):
    """What is wrong with the trace, but for calls that never return, stacks deeper than any picture, and events that came
    faster than they could be written on a busy machine: those are counted, and ends may miss their begins then."""
    done = kymo("validate", "--json", path)
    found = {problem["name"]: problem for problem in json.loads(done.stdout)["problems"] if problem["severity"] != "info"}
    found.pop("slice_not_ended", None)
    if found.pop("slice_too_deep", None):
        found.pop("end_without_begin", None)
    if found.get("events_lost", {"count": 1 << 63})["count"] < 1 << 40:
        for name in ("events_lost", "end_without_begin", "misplaced_end_event"):
            found.pop(name, None)
    # The kernel says by a clock of its own when a thread was off the CPU: such a span may reach some 100 ns over a call's end.
    crossings = ("misplaced_end_event", "end_without_begin")
    if found and set(found) <= set(crossings):
        off = number(path, "select count(*) from slice where name like 'off CPU%'")
        if all(problem["count"] <= off for problem in found.values()):
            return []
    return list(found.values())


def check_trace(path, some=True):
    """Valid, not empty, and every span within the one around it."""
    wrong = problems(path)
    if not check("a valid trace", not wrong, wrong):
        return
    # One question: each reads the whole trace.
    ended, outside = query(path, "select (select count(*) from slice where dur >= 0), (select count(*) from slice c join slice p "
                                 "on c.parent_id = p.id where c.dur >= 0 and p.dur >= 0 and "
                                 "(c.ts < p.ts or c.ts + c.dur > p.ts + p.dur))")[0]
    check("calls", int(ended) > 0 or not some, path)
    check("spans nest", outside == "0", f"{outside} reach out of the one around them")


# ---- what a program must be, after a detach ----


def text_of(pid):
    """(path, address, bytes, offset) of every mapping of code that has a file."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            words = line.split(maxsplit=5)
            if len(words) == 6 and "x" in words[1] and words[5].startswith("/") and "memfd:" not in words[5]:
                begin, end = (int(text, 16) for text in words[0].split("-"))
                found.append((words[5].strip(), begin, end - begin, int(words[2], 16)))
    return found


def read_all(memory, address, size):
    """Read all bytes: a single read may return fewer."""
    memory.seek(address)
    parts, left = [], size
    while left and (part := memory.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def text_differs(pid):
    """Where the code of the process is not its file's: "path+offset: n bytes"."""
    wrong = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for path, address, size, offset in text_of(pid):
            try:
                with open(f"/proc/{pid}/root{path}", "rb") as file:
                    file.seek(offset)
                    kept = file.read(size)
                now = read_all(memory, address, len(kept))
            except OSError:
                continue  # a library that is being unloaded
            if len(now) < len(kept):  # the process ended, or unloaded it
                continue
            # V8 maps its builtins once more for each worker, and unmaps them with it.
            if kept != now and (path, address, size, offset) in list(text_of(pid)):
                different = [i for i, (a, b) in enumerate(zip(kept, now)) if a != b]
                wrong.append(f"{path}+{offset + different[0]:#x}: {len(different)} bytes")
    return wrong


def maps_count(pid):
    """How many mappings kymo may have made: its own, and code without a file. Others come and go with threads."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        return sum(1 for line in maps if "kymo" in line or ("x" in line.split()[1] and " /" not in line))


def attach_once(folder, pid, *words, duration="100ms", some=True):
    path = f"{folder}/attached.kymo"
    done = kymo("attach", "-q", "-p", str(pid), "--functions", "--duration", duration, "-o", path, *words)
    fine = check("attach", done.returncode == 0, f"{done.returncode}: {done.stderr.strip()[-1500:]}")
    if fine and os.path.exists(path):
        check_trace(path, some)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return fine


def attach_often(folder, process, times, *words, duration="20ms", alive=lambda: True):
    """Attach and detach, so many times; the program's code is then the file's, and it has not grown."""
    after = []
    for i in range(times):
        if process.poll() is not None or not alive():
            check("the program goes on", False, f"ended with {process.poll()} in cycle {i}")
            return
        # Reading every trace takes longer than making it: the first ones and the last are looked at.
        looked_at = i < 2 or i == times - 1
        if looked_at:
            # Long enough for the program to get the CPU on a busy machine.
            attach_once(folder, process.pid, *words, duration="200ms")
        else:
            path = f"{folder}/attached.kymo"
            done = kymo("attach", "-q", "-p", str(process.pid), "--functions", "--duration", duration, "-o", path, *words)
            check(f"attach {i}", done.returncode == 0, f"{done.returncode}: {done.stderr.strip()[-1500:]}")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        if process.poll() is not None:
            check("the program goes on", False, f"ended with {process.poll()} in cycle {i}")
            return
        wrong = text_differs(process.pid)
        if not check("its code is the file's again", not wrong, wrong[:10]):
            return
        after.append(maps_count(process.pid))
    if times >= 10:
        check("no mapping more with each attach", after[-1] - after[2] < times // 2, after)


# ---- programs that run to their end ----


def bare(words, **more):
    return subprocess.run(words, capture_output=True, timeout=LIMIT_S, check=False, **more)


def same_as_bare(folder, words, *options, env=None, cwd=None, stdin=None, some=True, expected=None):
    """The program alone and traced: output and exit code are equal. Returns the trace's path, for more checks."""
    path = f"{folder}/run.kymo"

    def give():
        return open(stdin, "rb") if stdin else subprocess.DEVNULL
    with (give() if stdin else contextlib.nullcontext(subprocess.DEVNULL)) as source:
        expected = expected or bare(words, env=env, cwd=cwd, stdin=source)
    with (give() if stdin else contextlib.nullcontext(subprocess.DEVNULL)) as source:
        done = subprocess.run([KYMO, "run", "-q", "--functions", "-o", path, *options, "--", *words],
                              capture_output=True, timeout=LIMIT_S, check=False, env=env, cwd=cwd, stdin=source)
    said = done.stderr.decode(errors="replace")[-1500:]
    check("alone, it works", expected.returncode == 0, expected.stderr[-1500:])
    check("exit code", done.returncode == expected.returncode, f"{done.returncode}, alone {expected.returncode}: {said}")
    check("output", done.stdout == expected.stdout, difference(expected.stdout, done.stdout) + said)
    if check("a trace", os.path.exists(path), said):
        check_trace(path, some)
    return path


def difference(expected, got):
    for i, (a, b) in enumerate(zip(expected.splitlines(), got.splitlines())):
        if a != b:
            return f"line {i + 1}: {a[:200]!r} became {b[:200]!r}; "
    return f"{len(expected)} bytes became {len(got)}; "


@contextlib.contextmanager
def running(words, **more):
    """A program, ended for sure. Its output is read by nobody: the caller gives it a place."""
    process = subprocess.Popen(words, start_new_session=True, **more)
    try:
        yield process
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


def run_scenarios(scenarios, wanted):
    """Each has a folder of its own, and returns why it cannot run here, or None. The exit code."""
    no_cores()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended
    ran = 0
    why = possible()
    if why:
        print(why)
        return 77
    for name, scenario in scenarios:
        if wanted and name not in wanted:
            continue
        before, begun = failures, time.monotonic()
        # Traces are large and short-lived: in memory where that is possible.
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(dir=place) as folder:
            try:
                why = scenario(folder)
            except (RuntimeError, subprocess.TimeoutExpired, OSError, json.JSONDecodeError) as error:
                why = None
                check("no surprise", False, repr(error))
        ran += not why
        result = f"skipped: {why}" if why else "ok" if failures == before else "FAILED"
        print(f"{name}: {result} ({time.monotonic() - begun:.1f} s)", flush=True)
    if failures:
        return 1
    return 0 if ran else 77
