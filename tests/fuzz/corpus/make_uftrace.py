# SPDX-License-Identifier: MIT
"""Makes the seeds of fuzz_uftrace: python3 make_uftrace.py, in this directory."""
import os
import struct


def part(number, content):
    return struct.pack("<BH", number, len(content)) + content


def record(ns, kind, more, address):
    return struct.pack("<QQ", ns, kind | more << 2 | 5 << 3 | address << 16)


info = b"Ftrace!\0" + struct.pack("<IHBBQQQ", 4, 40, 1, 2, 0x38, 0x3FFF, 1024)
info += b"exename:/bin/prog\nargspec:lines=2\n"
info += b"argspec:add@arg1/i32,arg2/i32;greet@arg1/s,arg2/c;mul@fparg1/64,fparg2/32;.*any@arg1/x64\n"
info += b"retspec:add@retval/i32;greet@retval/s\nargauto:malloc@arg1/u\nretauto:malloc@retval/p\n"
task = b'SESS timestamp=1.000000000 pid=10 sid=00ff exename="/bin/prog"\n'
task += b"TASK timestamp=1.000000001 tid=10 pid=10\nFORK timestamp=1.000000002 pid=11 ppid=10\n"
task += b'DLOP timestamp=1.000000003 tid=10 sid=00ff base=7f0000000000 libname="/lib/x.so"\n'
maps = b"555500000000-555500010000 r-xp 00000000 00:00 0 /bin/prog\n"
syms = b"# symbols: 4\n1000 T main\n1100 t add\n1200 20 t greet\n1300 t mul\n1400 P malloc\n1500 ? __sym_end\n"
base = 0x555500000000
calls = record(1000, 0, 0, base + 0x1010) + record(1100, 0, 1, base + 0x1110) + struct.pack("<ii", -5, 7)
calls += record(1200, 1, 1, base + 0x1110) + struct.pack("<ii", 2, 0)
calls += record(1300, 0, 1, base + 0x1210) + b"\x02\0hix\0\0\0" + record(1400, 1, 1, base + 0x1210) + b"\x02\0yo\0\0\0\0"
calls += record(1500, 0, 1, base + 0x1310) + struct.pack("<dfi", 1.5, 2.5, 0) + record(1600, 1, 0, base + 0x1310)
calls += record(1700, 2, 0, 42) + record(1800, 3, 1, 200001) + b"\x04\0abcd\0\0" + record(2000, 1, 0, base + 0x1010)
perf = struct.pack("<IHHIIQ", 14, 1 << 13, 24, 10, 10, 500) + struct.pack("<IHHIIQ", 14, 0, 24, 10, 10, 700)
perf += struct.pack("<IHHII8sIIQ", 3, 0, 40, 10, 10, b"worker", 10, 10, 800)

os.makedirs("uftrace", exist_ok=True)
seeds = {
    "calls": part(0, info) + part(1, task) + part(2, maps) + part(3, syms) + part(4, calls) + part(6, perf),
    "threads": part(0, info) + part(1, task) + part(2, maps) + part(3, syms) + part(5, calls[:100]),
    "info": part(0, info),
    "pattern": part(0, info.replace(b"argspec:add", b"argspec:a++++++++++++++++++++++++++++++++++++@arg1;^ad+$")) + part(1, task) + part(2, maps) + part(3, syms) + part(4, calls),
}
for name, content in seeds.items():
    with open("uftrace/" + name, "wb") as file:
        file.write(content)
