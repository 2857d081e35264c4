# SPDX-License-Identifier: MIT
"""fixtures.py TRACE_DUMP KNOWN FOLDER...: read every fixture and compare with what a reference tool read from it.

A FOLDER holds MANIFEST.tsv: a line per fixture, its name, and where the data is when that is elsewhere. The tables beside a fixture
have what the reference read. A folder that is absent is skipped, with a line that says so. KNOWN lists the differences that are explained: a path
or glob, a tab, the reason. A line of it that explains nothing any more fails, so that the list stays true.
"""
import csv
import fnmatch
import io
import os
import subprocess
import sys

TIMEOUT_S = 60
SLICES_MAX = 20000  # as many as the tables have
# What the counts of other tools and ours mean alike. Threads, processes and arguments are counted by
# Perfetto with ones that it makes up itself.
COUNTS = ("slices", "unfinished", "flows", "counters", "sched", "samples")


def dump(tool, what, path):
    environment = dict(os.environ)
    if "/ctf/" in path:
        # babeltrace2's library leaks what it has of a trace that it refuses.
        environment["ASAN_OPTIONS"] = "detect_leaks=0"
    return subprocess.run([tool, what, path], capture_output=True, timeout=TIMEOUT_S, env=environment)


def slices_of(text):
    rows = list(csv.reader(io.StringIO(text)))[1:]
    # Ordered as the tables are: ts, depth, dur descending, name.
    rows = [(int(r[0]), int(r[2]), -int(r[1]), r[3], r[4], r[5], r[6]) for r in rows if len(r) == 7]
    return sorted(rows)


def compare_slices(tool, path, tables):
    with open(tables + ".perfetto-slices.csv", encoding="utf-8", errors="replace") as file:
        expected = slices_of(file.read())
    ours = slices_of(dump(tool, "slices", path).stdout.decode("utf-8", "replace"))
    if len(expected) >= SLICES_MAX:
        ours = ours[: len(expected)]
    if expected == ours:
        return None
    extra = [r for r in ours if r not in set(expected)][:1]
    missing = [r for r in expected if r not in set(ours)][:1]
    return f"slices: {len(ours)} for {len(expected)}; ours alone {extra}; missing {missing}"


def compare_counts(tool, path, tables):
    with open(tables + ".perfetto-counts.csv", encoding="utf-8") as file:
        expected = next(csv.DictReader(file))
    ours = next(csv.DictReader(io.StringIO(dump(tool, "counts", path).stdout.decode())))
    wrong = [f"{k} {ours[k]} for {expected[k]}" for k in COUNTS if expected[k] != ours[k]]
    return ", ".join(wrong) or None


def compare_events(tool, path, tables):
    """babeltrace2 prints a line per event, kymo counts the events that it put into the trace."""
    with open(tables + ".oracle.txt", encoding="utf-8", errors="replace") as file:
        expected = sum(1 for line in file if line.strip())
    ours = int(dump(tool, "events", path).stdout or 0)
    return None if ours == expected else f"events: {ours} for {expected}"


def check(tool, path, tables):
    """Return what is wrong with our reading of the file, or None."""
    try:
        result = dump(tool, "counts", path)
    except subprocess.TimeoutExpired:
        return "takes too long"
    if result.returncode not in (0, 1):
        return f"ends with {result.returncode}: {result.stderr.decode()[-400:]}"
    if result.returncode == 1 and (result.stdout or len(result.stderr.splitlines()) != 1):
        return "an error is not one line: " + result.stderr.decode()[:300]
    findings = []
    comparisons = [(".perfetto-slices.csv", compare_slices), (".perfetto-counts.csv", compare_counts)]
    if "/ctf/" in path:
        comparisons.append((".oracle.txt", compare_events))
    for suffix, compare in comparisons:
        if os.path.exists(tables + suffix):
            if result.returncode:
                return result.stderr.decode().strip()
            finding = compare(tool, path, tables)
            if finding:
                findings.append(finding)
    return "; ".join(findings) or None


def read_known(path):
    known = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                pattern, reason = line.rstrip("\n").split("\t", 1)
                known.append((pattern, reason))
    return known


def manifest(folder):
    with open(folder + "/MANIFEST.tsv", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def main():
    tool, known_path, *folders = sys.argv[1:]
    known = read_known(known_path)
    equal = explained = failed = absent = 0
    used = set()
    names = []
    for folder in folders:
        if not os.path.exists(folder + "/MANIFEST.tsv"):
            print(f"skipped: no fixtures at {folder}")
            absent += 1
            continue
        for row in manifest(folder):
            name = row["file"]
            names.append(name)
            finding = check(tool, os.path.join(folder, row.get("data") or name), os.path.join(folder, name))
            reasons = [k for k in known if fnmatch.fnmatch(name, k[0])]
            if finding and reasons:
                used.update(reasons)
                explained += 1
            elif finding:
                failed += 1
                print(f"{name}\n\t{finding}")
            else:
                equal += 1
    for line in known:
        if line not in used and (not absent or fnmatch.filter(names, line[0])):
            print(f"{line[0]}\n\tis listed as different and is not")
            failed += 1
    print(f"{equal} as expected, {explained} explained, {failed} not")
    return 1 if failed else 0


sys.exit(main())
