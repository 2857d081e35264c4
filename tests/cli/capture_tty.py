#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""capture_tty.py KYMO DEMO: captures on a terminal of their own: Ctrl-C once and twice, Ctrl-Z, the progress line.

Between this program and kymo is a small shell (this file again) which gives kymo a process group and the terminal, as a
shell with job control does, and says when it stops and how it ends. Waits for what is shown, never for a time.
Exit 1 when a check failed."""
import os
import signal
import sys
import tempfile
import time

from terminal import Terminal, check, finish


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def wait_stopped(pid):
    """Until its children are stopped too: they would still read what is typed."""
    for child in children(pid):
        state = ""
        while state not in ("T", "Z", "X"):
            time.sleep(0.001)
            with open(f"/proc/{child}/stat", encoding="ascii") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]


def shell(command):
    """Runs the command as the terminal's foreground job."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(command[0], command)
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        os.tcsetpgrp(0, os.getpgrp())
        wait_stopped(pid)
        print("JOB STOPPED", flush=True)
        sys.stdin.readline()
        os.tcsetpgrp(0, pid)
        os.killpg(pid, signal.SIGCONT)
    os.tcsetpgrp(0, os.getpgrp())
    print(f"JOB ENDED {os.waitstatus_to_exitcode(status)}.", flush=True)


def job(*command):
    return Terminal([sys.executable, __file__, "--shell", *command])


def once(kymo):
    terminal = job(kymo, "run", "--trigger", "interrupt", "-o", "once.kymo", "--", "sh", "-c",
                   "trap 'echo got it; exit 3' INT; echo ready; while :; do sleep 0.02; done")
    fine = terminal.wait("ready")
    terminal.type("\x03")
    fine = fine and terminal.wait("got it") and terminal.wait("JOB ENDED 3.")
    check("Ctrl-C once reaches the program, takes the snapshot, and kymo ends with it",
          fine and os.path.exists("once.kymo"), terminal)
    terminal.end()


def wait_taken(pid, number):
    """Until a process has taken a signal that it was sent: a second one is the same as the first until then."""
    pending = True
    while pending:
        time.sleep(0.001)
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        pending = (int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)) >> (number - 1) & 1


def twice(kymo):
    terminal = job(kymo, "run", "-o", "twice.kymo", "--", "sh", "-c",
                   "trap 'echo not yet' INT; echo ready; while :; do sleep 0.02; done")
    fine = terminal.wait("ready")
    terminal.type("\x03")
    fine = fine and terminal.wait("not yet")
    if fine:
        wait_taken(children(terminal.pid)[0], signal.SIGINT)
        terminal.type("\x03")
    # A third would end kymo while it finishes its file.
    fine = fine and terminal.wait("JOB ENDED 137.")
    check("Ctrl-C twice kills it", fine and os.path.exists("twice.kymo"), terminal)
    terminal.end()


def left_the_group(kymo):
    terminal = job(kymo, "run", "-o", "left.kymo", "--", "setsid", "sh", "-c",
                   "trap 'echo got it; exit 3' INT; echo ready; while :; do sleep 0.02; done")
    fine = terminal.wait("ready")
    terminal.type("\x03")
    fine = fine and terminal.wait("got it") and terminal.wait("JOB ENDED 3.")
    check("Ctrl-C is passed on to a program that left kymo's process group", fine, terminal)
    terminal.end()


def stopped(kymo):
    terminal = job(kymo, "run", "-o", "stopped.kymo", "--", "sh", "-c",
                   "echo ready; read line; echo \"read $line\"; exit 4")
    fine = terminal.wait("ready")
    terminal.type("\x1a")
    fine = fine and terminal.wait("JOB STOPPED")
    terminal.type("\n")
    terminal.type("hello\n")
    fine = fine and terminal.wait("read hello") and terminal.wait("JOB ENDED 4.")
    check("Ctrl-Z stops both, and both go on; the program has the terminal", fine, terminal)
    terminal.end()


def attach(kymo, demo):
    program = os.posix_spawn(demo, [demo, "--tasks", "2500000", "--seconds", "1000"], os.environ,
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                                           (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
    try:
        terminal = job(kymo, "attach", "-p", str(program), "-o", "attach.kymo")
        fine = terminal.wait("recording") and terminal.wait("events/s") and terminal.wait("Ctrl-C ends it")
        terminal.type("\x03")
        fine = fine and terminal.wait("attach.kymo") and terminal.wait("kymo report") and \
            terminal.wait("JOB ENDED 0.")
        check("attach shows its progress, and Ctrl-C ends it in order", fine, terminal)
        terminal.end()
        terminal = job(kymo, "attach", "-p", str(program), "--trigger", "interrupt", "-o", "i.kymo")
        fine = terminal.wait("waiting")
        terminal.type("\x03")
        fine = fine and terminal.wait("JOB ENDED 0.") and os.path.exists("i.kymo")
        check("a flight recorder says that it waits, and Ctrl-C takes the snapshot", fine, terminal)
        terminal.end()
    finally:
        os.kill(program, signal.SIGKILL)
        os.waitpid(program, 0)


def main():
    if sys.argv[1] == "--shell":
        shell(sys.argv[2:])
        return 0
    kymo, demo = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        once(kymo)
        twice(kymo)
        left_the_group(kymo)
        stopped(kymo)
        attach(kymo, demo)
        os.chdir("/")
    finish()
    return 0


if __name__ == "__main__":
    sys.argv[0] = __file__ = os.path.realpath(__file__)
    sys.exit(main())
