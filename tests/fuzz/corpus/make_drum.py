#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the corpus of fuzz_drum.c: how each input is meant is said there."""
import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent / "drum"
PARTS = {"header": 0, "tables": 1, "heap": 2, "rings": 3}


def patch(part, at, data):
    return struct.pack("<HBB", at & 0xffff, at >> 16 | PARTS[part] << 6, len(data)) + data


def u32(*values):
    return struct.pack(f"<{len(values)}I", *values)


def u64(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def whole(blocks=4, events=8):
    """The smallest drum: one ring, one category, one trace point."""
    clock_at, categories_at, rings_at, heap_at, space_at = 4096, 4224, 4288, 4352, 8192
    space = blocks * 4096
    header = struct.pack("<QIIQIIQ", 0x6d7572646f6d796b, 1, 4096, space_at + space, 7, 3, 1000)
    header += u64(clock_at, categories_at, 4320, rings_at, heap_at, space_at)
    header += u32(3, 1, 4, 1) + u64(space_at - heap_at, space, 0, 0)
    header += u64(512, space, space, space) + u32(1, heap_at // 16, 0, 0)
    drum = bytearray(header.ljust(space_at + space, b"\0"))
    drum[clock_at:clock_at + 96] = u32(0, 0, 2, 0, 0, 0, 0, 0) + u64(10, 1000, 1000, 5000, 9000000, 9001000, 9001000, 9005000)
    drum[categories_at:categories_at + 16] = struct.pack("<QII", 1 << 39 | 1, heap_at // 16, 0)
    drum[rings_at:rings_at + 64] = u64(space_at, space, 2) + u32(7, 0) + u64(0, 0, 0, 0)
    drum[heap_at:heap_at + 32] = struct.pack("<HHIII", 1, 0, 3, 5, 0) + b"net".ljust(16, b"\0")
    site = heap_at + 32
    drum[site:site + 80] = struct.pack("<HHIII", 2, 0, 64, 6, 0) + struct.pack(
        "<BBBBIQIIII8I", 3, 4, 3, 2, 12, 0x636, 0, heap_at // 16, heap_at // 16, 0, *([heap_at // 16] * 8))
    for block in range(2):
        at = space_at + block * 4096
        words = u64(block + 1, block * events, 20 + block) + u32(7, heap_at // 16, 0, 0) + u64(0, 0, 0)
        for i in range(events):
            items = u64(5) + b"named".ljust(8, b"\0") + u64(3) + u64(2) + b"ab".ljust(8, b"\0")
            words += u64((site // 16) << 42 | len(items) // 8 << 33 | 30 + 100 * block + i) + items
        drum[at:at + len(words)] = words
    return bytes(drum)


SEEDS = {
    "as_it_is": bytes([0]),
    "as_blocks": bytes([2]),
    "selected": bytes([4]),
    "selected_blocks": bytes([6]),
    "newest": bytes([16]),
    "file": bytes([32]),
    "model": bytes([64]),
    "model_bad_site": bytes([64]) + patch("rings", 64, u64(0x7fff << 42 | 1)),
    "whole_model": bytes([65]) + whole(),
    "whole": bytes([1]) + whole(),
    "whole_blocks": bytes([3]) + whole(),
    "whole_selected": bytes([5]) + whole(),
    "whole_file": bytes([33]) + whole(),
    "whole_cut": bytes([33]) + whole()[:9000],
    "head_far": bytes([0]) + patch("tables", 0, u64(0)) + patch("header", 32, u64(2**63)),
    "many_rings": bytes([0]) + patch("header", 168, u32(0xffffffff)),
    "clock_backwards": bytes([0]) + patch("tables", 32, u64(2**64 - 1, 0, 0, 2**64 - 1)),
    "clock_equal": bytes([0]) + patch("tables", 32, u64(5, 5, 5, 5, 6, 2**64 - 1)),
    "long_event": bytes([0]) + patch("rings", 64, u64(2**64 - 1)),
    "bad_site": bytes([2]) + patch("rings", 64, u64(0x7fff << 42 | 1)),
    "long_string": bytes([0]) + patch("heap", 4, u32(0xffffffff)),
    "scribbled": bytes([8]) + patch("rings", 0, u64(1, 2, 3)) + patch("heap", 16, bytes(63)),
    "scribbled_blocks": bytes([10]) + patch("rings", 64, bytes([255] * 63)) + patch("tables", 0, bytes(63)),
    "version": bytes([0]) + patch("header", 8, u32(2)),
}

FOLDER.mkdir(exist_ok=True)
for name, data in SEEDS.items():
    (FOLDER / name).write_bytes(data)
