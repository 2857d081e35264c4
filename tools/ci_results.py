#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ci_results.py NAME TESTLOG OUTPUT: count the results in a testlog.json of `meson test`.

Print "PASSED FAILED SKIPPED" to standard output. Report to standard error why tests were skipped, and the log of
each test that failed. When no test ran, because the build failed, show the end of OUTPUT and count one failure.

ci_results.py --skipped BUILD: list what the last `meson test` skipped, whole tests and single checks, with the
reason, which names what would enable it.
"""
import json
import re
import sys

LINES_MAX = 120
GOOD = ("OK", "EXPECTEDFAIL")


def short_name(test):
    return test["name"].rsplit(" / ", 1)[-1]


def said(test):
    return (test.get("stdout", "") + test.get("stderr", "")).rstrip().splitlines()


def shown(lines):
    """Return the lines that say what is wrong, with those after each, and the end."""
    wrong = [i for i, line in enumerate(lines) if any(word in line for word in ("FAILED", "ERROR", "Error"))]
    kept = sorted({j for i in wrong[:20] for j in range(i, min(i + 4, len(lines)))} |
                  set(range(max(0, len(lines) - LINES_MAX // 2), len(lines))))
    return [lines[i][:300] for i in kept[-LINES_MAX:]]


def report(*text):
    print(*text, sep="\n", file=sys.stderr)


def reason(test):
    return (said(test) or ["no reason given"])[-1]


def list_skipped(build):
    """Print a line for each test that was skipped, and for each check that one skipped."""
    try:
        with open(build + "/meson-logs/testlog.json", encoding="utf-8") as file:
            tests = [json.loads(line) for line in file]
    except (OSError, ValueError):
        return
    lines = []
    for test in tests:
        checks = [re.sub(r"skipped: ", "", line, count=1) for line in said(test) if re.match(r"([^:]*: )?skipped: ", line)]
        lines += [(short_name(test), why) for why in checks or ([reason(test)] if test["result"] == "SKIP" else [])]
    if lines:
        width = max(len(name) for name, _ in lines)
        print("Skipped, and why:", *("  %-*s  %s" % (width, *line) for line in sorted(set(lines))), sep="\n")


def main():
    if sys.argv[1] == "--skipped":
        list_skipped(sys.argv[2])
        return
    name, testlog, output = sys.argv[1:]
    try:
        with open(testlog, encoding="utf-8") as file:
            tests = [json.loads(line) for line in file]
        if not tests:
            raise ValueError("the log is empty")
    except (OSError, ValueError) as error:
        with open(output, encoding="utf-8", errors="replace") as file:
            report(*file.read().splitlines()[-100:])
        report("FAILED: %s: no tests ran (%s)" % (name, error))
        print(0, 1, 0)
        return
    good = [test for test in tests if test["result"] in GOOD]
    skipped = [test for test in tests if test["result"] == "SKIP"]
    bad = [test for test in tests if test not in good and test not in skipped]
    for test in skipped:
        report("   skipped: %s: %s" % (short_name(test), reason(test)))
    for test in bad:
        report("FAILED: %s: %s: %s after %.0f s" % (name, short_name(test), test["result"], test.get("duration", 0)))
        report(*("   | " + line for line in shown(said(test))))
    report("   %d passed, %d failed, %d skipped" % (len(good), len(bad), len(skipped)))
    print(len(good), len(bad), len(skipped))


if __name__ == "__main__":
    main()
