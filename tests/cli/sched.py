#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sched.py KYMO: kymo sched on a small trace in ftrace's text form, whose answers are counted by hand.

Exit 1 when a check failed."""
import json
import os
import subprocess
import sys
import tempfile

import checks
from checks import check


def switch(cpu, time, prev, state, following):
    return (f"  {prev[0]}-{prev[1]} [00{cpu}] d..2. {time:.6f}: sched_switch: prev_comm={prev[0]} prev_pid={prev[1]} prev_prio=120 "
            f"prev_state={state} ==> next_comm={following[0]} next_pid={following[1]} next_prio=120\n")


def waking(cpu, time, waker, task):
    return (f"  {waker[0]}-{waker[1]} [00{cpu}] d..3. {time:.6f}: sched_waking: comm={task[0]} pid={task[1]} prio=120 "
            f"target_cpu=00{cpu}\n")


def mark(cpu, time, task, text):
    return f"  {task[0]}-{task[1]} [00{cpu}] ...1. {time:.6f}: tracing_mark_write: {text}\n"


IDLE, A, B, C = ("<idle>", 0), ("alpha", 10), ("beta", 20), ("gamma", 30)
SWAPPER = ("swapper/0", 0)


def trace():
    """On CPU 0: alpha runs 10 ms and sleeps in a span, beta wakes it after 5 ms; it waits 3 ms for beta. gamma is preempted on CPU 1."""
    return "# tracer: nop\n#\n" + "".join([
        switch(0, 1.000, SWAPPER, "R", A),
        mark(0, 1.002, A, "B|10|request"),
        switch(1, 1.004, SWAPPER, "R", C),
        switch(0, 1.010, A, "S", B),
        switch(1, 1.012, C, "R+", B),  # events of beta on CPU 0 are missing: it is on CPU 1 now
        waking(0, 1.015, B, A),
        switch(0, 1.018, B, "S", A),
        mark(0, 1.019, A, "E|10"),
        switch(1, 1.020, B, "S", C),
        switch(0, 1.030, A, "D", SWAPPER),
        switch(1, 1.031, C, "S", SWAPPER),
        switch(0, 1.040, SWAPPER, "R", B),
        switch(0, 1.050, B, "S", SWAPPER),
    ])


def run(kymo, *arguments, code=0):
    done = subprocess.run([kymo, "sched", *arguments], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    check(f"sched {arguments}", done.returncode == code, done)
    check("ASCII", done.stdout.isascii())
    return done.stdout


MS = 1000000


def statistics(kymo):
    answer = json.loads(run(kymo, "--json", "trace.txt"))
    threads = {row["thread"]["name"]: row for row in answer["threads"]}
    alpha, gamma = threads["alpha"], threads["gamma"]
    check("alpha ran twice", alpha["runs"] == 2 and alpha["run_ns"] == 22 * MS and alpha["cpus"] == {"0": 22 * MS}, alpha)
    check("it slept 5 ms, waited 3 and is blocked since", alpha["sleep_ns"] == 5 * MS and alpha["runnable_ns"] == 3 * MS and
          alpha["blocked_ns"] == 20 * MS, alpha)
    check("a delay of 3 ms", alpha["delay"] == {"count": 1, "total_ns": 3 * MS, "mean_ns": 3 * MS, "max_ns": 3 * MS,
                                                "max_ts": 1015 * MS}, alpha)
    check("gamma was preempted", gamma["preempted"] == 1 and gamma["delay"]["max_ns"] == 8 * MS, gamma)
    check("losses and problems are there", answer["lost"] == 0 and answer["problems"] == [], answer)
    off = {(row["thread"]["name"], row["state"]): row for row in answer["off_cpu"]}
    slept = off["alpha", "S"]
    check("off the CPU in a span, woken by beta", slept["span"] == "request" and slept["waker"]["name"] == "beta" and
          slept["times"]["total_ns"] == 8 * MS, slept)
    check("gamma: no span, no waker", off["gamma", "R+"]["span"] is None and off["gamma", "R+"]["waker"] is None, off)
    cpus = {row["cpu"]: row for row in answer["cpus"]}
    check("CPU 0", cpus[0]["busy_ns"] == 40 * MS and cpus[0]["idle_ns"] == 10 * MS and cpus[0]["depth_max"] == 1, cpus)
    check("the queue", answer["depth_max"] == 2 and answer["depth_max_ts"] == 1015 * MS, answer)


def parts(kymo):
    answer = json.loads(run(kymo, "--json", "--thread", "alpha", "--from", "20ms", "trace.txt"))
    check("a part", [row["run_ns"] for row in answer["threads"]] == [10 * MS], answer)
    run(kymo, "--thread", "none", "trace.txt", code=3)
    with open("empty.json", "w", encoding="utf-8") as file:
        file.write('[{"ph":"i","pid":1,"tid":1,"ts":1,"name":"x"}]')
    run(kymo, "empty.json", code=1)


def no_cpu(kymo):
    """Of states that do not say the CPU, only the time is known."""
    with open("states.json", "w", encoding="utf-8") as file:
        json.dump([{"ph": "T", "pid": 1, "tid": 2, "ts": 1, "dur": 5, "name": "R"},
                   {"ph": "T", "pid": 1, "tid": 2, "ts": 6, "dur": 4, "name": "Running"}], file)
    answer = json.loads(run(kymo, "--json", "states.json"))
    thread = answer["threads"][0]
    check("as long as its states", (answer["begin_ts"], answer["duration_ns"]) == (1000, 9000), answer)
    check("times without a CPU", (thread["runs"], thread["run_ns"], thread["delay"]["max_ns"]) == (1, 4000, 5000), thread)
    check("no CPU is made up", answer["cpus"] == [] and thread["cpus"] == {} and answer["depth_max"] == 1, answer)
    answer = json.loads(run(kymo, "--timehist", "--json", "states.json"))
    check("nor in the list", answer["switches"][0]["cpu"] is None, answer)
    check("nor in the tables", "4294967295" not in run(kymo, "states.json") + run(kymo, "--timehist", "states.json"))


def tables(kymo):
    text = run(kymo, "trace.txt")
    for part in ["2 CPUs, 50.0 ms", "alpha 10", "max delay", "0.015000 s", "woken by", "request", "beta 20"]:
        check(f"the tables have '{part}'", part in text, text)
    lines = run(kymo, "--timehist", "--thread", "alpha", "trace.txt").splitlines()
    check("a line for each run", len(lines) == 3 and lines[1].split()[:2] == ["0.010000", "s"], lines)
    check("what came before it", "5.00 ms  3.00 ms  12.0 ms  D" in lines[2] and lines[2].endswith("beta 20"), lines)
    answer = json.loads(run(kymo, "--timehist", "--json", "--thread", "alpha", "trace.txt"))
    second = answer["switches"][1]
    check("the same as JSON", (second["wait_ns"], second["delay_ns"], second["run_ns"], second["state"]) ==
          (5 * MS, 3 * MS, 12 * MS, "D"), answer)
    check("the span that it left in", answer["switches"][0]["span"] == "request", answer)


def main():
    kymo = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("trace.txt", "w", encoding="utf-8") as file:
            file.write(trace())
        statistics(kymo)
        parts(kymo)
        no_cpu(kymo)
        tables(kymo)
        os.chdir("/")
    return checks.failed


sys.exit(main())
