#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_stack_corpus.py FOLDER: seeds for fuzz_stack_spans: a small program with frames of all kinds, and records of its samples."""
import os
import re
import struct
import subprocess
import sys
import tempfile

SOURCE = r"""
volatile int value;
__attribute__((noinline)) int leaf(int n) { return value + n; }
__attribute__((noinline)) int middle(int n) { volatile int room[20]; room[n % 20] = n; return leaf(n) + room[n % 20]; }
__attribute__((noinline)) int aligned(int n) { volatile int room[8] __attribute__((aligned(64))); room[n % 8] = n;
	return middle(n) + room[0] + *(volatile int *)__builtin_alloca(n); }
static inline int inlined(int n) { return aligned(n) * 3; }
void _start(void) { value = inlined(3); for (;;) value += inlined(value); }
"""
ORDER = [0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15]  # the kernel's registers, in DWARF's numbers
BASE = 0x400000
STACK = 0x7ffe0000


def trailer(ns):
    return struct.pack("<IIQ", 7, 7, ns)


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample(ns, pc, stack, abi=2):
    registers = {7: STACK, 16: pc, 6: STACK + 64}
    body = struct.pack("<IIQ", 7, 7, ns) + struct.pack("<Q", abi)
    body += b"".join(struct.pack("<Q", registers.get(number, 0)) for number in ORDER) if abi else b""
    return record(9, 2, body + struct.pack("<Q", len(stack)) + stack + struct.pack("<Q", len(stack)))


def switch(ns, misc):
    return record(14, misc, trailer(ns))


def life(kind, ns):
    return record(kind, 0, struct.pack("<IIIIQ", 7, 7, 7, 7, ns) + trailer(ns))


def mapping(ns):
    return record(10, 2, struct.pack("<IIQQQIIQQII", 7, 7, 0x10000, 0x1000, 0, 0, 0, 0, 0, 5, 2) + b"//anon\0\0" + trailer(ns))


def build(folder, name, *options):
    path = os.path.join(folder, name)
    source = os.path.join(folder, "seed.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-no-pie", "-nostdlib", "-fno-stack-protector", "-Wl,-z,noseparate-code,-z,norelro,--build-id=none",
                    "-fdebug-prefix-map=%s=." % folder, *options, "-o", path, source], check=True)
    with open(path, "rb") as file:
        return file.read(), subprocess.run(["objdump", "-d", path], check=True, capture_output=True, text=True).stdout


def places(listing):
    """Where calls return to, and other instructions."""
    lines = re.findall(r"^\s+([0-9a-f]+):\t[0-9a-f ]+\t(\S+)", listing, re.M)
    after = [int(lines[i + 1][0], 16) for i in range(len(lines) - 1) if lines[i][1] == "call"]
    return after, [int(address, 16) for address, _ in lines]


def seed(program, listing):
    returns, instructions = places(listing)
    stack = b"".join(struct.pack("<Q", returns[i % len(returns)] if i % 3 else STACK + 8 * i + 32) for i in range(48))
    parts = [life(7, 10), mapping(11)]
    for i, pc in enumerate(instructions[::3]):
        parts.append(sample(20 + 10 * i, pc, stack[: 8 * (6 + i % 40)]))
        if i % 4 == 0:
            parts += [switch(22 + 10 * i, 0x2000), switch(25 + 10 * i, 0)]
    parts += [sample(900, 0x10010, stack), sample(910, 0, b"", 0), life(4, 1000)]
    return struct.pack("<H", len(program)) + program + b"".join(parts)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, options in (("plain", ["-s"]), ("debug", ["-g", "-O2"]), ("pointers", ["-s", "-fno-omit-frame-pointer"])):
            with open(os.path.join(sys.argv[1], name), "wb") as file:
                file.write(seed(*build(folder, name, *options)))


main()
