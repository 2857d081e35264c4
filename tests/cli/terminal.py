# SPDX-License-Identifier: MIT
"""terminal.py: a program on a terminal of its own, for the tests: what it shows is waited for, what a person would type is typed."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios

LIMIT_S = 600  # ends what hangs: a busy machine may be slow
failures = 0


def need_terminals():
    """Skip the test where the machine has no pseudo-terminals."""
    try:
        for fd in pty.openpty():
            os.close(fd)
    except OSError as error:
        print(f"skipped: no pseudo-terminal ({error}): mount devpts on /dev/pts")
        sys.exit(77)


need_terminals()


class Terminal:
    def __init__(self, command, environment=None, lines=24, columns=100):
        """environment: changes of it, None takes a variable away."""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # A test that a script started in the background would hand down that they are ignored.
            for number in (signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            for name, value in {"TERM": "xterm", "LC_ALL": "C.UTF-8", **(environment or {})}.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            os.execv(command[0], command)
        self.resize(lines, columns)
        self.seen = ""

    def resize(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self):
        """What is shown next; False at the end, and when nothing comes."""
        if not select.select([self.fd], [], [], LIMIT_S)[0]:
            return False
        try:
            data = os.read(self.fd, 4096)
        except OSError:
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def wait(self, text):
        """Reads until text is there, and forgets all up to its end. False when it does not come."""
        return self.seen_until(re.escape(text)) is not None

    def wait_for(self, pattern):
        """The same for a regular expression."""
        return self.seen_until(pattern) is not None

    def seen_until(self, pattern):
        """The same, and returns what came before it; None when it does not come."""
        while not (found := re.search(pattern, self.seen)):
            if not self.read():
                return None
        before, self.seen = self.seen[:found.start()], self.seen[found.end():]
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def echoes(self):
        """Whether the terminal is as a shell wants it."""
        flags = termios.tcgetattr(self.fd)[3]
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)

    def end(self):
        """Return the exit code, or minus the signal; keep reading, because a program whose output waits never ends."""
        while self.read():
            pass
        os.close(self.fd)  # one that hangs gets SIGHUP
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def check(name, fine, terminal=None):
    global failures
    print(f"{name}: {'ok' if fine else 'FAILED'}")
    if not fine:
        failures += 1
        if terminal:
            print(f"  seen: {terminal.seen[-600:]!r}")


def finish():
    sys.exit(1 if failures else 0)
