#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""list_watch.py KYMO DEMO: kymo list --watch on a terminal of its own: the screen of a process that traces, another size of
the terminal, Ctrl-Z and back, and the terminal as it was after q and after Ctrl-C.

Waits for what is shown, never for a time. Exit 1 when a check failed."""
import os
import signal
import subprocess
import sys

from terminal import Terminal, check, finish

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def screen(kymo, *arguments):
    return Terminal([kymo, "list", "--watch", *arguments])


def run(kymo, traced):
    s = screen(kymo)
    check("a screen of its own", s.wait(ENTER) and s.wait("with a buffer"), s)
    check("what is typed is not shown", not s.echoes(), s)
    check("the process is there", s.wait(f"{traced} "), s)
    check("and again", s.wait("\x1b[2J") and s.wait(f"{traced} "), s)
    s.resize(10, 60)
    check("another size", s.wait("\x1b[2J") and s.wait(f"{traced} "), s)
    s.type("\x1a")
    check("Ctrl-Z gives the screen back", s.wait(LEAVE), s)
    check("and stops", os.WIFSTOPPED(os.waitpid(s.pid, os.WUNTRACED)[1]) and s.echoes(), s)
    os.kill(s.pid, signal.SIGCONT)
    check("fg brings it again", s.wait(ENTER) and s.wait(f"{traced} "), s)
    s.type("xq")
    check("q gives the screen back", s.wait(LEAVE), s)
    check("and ends", s.end() == 0, s)

    s = screen(kymo, "-p", str(traced))
    check("one process with its categories", s.wait(ENTER) and s.wait("scheduler"), s)
    s.type("\x03")
    check("Ctrl-C gives the screen back", s.wait(LEAVE), s)
    check("and ends as q does", s.end() == 0, s)


tool, demo = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
with subprocess.Popen([demo, "--seconds", "3600", "--tasks", "10000000"], env={**os.environ, "KYMO_CATEGORIES": "*"},
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
    try:
        run(tool, program.pid)
    finally:
        program.kill()
finish()
