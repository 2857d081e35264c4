# SPDX-License-Identifier: MIT
"""Makes the seeds of fuzz_ctf: python3 make_ctf.py, in this directory."""
import os
import struct


def part(number, content):
    return struct.pack("<BH", number, len(content)) + content


HEAD = b"""/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 32; align = 8; signed = true; } := s32;
typealias integer { size = 64; align = 8; } := u64;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u8 stream_id; }; };
clock { name = c; freq = 1000000000; offset = 5; };
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
"""
KERNEL = HEAD + b"""
stream { id = 0;
 packet.context := struct { u32 content_size; u32 packet_size; u32 cpu_id; time timestamp_begin; time timestamp_end;
  u32 events_discarded; u32 packet_seq_num; };
 event.header := struct { u8 id; time timestamp; }; };
event { id = 0; stream_id = 0; name = "sched_switch"; fields := struct {
 integer { size = 8; align = 8; encoding = UTF8; } prev_comm[8]; s32 prev_tid; s32 prev_prio; u64 prev_state;
 integer { size = 8; align = 8; encoding = UTF8; } next_comm[8]; s32 next_tid; s32 next_prio; }; };
event { id = 1; stream_id = 0; name = "syscall_entry_read"; fields := struct { u32 fd; }; };
event { id = 2; stream_id = 0; name = "syscall_exit_read"; fields := struct { s32 ret; }; };
event { id = 3; stream_id = 0; name = "sched_process_fork"; fields := struct {
 s32 parent_tid; string child_comm; s32 child_tid; s32 child_pid; }; };
event { id = 4; stream_id = 0; name = "irq_handler_entry"; fields := struct { s32 irq; string name; }; };
event { id = 5; stream_id = 0; name = "irq_handler_exit"; fields := struct { s32 irq; s32 ret; }; };
event { id = 6; stream_id = 0; name = "sched_waking"; fields := struct { string comm; s32 tid; }; };
event { id = 7; stream_id = 0; name = "sched_process_exit"; fields := struct { s32 tid; }; };
"""
USER = HEAD + b"""
stream { id = 0;
 packet.context := struct { u32 content_size; u32 packet_size; };
 event.header := struct { u8 id; time timestamp; };
 event.context := struct { s32 vpid; s32 vtid; string procname; }; };
event { id = 0; stream_id = 0; name = "app:all"; loglevel = 3; context := struct { u32 ctx; };
 fields := struct {
  enum : u8 { ONE, TWO = 2 ... 5, THREE = 9 } tag;
  variant <tag> { string ONE; u32 TWO; struct { u8 a; u8 b; } THREE; } v;
  u8 n; u32 list[n]; u8 pair[2]; struct { u8 x; struct { s32 y; } deep; } s;
  floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f;
  floating_point { exp_dig = 11; mant_dig = 53; align = 8; } d;
  integer { size = 3; align = 1; } bits; integer { size = 5; align = 1; signed = true; } more; }; };
event { id = 1; stream_id = 0; name = "lttng_ust_cyg_profile:func_entry"; fields := struct { u64 addr; }; };
event { id = 2; stream_id = 0; name = "lttng_ust_cyg_profile:func_exit"; fields := struct { u64 addr; }; };
event { id = 3; stream_id = 0; name = "lttng_ust_tracelog:TRACE_INFO"; fields := struct { string msg; }; };
"""
MAGIC = struct.pack("<IB", 0xC1FC1FC1, 0)


def kernel_packet(number, begin, discarded, events):
    bits = (len(MAGIC) + 36 + len(events)) * 8
    times = (begin, begin + 900)
    return MAGIC + struct.pack("<IIIQQII", bits, bits, 1, *times, discarded, number) + events


def user_packet(events):
    bits = (len(MAGIC) + 8 + len(events)) * 8
    return MAGIC + struct.pack("<II", bits, bits) + events


def event(number, ts, content):
    return struct.pack("<BQ", number, ts) + content


kernel = event(0, 1010, struct.pack("<8siiQ8sii", b"swapper", 0, 20, 0, b"prog", 10, 20))
kernel += event(1, 1020, struct.pack("<I", 3)) + event(2, 1030, struct.pack("<i", -11))
kernel += event(3, 1040, struct.pack("<i", 10) + b"kid\0" + struct.pack("<ii", 11, 11))
kernel += event(4, 1050, struct.pack("<i", 7) + b"eth0\0") + event(5, 1060, struct.pack("<ii", 7, 1))
later = event(6, 2010, b"kid\0" + struct.pack("<i", 11)) + event(7, 2020, struct.pack("<i", 11))
later += event(0, 2030, struct.pack("<8siiQ8sii", b"prog", 10, 20, 1, b"kid", 11, 20))

who = struct.pack("<ii", 20, 21) + b"prog\0"


def everything(tag, variant):
    rest = struct.pack("<BIIBBBifdB", 2, 7, 8, 1, 2, 5, -6, 1.5, 2.5, 0xFA)
    return who + struct.pack("<IB", 77, tag) + variant + rest


user = event(0, 10, everything(0, b"text\0")) + event(0, 20, everything(3, struct.pack("<I", 9)))
user += event(0, 30, everything(9, b"\1\2")) + event(1, 40, who + struct.pack("<Q", 0x1000))
user += event(3, 50, who + b"hello\0") + event(2, 60, who + struct.pack("<Q", 0x1000))

bare = b"/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = be; };\n"
plain = bare + b"event { name = yo; fields := struct { integer { size = 8; } n; string s[n]; }; };\n"
endless = bare + b"event { name = x; fields := struct { }; };\n"
huge = plain.replace(b"string s[n]", b"string s[99999999]")

os.makedirs("ctf", exist_ok=True)
seeds = {
    "kernel": part(0, KERNEL) + part(1, kernel_packet(1, 1000, 0, kernel) + kernel_packet(4, 2000, 3, later)),
    "user": part(0, USER) + part(1, user_packet(user)) + part(2, user_packet(user[:60])),
    "plain": part(0, plain) + part(1, b"\2a\0b\0\1c\0"),
    "endless": part(0, endless) + part(1, b"ab"),
    "huge": part(0, huge) + part(1, b"\1a\0"),
}
for name, content in seeds.items():
    with open("ctf/" + name, "wb") as file:
        file.write(content)
