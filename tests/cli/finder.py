#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""finder.py PROGRAM: the finder of symbol:? on a terminal of its own: our own finder and, where it is installed, fzf; what is typed,
moved over, chosen and given up; the terminal is as before afterwards; and without a terminal it says so.

Waits for what the finder shows, never for a time. Exit 1 when a check failed."""
import os
import shutil
import signal
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
    subprocess.run(["c++", "-O0", "-o", target, source], check=True)
    return target


def own(program, target, bare):
    t = terminal(program, target, bare)
    check("the prompt and all names", t.wait("symbol: ") and t.wait("/200"), t)
    t.type("recv")
    check("letters filter", t.wait("> net::recv_all(int)") and t.wait("  net::recv_one(int)"), t)
    t.type("\x1b[B")
    check("down", t.wait("> net::recv_one(int)"), t)
    t.type("\x1b[A")
    check("up", t.wait("> net::recv_all(int)"), t)
    t.type("\x7f\x7f\x7f\x7f")
    check("backspace brings all back", t.wait("symbol: \x1b7"), t)
    t.type("rvone")
    check("letters apart", t.wait("> net::recv_one(int)"), t)
    t.resize(10, 40)
    os.kill(t.pid, signal.SIGWINCH)
    check("another size", t.wait("symbol: rvone"), t)
    t.type("\r")
    check("Enter chooses", t.wait("chosen <net::recv_one(int)>"), t)
    check("the terminal is as before", termios.tcgetattr(t.fd) == t.before, t)
    check("and it is done", t.end() == 0)

    t = terminal(program, target, bare)
    t.wait("symbol: ")
    t.type("recv one\r")
    check("typed at once, in pieces", t.wait("chosen <net::recv_one(int)>"), t)
    t.end()

    for name, keys in (("Esc", "\x1b"), ("Ctrl-C", "\x03")):
        t = terminal(program, target, bare)
        t.wait("symbol: ")
        t.type(keys)
        check(f"{name} gives up", t.wait("no function was chosen"), t)
        check("the terminal is as before", termios.tcgetattr(t.fd) == t.before, t)
        check("and it has failed", t.end() == 1)

    t = terminal(program, target, bare)
    t.wait("/200")
    os.kill(t.pid, signal.SIGTERM)
    check("a signal leaves the second screen", t.wait("\x1b[?1049l"), t)
    check("and ends it", t.end() == -signal.SIGTERM)


def with_fzf(program, target):
    if not shutil.which("fzf"):
        print("fzf: not installed, left out")
        return
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
    check("and it has failed", t.end() == 1)


def without_terminal(program, target):
    run = subprocess.run([program, target], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         start_new_session=True, check=False)
    check("without a terminal", run.returncode == 2 and "symbol:NAME" in run.stderr)


def scores(program):
    def best(typed, *names):
        out = subprocess.run([program, "-m", typed, *names], capture_output=True, text=True, check=True)
        return out.stdout.splitlines()
    check("close together before apart", best("recv", "reverse_cave", "net_recv") == ["net_recv", "reverse_cave"])
    check("word starts before middles", best("ra", "extra", "recv_all", "opera")[0] == "recv_all")
    check("the shorter of equals", best("send", "send_to_all_of_them", "send") == ["send", "send_to_all_of_them"])
    check("capitals count when typed", best("Get", "getGet", "get") == ["getGet"])
    check("and not otherwise", best("get", "GET", "set") == ["GET"])
    check("pieces in any order", best("all net", "net::recv_all", "all") == ["net::recv_all"])


with tempfile.TemporaryDirectory() as place:
    finder = os.path.realpath(sys.argv[1])
    many = build(place)
    scores(finder)
    own(finder, many, place)
    with_fzf(finder, many)
    without_terminal(finder, many)
finish()
