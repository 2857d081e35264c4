#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""profiles.py KYMO: flame graphs to a file: collapsed stacks, speedscope and pprof, of samples and of spans. pprof's message is taken
apart by a decoder of its own, by the numbers of profile.proto.

Exit 1 when a check failed."""
import gzip
import json
import os
import subprocess
import sys
import tempfile

import checks
from checks import check


SPANS = """[
{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"worker; one"}},
{"ph":"B","pid":1,"tid":2,"ts":1000,"cat":"net","name":"outer"},
{"ph":"B","pid":1,"tid":2,"ts":2000.5,"cat":"net","name":"inner"},
{"ph":"E","pid":1,"tid":2,"ts":3000.123},
{"ph":"B","pid":1,"tid":2,"ts":4000,"cat":"net","name":"inner"},
{"ph":"E","pid":1,"tid":2,"ts":4001},
{"ph":"E","pid":1,"tid":2,"ts":9000},
{"ph":"i","pid":1,"tid":2,"ts":5000,"name":"tick"},
{"ph":"B","pid":1,"tid":3,"ts":4000,"cat":"db","name":"read"}]"""

SAMPLES = """prog 10/11 [000] 1.000000: 5 cycles:
\tffff inner+0x1 (/lib/a.so)
\teeee main+0x1 (/bin/prog)

prog 10/11 [000] 2.000000: 7 cycles:
\tffff inner+0x1 (/lib/a.so)
\teeee main+0x1 (/bin/prog)

prog 10/11 [000] 3.000000: 100 cpu-clock:
\teeee main+0x1 (/bin/prog)

"""


def convert(kymo, *arguments):
    done = subprocess.run([kymo, "convert", *arguments], capture_output=True, text=True, timeout=120)
    check(f"convert {arguments}", done.returncode == 0, done.stderr)
    return done


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def message(data):
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def pprof(path):
    """The profile's types, and its samples as {stack: values}, the innermost function first."""
    whole = message(gzip.open(path).read())
    text = [entry.decode() for entry in whole[6]]
    check("the first string is empty", text[0] == "", text[0])
    functions = {m[1][0]: text[m[2][0]] for m in map(message, whole[5])}
    locations = {}
    for location in map(message, whole[4]):
        locations[location[1][0]] = functions[message(location[4][0])[1][0]]
    types = [(text[m[1][0]], text[m[2][0]]) for m in map(message, whole[1])]
    samples = {}
    for sample in map(message, whole[2]):
        stack = ";".join(locations[i] for i in packed(sample.get(1, [b""])[0]))
        labels = {text[m[1][0]]: text[m[2][0]] if 2 in m else m[3][0] for m in map(message, sample[3])}
        samples[stack] = packed(sample[2][0]), labels
    return types, samples, text[whole[14][0]]


def spans(kymo):
    with open("spans.json", "w", encoding="utf-8") as file:
        file.write(SPANS)
    done = convert(kymo, "spans.json", "spans.folded")
    lines = sorted(open("spans.folded", encoding="utf-8").read().splitlines())
    # What never ends, ends with the trace, at 9000.
    check("collapsed spans", lines == ["thread 3;read 5000000", "worker: one;outer 6999377",
                                       "worker: one;outer;inner 1000623"], lines)
    check("what was left out", "1 instant" in done.stderr, done.stderr)

    convert(kymo, "spans.json", "spans.speedscope.json")
    file = json.load(open("spans.speedscope.json", encoding="utf-8"))
    check("speedscope's schema", file["$schema"] == "https://www.speedscope.app/file-format-schema.json")
    names = [frame["name"] for frame in file["shared"]["frames"]]
    events = [(e["type"], names[e["frame"]], e["at"]) for e in file["profiles"][0]["events"]]
    check("speedscope's events", events == [
        ("O", "outer", 0), ("O", "inner", 1000500), ("C", "inner", 2000123), ("O", "inner", 3000000),
        ("C", "inner", 3001000), ("C", "outer", 8000000)], events)
    check("a profile for each thread", [p["name"] for p in file["profiles"]] == ["worker; one", "thread 3"], file)

    convert(kymo, "spans.json", "spans.pb.gz")
    types, samples, shown = pprof("spans.pb.gz")
    check("pprof's types", types == [("spans", "count"), ("time", "nanoseconds")] and shown == "time", types)
    check("pprof's samples", {k: v[0] for k, v in samples.items()} == {
        "outer": [1, 6999377], "inner;outer": [2, 1000623], "read": [1, 5000000]}, samples)
    check("pprof's labels", samples["outer"][1] == {"thread": "worker; one", "tid": 2, "pid": 1}, samples)


def sampled(kymo):
    with open("perf.txt", "w", encoding="utf-8") as file:
        file.write(SAMPLES)
    done = convert(kymo, "perf.txt", "s.folded")
    lines = open("s.folded", encoding="utf-8").read().splitlines()
    check("the event with the most samples", lines == ["prog;main;inner 12"], lines)
    check("the others are reported", "1 sample" in done.stderr, done.stderr)

    convert(kymo, "perf.txt", "s.speedscope.json")
    file = json.load(open("s.speedscope.json", encoding="utf-8"))
    profiles = [(p["type"], p["unit"], len(p["samples"]), p["weights"]) for p in file["profiles"]]
    check("a profile for each event", sorted(profiles) == [("sampled", "nanoseconds", 1, [100]),
                                                           ("sampled", "none", 2, [5, 7])], profiles)

    convert(kymo, "perf.txt", "s.pb.gz")
    types, samples, shown = pprof("s.pb.gz")
    check("a value for each event", types == [("samples", "count"), ("cycles", "count"), ("cpu-clock", "nanoseconds")]
          and shown == "cycles", types)
    check("pprof's samples", {k: v[0] for k, v in samples.items()} == {
        "inner;main": [2, 12, 0], "main": [1, 0, 100]}, samples)

    convert(kymo, "--profile", "spans", "perf.txt", "none.folded")
    check("no spans", open("none.folded", encoding="utf-8").read() == "")
    done = convert(kymo, "--format", "collapsed", "--json", "perf.txt", "x.txt")
    check("--json", json.loads(done.stdout)["left_out"]["samples"] == 1, done.stdout)


def recorded(kymo):
    command = [kymo, "run", "-q", "--sample", "2000", "-o", "r.kymo", "--", sys.executable, "-c", "sum(i * i for i in range(3000000))"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    rows = subprocess.run([kymo, "query", "--csv", "r.kymo", "select count(*) > 0 from perf_sample"], capture_output=True, text=True, timeout=600)
    if done.returncode or rows.stdout.splitlines()[-1:] != ["1"]:
        print(f"a recording: skipped: no samples here: {done.stderr}")
        return
    convert(kymo, "r.kymo", "r.pb.gz")
    whole = message(gzip.open("r.pb.gz").read())
    mappings = [message(m) for m in whole[3]]
    used = {message(location).get(2, [0])[0] for location in whole[4]} - {0}
    check("pprof's mappings are those of its locations", {m[1][0] for m in mappings} == used, mappings)
    starts = [m[2][0] for m in mappings]
    check("pprof's first mapping is the lowest", starts == sorted(starts), starts)


def main():
    kymo = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        spans(kymo)
        sampled(kymo)
        recorded(kymo)
        os.chdir("/")
    return checks.failed


sys.exit(main())
