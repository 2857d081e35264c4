#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_agent_memory.py: writes the seeds of fuzz_agent_memory: see there. Places are those of agent_abi.h and patch_parts.h."""
import pathlib
import struct

AT = 0x7e9000000000
KEEP, TABLE, STATES, DIRECTORY, LEAF, SAME_LEAF = 20480, 64 << 10, 128 << 10, 192 << 10, 448 << 10, 512 << 10
folder = pathlib.Path(__file__).parent / "agent_memory"


def patch(place, data):
    return struct.pack("<HB", place // 8, len(data)) + data


def words(place, *values):
    return patch(place, struct.pack(f"<{len(values)}Q", *(v % 2**64 for v in values)))


again = bytes(3)  # and how often
seeds = {
    "as_it_is": bytes(4),
    "begun": words(8, 0),
    "no_magic": words(0, 0),
    "table_everywhere": words(56, AT, 1 << 20, 1 << 20),
    "table_of_nothing": words(56, 0x300000000000, 1 << 20, 1 << 20),
    "table_outside": words(56, 2**64 - 4096, 16, 16),
    "equal_entries": words(56, AT + TABLE, 4096, 4096) + words(TABLE, 4096, 0) + again + b"\xff",
    "states_everywhere": words(80, AT, 8192, 4 | 4096 << 32),
    "states_beyond": words(80, 2**47 - 8192, 8192, 4096 | 4096 << 32),
    "many_states": words(96, 2**32 - 1),
    "directory_in_itself": words(104, AT + DIRECTORY) + words(DIRECTORY, *[AT + DIRECTORY] * 16),
    "leaf_everywhere": words(DIRECTORY, *[AT + LEAF] * 31) + again + b"\x0f",
    "pieces_are_one": words(DIRECTORY, AT + SAME_LEAF),
    "stack_at_zero": words(DIRECTORY, AT + LEAF) + words(LEAF, AT + (1 << 20), 1, 2**64 - 1, 2**63),
    "drum_over_all": words(112, 0, 2**47, 0, 0, 2**47),
    "drum_backwards": words(112, AT, 65536, 65536, 4096, 0),
    "regions": words(KEEP + 8, 128) + words(KEEP + 24, AT, 2**63, 2**64 - 1),
    "too_many_regions": words(KEEP + 8, 2**32 - 1),
    "guards": words(KEEP + 24 + 128 * 24, 256) + words(KEEP + 32 + 128 * 24, 0, 2**64 - 1, AT, 4096),
    "owner": words(24, 1, 0) + words(16, 1 << 32),
}
folder.mkdir(exist_ok=True)
for name, data in seeds.items():
    (folder / name).write_bytes(data)
