#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""columns_hostile.py KYMO: .kymo files of columns whose sections are all whole, but whose cells no writer would write. What kymo makes of
them must be right where it can be, in proportion to the file, and JSON where that is asked for.

Exit 1 when a check failed."""
import json
import os
import struct
import subprocess
import sys
import tempfile

from columns_make import NONE, make

failed = 0
MOST = (1 << 63) - 1
LEAST = -MOST - 1
STRINGS = ['k\x1b[31m"\x01', "a\\b\x7f\x9b2J", "n;m\nx", "\xff\xfe bad", "x" * 300, "R", "S", "Running"]
RUNNABLE, SLEEPS, RUNNING = 6, 7, 8


def check(what, good, seen=""):
    global failed
    if not good:
        failed = 1
        print(f"FAILED: {what}: {seen}", file=sys.stderr)


def refuse(constant):
    raise ValueError(constant)


def run(kymo, *arguments, codes=(0,)):
    done = subprocess.run([kymo, *arguments], capture_output=True, timeout=120, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"})
    check(f"{arguments}", done.returncode in codes, (done.returncode, done.stderr[-500:]))
    return done.stdout.decode("utf-8")


def answer(kymo, *arguments, codes=(0,)):
    return json.loads(run(kymo, *arguments, codes=codes), parse_constant=refuse)


def write(tables, strings=STRINGS, clock=6):
    with open("made.kymo", "wb") as file:
        file.write(make(tables, strings, clock))


def real(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def all_tables():
    """Each table, with the largest, the least and the wrong numbers in every column."""
    nan, infinity = real(float("nan")), real(float("inf"))
    return [
        ("args", 4, [("key", 4, [1, 1, 2, 99]), ("type", 1, [3, 3, 6, 7]), ("value", 8, [nan, infinity, 77777, 1])]),
        ("arg_sets", 4, [("first", 4, [0, 0, 2, 3])]),
        ("processes", 3, [("pid", 8, [1, -1, MOST]), ("name", 4, [1, 2, 3]), ("cmdline", 4, [4, 4, 4]), ("parent", 4, [1, 2, 0]),
                          ("start_ts", 8, [-MOST, MOST, 0]), ("args", 4, [3, 1, 2])]),
        ("threads", 3, [("tid", 8, [7, 8, -9]), ("name", 4, [3, 4, 5]), ("process", 4, [0, 1, 77])]),
        ("tracks", 6, [("name", 4, [3, 4, 5, 1, 2, 3]), ("owner", 4, [0, 2, 0, NONE - 1, 70000, 5]),
                       ("parent", 4, [1, 2, 0, 3, NONE, 4]), ("kind", 1, [2, 2, 1, 3, 7, 99]), ("flags", 1, [255] * 6),
                       ("id", 8, [-1] * 6)]),
        ("slices", 6, [("ts", 8, [LEAST, -MOST, 0, 1, MOST - 1, MOST]), ("dur", 8, [MOST, MOST, MOST, -1, MOST, 5]),
                       ("track", 4, [0, 0, 0, 1, 3, 2]), ("name", 4, [1, 2, 3, 4, 5, 1]), ("category", 4, [1] * 6),
                       ("parent", 4, [NONE, 0, 1, 2, 3, 4]), ("args", 4, [1, 2, 3, 4, 5, 0]), ("depth", 2, [0, 9, 9, 9, 65535, 1]),
                       ("kind", 1, [0, 0, 0, 0, 0, 1])]),
        ("counters", 4, [("ts", 8, [LEAST, 0, 5, MOST]), ("value", 8, [nan, infinity, real(float("-inf")), real(1e308)]),
                         ("track", 4, [4, 4, 5, 3])]),
        ("flows", 2, [("out", 4, [5, 0]), ("in", 4, [0, 5]), ("id", 8, [1, 1])]),
        ("flow_ends", 2, [("slice", 4, [5, 0]), ("id", 8, [1, 1]), ("arrives", 1, [1, 0])]),
        ("sched", 5, [("ts", 8, [LEAST, -5, 0, 5, MOST]), ("dur", 8, [MOST, -1, MOST, MOST, MOST]),
                      ("cpu", 4, [NONE, NONE - 1, 1000000, 65536, 0]), ("thread", 4, [0, 1, 2, 0, 1]),
                      ("end_state", 4, [6, 7, 6, 1, 2]), ("priority", 4, [NONE, 1, 2, 3, 4])]),
        ("thread_states", 6, [("ts", 8, [MOST, LEAST, 0, 5, 9, MOST]), ("dur", 8, [MOST, MOST, 5, 4, -1, MOST]),
                              ("thread", 4, [0, 1, 2, 2, 2, 1]), ("state", 4, [8, 6, 6, 8, 7, 8]),
                              ("cpu", 4, [NONE, NONE - 1, 3, 4000000, NONE, 1]), ("waker", 4, [0, 1, NONE, 2, 2, 1])]),
        ("raw_events", 2, [("ts", 8, [LEAST, MOST]), ("name", 4, [1, 2]), ("cpu", 4, [NONE, NONE - 1]), ("thread", 4, [0, NONE]),
                           ("args", 4, [1, 2])]),
        ("mappings", 1, [("build_id", 4, [1]), ("name", 4, [2]), ("start", 8, [-1]), ("end", 8, [0]), ("offset", 8, [-1])]),
        ("frames", 2, [("name", 4, [1, 0]), ("mapping", 4, [0, NONE]), ("rel_pc", 8, [-1, 0]), ("file", 4, [1, 0]),
                       ("line", 4, [NONE, 1])]),
        ("callsites", 3, [("parent", 4, [NONE, 0, 1]), ("frame", 4, [0, 1, 0])]),
        ("samples", 4, [("ts", 8, [LEAST, 0, 5, MOST]), ("thread", 4, [0, 1, 2, NONE]), ("callsite", 4, [2, 1, 0, NONE]),
                        ("cpu", 4, [NONE - 1, 0, 1, NONE]), ("weight", 8, [nan, infinity, real(-1e300), real(1e308)]),
                        ("event", 4, [1, 1, 1, 1])]),
        ("logs", 2, [("ts", 8, [LEAST, MOST]), ("thread", 4, [0, NONE]), ("tag", 4, [1, 2]), ("message", 4, [1, 2])]),
        ("losses", 2, [("ts", 8, [LEAST, MOST]), ("events", 8, [-1, -1]), ("thread", 4, [0, NONE]), ("cpu", 4, [NONE - 1, NONE]),
                       ("what", 4, [1, 2])]),
        ("clock_rows", 4, [("snapshot", 4, [0, 0, 1, 1]), ("ts", 8, [LEAST, MOST, 0, 0]), ("clock", 8, [6, -1, 1, 6]),
                           ("value", 8, [MOST, LEAST, 5, 6])]),
        ("metadata", 2, [("key", 4, [1, 2]), ("text", 4, [1, 0]), ("number", 8, [MOST, LEAST])]),
        ("problems", 2, [("name", 4, [1, 2]), ("severity", 1, [1, 9]), ("number", 8, [-1, 0]), ("first_at", 8, [-1, 5]),
                         ("first", 4, [1, 0])]),
    ]


def everything(kymo):
    """No verb fails because of numbers, prints them to the terminal as they are, or writes what is no JSON."""
    write(all_tables())
    for arguments in (["info"], ["report"], ["hist"], ["sched"], ["sched", "--timehist"]):
        answer(kymo, *arguments, "--json", "made.kymo")
        text = run(kymo, *arguments, "made.kymo")
        check("no control characters", not [c for c in text if (c < " " and c != "\n") or "\x7f" <= c < "\xa0"], text)
    answer(kymo, "validate", "--json", "made.kymo", codes=(1,))
    tables = run(kymo, "query", "-q", "made.kymo", ".tables").split()
    for table in [name for name in tables if not name.startswith(("ancestor_", "descendant_")) and not name.endswith("_flow")]:
        answer(kymo, "query", "-q", "--json", "made.kymo", f"select * from {table}")
    for suffix in ("json", "pftrace", "fxt", "kymo", "folded", "speedscope.json", "pb"):
        answer(kymo, "convert", "--json", "made.kymo", f"out.{suffix}")
        run(kymo, "info", f"out.{suffix}") if suffix != "pb" else None
    for suffix in ("json", "speedscope.json"):
        with open(f"out.{suffix}", encoding="utf-8") as file:
            json.load(file, parse_constant=refuse)
    run(kymo, "convert", "--profile", "spans", "made.kymo", "out.speedscope.json")
    run(kymo, "split", "made.kymo", "--from", "0", "--to", "1s", "-o", "part.kymo", codes=(0, 3))
    run(kymo, "merge", "made.kymo", "made.kymo", "-o", "both.kymo", codes=(0, 1))


def cpus(kymo):
    """Threads that ran on CPUs which sched does not have."""
    count = 60000
    write([
        ("threads", 1, [("tid", 8, [7])]),
        ("logs", 2, [("ts", 8, [0, 10 * count])]),
        ("thread_states", 2 * count, [("ts", 8, [i * 5 for i in range(2 * count)]), ("dur", 8, (5, 2 * count)),
                                      ("thread", 4, (0, 2 * count)), ("state", 4, [RUNNABLE, RUNNING] * count),
                                      ("cpu", 4, [i // 2 if i % 2 else NONE for i in range(2 * count)])]),
    ])
    seen = answer(kymo, "sched", "--json", "made.kymo")
    check("each CPU once", [row["cpu"] for row in seen["cpus"]] == list(range(count)), len(seen["cpus"]))
    check("one waited for each", all(row["depth_max"] == 1 and row["waiting_ns"] == 5 for row in seen["cpus"]), seen["cpus"][:3])


def twice(kymo):
    """A table and a column that are described twice."""
    write([("logs", 2, [("ts", 8, [1, 2]), ("ts", 8, [5, 6])]), ("logs", 1, [("ts", 8, [7])])])
    seen = answer(kymo, "query", "-q", "--json", "made.kymo", "select ts from android_logs")
    check("the first of each", seen == [{"ts": 1}, {"ts": 2}], seen)


def proportion(kymo):
    """Rows of which the file has one byte in 256, and the model 47 each."""
    rows = 131072 * 200
    write([("slices", rows, [("kind", 1, (0, rows))])])
    process = subprocess.Popen([kymo, "info", "made.kymo"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check("memory is in proportion to the file", process.returncode == 0 and usage.ru_maxrss < 600 << 10, (status, usage.ru_maxrss))


def told(kymo):
    """What a JSON file cannot hold, with the true numbers."""
    write([
        ("processes", 1, [("pid", 8, [1]), ("name", 4, [1])]),
        ("threads", 2, [("tid", 8, [0, 7]), ("is_idle", 1, [1, 0])]),
        ("sched", 3, [("ts", 8, [0, 5, 9]), ("dur", 8, [5, 4, 3]), ("cpu", 4, [0, 0, 0]), ("thread", 4, [0, 1, 0])]),
        ("thread_states", 1, [("ts", 8, [5]), ("dur", 8, [4]), ("thread", 4, [1]), ("state", 4, [RUNNING]), ("cpu", 4, [0])]),
    ], clock=1)
    left = answer(kymo, "convert", "--json", "made.kymo", "out.json")["left_out"]
    check("two times that the CPU was idle, no snapshot of clocks", (left["sched"], left["clock_snapshots"]) == (2, 0), left)


def merged(kymo):
    """Of the kernel's rows, those of one host are taken."""
    write([
        ("threads", 1, [("tid", 8, [7])]),
        ("sched", 2, [("ts", 8, [5, 9]), ("dur", 8, [4, 3]), ("cpu", 4, [0, 0]), ("thread", 4, [0, 0])]),
        ("raw_events", 3, [("ts", 8, [5, 6, 7]), ("name", 4, [1, 1, 1]), ("cpu", 4, [0, 0, 0])]),
    ])
    os.rename("made.kymo", "other.kymo")
    write([("threads", 1, [("tid", 8, [7])]), ("logs", 1, [("ts", 8, [1])]),
           ("raw_events", 1, [("ts", 8, [5]), ("name", 4, [1]), ("cpu", 4, [0])])])
    left = answer(kymo, "merge", "--json", "-q", "made.kymo", "other.kymo", "--offset", "other.kymo=0", "-o", "both.kymo")["left_out"]
    check("what is left out of the other", (left["sched"], left["kernel_events"]) == (2, 3), left)


def profiles(kymo):
    """Spans before time 0, and a deep recursion with many calls in its innermost one."""
    deep, leaves = 2000, 3000
    rows = deep + leaves
    write([
        ("threads", 1, [("tid", 8, [7]), ("name", 4, [1])]),
        ("tracks", 1, [("kind", 1, [2]), ("owner", 4, [0])]),
        ("slices", rows, [("ts", 8, [i - 10 for i in range(rows)]), ("dur", 8, [100000 - i if i < deep else 1 for i in range(rows)]),
                          ("track", 4, (0, rows)), ("name", 4, [2] * deep + [3] * leaves),
                          ("parent", 4, [NONE] + [min(i, deep - 1) for i in range(rows - 1)]),
                          ("depth", 2, [min(i, deep) for i in range(rows)])]),
    ], ["t", "f", "g"])
    run(kymo, "convert", "--profile", "spans", "made.kymo", "out.folded")
    with open("out.folded", encoding="utf-8") as file:
        lines = dict(line.rsplit(" ", 1) for line in file)
    check("a stack for each depth, all of the time", len(lines) == deep + 1 and sum(map(int, lines.values())) == 100000, len(lines))
    check("the calls in the innermost one", int(lines["t;" + "f;" * deep + "g"]) == leaves, "")
    run(kymo, "convert", "--profile", "spans", "made.kymo", "out.speedscope.json")
    with open("out.speedscope.json", encoding="utf-8") as file:
        events = json.load(file)["profiles"][0]["events"]
    times = [event["at"] for event in events]
    write([
        ("threads", 1, [("tid", 8, [7])]),
        ("tracks", 1, [("kind", 1, [2]), ("owner", 4, [0])]),
        ("slices", 2, [("ts", 8, [0, 5]), ("dur", 8, [10, 10]), ("track", 4, [0, 0]), ("parent", 4, [NONE, 0]), ("depth", 2, [0, 1])]),
        ("frames", 1, [("name", 4, [1])]),
        ("callsites", 1, [("frame", 4, [0])]),
        ("samples", 3, [("ts", 8, [1, 2, 3]), ("thread", 4, [0, NONE, NONE]), ("callsite", 4, [0, 0, 0]),
                        ("weight", 8, [real(7), real(0.1), real(0.2)])]),
    ])
    left = answer(kymo, "convert", "--json", "--profile", "spans", "made.kymo", "out.speedscope.json")["left_out"]
    check("a span that ends after the one around it", left["ends"] == 1, left)
    left = answer(kymo, "convert", "--json", "--profile", "samples", "made.kymo", "out.folded")["left_out"]
    check("weights that are no numbers of samples", left["samples"] == 2, left)
    check("each opens and closes, in order", len(events) == 2 * rows and times == sorted(times) and times[0] == 0, len(events))


def main():
    kymo = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        everything(kymo)
        cpus(kymo)
        twice(kymo)
        proportion(kymo)
        told(kymo)
        merged(kymo)
        profiles(kymo)
        os.chdir("/")
    return failed


sys.exit(main())
