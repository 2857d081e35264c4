# SPDX-License-Identifier: MIT
"""columns_make.py: makes .kymo files of columns out of any cells, also of those that no writer would write. docs/formats/kymo.md says what
is where."""
import struct

MAGIC = 0x1A0A0D6F6D796B89
FILE, SCHEMA, COLUMN = 1, 7, 8
SECTION_ROWS = 131072
RATIO_MAX = 256
NONE = 0xFFFFFFFF
LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}

P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
MASK = (1 << 64) - 1


def turn(number, bits):
    return (number << bits | number >> 64 - bits) & MASK


def mixed(sum_, lane):
    return turn((sum_ + lane * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    at = 0
    result = P5
    if len(data) >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        for at in range(0, len(data) - 31, 32):
            lanes = [mixed(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at))]
        at += 32
        result = sum(turn(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            result = ((result ^ mixed(0, lane)) * P1 + P4) & MASK
    result = (result + len(data)) & MASK
    for at in range(at, len(data), 8):  # all that is hashed here is padded to 8 bytes
        result = (turn(result ^ mixed(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
    result = (result ^ result >> 33) * P2 & MASK
    result = (result ^ result >> 29) * P3 & MASK
    return result ^ result >> 32


def cells(item_bytes, values):
    return struct.pack(f"<{len(values)}{LETTERS[item_bytes]}", *[value & (1 << 8 * item_bytes) - 1 for value in values])


class Writer:
    def __init__(self):
        self.parts = []

    def chunk(self, kind, body):
        body += bytes(-len(body) % 8)
        head = struct.pack("<QHHIIIQ", MAGIC, 40, kind, len(self.parts), len(body), 0, xxh64(body))
        self.parts.append(head + struct.pack("<Q", xxh64(head)) + body)

    def section(self, table, column, item_bytes, first, values):
        """values: a list, or (value, rows): the same one in all rows."""
        same = isinstance(values, tuple)
        rows = values[1] if same else len(values)
        data = b"" if same else cells(item_bytes, values)
        width = 0 if same else item_bytes
        body = struct.pack("<IHHHBBBBHIIIIQ", 40, 1, table, column, 0, width, 0, item_bytes, 0, first, rows, len(data), len(data),
                           values[0] & MASK if same else 0) + data
        self.chunk(COLUMN, body + bytes(max(0, rows * item_bytes // RATIO_MAX + 1 - len(body))))

    def column(self, table, column, item_bytes, values):
        rows = values[1] if isinstance(values, tuple) else len(values)
        for first in range(0, rows, SECTION_ROWS):
            some = min(SECTION_ROWS, rows - first)
            self.section(table, column, item_bytes, first,
                         (values[0], some) if isinstance(values, tuple) else values[first:first + some])


def make(tables, strings=(), clock=6):
    """tables: (name, rows, [(column, bytes of a cell, values)]); strings are numbered from 1 on."""
    texts = [text.encode() for text in strings]
    all_texts = b"".join(text + b"\0" for text in texts)
    tables = [("strings", len(texts), [("size", 4, [len(text) for text in texts])]),
              ("texts", len(all_texts), [("text", 1, list(all_texts))])] + list(tables)
    schema = b""
    for name, rows, columns in tables:
        schema += struct.pack("<IHH", rows, len(columns), len(name))
        schema += b"".join(struct.pack("<BBH", column[1], 0, len(column[0])) for column in columns)
        schema += name.encode() + b"".join(column[0].encode() for column in columns)
    writer = Writer()
    writer.chunk(FILE, struct.pack("<IHHQQQ", 32, 3, 3, 1000000000, 0, 0))
    writer.chunk(SCHEMA, struct.pack("<IIQQII", 32, len(tables), clock, 0, len(schema), len(schema)) + schema)
    for number, (_, _, columns) in enumerate(tables):
        for place, (_, item_bytes, values) in enumerate(columns):
            writer.column(number, place, item_bytes, values)
    return b"".join(writer.parts)
