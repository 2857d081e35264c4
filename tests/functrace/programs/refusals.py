#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""refusals.py KYMO DENY [NAME...]: what cannot be traced: a message says so, the program is not run or ends as it does alone, and the
exit code tells the two apart. DENY is tests/bare/deny.py, which forbids ptrace and perf.

Exit 1 when a check failed, 77 when nothing could run."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import traced  # noqa: E402  (beside this folder)

DENY = os.path.realpath(sys.argv[2])
SIX = "int main(void)\n{\n\treturn 6;\n}\n"
BEFORE_MAIN = ("#include <unistd.h>\n__attribute__((constructor)) static void leave(void)\n{\n\t_exit(6);\n}\n" + SIX)


def compiled(folder, text, *options):
    """The program, or None where the compiler cannot make it."""
    source, program = f"{folder}/program.c", f"{folder}/program"
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    words = [os.environ.get("CC", "cc").split()[-1], "-O1", *options, "-o", program, source]
    return program if subprocess.run(words, capture_output=True, check=False).returncode == 0 else None


def run(folder, *words, **more):
    return traced.kymo("run", "-o", f"{folder}/a.kymo", *words, **more)


def ptrace_is_forbidden(folder):
    """However short the program is, it is not run."""
    probe = subprocess.run([sys.executable, DENY, "true"], capture_output=True, check=False)
    if probe.returncode:
        return "needs root, to forbid ptrace"
    for engine in ("auto", "patch", "nops", "sample"):
        ran = f"{folder}/ran"
        words = [traced.KYMO, "run", "--functions", "--engine", engine, "-o", f"{folder}/a.kymo", "--", "touch", ran]
        # The sanitizer looks for leaks by ptrace.
        done = subprocess.run([sys.executable, DENY, *words], capture_output=True, text=True, timeout=traced.LIMIT_S, check=False,
                              env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        traced.check(f"{engine}: exit code", done.returncode == 77, done)
        traced.check(f"{engine}: the reason", "tracing is forbidden (ptrace" in done.stderr, done.stderr)
        traced.check(f"{engine}: it was not run", not os.path.exists(ran))
    return None


def program_of_32_bits(folder):
    program = compiled(folder, SIX, "-m32") or compiled(folder, SIX, "-m32", "-static")
    if not program or subprocess.run([program], check=False).returncode != 6:
        return "no programs of 32 bits here"
    done = run(folder, "--functions", "--", program)
    if "perf_event" in done.stderr:
        return "samples are not allowed here"
    traced.check("its own exit code", done.returncode == 6, done)
    traced.check("the reason", "not a 64-bit x86 program" in done.stderr, done.stderr)
    done = run(folder, "--functions", "--engine", "patch", "--", program)
    traced.check("asked for: exit code", done.returncode == 77, done)
    return None


def ends_before_main(folder):
    program = compiled(folder, BEFORE_MAIN)
    done = run(folder, "--functions", "--", program)
    traced.check("its own exit code", done.returncode == 6, done)
    return None


def ended_already(folder):
    with traced.running(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        done = traced.kymo("attach", "-p", str(process.pid), "--functions", "--engine", "patch", "-o", f"{folder}/a.kymo")
    traced.check("exit code", done.returncode == 1, done)
    traced.check("the reason", "ended" in done.stderr, done.stderr)
    return None


def names_that_nothing_has(folder):
    program = compiled(folder, SIX.replace("6", "0"))
    for asked, alike in (("mani", "main"), ("module:progam", "program")):
        done = run(folder, f"--functions={asked}", "--", program)
        traced.check(f"{asked}: exit code", done.returncode == 3, done)
        traced.check(f"{asked}: the nearest name", f"similar: {alike}" in done.stderr, done.stderr)
    done = run(folder, "--functions=main", "--", program)
    traced.check("a name that it has", done.returncode == 0, done)
    return None


def not_compiled_for_nops(folder):
    program = compiled(folder, SIX)
    done = run(folder, "--functions", "--engine", "nops", "--", program)
    traced.check("exit code", done.returncode == 77, done)
    traced.check("the remedy", "-fpatchable-function-entry" in done.stderr, done.stderr)
    return None


SCENARIOS = (ptrace_is_forbidden, program_of_32_bits, ends_before_main, ended_already, names_that_nothing_has,
             not_compiled_for_nops)

if __name__ == "__main__":
    sys.exit(traced.run_scenarios([(scenario.__name__, scenario) for scenario in SCENARIOS], sys.argv[3:]))
