#!/bin/sh
# SPDX-License-Identifier: MIT
# page.sh [FILE]: assembler source that puts FILE, the page, into the binary as serve.h declares it; empty without one.
set -eu
file=${1-}
bytes=0
content=
if [ -n "$file" ]; then
	bytes=$(wc -c < "$file")
	content=".incbin \"$file\""
fi
cat << END
	.section .rodata
	.balign 16
	.globl ky_page, ky_page_bytes
	.hidden ky_page, ky_page_bytes
	.type ky_page, %object
ky_page:
	$content
	.byte 0
	.size ky_page, . - ky_page
	.balign 16
	.type ky_page_bytes, %object
ky_page_bytes:
	.dc.a $bytes
	.size ky_page_bytes, . - ky_page_bytes
	.section .note.GNU-stack, "", %progbits
END
