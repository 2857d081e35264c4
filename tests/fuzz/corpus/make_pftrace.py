#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the corpus of fuzz_pftrace, beside itself in pftrace/: python3 make_pftrace.py"""
import pathlib
import struct
import zlib


def varint(number):
    out = bytearray()
    number &= 2**64 - 1
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def num(field, value):
    return varint(field << 3) + varint(value)


def fixed(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def data(field, *parts):
    body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def packed(field, *values):
    return data(field, *(varint(v) for v in values))


def packet(*parts, seq=1, flags=0, ts=None):
    head = num(10, seq) + (num(13, flags) if flags else b"")
    return data(1, head + (num(8, ts) if ts is not None else b""), *parts)


def interned(field, iid, text):
    return data(field, num(1, iid), data(2, text))


def track(uuid, *parts):
    return packet(data(60, num(1, uuid), *parts))


def clock(ident, value, *parts):
    return data(1, num(1, ident), num(2, value), *parts)


def ftrace(ts, tid, ident, *parts):
    return data(2, num(1, ts), num(2, tid), data(ident, *parts))


names = interned(1, 1, "cat") + interned(2, 1, "name") + interned(3, 1, "key") + interned(29, 1, "v")
start = packet(data(12, names), flags=1)
thread = track(7, num(5, 6), data(4, num(1, 100), num(2, 101), data(5, "thread")))
process = track(6, data(3, num(1, 100), data(6, "process")))
counter = track(8, num(5, 6), data(2, "counter"), data(8, num(3, 3), num(4, 2), num(5, 1)))


def event(ts, kind, *parts, flags=2):
    return packet(data(11, num(9, kind), *parts), ts=ts, flags=flags)


nested = data(4, num(1, 1), data(11, data(10, "a"), num(3, 1)), data(12, num(4, 2)))
legacy = packet(data(44, num(1, 5), num(2, 6), num(6, 100)), flags=1) + b"".join(
    packet(data(11, num(1, 10), data(23, "n"), data(6, num(2, ord(p)), num(6, 9), *more)), flags=2)
    for p, more in (("b", ()), ("e", ()), ("X", (num(3, 4),)), ("s", ()), ("f", (num(12, 1),)),
                    ("i", (num(14, 1),)), ("n", ()), ("M", ()), ("B", (num(8, 3), num(13, 2))))
)
stack = data(12, data(7, num(1, 1), packed(2, 1)), data(6, num(1, 1), num(2, 1), num(3, 1), num(4, 64)),
             interned(5, 1, "f"), interned(16, 1, "\x01\x02"), interned(17, 1, "lib"),
             data(19, num(1, 1), num(2, 1), packed(7, 1)))
slices = start + process + thread + event(10, 1, num(10, 1), num(3, 1), num(11, 7)) + event(
    20, 3, num(11, 7), data(4, num(1, 1), num(17, 1)), nested, fixed(47, 3)) + event(30, 2, num(11, 7), fixed(48, 3))

cases = {
    "slices": slices,
    "counters": start + counter + event(1, 4, num(11, 8), num(30, 5)) + event(
        2, 3, num(31, 8), packed(12, 4)) + event(3, 4, num(11, 8), fixed(44, 0x3FF0000000000000)),
    "clocks": packet(data(59, num(58, 64)), data(6, clock(6, 1000), clock(64, 5, num(3, 1), num(4, 1000))),
                     flags=1) + event(1, 3) + event(2, 3),
    "legacy": legacy,
    "json": start + event(1, 3, data(4, data(10, "j"), data(9, '{"a": [1, 2.5, "x", null, {"b": true}]}'))),
    "ftrace": packet(data(1, num(1, 2),
                          ftrace(10, 5, 4, data(1, "a"), num(2, 5), num(3, 120), num(4, 1), data(5, "b"), num(6, 6)),
                          ftrace(20, 6, 3, data(2, "B|6|x\n")), ftrace(30, 6, 3, data(2, "E|6\n")),
                          ftrace(40, 6, 235, num(1, 9), data(2, "n"), num(3, 0x10000)),
                          ftrace(50, 6, 327, data(1, "gen"), data(2, data(1, "f"), num(4, 1))))),
    "compact": packet(data(1, num(1, 0), data(4, data(5, "a"), data(5, "b"), packed(1, 100, 5, 5),
                                              packed(2, 1, 0, 1), packed(3, 1, 2, 1), packed(4, 1, 1, 1),
                                              packed(6, 0, 1, 0), packed(7, 104), packed(8, 2), packed(9, 0),
                                              packed(10, 1), packed(11, 1)))),
    "generic": packet(data(1, num(1, 0), data(11, num(1, 65540), data(2, data(1, "ev"), data(
        2, data(1, "f"), num(3, 1)))), ftrace(1, 2, 65540, num(1, 3)))),
    "samples": packet(stack, data(59, data(12, data(1, num(4, 10)))), flags=1) + packet(
        data(66, num(1, 1), num(2, 3), num(3, 4), num(4, 1), num(6, 9)), ts=5, flags=2) + packet(
        data(135, data(1, num(2, 3), num(3, 4)), num(6, 1)), ts=6, flags=2),
    "profile": packet(stack, data(44, num(1, 5), num(2, 6)), flags=1) + packet(
        data(54, packed(1, 1, 1), packed(2, 3, 4)), flags=2),
    "tree": packet(data(2, data(1, num(1, 4), num(2, 1), data(3, "cmd")), data(2, num(1, 5), data(2, "t"), num(
        3, 4)))) + packet(data(9, data(1, num(1, 4), num(3, 8))), ts=3),
    "system": packet(data(7, data(1, num(1, 2), num(2, 3)), data(3, num(1, 0), num(2, 5)), num(4, 1), packed(11, 5)),
                     ts=1) + packet(data(45, data(1, data(3, "6.1.0")))) + packet(
        data(39, data(1, num(2, 1), num(3, 2), num(5, 9), data(6, "tag"), num(7, 4), data(8, "text")))),
    "loops": track(1, num(5, 2)) + track(2, num(5, 1)) + event(1, 3, num(11, 1), flags=0),
    "zlib": data(1, data(50, zlib.compress(slices))),
    "machines": track(1, data(2, "host")) + packet(num(98, 7), data(60, num(1, 1), data(2, "guest"))) + packet(
        num(98, 7), data(11, num(9, 3), num(11, 1)), ts=4),
}

folder = pathlib.Path(__file__).parent / "pftrace"
folder.mkdir(exist_ok=True)
for name, body in cases.items():
    (folder / name).write_bytes(body)
