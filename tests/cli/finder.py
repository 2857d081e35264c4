#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""finder.py PROGRAM: the finder of symbol:? on a terminal of its own: what is typed, chosen and cancelled in fzf; without fzf and
without a terminal it reports so.

Waits for what the finder shows, never for a time. Exit 1 when a check failed."""
import os
import shutil
import subprocess
import sys
import tempfile
import termios

from terminal import Terminal, check, finish


def terminal(program, target, path):
    t = Terminal([program, target], {"PATH": path, "FZF_DEFAULT_OPTS": None}, lines=20)
    t.before = termios.tcgetattr(t.fd)
    return t


def build(folder):
    source = os.path.join(folder, "many.cc")
    with open(source, "w", encoding="utf-8") as file:
        file.write("namespace net { void recv_all(int) {} void recv_one(int) {} void reverse_cave(int) {} }\n")
        file.write("".join(f'extern "C" void filler_{i}() {{}}\n' for i in range(20000)))
        file.write("int main() { net::recv_all(1); }\n")
    target = os.path.join(folder, "many")
    subprocess.run(["c++", "-O0", "-shared", "-fPIC", "-nostdlib", "-o", target, source], check=True)
    return target


def with_fzf(program, target):
    if not shutil.which("fzf"):
        print("skipped: fzf is not installed")
        sys.exit(77)
    t = terminal(program, target, os.environ["PATH"])
    check("fzf asks", t.wait("symbol:") and t.wait("/200"), t)
    t.type("recv_one")
    check("fzf filters", t.wait_for(r"(?<!\d)1/200"), t)
    t.type("\r")
    check("fzf chooses", t.wait("chosen <net::recv_one(int)>"), t)
    check("and it is done", t.end() == 0)
    t = terminal(program, target, os.environ["PATH"])
    t.wait("/200")
    t.type("\x1b")
    check("fzf gives up", t.wait("no function was chosen"), t)
    check("the terminal is as before", termios.tcgetattr(t.fd) == t.before, t)
    check("and it has failed", t.end() == 1)


def without_terminal(program, target):
    run = subprocess.run([program, target], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         start_new_session=True, check=False)
    check("without a terminal", run.returncode == 2 and "symbol:NAME" in run.stderr)


def without_fzf(program, target, bare):
    t = terminal(program, target, bare)
    check("without fzf the message names it", t.wait("needs fzf"), t)
    check("the terminal is as before", termios.tcgetattr(t.fd) == t.before, t)
    check("and it is not possible", t.end() == 77)


with tempfile.TemporaryDirectory() as place:
    finder = os.path.realpath(sys.argv[1])
    many = build(place)
    without_fzf(finder, many, place)
    without_terminal(finder, many)
    with_fzf(finder, many)
finish()
