#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tool while allocations and writes fail: tool.py [OPTIONS] KYMO FAULTS (see faults.py).

Whatever fails, it ends with an exit code of its own and says why, or does what it does otherwise; a file that was there
before is as it was, or is the new one, whole.
"""
import os
import re
import struct
import subprocess

import faults

FIXTURES = os.path.join(faults.ROOT, "tests", "fixtures")
# Without libzstd the descriptions of tables cannot be read.
MEMORY = re.compile(rb"memory|libz(std)?\.so|shared library|tables is whole", re.I)

# One small file of each format that is a file.
READ = {
    "collapsed": "collapsed/utf16le", "ftrace_text": "ftrace_text/trace.txt", "fxt": "fxt/args", "jitdump": "jitdump/little",
    "json": "json/object", "gecko": "json/gecko", "json profile": "json/profile", "kymo": "kymo/small", "bundle": "kymo/bundle",
    "columns": "kymo_columns/events",
    "perf_data": "perf_data/tracepoint_features", "perf_data packed": "perf_data/compressed",
    "perf_script": "perf_script/branches", "pftrace": "pftrace/slices", "pftrace samples": "pftrace/samples",
    "pftrace ftrace": "pftrace/ftrace", "pftrace zlib": "pftrace/zlib", "spall": "spall/v3", "speedscope": "speedscope/evented",
    "systrace_html": "systrace_html/packed.html", "trace_dat": "trace_dat/seven-zlib.dat",
}
# Those that are folders: the seeds hold the files in a row (see fuzz_directory.h).
FOLDERS = {
    "ctf": ("ctf/kernel", ["metadata", "stream_0", "stream_1"]),
    "uftrace": ("uftrace/calls", ["info", "task.txt", "sid-00ff.map", "prog.sym", "10.dat", "11.dat", "perf-cpu0.dat",
                                  "kernel-cpu0.dat"]),
}


def is_like(kymo, one, other):
    """Whether two files hold the same, the one uncompressed or written in another way."""
    found = []
    for data in (one, other):
        with open("like", "wb") as file:
            file.write(data)
        slices = [kymo, "query", "--csv", "like", "select ts, dur, name from slice order by 1, 2, 3"]
        found.append(subprocess.run(slices, capture_output=True, check=False).stdout)
    os.remove("like")
    return len(found[0]) > 20 and found[0] == found[1]


class ToolCase(faults.Case):
    """A command line of the tool; a word that begins with OUT is the file that it writes."""

    def __init__(self, name, kymo, *words, kinds=("memory", "write")):
        outputs = [word for word in words if word.startswith("OUT")]
        super().__init__(name, kymo, *words, output=outputs[0] if outputs else None, kinds=kinds)

    def trouble(self, run, usual):
        said = run.is_reported(MEMORY)
        if run.code < 0 or run.code > 3:
            return f"it ends with {run.code}"
        if run.code != usual.code:
            if run.file is not None and run.file != faults.OLD:
                return "it fails, and the file that was there is another"
            return None if said else "it fails, and does not say why"
        if run.file != usual.file and not said and not is_like(self.command[0], run.file, usual.file):
            return "its file is another, and its exit code the same"
        if run.out != usual.out and not said and not ("-" in self.command and is_like(self.command[0], run.out, usual.out)):
            return "its output is another, and it does not say why"
        return None


def unpack_folder(name, seed, files):
    os.mkdir(name)
    data = faults.content(os.path.join(faults.CORPUS, seed))
    while len(data) >= 3:
        number, length = struct.unpack_from("<BH", data)
        with open(os.path.join(name, files[number % len(files)]), "wb") as file:
            file.write(data[3:3 + length])
        data = data[3 + length:]


def readers(kymo):
    for name, path in READ.items():
        yield ToolCase("info " + name, kymo, "info", os.path.join(faults.CORPUS, path), kinds=["memory"])
    for name, (seed, files) in FOLDERS.items():
        unpack_folder(name, seed, files)
        yield ToolCase("info " + name, kymo, "info", name, kinds=["memory"])
    with open("drum", "wb") as file:
        file.write(faults.content(os.path.join(faults.CORPUS, "drum", "whole"))[1:])  # the first byte is the fuzz target's
    yield ToolCase("info drum", kymo, "info", "drum", kinds=["memory"])


def cases(kymo):
    yield from readers(kymo)
    demo, sampled = os.path.join(FIXTURES, "demo.pftrace"), os.path.join(FIXTURES, "sampled.pftrace")
    small, bundle, json, columns, switches = (os.path.join(faults.CORPUS, name) for name in (
        "kymo/small", "kymo/bundle", "json/object", "kymo_columns/events", "ftrace_text/trace.txt"))
    for suffix in ("json", "pftrace", "fxt", "kymo", "json.gz", "pftrace.zst"):
        yield ToolCase(f"convert pftrace {suffix}", kymo, "convert", demo, "OUT." + suffix)
        yield ToolCase(f"convert kymo {suffix}", kymo, "convert", small, "OUT." + suffix)
    for suffix in ("json", "folded", "speedscope.json", "pb.gz"):
        yield ToolCase(f"convert samples {suffix}", kymo, "convert", sampled, "OUT." + suffix)
    yield ToolCase("convert bundle", kymo, "convert", bundle, "OUT.pftrace")
    yield ToolCase("convert stdout", kymo, "convert", "--format", "json", small, "-")
    yield ToolCase("split", kymo, "split", "--to", "1us", json, "-o", "OUT.json")
    yield ToolCase("split kymo", kymo, "split", "--to", "1us", small, "-o", "OUT.kymo")
    yield ToolCase("split columns", kymo, "split", "--from", "0", columns, "-o", "OUT.kymo")
    yield ToolCase("merge", kymo, "merge", "-o", "OUT.json", "--offset", small + "=0", json, small)
    yield ToolCase("merge kymo", kymo, "merge", "-o", "OUT.kymo", small, bundle)
    yield ToolCase("repair", kymo, "repair", os.path.join(faults.CORPUS, "kymo/cut"), "-o", "OUT.kymo")
    yield ToolCase("view --export", kymo, "view", "--export", "OUT.html", demo)
    for words in (
            ["query", demo, "select name, count(*), sum(dur) from slice group by name order by 2, 1"],
            ["query", "--json", demo, "select * from slice join thread_track on track_id = thread_track.id limit 20"],
            ["query", "--json", "--faults", small, "select name from slice", ".schema slice"], ["sched", "--json", switches],
            ["report", demo], ["report", "--json", demo], ["report", "--by", "thread", demo], ["report", sampled],
            ["hist", demo], ["info", "--json", demo], ["validate", demo], ["diff", demo, small]):
        yield ToolCase(" ".join(os.path.basename(word) for word in words)[:40], kymo, *words, kinds=["memory"])


if __name__ == "__main__":
    faults.main(cases, ["kymo"])
