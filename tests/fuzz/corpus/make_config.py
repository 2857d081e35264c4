#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the corpus of fuzz_config, beside itself in config/: python3 make_config.py"""
import pathlib


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def buffer(size_kb, policy):
    return block(1, number(1, size_kb) + number(4, policy))


def source(name, enabled=(), disabled=()):
    track_event = b"".join(block(1, c) for c in disabled) + b"".join(block(2, c) for c in enabled)
    return block(2, block(1, block(1, name) + number(2, 0) + block(113, track_event)))


CORPUS = {
    "empty": b"",
    "ring": buffer(65536, 1) + number(3, 10000) + source("track_event", ["net", "db*"], ["*"]),
    "discard": buffer(1024, 2) + source("track_event", [], ["gpu", "*.verbose"]),
    "stream": buffer(4096, 1) + number(8, 1) + number(9, 2500) + number(10, 1 << 30)
    + number(13, 500) + block(29, "/tmp/out.${pid}.pftrace")
    + source("linux.ftrace") + source("track_event", ["-odd", "a,b", "*"], ["a", "n*"]),
    "unknown": number(1000, 2**64 - 1) + varint(500 << 3 | 1) + bytes(8)
    + varint(501 << 3 | 5) + bytes(4) + block(33, b"\x07\x07") + number(3, 77),
    "group": b"\x1b\x18\x01\x1c",
}

folder = pathlib.Path(__file__).parent / "config"
for name, data in CORPUS.items():
    (folder / name).write_bytes(data)
