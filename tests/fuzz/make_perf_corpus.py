# SPDX-License-Identifier: MIT
"""Makes the corpora of fuzz_perf_data, fuzz_perf_script, fuzz_jitdump and fuzz_perf_map.

make_perf_corpus.py FOLDER: writes FOLDER/perf_data and so on. Everything in them is made here by hand.
"""
import os
import struct
import sys

IP, TID, TIME, CPU, PERIOD, CALLCHAIN, RAW, READ, ID = 1, 2, 4, 128, 256, 32, 1024, 16, 64
IDENTIFIER = 1 << 16
FORMAT = b"""name: sched_switch
ID: 314
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: "prev_comm=%s", REC->prev_comm
"""


class Perf:
    """A perf.data of one or more events."""

    def __init__(self, order="<", pipe=False, kind=1, config=0, fields=IP | TID | TIME | CPU | PERIOD, read=0):
        self.order, self.pipe = order, pipe
        self.records = []
        flags = 1 << 18
        if order == ">":
            flags = int("".join(f"{(flags >> 8 * i) & 255:08b}"[::-1] for i in range(8)), 2)
            flags = struct.pack(">Q", flags)
        else:
            flags = struct.pack("<Q", flags)
        self.attr = self.pack("IIQQQQ", kind, 96, config, 1000, fields, read) + flags + bytes(48)
        self.features = {}

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def text(self, text):
        return text.encode() + bytes(8 - len(text) % 8)

    def trailer(self, pid, tid, time, cpu):
        return self.pack("IIQII", pid, tid, time, cpu, 0)

    def add(self, kind, body, misc=0, behind=b""):
        self.records.append(self.pack("IHH", kind, misc, 8 + len(body)) + body + behind)

    def usual(self):
        self.add(1, self.pack("IIQQQ", 0xffffffff, 0, 0xffffffff81000000, 1 << 24, 0xffffffff81000000) +
                 self.text("[kernel.kallsyms]_text") + self.trailer(0, 0, 0, 0), 1)
        self.add(3, self.pack("II", 10, 10) + self.text("prog") + self.trailer(10, 10, 100, 0), 1 << 13)
        self.add(10, self.pack("IIQQQIIQQII", 10, 10, 0x401000, 0x1000, 0, 8, 1, 77, 0, 5, 2) +
                 self.text("/bin/prog") + self.trailer(10, 10, 110, 0), 2)
        self.add(7, self.pack("IIIIQ", 11, 10, 11, 10, 120) + self.trailer(10, 10, 120, 1))
        self.add(4, self.pack("IIIIQ", 11, 10, 11, 10, 190) + self.trailer(11, 11, 190, 1))
        self.add(2, self.pack("QQ", 1, 5) + self.trailer(10, 10, 195, 1))
        self.add(15, self.pack("II", 11, 11) + self.trailer(10, 10, 196, 1), 1 << 13)
        self.add(68, b"")
        return self

    def out(self):
        data = b"".join(self.records)
        magic = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        if self.pipe:
            head = self.pack("IHH", 64, 0, 8 + len(self.attr) + 8)
            return magic + self.pack("Q", 16) + head + self.attr + self.pack("Q", 1) + data
        bits = 0
        for feature in self.features:
            bits |= 1 << feature
        attrs = self.attr + self.pack("QQ", 104 + len(self.attr) + 16, 8)
        at = 104 + len(attrs) + 8
        head = magic + self.pack("QQQQQQQQ", 104, len(self.attr) + 16, 104, len(attrs), at, len(data), 0, 0)
        head += self.pack("QQQQ", bits, 0, 0, 0)
        table, bodies, place = b"", b"", at + len(data) + 16 * len(self.features)
        for feature in sorted(self.features):
            body = self.features[feature]
            table += self.pack("QQ", place, len(body))
            bodies += body
            place += len(body)
        return head + attrs + self.pack("Q", 1) + data + table + bodies


def sample(perf, time, chain=()):
    body = perf.pack("QIIQIIQ", 0x401010, 10, 10, time, 1, 0, 500)
    if chain:
        body += perf.pack("Q", len(chain)) + perf.pack(f"{len(chain)}Q", *chain)
    perf.add(9, body, 2)


def tracing_data(perf):
    head = b"\x17\x08\x44tracing0.6\0" + bytes([perf.order == ">", 8]) + perf.pack("I", 4096)
    head += b"header_page\0" + perf.pack("Q", 0) + b"header_event\0" + perf.pack("Q", 0)
    head += perf.pack("I", 0) + perf.pack("I", 1) + b"sched\0" + perf.pack("I", 1)
    kallsyms = b"ffffffff81000000 T _text\nffffffff81000100 t func\n"
    return head + perf.pack("Q", len(FORMAT)) + FORMAT + perf.pack("I", len(kallsyms)) + kallsyms + perf.pack("I", 0)


def string(perf, text):
    return perf.pack("I", 64) + text.encode().ljust(64, b"\0")


def perf_files():
    for order in "<>":
        for pipe in (False, True):
            perf = Perf(order, pipe, fields=IP | TID | TIME | CPU | PERIOD | CALLCHAIN).usual()
            sample(perf, 200, (0xffffffffffffff80, 0xffffffff81000010, 0xfffffffffffffe00, 0x401010, 0x402020))
            yield f"usual_{'big' if order == '>' else 'little'}_{'pipe' if pipe else 'file'}", perf.out()
    perf = Perf(kind=2, config=314, fields=IP | TID | TIME | CPU | PERIOD | RAW).usual()
    raw = struct.pack("<HBBi16siiq16sii", 314, 0, 0, 10, b"prog", 10, 120, 1, b"other", 11, 120)
    perf.add(9, perf.pack("QIIQIIQI", 0x401010, 10, 10, 300, 1, 0, 1, len(raw) + 4) + raw + bytes(4), 1)
    perf.features = {1: tracing_data(perf), 3: string(perf, "host"), 4: string(perf, "6.1.0"),
                     11: perf.pack("I", 2) + string(perf, "perf") + string(perf, "record"),
                     12: perf.pack("III", 1, 96, 0)[:8] + perf.attr + perf.pack("I", 1) + string(perf, "cycles") +
                     perf.pack("Q", 1),
                     2: perf.pack("IHHI", 67, 0, 48, 10) + bytes(range(20)) + bytes(4) + b"/bin/prog\0\0\0",
                     29: perf.pack("IIQQ", 1, 1, 10**18, 10**9)}
    yield "tracepoint_features", perf.out()
    perf = Perf(pipe=True)
    perf.add(66, perf.pack("II", 0, 0))
    yield "tracing_data_empty", perf.out()
    perf = Perf(fields=IDENTIFIER | IP | TID | TIME | CPU | PERIOD | READ, read=4 | 8)
    perf.add(9, perf.pack("QQIIQIIQQQQQQ", 1, 0x401010, 10, 10, 200, 1, 0, 500, 2, 7, 1, 8, 1), 2)
    perf.add(71, perf.pack("QQQIIII", 16, 0, 0, 0, 1, 2, 0), behind=bytes(16))
    perf.add(79, perf.pack("QQQ", 10, 20, 30))
    perf.add(78, perf.pack("QQ", 2, 1) + perf.text("named"))
    yield "identifier_group_read", perf.out()
    # zstd: one frame, raw block of a FINISHED_ROUND record and half of the next
    inner = struct.pack("<IHH", 68, 0, 8) + struct.pack("<IHHQQ", 2, 0, 24, 1, 3)
    frame = b"\x28\xb5\x2f\xfd\x20" + bytes([len(inner)]) + struct.pack("<I", len(inner) << 3 | 1)[:3] + inner
    perf = Perf()
    perf.add(81, frame[:20])
    perf.add(81, frame[20:])
    yield "compressed", perf.out()
    perf = Perf()
    perf.add(83, struct.pack("<Q", len(frame)) + frame + bytes(-len(frame) % 8))
    yield "compressed2", perf.out()
    perf = Perf().usual()
    yield "unfinished", perf.out()[:48] + bytes(8) + perf.out()[56:]


SCRIPTS = {
    "stacks": "a b  1/2  [000]  1.000001:  10 cycles:ppp: \n\t  10 f(int)+0x1 (/x (deleted))\n\t 20 [unknown] ([unknown])\n\n"
              "c 3 2.000000001: cpu-clock:\n\t 30 g (/y)\n",
    "lines": "# cmdline\nc 3 [001] 2.5: 1 cycles: ffff g+0x1f ([kernel.kallsyms])\nswapper 0 [001] d... 3.0: sched:sched_switch: "
             "prev_comm=a\n instruction trace error type 1 time 1.0 cpu 0 pid 1 tid 1 ip 0 code 6: x\n",
    "branches": "1/2 1.1: 1 branches:uH: tr strt 0 [unknown] ([unknown]) => 10 main+0x0 (/x)\n"
                "1/2 1.2: 1 branches:uH: call 14 main+0x4 (/x) => 20 f+0x0 (/x)\n"
                "1/2 1.3: 1 branches:uH: jmp 14 f+0x4 (/x) => 20 g+0x0 (/x)\n"
                "1/2 1.4: 1 branches:uH: return 14 g+0x4 (/x) => 20 main+0x5 (/x)\n",
    "no_end": "a 1 1.0: cycles:\n\t10 f (/x)",
}


def jitdumps():
    for order in "<>":
        pack = lambda form, *values: struct.pack(order + form, *values)
        data = pack("IIIIIIQQ", 0x4a695444, 1, 40, 62, 0, 42, 5, 0)
        debug = pack("QQQII", 0x1000, 1, 0x1000, 12, 0) + b"file.js\0"
        data += pack("IIQ", 2, 16 + len(debug), 6) + debug
        unwind = pack("QQQ", 8, 4, 0) + bytes(8)
        data += pack("IIQ", 4, 16 + len(unwind), 6) + unwind
        load = pack("IIQQQQ", 42, 43, 0x1000, 0x1000, 4, 1) + b"fun\0code"
        data += pack("IIQ", 0, 16 + len(load), 7) + load
        data += pack("IIQIIQQQQQ", 1, 16 + 48, 8, 42, 43, 0, 0x1000, 0x2000, 4, 1)
        data += pack("IIQ", 3, 16, 9)
        yield "little" if order == "<" else "big", data


def main():
    folder = sys.argv[1]
    corpora = {
        "perf_data": list(perf_files()),
        "perf_script": [(name, text.encode()) for name, text in SCRIPTS.items()],
        "jitdump": list(jitdumps()),
        "perf_map": [("plain", b"1000 20 one two\n0x1020 0x10 three\r\n\nbad line\n"), ("cut", b"ffffffffffffffff 1 x")],
    }
    for corpus, files in corpora.items():
        os.makedirs(os.path.join(folder, corpus), exist_ok=True)
        for name, data in files:
            with open(os.path.join(folder, corpus, name), "wb") as file:
                file.write(data)


main()
