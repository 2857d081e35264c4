# SPDX-License-Identifier: MIT
"""checks.py: the checks of a test: each is a line, with what was seen when it failed."""
failed = 0


def check(what, good, seen=""):
    global failed
    print(f"{what}: {'ok' if good else 'FAILED'}")
    if not good:
        failed = 1
        print(f"  {seen}")
