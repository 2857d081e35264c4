#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""deny.py COMMAND...: run a command as the root of an unprivileged container runs: without the capabilities that
reach beyond it, and with a filter that refuses (EPERM) what its runtime refuses: mounts, namespaces, perf, ptrace and
other processes' memory. The filter is for x86-64; elsewhere the test is skipped."""
import ctypes
import os
import platform
import struct
import sys

REFUSED = {"mount": 165, "umount2": 166, "unshare": 272, "setns": 308, "perf_event_open": 298, "ptrace": 101,
           "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "pidfd_getfd": 438, "userfaultfd": 323}
# CAP_SYS_CHROOT is kept for the chroot that follows.
DROPPED = {"DAC_READ_SEARCH": 2, "NET_ADMIN": 12, "IPC_LOCK": 14, "SYS_MODULE": 16, "SYS_RAWIO": 17, "SYS_PTRACE": 19,
           "SYS_PACCT": 20, "SYS_ADMIN": 21, "SYS_BOOT": 22, "SYS_NICE": 23, "SYS_RESOURCE": 24, "SYS_TIME": 25,
           "SYSLOG": 34, "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40}
PR_SET_SECCOMP, PR_CAPBSET_DROP = 22, 24
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, EPERM = 0x7FFF0000, 0x00050001


def check(result):
    if result != 0:
        sys.exit("deny.py: prctl: " + os.strerror(ctypes.get_errno()))


def main():
    if platform.machine() != "x86_64":
        print("skipped: the filter of system calls is for x86-64")
        sys.exit(77)
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = list(REFUSED.values())
    code = [(LOAD, 0, 0, 0)]
    code += [(EQUAL, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, EPERM)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(filters)))
    check(libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0))
    for capability in DROPPED.values():
        check(libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])


main()
