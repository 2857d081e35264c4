#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""report.py KYMO TARGET: which rows kymo report has: messages by their format, names of several categories apart, samples by thread.

Exit 1 when a check failed."""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import time

import checks
from checks import check


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    check(f"{arguments}", done.returncode == 0, done)
    return done.stdout


def messages(kymo, target):
    """A recording of messages, and what other formats keep of it."""
    with subprocess.Popen([target]) as program:
        try:
            while subprocess.run([kymo, "list", "-p", str(program.pid)], capture_output=True, check=False).returncode:
                time.sleep(0.1)
            run(kymo, "attach", "-p", str(program.pid), "-d", "300ms", "-q", "-o", "log.kymo")
        finally:
            program.kill()
    run(kymo, "convert", "-q", "--input-format", "kymo", "log.kymo", "log.json")
    run(kymo, "convert", "-q", "--input-format", "kymo", "log.kymo", "log.pftrace")
    for file in ["log.kymo", "log.json", "log.pftrace"]:
        rows = {row["name"]: row for row in json.loads(run(kymo, "report", "--json", file))["rows"]}
        check(f"{file}: one row for all messages", rows.get("request %d done", {}).get("instants", 0) > 1 and
              not any(name.startswith("request ") and name != "request %d done" for name in rows), rows)
    text = run(kymo, "query", "--csv", "log.kymo", "select distinct name from slice where category = 'log'")
    check("the messages keep their texts", "%d" not in text, text)


SPANS = """[{"ph":"X","pid":1,"tid":2,"ts":0,"dur":10,"cat":"libdb.so","name":"commit"},
{"ph":"X","pid":1,"tid":2,"ts":1,"dur":4,"cat":"db","name":"commit"},
{"ph":"X","pid":1,"tid":2,"ts":6,"dur":3,"cat":"db","name":"commit"},
{"ph":"X","pid":1,"tid":2,"ts":11,"dur":1,"cat":"db","name":"once"}]"""


def categories(kymo):
    with open("spans.json", "w", encoding="utf-8") as file:
        file.write(SPANS)
    rows = {(row["name"], row["category"]): row for row in json.loads(run(kymo, "report", "--json", "spans.json"))["rows"]}
    check("a function and a span of one name", {key: (row["count"], row["total_ns"], row["self_ns"]) for key, row in rows.items()} == {
        ("commit", "libdb.so"): (1, 10000, 3000), ("commit", "db"): (2, 7000, 7000), ("once", "db"): (1, 1000, 1000)}, rows)
    check("percentiles are of each", rows["commit", "db"]["max_ns"] == 4000 and rows["commit", "db"]["min_ns"] == 3000, rows)
    text = run(kymo, "report", "spans.json")
    check("told apart by their categories", "commit [libdb.so]" in text and "commit [db]" in text and "once  " in text, text)
    table = list(csv.DictReader(io.StringIO(run(kymo, "report", "--csv", "spans.json"))))
    check("CSV", {(row["name"], row["category"]) for row in table} == set(rows), table)


SAMPLES = """prog 10/11 [000] 1.000000: 5 cycles:
\tffff inner+0x1 (/lib/a.so)

prog 10/12 [000] 2.000000: 7 cycles:
\tffff inner+0x1 (/lib/a.so)

prog 10/12 [000] 3.000000: 8 cycles:
\teeee main+0x1 (/bin/prog)

"""


def samples(kymo):
    with open("perf.txt", "w", encoding="utf-8") as file:
        file.write(SAMPLES)
    rows = json.loads(run(kymo, "report", "--by", "thread", "--json", "perf.txt"))["rows"]
    check("samples by thread", [(row["tid"], row["samples"], row["weight"]) for row in rows] == [(12, 2, 15), (11, 1, 5)], rows)
    rows = json.loads(run(kymo, "report", "--by", "process", "--json", "perf.txt"))["rows"]
    check("samples by process", [(row["pid"], row["samples"]) for row in rows] == [(10, 3)], rows)
    rows = json.loads(run(kymo, "report", "--by", "thread", "--name", "main", "--json", "perf.txt"))["rows"]
    check("with a filter", [(row["tid"], row["samples"]) for row in rows] == [(12, 1)], rows)
    text = run(kymo, "report", "--by", "thread", "perf.txt")
    check("as a table", "75.0 %" in text and "prog 12" in text, text)


def main():
    kymo, target = map(os.path.realpath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        messages(kymo, target)
        categories(kymo)
        samples(kymo)
        os.chdir("/")
    return checks.failed


sys.exit(main())
