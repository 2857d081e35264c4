#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""prompt.py KYMO: the prompt of kymo query on a terminal of its own: what is typed after Ctrl-C is whole, a query that
runs is given up by it, the prompt outlives a change of the terminal's size, and names are completed.

Waits for what the prompt shows, never for a time. Exit 1 when a check failed."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import termios

LIMIT_S = 60
failures = 0


class Prompt:
    def __init__(self, kymo, folder):
        trace = os.path.join(folder, "a.json")
        with open(trace, "w", encoding="utf-8") as file:
            file.write('[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":"work"}]')
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(HOME=folder, TERM="xterm", LC_ALL="C.UTF-8", INPUTRC="/dev/null")
            os.environ.pop("XDG_STATE_HOME", None)
            os.execv(kymo, [kymo, "query", trace])
        self.seen = ""

    def wait(self, text):
        """Reads until text is there, and forgets all up to its end. False at the end of the output."""
        return self.seen_until(text) is not None

    def seen_until(self, text):
        """The same, and returns what came before it; None at the end of the output."""
        while text not in self.seen:
            if not select.select([self.fd], [], [], LIMIT_S)[0]:
                return None
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                return None
            if not data:
                return None
            self.seen += data.decode("utf-8", "replace")
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, text):
        os.write(self.fd, text.encode())


def check(name, fine, prompt):
    global failures
    print(f"{name}: {'ok' if fine else 'FAILED'}")
    if not fine:
        print(f"  seen: {prompt.seen[-400:]!r}")
        failures += 1


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
    p = Prompt(kymo, folder)
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
    fcntl.ioctl(p.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
    os.kill(p.pid, signal.SIGWINCH)
    p.type("select 'si' || 'ze';\n")
    check("a terminal of another size", p.wait("size") and p.wait("kymo> "), p)
    check("Ctrl-C ends a query", ends_a_query(p), p)
    p.type(".schema nothing\n")
    check("a table that is none", p.wait("there is no such table") and p.wait("kymo> "), p)
    p.type(".nothing\n")
    check("a command that is none", p.wait("there is no such command") and p.wait("kymo> "), p)
    p.type("\x04")
    check("Ctrl-D ends it", os.waitpid(p.pid, 0)[1] == 0, p)
    with open(os.path.join(folder, ".local/state/kymo/query_history"), encoding="utf-8") as file:
        check("the history has it", "select 'who' || 'le';" in file.read(), p)


with tempfile.TemporaryDirectory() as place:
    run(os.path.realpath(sys.argv[1]), place)
sys.exit(1 if failures else 0)
