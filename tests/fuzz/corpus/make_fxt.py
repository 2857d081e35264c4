#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the corpus of fuzz_fxt.c: a small trace for each kind of record, and damaged ones."""
import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent / "fxt"
MAGIC = struct.pack("<Q", 0x0016547846040010)


def pad(data):
    return data + bytes(-len(data) % 8)


def record(kind, fields, body=b"", words=None):
    """fields: {first bit: value} beyond the type and the size."""
    body = pad(body)
    head = kind | (words if words is not None else 1 + len(body) // 8) << 4
    for bit, value in fields.items():
        head |= value << bit
    return struct.pack("<Q", head & (1 << 64) - 1) + body


def u64(*values):
    return struct.pack(f"<{len(values)}Q", *[v & (1 << 64) - 1 for v in values])


def provider(number=1, name=b"kymo"):
    return record(0, {16: 1, 20: number, 52: len(name)}, name)


def string(index, text):
    return record(2, {16: index, 32: len(text)}, text)


def thread(index, pid, tid):
    return record(3, {16: index}, u64(pid, tid))


def inline(text):
    return 0x8000 | len(text), pad(text)


def arg(kind, name, high=0, body=b""):
    reference, text = inline(name)
    body = text + pad(body)
    return struct.pack("<Q", kind | (1 + len(body) // 8) << 4 | reference << 16 | high << 32) + body


ARGS = [
    arg(0, b"null"),
    arg(1, b"int32", 0xfffffff0),
    arg(2, b"uint32", 7),
    arg(3, b"int64", body=u64(-5)),
    arg(4, b"uint64", body=u64(5)),
    arg(5, b"double", body=struct.pack("<d", 1.5)),
    arg(6, b"string", 0x8003, b"abc"),
    arg(7, b"pointer", body=u64(0x1000)),
    arg(8, b"koid", body=u64(77)),
    arg(9, b"bool", 1),
    arg(10, b"blob", 4, b"blob"),
]


def event(kind, ticks, args=(), last=b"", thread_ref=1, category=1, name=2):
    fields = {16: kind, 20: len(args), 24: thread_ref, 32: category, 48: name}
    return record(4, fields, u64(ticks) + b"".join(args) + last)


HEAD = MAGIC + provider() + record(1, {}, u64(10**9)) + string(1, b"net") + string(2, b"recv") + thread(1, 10, 11)

FILES = {
    "head": HEAD,
    "span": HEAD + event(2, 100) + event(3, 200),
    "complete": HEAD + event(4, 100, last=u64(300)) + event(4, 300, last=u64(100)),
    "args": HEAD + event(0, 100, ARGS),
    "counter": HEAD + event(1, 100, [ARGS[1], ARGS[5], ARGS[6]], u64(3)),
    "async": HEAD + event(5, 100, last=u64(9)) + event(6, 150, last=u64(9)) + event(7, 200, last=u64(9)),
    "flow": HEAD + event(2, 90) + event(8, 100, last=u64(9)) + event(9, 150, last=u64(9)) + event(10, 200, last=u64(9)),
    "inline": HEAD + record(4, {16: 2, 32: 0x8003, 48: 0x8004}, u64(5, 20, 21) + pad(b"cat") + pad(b"name")),
    "ticks": MAGIC + provider() + record(1, {}, u64(24000000)) + event(2, 1 << 40) + event(3, (1 << 40) + 77),
    "magic_trace": MAGIC + provider(0, b"jane_tracing") + record(0, {16: 2}) +
    record(1, {}, u64(10**9, 1000, 1600000000 * 10**9)) + string(1, b"process") + event(2, 2000) + event(3, 3000),
    "sched": HEAD + record(8, {16: 0, 24: 3, 28: 1, 36: 1, 44: 5, 52: 6}, u64(100)) +
    record(8, {20: 1, 36: 3, 60: 1}, u64(200, 11, 12)) +
    record(8, {16: 1, 60: 2}, u64(300, 11) + arg(1, b"weight", 5)),
    "objects": HEAD + record(7, {16: 1, 24: 2}, u64(10)) + record(7, {16: 2, 24: 1, 40: 1}, u64(11) + arg(8, b"process", body=u64(10))),
    "log": HEAD + record(9, {16: 5, 32: 1}, u64(100) + pad(b"hello")),
    "blob": HEAD + record(5, {16: 2, 32: 4, 48: 1}, b"data") + record(5, {16: 2, 32: 6, 48: 3}, b"\x0a\x04\x40\x01\x50\x02"),
    "large": HEAD + struct.pack("<Q", 15 | 3 << 4) + u64(0, 0) + event(2, 1),
    "large_beyond": HEAD + struct.pack("<Q", 15 | 0xffffffff << 4) + event(2, 1),
    "others": HEAD + record(6, {16: 1}, u64(1)) + record(10, {}, u64(1)) + record(12, {}, u64(1)) + record(0, {16: 3, 20: 1}),
    "no_words": HEAD + event(2, 1) + u64(0) + event(3, 2),
    "cut": (HEAD + event(2, 1))[:-4],
    "no_magic": HEAD[8:] + event(2, 1),
    "arg_too_long": HEAD + event(0, 1, [struct.pack("<Q", 3 | 9 << 4)]),
    "providers": MAGIC + provider(1, b"a") + string(1, b"x") + provider(2, b"b") + string(1, b"y") + record(0, {16: 2, 20: 1}) + event(2, 5),
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, data in FILES.items():
        (FOLDER / name).write_bytes(data)
