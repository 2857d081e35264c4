# SPDX-License-Identifier: MIT
"""Runs a program again and again, and each time another allocation or another write fails: what tool.py and sessions.py share.

    SCRIPT [--all] [--seed N] [--only TEXT] [--stacks] PROGRAM... FAULTS

FAULTS is the library made of faults.c, or "-" when it is linked into the program. With more calls than fit into a test, some of
them are tried: the first, the last and some by chance. The seed is printed; --all tries every one.
"""
import argparse
import errno
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(ROOT, "tests", "fuzz", "corpus")
OLD = b"what was there before\n"
TRIES_FIRST, TRIES_CHANCE, TRIES_LAST = 16, 24, 4
TROUBLES_SHOWN = 20


def content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


class Server:
    """The program, before its main: see faults.c."""

    def __init__(self, library, command):
        child_in, self.to = os.pipe()
        self.answers, child_out = os.pipe()
        environment = dict(os.environ, FAULTS_IN=str(child_in), FAULTS_OUT=str(child_out), MALLOC_PERTURB_="165", LC_ALL="C",
                           XDG_CACHE_HOME=os.path.join(os.getcwd(), "cache"))
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0:allocator_may_return_null=1"
        if library != "-":
            environment["LD_PRELOAD"] = library
        self.process = subprocess.Popen(command, pass_fds=(child_in, child_out), stdin=subprocess.DEVNULL, env=environment)
        os.close(child_in)
        os.close(child_out)
        self.lines = os.fdopen(self.answers, "r")

    def run(self, *how):
        os.write(self.to, (" ".join(str(word) for word in how) + "\n").encode())
        line = self.lines.readline().split()
        if len(line) < 3:
            sys.exit("the server of faults has ended")
        return [*(int(word) for word in line[:3]), line[3:]]

    def close(self):
        os.close(self.to)
        self.process.wait()
        self.lines.close()


class Case:
    """A command; output is the file that it writes, of which there is an older one."""

    def __init__(self, name, *command, output=None, kinds=("memory", "write")):
        self.name, self.command, self.output, self.kinds = name, command, output, kinds

    def trouble(self, run, usual):
        """What is wrong with a run, compared with one in which nothing fails; None when all is well."""
        raise NotImplementedError


class Run:
    """One run and what is left of it."""

    def __init__(self, server, case, kind, mode, at, error):
        if case.output:
            with open(case.output, "wb") as file:
                file.write(OLD)
        self.kind, self.error = kind, error
        before = set(os.listdir("."))
        status, self.calls, self.failed, self.stack = server.run(kind, mode, at, error)
        self.code = os.waitstatus_to_exitcode(status)
        self.out, self.err, self.file = content("out"), content("err"), content(case.output) if case.output else None
        self.rest = sorted(set(os.listdir(".")) - before - {"out", "err", "cache"})
        for name in self.rest:
            os.remove(name)

    def is_reported(self, memory):
        """Whether the program has said why: by this expression, or by the system's words."""
        if self.kind == "memory":
            return bool(memory.search(self.err))
        return self.error not in (0, errno.EINTR) and os.strerror(self.error).encode() in self.err


def places(program, stack):
    """Where the call that failed came from."""
    found = subprocess.run(["addr2line", "-s", "-f", "-e", program, *stack], capture_output=True, text=True, check=False)
    lines = found.stdout.split("\n")
    return " < ".join(f"{name} {place}" for name, place in zip(lines[0::2], lines[1::2]))


def numbers(count, options, chance):
    first, last = range(1, min(TRIES_FIRST, count) + 1), range(max(1, count - TRIES_LAST + 1), count + 1)
    if options.all or count <= TRIES_FIRST + TRIES_CHANCE + TRIES_LAST:
        return range(1, count + 1)
    return sorted({*first, *last, *chance.sample(range(TRIES_FIRST + 1, count + 1), TRIES_CHANCE)})


def tries(case, server, options, chance):
    """How to run a case: kind, mode, number, error; and how many such calls there are."""
    for kind in case.kinds:
        for error in [errno.ENOMEM] if kind == "memory" else [errno.ENOSPC, errno.EIO, errno.EINTR, 0]:
            count = Run(server, case, kind, "once", 0, error).calls
            for mode in ("once",) if error == errno.EINTR else ("once", "on"):
                for at in numbers(count, options, chance):
                    yield count, (kind, mode, at, error)


def check(case, options, chance):
    """Return the number of runs and lines that say what was wrong with some."""
    server = Server(options.faults, case.command)
    runs, lines = 0, []
    usual = Run(server, case, case.kinds[0], "once", 0, 0)
    if usual.code < 0 or usual.code == 126 or (case.output and usual.file == OLD):
        lines = [f"it fails without faults: {usual.code} {usual.err[:300]!r}"]
    else:
        for count, how in tries(case, server, options, chance):
            run = Run(server, case, *how)
            runs += 1
            trouble = f"it leaves {', '.join(run.rest)}" if run.rest else case.trouble(run, usual)
            if trouble:
                kind, mode, at, error = how
                lines.append(f"{kind} {mode} {at} of {count}, {errno.errorcode.get(error, 'short')}: {trouble}"
                             f" (exit {run.code}: {run.err[:200]!r})")
                if options.stacks:
                    lines[-1] += "\n    " + places(case.command[0], run.stack[:9])
    server.close()
    return runs, lines


def main(cases, programs):
    """Run all cases in a folder of their own; cases gets the paths of the programs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="every call, not some of them")
    parser.add_argument("--stacks", action="store_true", help="say where a call that failed came from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    for name in programs:
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("faults", type=lambda path: path if path == "-" else os.path.abspath(path))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    failures = 0
    print("seed", options.seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in cases(*(getattr(options, name) for name in programs)):
            if options.only not in case.name:
                continue
            runs, lines = check(case, options, chance)
            print(f"{case.name}: {runs} runs: {'FAILED' if lines else 'ok'}", flush=True)
            for line in lines if options.stacks else lines[:TROUBLES_SHOWN]:
                print(f"  {case.name}: {line}")
            failures += bool(lines)
        os.chdir("/")
    sys.exit(failures > 0)
