#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the corpus of fuzz_print, beside itself in print/: python3 make_print.py"""
import pathlib
import struct


def value(kind, data):
    return bytes([kind]) + data


def integer(number):
    return value(1, struct.pack("<q", number))


def unsigned(number):
    return value(2, struct.pack("<Q", number))


def double(number):
    return value(3, struct.pack("<d", number))


def string(text, cut=False):
    return value(6 | cut << 7, struct.pack("<Q", len(text))) + text


def case(room, values, fmt):
    return bytes([room // 8, len(values)]) + b"".join(values) + fmt


CORPUS = {
    "plain": case(256, [], b"plain 100%% text %"),
    "integers": case(512, [integer(-42), unsigned(2**64 - 1), integer(7)], b"%+05d %#llx %-8hhu|"),
    "doubles": case(1024, [double(3.14), double(1e308), double(-0.0)], b"%f %.3e %20.10g"),
    "strings": case(256, [string(b"name"), string("€uro".encode(), True)], b"<%s> <%10.2s>"),
    "stars": case(2040, [integer(600), integer(-1), double(1e300)], b"%*.*f"),
    "missing": case(64, [integer(1)], b"%d %s %p %n %c"),
    "mismatch": case(128, [string(b"x"), double(0.5), integer(3)], b"%d %x %s"),
    "unknown": case(128, [integer(1)], b"%k %1$d %m %lc %ls %5% %'d"),
    "full": case(8, [string(b"0123456789")], b"%s%s"),
}

folder = pathlib.Path(__file__).parent / "print"
for name, data in CORPUS.items():
    (folder / name).write_bytes(data)
