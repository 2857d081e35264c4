#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""unharmed.py KYMO [NAME...]: programs that do what few programs do, and that tracing must not harm: output and exit code are those
of the program alone, and the calls that can be seen are seen.

Exit 1 when a check failed, 77 when nothing could run."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import traced  # noqa: E402  (beside this folder)

TORTURE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "torture")


def compiled(out, *words):
    """Report whether the compiler is there and can make it."""
    return bool(shutil.which(words[0])) and subprocess.run([*words, "-o", out], capture_output=True, check=False).returncode == 0


def libraries_in_turn(folder):
    """dlopen, dlclose, dlopen of another library at the same address: each has stubs of its own."""
    source, ran = f"{TORTURE}/turns.c", 0
    for compiler in ("gcc", "clang"):
        made = [compiled(f"{folder}/lib{name.lower()}.so", compiler, "-O2", "-shared", "-fPIC", f"-D{name}", source)
                for name in ("FIRST", "SECOND")]
        if not all(made) or not compiled(f"{folder}/turns", compiler, "-O2", source, "-ldl"):
            continue
        words = [f"{folder}/turns", f"{folder}/libfirst.so", f"{folder}/libsecond.so"]
        path = traced.same_as_bare(folder, words, "--functions=module:libfirst*,module:libsecond*", "--engine", "patch")
        for library in ("first", "second"):
            seen = traced.number(path, f"select count(*) from slice where name like '{library}!_%' escape '!'")
            traced.check(f"{compiler}: all calls of {library}", seen == 10 * 100 * 16, seen)
        ran += 1
    return None if ran else "no compiler here"


SCENARIOS = (libraries_in_turn,)

if __name__ == "__main__":
    sys.exit(traced.run_scenarios([(scenario.__name__, scenario) for scenario in SCENARIOS], sys.argv[2:]))
