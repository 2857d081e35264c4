#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""enable.py KYMO TARGET: kymo enable and disable on a program that traces until it is killed: categories stay as they were set when the
kymo that did so has ended, recorders are left alone, and what a kymo that was killed left on is switched off by the next that looks.

Waits for what happens, never for a time. Exit 1 when a check failed."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import checks
from checks import check


class Kymo:
    def __init__(self, path, pid):
        self.path, self.pid = path, str(pid)

    def run(self, verb, *arguments):
        return subprocess.run([self.path, verb, "-p", self.pid, *arguments], capture_output=True, text=True, timeout=300)

    def row(self):
        seen = self.run("list", "--json")
        rows = json.loads(seen.stdout)["processes"] if seen.stdout else []
        return rows[0] if rows else {"category": [], "recorders": 0}

    def on(self):
        return sorted(entry["name"] for entry in self.row()["category"] if entry["on"])


def until(condition, what):
    """Wait for a condition that will come true, or the test's limit ends it."""
    while not condition():
        time.sleep(0.1)
    print(f"{what}: ok")


ALL = ["db", "load", "log", "net", "net.debug"]


def switching(kymo):
    check("all are off", kymo.on() == [], kymo.on())
    done = kymo.run("enable", "net,db")
    check("enable", done.returncode == 0 and "2 of 5 categories are on" in done.stdout, done)
    check("they are on", kymo.on() == ["db", "net"], kymo.on())
    done = kymo.run("enable", "net*", "--json")
    row = json.loads(done.stdout)["processes"][0]
    check("some more, as JSON", row["categories_on"] == 3 and kymo.on() == ["db", "net", "net.debug"], done)
    check("no recorder is counted", row["recorders"] == 0, row)
    kymo.run("disable", "net")
    check("one less", kymo.on() == ["db", "net.debug"], kymo.on())
    kymo.run("disable", "db", "net*")
    check("what was on first is off, and nothing else on", kymo.on() == [], kymo.on())
    kymo.run("enable")
    check("all of them", kymo.on() == ALL, kymo.on())
    kymo.run("disable", "l*")
    check("all but some", kymo.on() == ["db", "net", "net.debug"], kymo.on())
    done = kymo.run("disable")
    check("none", done.returncode == 0 and kymo.on() == [], kymo.on())
    done = kymo.run("enable", "nte")
    check("a name that nothing has", done.returncode == 3 and "net" in done.stderr, done)
    kymo.run("disable")
    done = subprocess.run([kymo.path, "enable", "net"], capture_output=True, text=True, timeout=300)
    check("no process", done.returncode == 2, done)


def snapshot(kymo):
    """Nothing records, and yet the last events are there."""
    kymo.run("enable", "net")

    def has_events():
        kymo.run("snapshot", "-o", "last.kymo", "-q")
        seen = subprocess.run([kymo.path, "query", "--csv", "last.kymo", "select distinct category from slice"],
                              capture_output=True, text=True, timeout=300)
        return "net" in seen.stdout.split()

    until(has_events, "snapshot has what is enabled")
    kymo.run("disable")


def killed(kymo):
    """Recorders and the program's own list do not undo each other; a killed recorder is put away."""
    kymo.run("enable", "db")
    with subprocess.Popen([kymo.path, "attach", "-p", kymo.pid, "-c", "net", "-o", "a.kymo", "-q"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as attach:
        until(lambda: "net" in kymo.on(), "attach switches on")
        check("a recorder is counted", kymo.row()["recorders"] == 1, kymo.row())
        kymo.run("disable", "net")
        check("disable leaves the recorder's alone", kymo.on() == ["db", "net"], kymo.on())
        attach.send_signal(signal.SIGKILL)
        attach.wait()
    row = kymo.row()
    check("a killed recorder is not counted", row["recorders"] == 0, row)
    check("looking puts its categories back", kymo.on() == ["db"], kymo.on())
    kymo.run("disable")
    check("and all are off", kymo.on() == [], kymo.on())


def main():
    kymo, target = map(os.path.realpath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KYMO_")}
        with subprocess.Popen([target], env=environment) as program:
            tool = Kymo(kymo, program.pid)
            try:
                until(lambda: len(tool.row()["category"]) == len(ALL), "the program has all categories")
                switching(tool)
                snapshot(tool)
                killed(tool)
                check("the program runs", program.poll() is None)
            finally:
                program.kill()
        os.chdir("/")
    return checks.failed


sys.exit(main())
