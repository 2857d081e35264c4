#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""losses.py KYMO TARGET: losses and problems are in the JSON of every verb, in one form: "lost", "losses" and "problems".

A verb that has --json and is not known here fails the test. Exit 1 when a check failed."""
import json
import os
import signal
import subprocess
import sys
import tempfile

import checks
from checks import check

TRACE = """[{"ph":"B","pid":1,"tid":1,"ts":0,"name":"a"},{"ph":"E","pid":1,"tid":1,"ts":9},{"ph":"E","pid":1,"tid":1,"ts":10},
{"ph":"i","s":"t","pid":1,"tid":1,"ts":5,"cat":"kymo","name":"events lost","args":{"count":7,"what":"the ring was full"}}]"""
SCHED = """# tracer: nop
#
  <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120
CPU:0 [LOST 7 EVENTS]
  a-1 [000] d..2. 1.100000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
"""
# Verbs that read a file: arguments, and where the object is.
READERS = {
    "info": (["faulty.json"], []),
    "report": (["faulty.json"], []),
    "hist": (["faulty.json"], []),
    "validate": (["faulty.json"], []),
    "diff": (["faulty.json", "faulty.json"], ["b_faults"]),
    "convert": (["faulty.json", "out.pftrace"], []),
    "split": (["faulty.json", "-o", "out.json"], []),
    "merge": (["--offset", "faulty.json=0", "--offset", "whole.json=0", "whole.json", "faulty.json", "-o", "out.json"], ["inputs", 1]),
    "repair": (["faulty.json", "-o", "out.json"], []),
    "query": (["--faults", "faulty.json", "select 1 as x", "select 2 as y where 0"], []),
    "sched": (["switches.txt"], []),
}
SERVES = {"view"}
LIVE = {"run", "attach", "record", "snapshot", "list", "top", "enable", "disable"}
# Losses are events of their own there; no trace is read.
OTHERS = {"tail", "doctor"}


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL)


def has_form(found):
    """Whether an object has the three members, and the sum is the sum."""
    return (isinstance(found.get("lost"), int) and isinstance(found.get("losses"), list) and
            isinstance(found.get("problems"), list) and
            sum(loss.get("events", 0) for loss in found["losses"]) == found["lost"] and
            all("what" in loss for loss in found["losses"]) and
            all({"name", "severity", "count", "first"} <= set(problem) for problem in found["problems"]))


def has_faults(found):
    """Whether it has those of TRACE."""
    return (has_form(found) and found["lost"] == 7 and any(loss["what"] == "the ring was full" for loss in found["losses"]) and
            any(problem["name"] == "end_without_begin" for problem in found["problems"]))


def check_verbs(kymo):
    known = set(READERS) | SERVES | LIVE | OTHERS
    for verb in run(kymo, "help", "--complete").stdout.split():
        if "--json" in run(kymo, "help", "--complete", verb).stdout.split():
            check(f"{verb} is tested here", verb in known)


def check_readers(kymo):
    for verb, (arguments, where) in READERS.items():
        done = run(kymo, verb, "--json", *arguments)
        try:
            found = json.loads(done.stdout)
            for step in where:
                found = found[step]
        except (ValueError, KeyError, IndexError, TypeError) as error:
            check(f"{verb} --json", False, (error, done))
            continue
        if verb == "sched":
            check("sched --json", has_form(found) and found["lost"] == 7, done)
        else:
            check(f"{verb} --json", has_faults(found), done)
    check("report --tree --json", has_faults(json.loads(run(kymo, "report", "--tree", "--json", "faulty.json").stdout)))


def check_query(kymo):
    ask = [kymo, "query", "faulty.json", "--json"]
    check("query: rows alone are an array", json.loads(run(*ask, "select 1 as x").stdout) == [{"x": 1}])
    check("and kymo reports the problems on standard error", "problem" in run(kymo, "query", "--json", "cut.json", "select 1").stderr)
    found = json.loads(run(*ask, "--faults", "select 1 as x", "select 2 as y where 0").stdout)
    check("query --faults: the rows of each statement", found["results"] == [[{"x": 1}], []], found)
    for wrong in ("select abs(-9223372036854775807 - 1) from slice", "select nothing"):
        done = run(*ask, "--faults", "select 1 as x", wrong)
        check("query --faults: a statement that fails", done.returncode == 1 and
              json.loads(done.stdout)["results"][0] == [{"x": 1}], done)
    lines = run(*ask, "--lines", "--faults", "select 1 as x").stdout.splitlines()
    check("query --lines --faults", has_faults(json.loads(lines[0])) and json.loads(lines[1]) == {"x": 1}, lines)
    for table, count in (("loss", 1), ("problem", 1)):
        check(f"query: the table {table}", len(json.loads(run(*ask, f"select * from {table}").stdout)) == count)
    done = run(kymo, "query", "--faults", "faulty.json", "select 1")
    check("query: --faults is for JSON", done.returncode == 2 and "--faults needs --json" in done.stderr, done)
    done = run(*ask, "--faults", ".mode csv")
    check("query: and stays JSON", done.returncode == 2 and "leave out .mode" in done.stderr, done)


def check_view(kymo):
    done = run(kymo, "view", "--json", "--export", "out.html", "faulty.json")
    if done.returncode == 77:
        print("view: skipped: built without the page")
        return
    found = json.loads(done.stdout)
    check("view --export --json", has_faults(found) and found["output"] == "out.html" and
          found["bytes"] == os.path.getsize("out.html"), done)
    run(kymo, "convert", "-q", "faulty.json", "faulty.json.kymo")
    for more in (["faulty.json"], ["--perfetto", "--port", "0", "faulty.json"], ["--perfetto", "--port", "0", "faulty.json.kymo"]):
        with subprocess.Popen([kymo, "view", "--json", "--no-browser", "--no-follow", "-q", *more],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as view:
            address, shown = view.stdout.readline(), view.stdout.readline()
            view.send_signal(signal.SIGINT)
        check(f"view --json {more}: the address first", "127.0.0.1" in json.loads(address)["address"], address)
        check("and the faults", has_faults(json.loads(shown)) and "faulty.json" in json.loads(shown)["shown"], shown)


def check_live(kymo, target):
    done = run(kymo, "run", "--json", "-o", "run.kymo", "--", "true")
    check("run --json", has_form(json.loads(done.stderr)), done)
    with subprocess.Popen([target], stdin=subprocess.DEVNULL, env={**os.environ, "KYMO_CATEGORIES": "*"}) as program:
        pid = str(program.pid)
        done = run(kymo, "attach", "--json", "-p", pid, "-d", "10ms", "-o", "attach.kymo")
        check("attach --json", has_form(json.loads(done.stdout)), done)
        done = run(kymo, "record", "--json", "-q", "--categories", "net", "-d", "10ms", "-o", "record.kymo")
        check("record --json", has_form(json.loads(done.stdout)), done)
        done = run(kymo, "snapshot", "--json", "-p", pid, "-o", "snapshot.kymo")
        check("snapshot --json", has_form(json.loads(done.stdout)), done)
        for verb, *arguments in (["list"], ["enable", "net"], ["disable", "net"]):
            done = run(kymo, verb, "--json", "-p", pid, *arguments)
            check(f"{verb} --json", has_form(json.loads(done.stdout)["processes"][0]), done)
        done = run(kymo, "top", "--json", "-p", pid, "-n", "1", "--interval", "10ms")
        check("top --json", has_form(json.loads(done.stdout.splitlines()[0])), done)
        program.kill()


def main():
    kymo, target = (os.path.abspath(path) for path in sys.argv[1:3])
    for name in ("KYMO_TRACE", "KYMO_CATEGORIES", "KYMO_BUFFER", "KYMO_DRUM_DIR"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in (("faulty.json", TRACE), ("switches.txt", SCHED), ("cut.json", TRACE[:-30]), ("whole.json", TRACE[:TRACE.index(",\n")] + "]")):
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        check_verbs(kymo)
        check_readers(kymo)
        check_query(kymo)
        check_view(kymo)
        check_live(kymo, target)
        os.chdir("/")
    sys.exit(checks.failed)


if __name__ == "__main__":
    main()
