/* SPDX-License-Identifier: MIT */
/*
 * beginnings.S: functions with first instructions of all sorts, for the tests of prologues. Assembly, so that no
 * compiler changes them. Each is followed by int3 up to 16 bytes, unless noted.
 */
.macro function name
	.globl \name
	.type \name, @function
\name:
.endm

.macro end name
	.size \name, . - \name
	.balign 16, 0xcc
.endm

	.text
	.balign 16

function begin_plain
	push %rbp
	mov %rsp, %rbp
	lea 1(%rdi), %rax
	pop %rbp
	ret
end begin_plain

function begin_endbr
	endbr64
	push %rbp
	mov %rsp, %rbp
	lea 2(%rdi), %rax
	pop %rbp
	ret
end begin_endbr

function begin_rip
	mov begin_value(%rip), %rax
	add %rdi, %rax
	ret
end begin_rip

/* The displacement is not the last part of the instruction. */
function begin_rip_immediate
	cmpl $77, begin_value(%rip)
	sete %al
	movzbl %al, %eax
	ret
end begin_rip_immediate

function begin_jump_if
	test %rdi, %rdi
	je 1f
	mov $5, %eax
	ret
1:	mov $6, %eax
	ret
end begin_jump_if

function begin_jump
	jmp begin_at_once
end begin_jump

function begin_call
	sub $8, %rsp
	call begin_at_once
	add $8, %rsp
	add $100, %rax
	ret
end begin_call

function begin_call_indirect
	sub $8, %rsp
	call *begin_pointer(%rip)
	add $8, %rsp
	add $200, %rax
	ret
end begin_call_indirect

function begin_call_first
	call 1f
1:	pop %rax
	sub %rax, %rax
	add %rdi, %rax
	ret
end begin_call_first

function begin_loop
	mov %rdi, %rcx
	jrcxz 1f
	mov $7, %eax
	ret
1:	mov $8, %eax
	ret
end begin_loop

function begin_short
	mov %edi, %eax
	ret
end begin_short

function begin_return
	ret
end begin_return

/* Its neighbour begins at once. */
function begin_tiny
	mov %edi, %eax
	ret
	.size begin_tiny, . - begin_tiny

function begin_at_once
	mov %rdi, %rax
	add $3, %rax
	ret
end begin_at_once

function begin_jumped_into
	mov %rdi, %rax
1:	dec %rax
	jg 1b
	ret
end begin_jumped_into

function begin_again
	dec %rdi
	test %rdi, %rdi
	jg begin_again
	mov $9, %eax
	ret
end begin_again

function begin_call_within
	call *%rdi
	mov %rax, %rax
	ret
end begin_call_within

function begin_strange
	int $0x80
	nop
	nop
	nop
	ret
end begin_strange

function begin_undefined
	.byte 0x06, 0x06, 0x06, 0x06, 0x06
	ret
end begin_undefined

function begin_keeps_return
	mov (%rsp), %rax
	mov %rax, (%rdi)
	xor %eax, %eax
	ret
end begin_keeps_return

/* The same, because its return address is that of the function in which it goes on. */
function begin_goes_on
	xor %esi, %esi
	jmp begin_keeps_return
end begin_goes_on

function begin_keeps_return_late
	push %rbx
	sub $16, %rsp
	mov 24(%rsp), %rax
	add $16, %rsp
	pop %rbx
	ret
end begin_keeps_return_late

function begin_keeps_return_frame
	push %rbp
	mov %rsp, %rbp
	mov 8(%rbp), %rax
	pop %rbp
	ret
end begin_keeps_return_frame

function begin_takes_return
	pop %rdx
	mov %rdi, %rax
	push %rdx
	ret
end begin_takes_return

function begin_leaves_stack
	mov %rbx, %rsp
	mov (%rsp), %rdi
	ret
end begin_leaves_stack

/* A barrier, not a look at the return address. */
function begin_fence
	lock orq $0, (%rsp)
	lea 6(%rdi), %rax
	ret
end begin_fence

/* One of its cases is among its first instructions. */
function begin_switch
	mov %edi, %edi
	mov $11, %eax
	lea begin_table(%rip), %rdx
	movslq (%rdx,%rdi,4), %rcx
	add %rdx, %rcx
	jmp *%rcx
1:	ret
2:	inc %eax
	ret
end begin_switch

function begin_last
	mov %rdi, %rax
	add $12, %rax
	ret
end begin_last

	.section .rodata
	.balign 4
begin_table:
	.long 1b - begin_table
	.long 2b - begin_table
	.long begin_switch + 2 - begin_table

	.data
	.balign 8
begin_value:
	.quad 77
begin_pointer:
	.quad begin_at_once

	.section .note.GNU-stack, "", @progbits
