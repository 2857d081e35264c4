#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clocks.py KYMO PROGRAM: the clocks of drum, ftrace and perf agree, in one trace of one capture.

PROGRAM is clock_pairs: it says how. No check depends on how long anything took, so that a busy machine does not
matter. Needs root, tracefs with copy_trace_marker, and perf events; exits with 77 and says so without."""
import json
import os
import re
import subprocess
import sys
import tempfile

LIMIT_NS = 10000
MARKER = "/sys/kernel/tracing/trace_marker"
failures = 0


def check(holds, what):
    global failures
    print(("ok      " if holds else "FAILED  ") + what)
    failures += not holds


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def query(kymo, trace, sql):
    done = subprocess.run([kymo, "query", "-q", "--json", trace, sql], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def outside(ts, begin, end):
    """How far a time is outside of a span, 0 within."""
    return max(begin - ts, ts - end, 0)


def drum_and_ftrace(kymo, trace):
    rows = {name: [row["ts"] for row in query(kymo, trace, f"select ts from slice where name = '{name}' order by ts")]
            for name in ("before", "marker", "after")}
    count = len(rows["before"])
    check(count > 100 and all(len(times) == count for times in rows.values()),
          f"{count} moments, each told by the drum and by ftrace")
    apart = max(outside(marker, before, after)
                for before, marker, after in zip(rows["before"], rows["marker"], rows["after"]))
    width = min(after - before for before, after in zip(rows["before"], rows["after"]))
    check(apart < LIMIT_NS, f"drum and ftrace: at most {apart} ns apart (the narrowest pair has {width} ns)")


def drum_and_perf(kymo, trace):
    spans = [(row["ts"], row["ts"] + row["dur"])
             for row in query(kymo, trace, "select ts, dur from slice where name = 'in' order by ts")]
    samples = query(kymo, trace, """select s.ts, f.name from perf_sample s
        join stack_profile_callsite c on s.callsite_id = c.id
        join stack_profile_frame f on c.frame_id = f.id
        where f.name in ('work_inside', 'work_outside') order by s.ts""")
    first, last = spans[0][0], spans[-1][1]
    gaps = [(a[1], b[0]) for a, b in zip(spans, spans[1:])]
    worst, counted = 0, 0
    for sample in samples:
        ts = sample["ts"]
        if not first <= ts <= last:
            continue
        places = spans if sample["name"] == "work_inside" else gaps
        worst = max(worst, nearest(ts, places))
        counted += 1
    check(counted > 50, f"{counted} samples while spans came and went")
    check(worst < LIMIT_NS, f"drum and perf: at most {worst} ns apart")


def nearest(ts, places):
    """How far a time is from the nearest of these spans, which are in order."""
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if places[middle][1] < ts:
            low = middle + 1
        else:
            high = middle
    return min(outside(ts, *places[i]) for i in (low - 1, low) if 0 <= i < len(places))


def main():
    kymo, program = sys.argv[1:]
    if os.geteuid() != 0:
        skip("needs root")
    if not os.path.exists(os.path.dirname(MARKER) + "/options/copy_trace_marker"):
        skip("needs tracefs at /sys/kernel/tracing, of Linux 6.15 or later")
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "clocks.kymo")
        done = subprocess.run([kymo, "run", "--kernel=print", "--sample", "2000", "-o", trace, "--", program, MARKER],
                              stderr=subprocess.PIPE, text=True)
        sys.stdout.write(done.stderr)
        check(done.returncode == 0, "the capture")
        drum_and_ftrace(kymo, trace)
        if re.search("no samples", done.stderr):
            print("left out: drum and perf, there are no samples here")
        else:
            drum_and_perf(kymo, trace)
    sys.exit(1 if failures else 0)


main()
