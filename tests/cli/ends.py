#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ends.py KYMO TARGET: a span that is open when its thread ends, ends then: in files of sessions, in buffers that a killed program left, in
recordings and snapshots, and in what is converted from them. A thread that goes on in a larger ring has not ended.

Exit 1 when a check failed."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import checks
from checks import check

FORMATS = ("json", "pftrace", "fxt", "kymo")
ENDED = """select count(*) from slice as s, slice as after where s.name = 'left open' and after.name = 'after the thread'
    and s.dur >= 0 and s.ts + s.dur <= after.ts"""


class Tool:
    def __init__(self, path):
        self.path = path

    def run(self, *arguments):
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, timeout=600, check=False,
                              stdin=subprocess.DEVNULL)

    def number(self, path, sql):
        return int(self.run("query", "--csv", path, sql).stdout.split()[-1])

    def check_ended(self, what, path, whole=True):
        rows = self.run("query", "--csv", path, "select name, ts, dur from slice")
        check(what, self.number(path, ENDED) == 1, rows)
        problems = json.loads(self.run("validate", "--json", path).stdout)["problems"]
        check(f"{what}: and nothing is wrong", not problems or not whole, problems)

    def check_converted(self, what, path):
        for suffix in FORMATS:
            done = self.run("convert", path, "converted." + suffix)
            check(f"{what} to {suffix}", done.returncode == 0, done)
            self.check_ended(f"{what} to {suffix}", "converted." + suffix)


class Target:
    """A program that obeys lines of input, and prints a line after each."""

    def __init__(self, path, **environment):
        self.process = subprocess.Popen([path, "obey"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})
        self.pid = str(self.process.pid)
        self.process.stdout.readline()

    def tell(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def recorder(kymo, target, *arguments):
    """Start a recording, and return when it has the target."""
    process = subprocess.Popen([kymo.path, *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        rows = kymo.run("list", "--json", "-p", target.pid)
        if rows.stdout and any(row["recorders"] for row in json.loads(rows.stdout)["processes"]):
            break
        time.sleep(0.1)
    return process


def finish(process):
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=600)[1]
    check("the recording ends well", process.returncode == 0, said)


def sessions(kymo, path):
    for suffix in FORMATS:
        for mode in ("stream", "ring"):
            trace = f"session-{mode}.{suffix}"
            subprocess.run([path, "left-open"], check=True, env={**os.environ, "KYMO_TRACE": trace, "KYMO_MODE": mode})
            kymo.check_ended(f"a session, {mode}, {suffix}", trace)
    kymo.check_converted("a session's file", "session-stream.kymo")


def buffers(kymo, path):
    os.mkdir("buffers")
    target = Target(path, KYMO_DRUM_DIR="buffers", KYMO_CATEGORIES="*")
    target.tell("left-open")
    kymo.check_ended("the buffer of a program that runs", "pid:" + target.pid)
    done = kymo.run("snapshot", "-q", "-p", target.pid, "-o", "snapshot.kymo")
    check("a snapshot", done.returncode == 0, done)
    kymo.check_ended("a snapshot", "snapshot.kymo")
    target.kill()
    kymo.check_ended("the buffer of a killed one", os.path.join("buffers", os.listdir("buffers")[0]))


def recordings(kymo, path):
    done = kymo.run("run", "-q", "-o", "run.kymo", "--", path, "left-open")
    check("run", done.returncode == 0, done)
    kymo.check_ended("run", "run.kymo")
    kymo.check_converted("run", "run.kymo")
    for verb in (["attach", "-p"], ["record"]):
        target = Target(path)
        where = [target.pid] if verb[0] == "attach" else ["-q"]
        process = recorder(kymo, target, *verb, *where, "--categories", "target", "-o", verb[0] + ".kymo")
        target.tell("left-open")
        finish(process)
        target.kill()
        # The kernel's own events may have gaps on a busy machine.
        kymo.check_ended(verb[0], verb[0] + ".kymo", whole=verb[0] == "attach")


def larger_rings(kymo, path):
    target = Target(path, KYMO_CATEGORIES="*")
    process = recorder(kymo, target, "attach", "-p", target.pid, "--buffer", "32M", "-o", "moved.kymo")
    target.tell("across")
    target.tell("left-open")
    finish(process)
    target.kill()
    rows = kymo.run("query", "--csv", "moved.kymo", "select name, ts, dur from slice where name <> 'inside'")
    check("a span goes on in a larger ring", kymo.number("moved.kymo", """select count(*) from slice as s where s.name = 'across'
        and (select count(*) from slice as i where i.name = 'inside' and i.ts between s.ts and s.ts + s.dur) = 5000"""), rows)
    check("and none is made up", kymo.number("moved.kymo", "select count(*) from slice where name like '%lost%'") == 0, rows)


def main():
    kymo, path = Tool(os.path.abspath(sys.argv[1])), os.path.abspath(sys.argv[2])
    for name in ("KYMO_TRACE", "KYMO_CATEGORIES", "KYMO_BUFFER", "KYMO_DRUM_DIR", "KYMO_MODE"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sessions(kymo, path)
        buffers(kymo, path)
        recordings(kymo, path)
        larger_rings(kymo, path)
        os.chdir("/")
    sys.exit(checks.failed)


if __name__ == "__main__":
    main()
