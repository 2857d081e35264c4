#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the corpus of fuzz_input.c: packed data of each kind, joined, nested, cut and damaged."""
import gzip
import io
import pathlib
import zipfile
import zlib

FOLDER = pathlib.Path(__file__).parent / "input"
TEXT = b"".join(b"event %d\n" % i for i in range(200))
# One frame of "hello, kymo\n" without compression: magic, head, one raw block that is the last.
ZSTD = bytes.fromhex("28b52ffd 20 0c 610000") + b"hello, kymo\n"
SKIPPABLE = bytes.fromhex("502a4d18 04000000 00000000")


def pack(data):
    return gzip.compress(data, mtime=0)


def archive(method, members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, compress_type=method)
    return out.getvalue()


GZIP = pack(TEXT)
STORED = archive(zipfile.ZIP_STORED, {"a/": b"", "a/b": TEXT, "c": b"second"})
FILES = {
    "plain": TEXT,
    "gzip": GZIP,
    "gzip_twice": pack(GZIP),
    "gzip_joined": GZIP + GZIP,
    "gzip_padded": GZIP + bytes(32),
    "gzip_cut": GZIP[: len(GZIP) // 2],
    "gzip_damaged": GZIP[:60] + b"\xff" * 20 + GZIP[80:],
    "gzip_followed": GZIP + b"and more",
    "zlib": zlib.compress(TEXT),
    "zlib_cut": zlib.compress(TEXT)[:-8],
    "zstd": ZSTD,
    "zstd_joined": SKIPPABLE + ZSTD + ZSTD,
    "zstd_cut": ZSTD[:-3],
    "zip_stored": STORED,
    "zip_deflated": archive(zipfile.ZIP_DEFLATED, {"x": TEXT, "y": GZIP}),
    "zip_cut": STORED[:400],
    "zip_in_gzip": pack(STORED),
    "bomb": pack(bytes(128 << 10)),
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, data in FILES.items():
        (FOLDER / name).write_bytes(data)
