#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scenarios.py KYMO TARGET [NAME...]: captures of programs that get into trouble, with the real tool: targets and recorders
that are killed, thousands of children, hundreds of threads, other namespaces and users, a full disk, a drum that is scribbled
over, programs nobody here wrote. After each: the target did not notice, nothing committed is lost or it is counted, and
nothing of kymo stays behind in the kernel.

Waits for what must happen, never for a time. Exit 1 when a check failed, 77 when nothing could run."""
import contextlib
import csv
import glob
import io
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

KYMO, TARGET = (os.path.realpath(path) for path in sys.argv[1:3])
TRACEFS = "/sys/kernel/tracing"
LIMIT_S = 600  # ends what hangs: a busy machine may be slow
failures = 0


def check(what, fine, seen=""):
    global failures
    if not fine:
        failures += 1
        print(f"  FAILED: {what}: {seen}")
    return fine


def run(*words, **more):
    return subprocess.run([KYMO, *words], capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)


def query(path, sql):
    done = run("query", "--quiet", "--csv", path, sql)
    if done.returncode:
        raise RuntimeError(f"{path}: {done.stderr.strip()}")
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


def number(path, sql):
    rows = query(path, sql)
    return float(rows[0][0]) if rows and rows[0][0] else 0


def slices(path, name):
    return number(path, f"select count(*) from slice where name = '{name}'")


def wait_for(what, condition):
    """Until the condition holds; a failure when it never does."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return check(what, False, "it never happened")


@contextlib.contextmanager
def target(*words, **more):
    process = subprocess.Popen([TARGET, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
    try:
        process.stdout.readline()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def drum_of(pid):
    """What kymo list says of the process, or None."""
    done = run("list", "--json", "-p", str(pid))
    found = json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else []
    found = found.get("processes", []) if isinstance(found, dict) else found
    return found[0] if found else None


def is_root():
    return os.geteuid() == 0


# ---- the scenarios: each returns why it cannot run here, or None ----


def exit_code_and_all_events(folder):
    path = f"{folder}/a.kymo"
    done = run("run", "-o", path, "--", TARGET, "spans", "100000")
    check("the program's exit code", done.returncode == 7, done)
    check("every span", slices(path, "work") == 100000, slices(path, "work"))


def target_killed(folder):
    path = f"{folder}/a.kymo"
    done = run("run", "-o", path, "--", TARGET, "kill", "5000")
    check("128 + SIGKILL", done.returncode == 128 + signal.SIGKILL, done)
    check("all that was committed", slices(path, "work") == 5000, slices(path, "work"))


def attached_target_killed(folder):
    path = f"{folder}/a.kymo"
    with target("until") as process:
        kymo = subprocess.Popen([KYMO, "attach", "-q", "-o", path, "-p", str(process.pid)])
        wait_for("categories on", lambda: (drum_of(process.pid) or {}).get("categories_on", 0) > 0)
        wait_for("something written", lambda: os.path.exists(path) and os.path.getsize(path) > 4096)
        process.kill()
        check("a normal end", kymo.wait(LIMIT_S) == 0, kymo.returncode)
    check("it can be read", slices(path, "work") > 0)


def recorder_killed(folder):
    path = f"{folder}/a.kymo"
    with target("until") as process:
        before = drum_of(process.pid)
        kymo = subprocess.Popen([KYMO, "attach", "-q", "-o", path, "-p", str(process.pid)])
        wait_for("categories on", lambda: (drum_of(process.pid) or {}).get("categories_on", 0) > 0)
        wait_for("something written", lambda: os.path.exists(path) and os.path.getsize(path) > 4096)
        kymo.kill()
        kymo.wait()
        check("the target goes on", process.poll() is None)
        check("what was written is whole", slices(path, "work") > 0)
        now = drum_of(process.pid)
        check("list does not count the dead", now and before and now["recorders"] == before["recorders"], (before, now))
        done = run("attach", "-q", "-o", f"{folder}/b.kymo", "--duration", "50ms", "-p", str(process.pid))
        check("the next attach", done.returncode == 0, done)
        after = drum_of(process.pid)
        check("all is as before", after and before and after["categories_on"] == before["categories_on"], (before, after))
        process.stdin.close()
        check("the target ends as ever", process.wait(LIMIT_S) == 0)


def short_lived_children(folder):
    path = f"{folder}/a.kymo"
    done = run("run", "-o", path, "--", TARGET, "forks", "2000")
    check("the program's exit code", done.returncode == 0, done)
    check("a span of each child", slices(path, "child") == 2000, slices(path, "child"))
    count = number(path, "select count(distinct upid) from thread join thread_track using (utid) "
                         "join slice on slice.track_id = thread_track.id where slice.name = 'child'")
    check("each in a process of its own", count == 2000, count)


def many_threads(folder):
    path = f"{folder}/a.kymo"
    done = run("run", "-o", path, "--", TARGET, "threads", "500")
    check("the program's exit code", done.returncode == 0, done)
    check("every span", slices(path, "work") == 50000, slices(path, "work"))
    check("every thread", number(path, "select count(distinct track_id) from slice where name = 'work'") == 500)


def many_threads_sampled(folder):
    path = f"{folder}/a.kymo"
    done = run("run", "-o", path, "--sample", "1000", "--", TARGET, "threads", "500")
    check("the program's exit code", done.returncode == 0, done)
    check("every span", slices(path, "work") == 50000, slices(path, "work"))


def other_namespaces(folder):
    if not is_root() or subprocess.run(["unshare", "--mount", "--pid", "true"], capture_output=True, check=False).returncode:
        return "needs root and namespaces of its own (unshare)"
    path = f"{folder}/a.kymo"
    with target("unshare", "100", env={**os.environ, "KYMO_CATEGORIES": "*"}) as process:
        kymo = subprocess.Popen([KYMO, "attach", "-q", "--follow", "-o", path, "-p", str(process.pid)])
        wait_for("attached", lambda: (drum_of(process.pid) or {}).get("recorders", 0) > 0)
        process.stdin.write("\n")
        process.stdin.flush()
        check("the target is well", process.wait(LIMIT_S) == 0, process.returncode)
        check("a normal end", kymo.wait(LIMIT_S) == 0, kymo.returncode)
    check("what came after", slices(path, "work") >= 100, slices(path, "work"))
    path = f"{folder}/b.kymo"
    done = run("run", "-o", path, "--", TARGET, "unshare", "100", input="\n")
    check("run: the program's exit code", done.returncode == 0, done)
    check("run: all of it, the child's too", slices(path, "work") == 300, slices(path, "work"))
    return None


def full_disk(folder):
    if not is_root():
        return "needs root for a small file system"
    small = f"{folder}/small"
    os.mkdir(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], check=False).returncode:
        return "a tmpfs cannot be mounted"
    try:
        path = f"{small}/a.kymo"
        done = run("run", "-o", path, "--", TARGET, "spans", "3000000")
        check("the program went on to its end", done.returncode == 7, done)
        check("it reports that", "No space left" in done.stderr, done.stderr)
        check("what fits can be read", slices(path, "work") > 0)
    finally:
        subprocess.run(["umount", small], check=True)
    return None


def scribbled(folder):
    path = f"{folder}/a.kymo"
    said = ""
    for _ in range(3):
        done = run("run", "-o", path, "--", TARGET, "scribble", "300")
        said += done.stderr
        check("kymo survives", done.returncode in (0, 1, 128 + signal.SIGSEGV, 128 + signal.SIGBUS), done)
        check("and leaves a file", run("info", path).returncode == 0)
    check("it says so", "damaged" in said, said)


def crash_told(folder):
    path = f"{folder}/a.kymo"
    for how, name in (("segv", "SIGSEGV"), ("abort", "SIGABRT")):
        done = run("run", "-o", path, "--trigger", "crash", "--before", "1s", "--", TARGET, how, "100")
        check(f"{how}: exit code", done.returncode == 128 + getattr(signal, name), done)
        if "ptrace" in done.stderr:
            return done.stderr.splitlines()[0]
        seen = query(path, "select s.name, a.string_value from slice s join track t on s.track_id = t.id "
                           "join args a using (arg_set_id) where t.name = 'snapshots' and a.key like '%stack'")
        check(f"{how}: the signal and the stack", seen and name in seen[0][0] and "crash_now" in seen[0][1], seen)
        check(f"{how}: to the last event", slices(path, "work") == 110, slices(path, "work"))
    return None


def kernel_events(folder):
    if not is_root() or not os.path.isdir(f"{TRACEFS}/instances"):
        return "needs root and tracefs"
    path = f"{folder}/a.kymo"
    done = run("run", "-o", path, "--kernel", "--sample", "1000", "--", TARGET, "forks", "200")
    check("the program's exit code", done.returncode == 0, done)
    check("scheduling", number(path, "select count(*) from sched") > 100)
    check("spans beside it", slices(path, "child") == 200)
    strays = query(path, "select distinct tid, name from sched join thread using (utid) where upid is null and tid != 0")
    check("all of it of known processes", not strays, strays)
    return None


def samples_refused(path):
    """Why there are no samples on this machine, or None."""
    refused = re.search("no samples: (.*)", run("run", "-o", path, "--sample", "1000", "--", "true").stderr)
    return refused and refused[1]


def a_program_of_others(folder):
    """sqlite3 has no trace points: samples and a trigger on a function of its library."""
    if not shutil.which("sqlite3"):
        return "sqlite3 is not installed"
    path = f"{folder}/a.kymo"
    if refused := samples_refused(path):
        return refused
    sql = ("with recursive c(x) as (select 1 union all select x+1 from c where x < 3000000) "
           "select sum(x), max(x % 7) from c;")
    done = run("run", "-o", path, "--sample", "1000", "--", "sqlite3", ":memory:", sql)
    check("its output", done.stdout.strip() == "4500001500000|6", done)
    check("samples", number(path, "select count(*) from perf_sample") > 50, done.stderr)
    names = {"".join(row) for row in query(path, "select distinct name from stack_profile_frame")}
    check("names", any(name.startswith("sqlite3") for name in names), sorted(names)[:20])
    for engine in ("uprobe", "breakpoint") if is_root() else ("breakpoint",):
        done = run("run", "-o", path, "--probe", engine, "--trigger", "symbol:sqlite3_step", "--snapshots", "1",
                   "--", "sqlite3", ":memory:", "select 1;")
        if "--probe" in done.stderr and "need" in done.stderr:
            print(f"  {engine}: skipped: {done.stderr.splitlines()[0]}")
            continue
        check(f"{engine}: its output", done.stdout.strip() == "1", done)
        seen = query(path, "select s.name from slice s join track t on s.track_id = t.id where t.name = 'snapshots'")
        check(f"{engine}: a snapshot", len(seen) == 1 and "sqlite3_step" in seen[0][0], (seen, done.stderr))
    return None


def git_and_python(folder):
    """Programs that start others, and one that is an interpreter: each does what it does alone."""
    if not shutil.which("git") or not os.path.exists("/usr/bin/python3"):
        return "git or python3 is not installed"
    path, tree = f"{folder}/a.kymo", f"{folder}/tree"
    if refused := samples_refused(path):
        return refused
    alone = {**os.environ, "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", tree], check=True, env=alone)
    for i in range(50):
        with open(f"{tree}/{i}", "w", encoding="utf-8") as file:
            file.write(f"{i}\n" * 1000)
    words = ["git", "-C", tree, "-c", "user.name=k", "-c", "user.email=k@k", "commit", "-q", "-m", "all"]
    subprocess.run(["git", "-C", tree, "add", "-A"], check=True, env=alone)
    kernel = ["--kernel"] if is_root() and os.path.isdir(f"{TRACEFS}/instances") else []
    done = run("run", "-o", path, "--sample", "2000", *kernel, "--", *words, env=alone)
    check("git commits", done.returncode == 0, done)
    log = subprocess.run(["git", "-C", tree, "log", "--format=%s"], capture_output=True, text=True, check=False, env=alone)
    check("as ever", log.stdout.strip() == "all", log)
    if kernel:
        check("its scheduling", number(path, "select count(*) from sched join thread using (utid) where name = 'git'") > 0)
    program = "print(sum(i * i for i in range(3000000)))"
    done = run("run", "-o", path, "--sample", "1000", "--", "/usr/bin/python3", "-c", program)
    check("python's output", done.stdout.strip() == "8999995500000500000", done)
    names = {"".join(row) for row in query(path, "select distinct name from stack_profile_frame")}
    check("python's functions", any("PyEval" in name for name in names), sorted(names)[:20])
    return None


def redis_under_load(folder):
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        return "redis-server is not installed"
    path, socket = f"{folder}/a.kymo", f"{folder}/redis.sock"
    if refused := samples_refused(path):
        return refused
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder,
                               "--daemonize", "no"], stdout=subprocess.DEVNULL)
    try:
        wait_for("redis", lambda: os.path.exists(socket))
        kymo = subprocess.Popen([KYMO, "attach", "-q", "-p", str(server.pid), "--sample", "1000", "-o", path,
                                 "--kernel=sched,syscalls"] if is_root() else
                                [KYMO, "attach", "-q", "-p", str(server.pid), "--sample", "1000", "-o", path])
        wait_for("a file", lambda: os.path.exists(path))
        load = subprocess.run(["redis-benchmark", "-s", socket, "-n", "200000", "-c", "20", "-P", "8", "-q", "-t", "set,get"],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        check("the load ran", load.returncode == 0 and "requests per second" in load.stdout, load)
        kymo.send_signal(signal.SIGINT)
        check("a clean stop", kymo.wait(LIMIT_S) == 0, kymo.returncode)
        check("redis goes on", server.poll() is None)
        check("samples", number(path, "select count(*) from perf_sample") > 50)
        if is_root() and os.path.isdir(f"{TRACEFS}/instances"):
            check("system calls", number(path, "select count(*) from slice where name like 'sys_%'") > 1000)
    finally:
        server.terminate()
        server.wait()
    return None


def an_ordinary_user(folder):
    if not is_root():
        return "is one already"
    nobody = pwd.getpwnam("nobody")
    os.chmod(folder, 0o777)
    if subprocess.run(["setpriv", "--reuid", "nobody", "--clear-groups", "test", "-x", KYMO], check=False).returncode:
        return "nobody cannot get at the programs"

    def as_nobody():
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)

    path = f"{folder}/a.kymo"
    done = run("run", "-o", path, "--kernel", "--sample", "1000", "--", TARGET, "spans", "100000",
               preexec_fn=as_nobody, cwd=folder)
    check("the program's exit code", done.returncode == 7, done)
    check("every span", slices(path, "work") == 100000)
    check("it reports what is missing, with the remedy", "kernel" in done.stderr and
          ("root" in done.stderr or "sudo" in done.stderr), done.stderr)
    done = run("run", "-o", f"{folder}/b.kymo", "--trigger", "symbol:work", "--snapshots", "1", "--", TARGET, "spans", "100",
               preexec_fn=as_nobody, cwd=folder)
    check("a breakpoint", "perf_event_open" in done.stderr or done.returncode == 7 and os.path.exists(f"{folder}/b.kymo"), done)
    with target("until") as process:
        done = run("attach", "-p", str(process.pid), "-o", f"{folder}/c.kymo", preexec_fn=as_nobody, cwd=folder)
        check("another's process is refused", done.returncode == 1 and "root" in done.stderr, done)
        check("and goes on", process.poll() is None)
    return None


SCENARIOS = (exit_code_and_all_events, target_killed, attached_target_killed, recorder_killed, short_lived_children,
             many_threads, many_threads_sampled, other_namespaces, full_disk, scribbled, crash_told, kernel_events,
             a_program_of_others, git_and_python, redis_under_load, an_ordinary_user)


def left_behind():
    """What of a kymo that has ended is still in the kernel."""
    left = [path for path in glob.glob(f"{TRACEFS}/instances/kymo-*")
            if not os.path.exists(f"/proc/{os.path.basename(path).split('-')[1]}")]
    with contextlib.suppress(OSError), open(f"{TRACEFS}/uprobe_events", encoding="utf-8") as file:
        left += [line for line in file.read().splitlines() if "kymo" in line]
    return left


def main():
    ran = 0
    wanted = sys.argv[3:]
    for scenario in SCENARIOS:
        if wanted and scenario.__name__ not in wanted:
            continue
        before = failures
        with tempfile.TemporaryDirectory() as folder:
            try:
                why = scenario(folder)
            except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
                why = None
                check("no surprise", False, error)
        if is_root() and not wanted:
            check("nothing stays behind", not left_behind(), left_behind())
        ran += not why
        print(f"{scenario.__name__}: {'skipped: ' + why if why else 'ok' if failures == before else 'FAILED'}", flush=True)
    if failures:
        return 1
    return 0 if ran else 77


sys.exit(main())
