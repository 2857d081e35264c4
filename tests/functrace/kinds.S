/* SPDX-License-Identifier: MIT */
/* kinds.S: functions that a compiler rarely makes, for the tests of finding functions. */
.macro function name
	.balign 16
	.type \name, @function
\name:
.endm

.macro end name
	.size \name, . - \name
.endm

	.text

/* A sled as clang's XRay makes it, with its entry in the table (version 2: relative to its place). */
function kind_sled
1:	.byte 0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00
	lea 1(%rdi), %rax
	ret
end kind_sled
	.pushsection xray_instr_map, "a", @progbits
2:	.quad 1b - 2b
3:	.quad kind_sled - 3b
	.byte 0, 1, 2
	.zero 13
	.popsection

function kind_no_size
	lea 4(%rdi), %rax
	imul %rax, %rax
	ret

/* A second way into a function, with things on the stack already. */
function kind_frame
	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	.type kind_middle, @function
kind_middle:
	mov %rdi, %rbx
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
end kind_frame
end kind_middle

/* A piece of it under a name of its own. */
function kind_frame.cold
	ud2
	ud2
	ud2
end kind_frame.cold

/* A piece without a name, which is jumped to while things are below the stack pointer. */
function kind_leaf
	.cfi_startproc
	mov %rdi, -8(%rsp)
	mov $5, %eax
	cmp $3, %rdi
	ja 4f
	ret
	.cfi_endproc
end kind_leaf
	.balign 16
4:	.cfi_startproc
	mov -8(%rsp), %rax
	inc %rax
	ret
	.cfi_endproc

/* The same by a jump that depends on nothing. */
function kind_leaf_too
	.cfi_startproc
	mov %rdi, -8(%rsp)
	jmp 5f
	.cfi_endproc
end kind_leaf_too
	.balign 16
5:	.cfi_startproc
	mov -8(%rsp), %rax
	inc %rax
	ret
	.cfi_endproc

/* Descriptions of three CIEs in turn, which say nothing about their first addresses themselves. */
function kind_cie_call
	.cfi_startproc
	lea 5(%rdi), %rax
	ret
	.cfi_endproc
end kind_cie_call

/* The kernel jumps to it: there is no call. */
function kind_cie_signal
	.cfi_startproc
	.cfi_signal_frame
	lea 6(%rdi), %rax
	ret
	.cfi_endproc
end kind_cie_signal

/* Without the rule of a call. */
function kind_cie_none
	.cfi_startproc simple
	lea 7(%rdi), %rax
	ret
	.cfi_endproc
end kind_cie_none

function kind_cie_call_again
	.cfi_startproc
	lea 8(%rdi), %rax
	ret
	.cfi_endproc
end kind_cie_call_again

function kind_outermost
	.cfi_startproc
	.cfi_undefined rip
	lea 4(%rdi), %rax
	ret
	.cfi_endproc
end kind_outermost

/* dlsym has its return address. */
function kind_tail
	xor %edi, %edi
	jmp dlsym@PLT
end kind_tail

/* By its name alone. */
function setjmp
	xor %eax, %eax
	nop
	nop
	nop
	ret
end setjmp

/* V8's own code: 64 functions, and as large as it is. */
.irpc a, 01234567
.irpc b, 01234567
function Builtins_\a\b
	mov %rdi, %rax
	inc %rax
	ret
end Builtins_\a\b
.endr
.endr
	.skip 0x90000, 0xcc

	.section .note.GNU-stack, "", @progbits
