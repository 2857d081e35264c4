#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""prompt.py KYMO: the prompt of kymo query on a terminal of its own: what is typed after Ctrl-C is whole, a query that
runs is given up by it, the prompt outlives a change of the terminal's size, and names are completed.

Waits for what the prompt shows, never for a time. Exit 1 when a check failed."""
import os
import signal
import sys
import tempfile

from terminal import Terminal, check, finish


def prompt(kymo, folder):
    trace = os.path.join(folder, "a.json")
    with open(trace, "w", encoding="utf-8") as file:
        file.write('[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":"work"}]')
    return Terminal([kymo, "query", trace], {"HOME": folder, "INPUTRC": "/dev/null", "XDG_STATE_HOME": None}, columns=80)


def ends_a_query(p):
    """Ctrl-C that comes before the query began takes back its line instead, and says nothing: then once more."""
    for _ in range(50):
        p.type("with recursive c(x) as (select 1 union all select x+1 from c) select max(x) from c;\n")
        if not p.wait("from c;") or not p.wait("\n"):
            return False
        p.type("\x03")
        before = p.seen_until("kymo> ")
        if before is None or "interrupted" in before:
            return before is not None
    return False


def run(kymo, folder):
    p = prompt(kymo, folder)
    check("a prompt", p.wait("kymo> "), p)
    p.type("select 1")
    p.wait("select 1")
    p.type("\x03")
    check("Ctrl-C brings a new prompt at once", p.wait("kymo> "), p)
    p.type("select 'who' || 'le';\n")
    check("what is typed after Ctrl-C is whole", p.wait("whole") and p.wait("kymo> "), p)
    p.type("select count(*),\n")
    check("a statement goes on", p.wait(" ...> "), p)
    p.type("'x' || 'y' from sli\t;\n")
    check("and names are completed", p.wait("xy") and p.wait("kymo> "), p)
    p.resize(30, 90)
    os.kill(p.pid, signal.SIGWINCH)
    p.type("select 'si' || 'ze';\n")
    check("a terminal of another size", p.wait("size") and p.wait("kymo> "), p)
    check("Ctrl-C ends a query", ends_a_query(p), p)
    p.type(".schema nothing\n")
    check("an unknown table", p.wait("there is no table 'nothing'") and p.wait("kymo> "), p)
    p.type(".nothing\n")
    check("an unknown command", p.wait("there is no command .nothing") and p.wait("kymo> "), p)
    p.type("\x04")
    check("Ctrl-D ends it", p.end() == 0, p)
    with open(os.path.join(folder, ".local/state/kymo/query_history"), encoding="utf-8") as file:
        check("the history has it", "select 'who' || 'le';" in file.read(), p)


with tempfile.TemporaryDirectory() as place:
    run(os.path.realpath(sys.argv[1]), place)
finish()
