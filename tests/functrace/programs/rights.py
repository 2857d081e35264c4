#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rights.py KYMO TARGET [NAME...]: who may trace what: an ordinary user the own processes, and nobody else's; what may not be
traced says so in one line with the remedy, and stays as it was. TARGET is window_target.c's.

Exit 1 when a check failed, 77 when nothing could run."""
import ctypes
import os
import pwd
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import traced  # noqa: E402  (beside this folder)

TARGET = os.path.realpath(sys.argv[2])


def as_nobody():
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def cannot_be_nobody():
    if os.geteuid() != 0:
        return "is an ordinary user already"
    for path in (traced.KYMO, TARGET):
        if subprocess.run(["test", "-x", path], preexec_fn=as_nobody, check=False).returncode:
            return "nobody cannot get at the programs"
    return None


def started(**more):
    return traced.running([TARGET, "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)


def attach_as_nobody(folder, pid, *words):
    return traced.kymo("attach", "-q", "-p", str(pid), "--functions", "--duration", "100ms", "-o", f"{folder}/a.kymo", *words,
                       preexec_fn=as_nobody, cwd=folder, env={"PATH": os.environ["PATH"]})


def own_processes(folder):
    why = cannot_be_nobody()
    if why:
        return why
    os.chmod(folder, 0o777)
    done = traced.kymo("run", "-q", "--functions", "--engine", "patch", "--trigger", "exit", "-o", f"{folder}/a.kymo", "--",
                       "/bin/ls", "/", preexec_fn=as_nobody, cwd=folder, env={"PATH": os.environ["PATH"]})
    traced.check("run", done.returncode == 0 and "proc" in done.stdout, done)
    traced.check_trace(f"{folder}/a.kymo")
    with started(preexec_fn=as_nobody) as process:
        process.stdout.readline()
        done = attach_as_nobody(folder, process.pid, "--engine", "patch")
        traced.check("attach", done.returncode == 0, done)
        traced.check_trace(f"{folder}/a.kymo")
        traced.check("calls", traced.calls(f"{folder}/a.kymo", "step_3") > 0)
        traced.check("its code is the file's again", not traced.text_differs(process.pid))
        process.stdin.close()
        traced.check("it ends well", process.wait(traced.LIMIT_S) == 0, process.returncode)
    return None


def refused(folder, process, codes):
    """Not traced by nobody: one line says why and what to do."""
    before = traced.maps_count(process.pid)
    done = attach_as_nobody(folder, process.pid, "--engine", "patch")
    said = [line for line in done.stderr.splitlines() if line.startswith("kymo")]
    traced.check("exit code", done.returncode in codes, done)
    helps = len(said) == 1 and ("root" in said[0] or "ptrace" in said[0])
    traced.check("one line with the reason and the remedy", helps, done.stderr)
    traced.check("it is as it was", process.poll() is None and traced.maps_count(process.pid) == before)


def processes_of_others(folder):
    why = cannot_be_nobody()
    if why:
        return why
    os.chmod(folder, 0o777)
    with started() as process:
        process.stdout.readline()
        refused(folder, process, (1, 77))
    return None


def protected(folder):
    """prctl(PR_SET_DUMPABLE, 0): not even by its own user."""
    why = cannot_be_nobody()
    if why:
        return why
    os.chmod(folder, 0o777)
    program = ("import ctypes, sys, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nprint('ready', flush=True)\nsys.stdin.read()")
    with traced.running(["/usr/bin/python3", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        preexec_fn=as_nobody) as process:
        process.stdout.readline()
        refused(folder, process, (1, 77))
    return None


def forbidden(folder):
    """A kernel that lets nobody trace (Yama)."""
    scope = "/proc/sys/kernel/yama/ptrace_scope"
    if not os.path.exists(scope):
        return "this kernel has no Yama"
    if cannot_be_nobody():
        return cannot_be_nobody()
    with open(scope, encoding="utf-8") as file:
        if int(file.read()) == 0:
            return "Yama allows it here"
    os.chmod(folder, 0o777)
    with started(preexec_fn=as_nobody) as process:
        process.stdout.readline()
        refused(folder, process, (1, 77))
    return None


def traced_by_another(folder):
    """A debugger is there already: the message names it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    with started() as process:
        process.stdout.readline()
        if libc.ptrace(0x4206, process.pid, None, None) != 0:  # PTRACE_SEIZE
            return "ptrace is not allowed"
        done = traced.kymo("attach", "-q", "-p", str(process.pid), "--functions", "--engine", "patch", "--duration", "100ms", "-o",
                           f"{folder}/a.kymo")
        traced.check("exit code", done.returncode in (1, 77), done)
        traced.check("who traces it", str(os.getpid()) in done.stderr or "python" in done.stderr, done.stderr)
        traced.check("it goes on", process.poll() is None)
    return None


SCENARIOS = (own_processes, processes_of_others, protected, forbidden, traced_by_another)

if __name__ == "__main__":
    sys.exit(traced.run_scenarios([(scenario.__name__, scenario) for scenario in SCENARIOS], sys.argv[3:]))
