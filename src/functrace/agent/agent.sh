#!/bin/sh
# SPDX-License-Identifier: MIT
# agent.sh FILE: assembler source that puts FILE, the agent, into the binary as agent_abi.h declares it. Its bytes are written
# out: a compiler cache does not see what .incbin reads.
set -eu
cat << END
	.section .rodata
	.balign 16
	.globl ky_agent_code, ky_agent_code_bytes
	.hidden ky_agent_code, ky_agent_code_bytes
	.type ky_agent_code, %object
ky_agent_code:
$(od -A n -v -t x1 "$1" | sed 's/^ */	.byte 0x/; s/ \([0-9a-f]\)/, 0x\1/g; s/byte, 0x/byte /; s/\.byte 0x, /.byte /')
	.size ky_agent_code, . - ky_agent_code
	.balign 16
	.type ky_agent_code_bytes, %object
ky_agent_code_bytes:
	.dc.a $(wc -c < "$1")
	.size ky_agent_code_bytes, . - ky_agent_code_bytes
	.section .note.GNU-stack, "", %progbits
END
