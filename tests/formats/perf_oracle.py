# SPDX-License-Identifier: MIT
"""Compares our samples of perf.data files with what perf itself says of them.

perf_oracle.py SAMPLES_DUMP FIXTURES: for each fixture, the text beside it (X.oracle.txt) or, when there
is none, what `perf script` prints now; with PERF_RECORD=1 then for files that perf records now, in the ways it can. Exit 77
without fixtures and without perf. Compared are the number of samples, and of each its time, thread, process, CPU,
period, and of its stack the innermost frame's address (in its page) and file; and of what was recorded now all
names, where a few may be other names of the same code (perf names those of old recordings by this kernel).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

FIELDS = "comm,pid,tid,cpu,time,period,event,ip,sym,dso"
# perf refuses fields that a recording does not have.
FIELDS_WITHOUT = ("", "cpu,", "time,")
HEAD = re.compile(
    r"^\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?:\[(?P<cpu>-?\d+)\]\s+)?"
    r"(?:(?P<s>\d+)\.(?P<ns>\d{9}):\s+)?(?:(?P<period>\d+)\s+)?(?P<event>\S+):\s*(?P<rest>.*)$")
FRAME = re.compile(r"^\s*(?P<ip>[0-9a-f]+) (?P<sym>.*?) ?\((?P<dso>[^()]*(?:\(deleted\))?)\)$")
# What perf's own reader of today cannot read, or reads with a decoder of its own.
NOT_PERFS = ("compressed2", "intel_pt", "zero_size")
NAMES_MAY_DIFFER = 0.05


def perf_script(path):
    fields = FIELDS
    for without in FIELDS_WITHOUT:
        fields = fields.replace(without, "") if without else fields
        result = subprocess.run(["perf", "script", "--ns", "-f", "-F", fields, "-i", path], capture_output=True,
                                timeout=120)
        if result.stdout:
            break
    return result.stdout.decode("utf-8", "replace")


def samples_of_perf(text):
    samples = []
    for line in text.splitlines():
        head = HEAD.match(line)
        if head:
            frames = []
            samples.append((head, frames))
            frame = FRAME.match(head["rest"]) if head["rest"] else None
        else:
            frame = FRAME.match(line)
        if frame and samples:
            samples[-1][1].append((frame["ip"], frame["sym"].split("+0x")[0], frame["dso"]))
    rows = []
    for head, frames in samples:
        rows.append((int(head["s"] or 0) * 10**9 + int(head["ns"] or 0), int(head["tid"]), int(head["pid"]),
                     int(head["cpu"] or -1), int(head["period"] or 0), frames))
    return rows


def samples_of_ours(tool, path):
    result = subprocess.run([tool, path], capture_output=True, timeout=120)
    rows = []
    for line in result.stdout.decode("utf-8", "replace").splitlines():
        parts = line.split("\t")
        frames = [tuple(parts[i:i + 3]) for i in range(7, len(parts), 3)]
        rows.append((int(parts[0]), int(parts[1]), int(parts[2]), int(parts[3]), int(parts[5]), frames))
    return rows


def same_file(ours, theirs):
    ours = re.sub(r"^(\[kernel\.kallsyms\])_\w+$", r"\1", ours)
    return ours == theirs or ours == "-" or theirs in ("[unknown]", "inlined") or \
        os.path.basename(ours).startswith(theirs.strip("[]")) or "(deleted)" in theirs or \
        ours.startswith("//anon") or theirs.startswith("[") and ours.endswith(".ko") or \
        theirs.startswith("/tmp/") and theirs.endswith(".map")


def compare(name, ours, theirs, names):
    key = lambda row: (row[0], row[1], row[4], row[3])
    ours, theirs = sorted(ours, key=key), sorted(theirs, key=key)
    if len(ours) != len(theirs):
        return f"{len(ours)} samples for {len(theirs)}"
    named = wrong_names = 0
    for a, b in zip(ours, theirs):
        if a[0] != b[0] or a[1] != b[1] or (a[2] != b[2] and a[2] != -1) or (a[3] != b[3] and b[3] != -1):
            return f"sample {a[:5]} for {b[:5]}"
        if a[4] != b[4] and b[4] > 1:
            return f"period {a[:5]} for {b[:5]}"
        real = [f for f in b[5] if f[2] != "inlined"]
        if not a[5] or not real:
            continue
        if int(a[5][0][0], 16) & 0xfff != int(real[0][0], 16) & 0xfff:
            return f"frame {a[5][0]} for {real[0]} of {a[:5]}"
        if not same_file(a[5][0][2], real[0][2]):
            return f"file {a[5][0]} for {real[0]} of {a[:5]}"
        for x, y in zip(a[5], real):
            if x[1] != "-" and y[1] != "[unknown]":
                named += 1
                wrong_names += x[1] != y[1]
            elif x[1] != "-" or y[1] != "[unknown]":
                named += 1
                wrong_names += 1
                if os.environ.get("VERBOSE"):
                    print("name", x, y)
    if names and wrong_names > NAMES_MAY_DIFFER * max(named, 50):
        return f"{wrong_names} of {named} names differ"
    print(f"{name}: {len(ours)} samples, {named} names, {wrong_names} of them other")
    return None


# How perf can record here: by software events, through a pipe, compressed, tracepoints, several events.
WAYS = {
    "stacks": ["-e", "cpu-clock", "-g"],
    "plain": ["-e", "cpu-clock", "-F", "5000"],
    "two-events": ["-e", "cpu-clock,task-clock,page-faults", "-g"],
    "group": ["-e", "{cpu-clock,page-faults}"],
    "all-cpus": ["-a", "-e", "cpu-clock", "-g"],
    "mono": ["-k", "mono", "-e", "cpu-clock", "-g"],
    "compressed": ["-z", "-e", "cpu-clock", "-g"],
    "per-thread": ["--per-thread", "-e", "cpu-clock"],
    "build-ids": ["--buildid-mmap", "-e", "cpu-clock", "-g"],
    "switches": ["--switch-events", "-e", "cpu-clock", "-d"],
    "tracepoints": ["-a", "-e", "sched:sched_switch,sched:sched_waking"],
}
WORK = "for i in 1 2; do ls -lR /usr/include >/dev/null; (cat /etc/passwd | sort >/dev/null) & done; wait"


def record(folder, way, options, pipe):
    path = os.path.join(folder, way + (".pipe" if pipe else "") + ".data")
    command = ["perf", "record", "-q", "-o", "-" if pipe else path] + options + ["--", "sh", "-c", WORK]
    with open(path if pipe else os.devnull, "wb") as out:
        result = subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL, timeout=120)
    return path if result.returncode == 0 and os.path.getsize(path) > 200 else None


def main():
    tool, fixtures = sys.argv[1:3]
    folder = os.path.join(fixtures, "perf-data")
    has_perf = shutil.which("perf") is not None
    failed = compared = 0
    for at, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(at, name)
            if name.endswith((".csv", ".txt")) or any(n in name for n in NOT_PERFS):
                continue
            if os.path.exists(path + ".oracle.txt"):
                with open(path + ".oracle.txt", encoding="utf-8", errors="replace") as file:
                    text = file.read()
            elif has_perf:
                text = perf_script(path)
            else:
                continue
            problem = compare(name, samples_of_ours(tool, path), samples_of_perf(text), False)
            compared += 1
            if problem:
                failed += 1
                print(f"{name}: {problem}")
    with tempfile.TemporaryDirectory() as own:
        for way, options in WAYS.items() if has_perf and os.environ.get("PERF_RECORD") else ():
            for pipe in (False, True):
                path = record(own, way, options, pipe)
                if not path:
                    print(f"{way}: perf cannot record that here")
                    continue
                problem = compare(way + (" in a pipe" if pipe else ""), samples_of_ours(tool, path),
                                  samples_of_perf(perf_script(path)), True)
                compared += 1
                if problem:
                    failed += 1
                    print(f"{way}{' in a pipe' if pipe else ''}: {problem}")
                    if os.environ.get("KEEP"):
                        shutil.copy(path, os.environ["KEEP"])
    if not compared:
        print("skipped: neither fixtures nor perf")
        return 77
    print(f"{compared} files compared, {failed} differ")
    return 1 if failed else 0


sys.exit(main())
