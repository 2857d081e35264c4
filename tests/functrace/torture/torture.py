#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torture.py KYMO [--slow] [--cycles=N] [NAME...]: the programs here, built in many ways, traced from their start and attached to while they
run: what they compute, and say, is the same. In the short form one build of each and a few attaches; --slow: all builds, more
of everything, fifty attaches each.

Exit 1 when a check failed, 77 when nothing could run, with the reason."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import traced  # noqa: E402  (beside this folder)

HERE = os.path.dirname(os.path.realpath(__file__))
SLOW = "--slow" in sys.argv
SCALE = "20" if SLOW else "1"
CYCLES = traced.cycles(2)
COMMON = ["-D_GNU_SOURCE", "-g", "-w"]

# program, build, compiler, flags. The first of each program is the one of the short form.
BUILDS = (
    ("calls", "O2", "gcc", "-O2"),
    ("calls", "clang", "clang", "-O2"),
    ("calls", "O0", "gcc", "-O0"),
    ("calls", "O1", "gcc", "-O1"),
    ("calls", "O3", "gcc", "-O3"),
    ("calls", "Os", "gcc", "-Os"),
    ("calls", "clang-O0", "clang", "-O0"),
    ("calls", "clang-Os", "clang", "-Os"),
    ("calls", "endbr", "gcc", "-O2 -fcf-protection=full"),
    ("calls", "no-endbr", "gcc", "-O2 -fcf-protection=none"),
    ("calls", "no-pie", "gcc", "-O2 -no-pie -fno-pie"),
    ("calls", "static", "gcc", "-O2 -static"),
    ("calls", "static-pie", "gcc", "-O2 -static-pie"),
    ("calls", "stripped", "gcc", "-O2 -s"),
    ("calls", "static-stripped", "gcc", "-O2 -static -s"),
    ("calls", "patchable", "gcc", "-O2 -fpatchable-function-entry=5"),
    ("calls", "clang-patchable", "clang", "-O2 -fpatchable-function-entry=5"),
    ("calls", "xray", "clang", "-O2 -fxray-instrument -fxray-instruction-threshold=1 -fno-xray-function-index"),
    ("calls", "instrumented", "gcc", "-O2 -finstrument-functions"),
    ("calls", "clang-instrumented", "clang", "-O2 -finstrument-functions"),
    ("jumps", "O2", "gcc", "-O2"),
    ("jumps", "O0", "gcc", "-O0"),
    ("jumps", "clang", "clang", "-O2"),
    ("jumps", "static", "gcc", "-O2 -static"),
    ("threads", "O2", "gcc", "-O2 -pthread"),
    ("threads", "clang", "clang", "-O2 -pthread"),
    ("threads", "static", "gcc", "-O2 -pthread -static"),
    ("processes", "O2", "gcc", "-O2 -pthread"),
    ("processes", "static", "gcc", "-O2 -pthread -static"),
    ("libraries", "O2", "gcc", "-O2 -pthread -rdynamic"),
    ("libraries", "clang", "clang", "-O2 -pthread -rdynamic"),
    ("throws", "O2", "g++", "-O2 -std=c++17 -pthread"),
    ("throws", "O0", "g++", "-O0 -std=c++17 -pthread"),
    ("throws", "clang", "clang++", "-O2 -std=c++17 -pthread"),
    ("throws", "stripped", "g++", "-O2 -std=c++17 -pthread -s"),
    ("throws", "static", "g++", "-O2 -std=c++17 -pthread -static"),
    ("throws", "static-stripped", "g++", "-O2 -std=c++17 -pthread -static -s"),
    ("panics", "O", "rustc", "-O"),
    ("panics", "debug", "rustc", "-g"),
)


def build(folder, program, compiler, flags):
    """The program's path, and why it cannot be built here."""
    if not shutil.which(compiler):
        return None, f"{compiler} is not installed"
    made = f"{folder}/{program}"
    if program == "panics":
        words = [compiler, "--edition", "2021", *flags.split(), f"{HERE}/panics.rs", "-o", made]
    else:
        source = f"{HERE}/{program}.{'cc' if program == 'throws' else 'c'}"
        words = [compiler, *COMMON, *flags.split(), source, "-o", made, "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode == 0 and program == "libraries":
        done = subprocess.run(["gcc", "-O2", "-g", "-w", "-fPIC", "-shared", f"{HERE}/plugin.c", "-o", f"{folder}/plugin.so"],
                              capture_output=True, text=True, check=False)
    return (made, None) if done.returncode == 0 else (None, f"cannot be built: {done.stderr.strip()[-300:]}")


def environment(made):
    return {**os.environ, "PLUGIN": f"{os.path.dirname(made)}/plugin.so"}


def from_the_start(folder, made):
    path = traced.same_as_bare(folder, [made, "--scale", SCALE], "--hot", "0", "--trigger", "exit", env=environment(made))
    if os.path.exists(path):
        os.unlink(path)
    if os.path.basename(made) != "calls":
        return
    # All of it, and each call of what is called a known number of times.
    path = traced.same_as_bare(folder, [made, "counted"], "--hot", "0")
    if os.path.exists(path) and not subprocess.run(["grep", "-q", "counted_leaf", made], check=False).returncode:
        counts = [traced.calls(path, name) for name in ("counted_leaf", "counted_branch", "main")]
        traced.check("each call", counts == [10000, 1000, 1], counts)


def while_it_runs(folder, made):
    words = [made, "--until"]
    with traced.running(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(made)) as process:
        if process.stdout.readline() != b"ready\n":
            traced.check("ready", False, process.poll())
            return
        traced.attach_often(folder, process, CYCLES, "--hot", "0")
        process.stdin.close()
        traced.check("it ends well", process.wait(traced.LIMIT_S) == 0, process.returncode)


def killed_meanwhile(folder, made):
    """kymo is killed while it traces: the program goes on, and the next attach puts all back."""
    words = [made, "--until"]
    with traced.running(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(made)) as process:
        process.stdout.readline()
        for i in range(CYCLES):
            path = f"{folder}/killed.kymo"
            with traced.running([traced.KYMO, "attach", "-q", "-p", str(process.pid), "--functions", "-o", path]) as kymo:
                if i % 2 == 0:  # at some moment of setting up, or later
                    traced.wait_for("jumps", lambda: bool(traced.text_differs(process.pid)), kymo)
                else:
                    traced.wait_for("a file", lambda: os.path.exists(path), kymo)
                kymo.kill()
                kymo.wait()
            if os.path.exists(path):
                os.unlink(path)
            traced.check("it goes on", process.poll() is None, process.returncode)
            traced.attach_often(folder, process, 1)
        process.stdin.close()
        traced.check("it ends well", process.wait(traced.LIMIT_S) == 0, process.returncode)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return [int(word) for word in children.read().split()]


def killed_with_children(folder, made):
    """The same with children that were forked in between, and go on."""
    with traced.running([made], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(made)) as process:
        path = f"{folder}/children.kymo"
        with traced.running([traced.KYMO, "attach", "-q", "-p", str(process.pid), "--functions", "-o", path]) as kymo:
            traced.wait_for("jumps", lambda: bool(traced.text_differs(process.pid)), kymo)
            process.stdin.write(b"f")  # now it forks
            process.stdin.flush()
            process.stdout.readline()
            kymo.kill()
            kymo.wait()
        children = children_of(process.pid)
        traced.check("children", len(children) == 3, children)
        traced.check("they have the jumps", all(traced.text_differs(pid) for pid in children), children)
        traced.attach_often(folder, process, 1)
        wrong = [pid for pid in children if traced.text_differs(pid)]
        traced.check("they have them no more", not wrong, wrong)
        process.stdin.close()
        traced.check("it ends well", process.wait(traced.LIMIT_S) == 0, process.returncode)


def scenario(program, compiler, flags, action):
    def run(folder):
        with tempfile.TemporaryDirectory() as place:  # where programs may be run from
            made, why = build(place, program, compiler, flags)
            if made:
                action(folder, made)
        return why
    return run


def scenarios():
    seen = set()
    for program, name, compiler, flags in BUILDS:
        if program in seen and not SLOW:
            continue
        seen.add(program)
        yield f"{program}-{name}", scenario(program, compiler, flags, from_the_start)
        yield f"{program}-{name}-attached", scenario(program, compiler, flags, while_it_runs)
    yield "killed", scenario("calls", "gcc", "-O2", killed_meanwhile)
    yield "killed-children", scenario("prefork", "gcc", "-O2", killed_with_children)


if __name__ == "__main__":
    sys.exit(traced.run_scenarios(scenarios(), [word for word in sys.argv[2:] if not word.startswith("--")]))
