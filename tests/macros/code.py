#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""code.py INCLUDE: the code that compilers make of a trace point, on x86-64.

Off, a trace point is a load, a test and a branch: objdump shows that functions save nothing before, but for what a scope
needs to remember that it was on: a register, another for an exception in clang, and the stack's alignment. A scope has at most 120 bytes of code that is not on its slow path.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HOT_BYTES_MAX = 120
SAVES = ("push", "sub")

# A function of each, that calls another.
POINTS = [
    ("scope", 'KYMO_SCOPE("net", "scope");'),
    ("instant", 'KYMO_INSTANT("net", "instant");'),
    ("counter", 'KYMO_COUNTER("net", "counter", x);'),
    ("async_begin", 'KYMO_ASYNC_BEGIN("net", "async", y);'),
    ("flow", 'KYMO_FLOW_BEGIN("net", "flow", y);'),
    ("begin", 'KYMO_BEGIN("net", "begin");'),
    ("end", 'KYMO_END("net");'),
]
SOURCE = "#include <kymo/kymo.h>\nvoid work(int x, long y);\n" + "".join(
    "void at_%s(int x, long y);\nvoid at_%s(int x, long y)\n{\n\t%s\n\twork(x, y);\n}\n" % (name, name, point)
    for name, point in POINTS)


def functions(path):
    """Return the instructions of each function, as (address, mnemonic, operands)."""
    found, now = {}, None
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    for line in text.splitlines():
        begin = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if begin:
            name = re.search(r"at_[a-z_]*?(?=il$|$)", begin.group(1))
            now = found.setdefault(name.group(0) if name else begin.group(1), [])
            continue
        code = re.match(r" *([0-9a-f]+):\t(\S+) *(.*)", line)
        if code and now is not None:
            now.append((int(code.group(1), 16), code.group(2), code.group(3)))
    return found


def hot_bytes(code):
    """Return how long the function is without what comes after a full block: where its only jae goes."""
    full = [int(operands.split()[0], 16) for _, mnemonic, operands in code if mnemonic in ("jae", "jnb")]
    last = max(address for address, mnemonic, _ in code if not mnemonic.startswith(("nop", "data16", "cs", "xchg")))
    assert len(full) == 1, "one comparison with the block's end: %s" % full
    return min(full[0], last + 5) - code[0][0]


def mistakes(name, code, cpp):
    """Return what is wrong with the function."""
    off = []
    for address, mnemonic, operands in code:
        off.append(mnemonic)
        if mnemonic == "jne":
            break
    wrong = []
    saved = [mnemonic for mnemonic in off if mnemonic.startswith(SAVES)]
    tests = [mnemonic for mnemonic in off if mnemonic.startswith(("cmpb", "jne"))]
    if tests != ["cmpb", "jne"] or off[-2:] != tests:
        wrong.append("the test is not a comparison and a branch: %s" % off)
    if len(saved) > ((3 if cpp else 1) if name == "at_scope" else 0):
        wrong.append("saves before its test: %s" % off)
    if name == "at_scope" and hot_bytes(code) > HOT_BYTES_MAX:
        wrong.append("%d hot bytes, more than %d" % (hot_bytes(code), HOT_BYTES_MAX))
    return wrong


def main():
    include = sys.argv[1]
    failed = 0
    compilers = [name for name in ("gcc", "clang", "g++", "clang++") if shutil.which(name)]
    if os.uname().machine != "x86_64" or not compilers or not shutil.which("objdump"):
        print("skipped: needs x86-64, gcc or clang, and objdump")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        for compiler in compilers:
            cpp = compiler.endswith("++")
            source, made = os.path.join(folder, "code." + ("cc" if cpp else "c")), os.path.join(folder, "code.o")
            with open(source, "w") as file:
                file.write(SOURCE)
            subprocess.run([compiler, "-I", include, "-std=" + ("c++11" if cpp else "c11"), "-O2", "-fPIC", "-c", source,
                            "-o", made], check=True)
            found = functions(made)
            for name, _ in POINTS:
                code = found["at_" + name]
                wrong = mistakes("at_" + name, code, cpp)
                failed += len(wrong)
                print("%-8s %-12s %s" % (compiler, name, "; ".join(wrong) or "ok"),
                      "%d hot bytes" % hot_bytes(code) if name == "scope" else "")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
