# SPDX-License-Identifier: MIT
"""columns.py KYMO FOLDER...: convert every fixture to .kymo, and compare every SQL table of both, byte for byte.

A FOLDER holds MANIFEST.tsv: a line per fixture, its name, and where the data is when that is elsewhere. A folder that is
absent is skipped, with a line that says so.
"""
import os
import re
import subprocess
import sys
import tempfile

TIMEOUT_S = 120
# Functions: their rows depend on an argument.
FUNCTIONS = ("ancestor_slice", "descendant_slice", "following_flow", "preceding_flow", "directly_connected_flow")
# Columns that `select *` does not show.
HIDDEN = {"flow": "name, category", "perf_sample": "weight, event", "cpu_profile_stack_sample": "weight, event"}


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, timeout=TIMEOUT_S)


def tables_of(kymo, path):
    names = run(kymo, "query", "-q", path, ".tables").stdout.decode().split()
    return sorted(set(names) - set(FUNCTIONS))


def dump(kymo, path, tables):
    """All tables, each behind a line with its name."""
    statements = []
    for table in tables:
        columns = "*" + (", " + HIDDEN[table] if table in HIDDEN else "")
        statements += [f"select '=== {table}'", f"select {columns} from {table}"]
    statements += ["select '=== clocks'", "select to_realtime(ts), to_monotonic(ts) from slice limit 100"]
    return run(kymo, "query", "-q", "--csv", path, ";\n".join(statements))


def first_difference(a, b):
    table = ""
    for x, y in zip(a.split(b"\n"), b.split(b"\n")):
        if x.startswith(b"=== "):
            table = x.decode()
        if x != y:
            return f"{table}: {x[:200]!r} became {y[:200]!r}"
    return f"{len(a)} bytes became {len(b)}"


def compare(kymo, path, folder):
    """What is wrong with the .kymo file of a fixture, or None. False: the fixture itself cannot be read."""
    made = os.path.join(folder, "made.kymo")
    again = os.path.join(folder, "again.kymo")
    converted = run(kymo, "convert", path, made)
    if converted.returncode:
        return False
    if b"cannot carry" in converted.stderr:
        return converted.stderr.decode()
    tables = tables_of(kymo, path)
    before = dump(kymo, path, tables)
    after = dump(kymo, made, tables)
    if before.returncode or after.returncode:
        return f"query failed: {before.stderr} {after.stderr}"
    if before.stdout != after.stdout:
        return first_difference(before.stdout, after.stdout)
    # Written once more it is the same file.
    run(kymo, "convert", made, again)
    with open(made, "rb") as one, open(again, "rb") as other:
        return None if one.read() == other.read() else "the .kymo file of the .kymo file is another one"


def fixtures(folder):
    with open(os.path.join(folder, "MANIFEST.tsv"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    column = lines[0].index("data") if "data" in lines[0] else 0
    for line in lines[1:]:
        path = os.path.join(folder, line[column] or line[0])
        if os.path.exists(path):
            yield path


def main():
    kymo = sys.argv[1]
    compared, wrong = 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        for folder in sys.argv[2:]:
            if not os.path.isdir(folder):
                print(f"{folder} is absent: skipped")
                continue
            for path in fixtures(folder):
                what = compare(kymo, path, temporary)
                if what is False:
                    continue
                compared += 1
                if what:
                    wrong += 1
                    print(f"{path}: {what}")
    print(f"{compared} fixtures compared, {wrong} differ")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
