/* SPDX-License-Identifier: MIT */
/*
 * entry.S: the agent's table, and the ways into it. All registers are kept: functions of one unit may rely on more of them
 * than the calling convention says. The C code uses no vector registers.
 */
	.section .agent.table, "ax"
	.globl ky_agent_table
	.hidden ky_agent_table
ky_agent_table: /* struct ky_agent_table (agent.h) */
	.quad 0
	.long slow_entry - ky_agent_table
	.long slow_exit - ky_agent_table
	.long find_fde - ky_agent_table
	.long loader - ky_agent_table
	.long cyg_enter - ky_agent_table
	.long cyg_exit - ky_agent_table
	.long sandbox - ky_agent_table
	.long 0

	.text
/* What C may change, but for rax, rdx, rcx and rdi. The stack is aligned as C wants it. */
	.macro save
	push %rsi
	push %r8
	push %r9
	push %r10
	push %r11
	push %rbp
	pushfq
	cld
	mov %rsp, %rbp
	and $-16, %rsp
	.endm
	.macro restore
	mov %rbp, %rsp
	popfq
	pop %rbp
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rsi
	.endm

/* From a stub, with rcx: its data; rax, rdx and rcx are on the stack already. C says where in the stub to go on. */
	.globl slow_entry
	.hidden slow_entry
slow_entry:
	lea 24(%rsp), %rdx
	push %rdi
	save
	mov ky_agent_table(%rip), %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
	call ky_agent_enter
	restore
	pop %rdi
	jmp *%rax

/* From a stub's exit, the same. C puts the return address into its place. */
slow_exit:
	lea 24(%rsp), %rdx
	push %rdi
	save
	mov ky_agent_table(%rip), %rdi
	mov %rdx, %rsi
	call ky_agent_leave
	restore
	pop %rdi
	pop %rcx
	pop %rdx
	pop %rax
	ret

/* Called, with a function's arguments: C has three of them, and behind the second the slot. */
	.macro into function
	push %rdi
	push %rdx
	push %rcx
	lea 24(%rsp), %rcx
	save
	mov %rdx, %r8
	mov %rsi, %rdx
	mov %rdi, %rsi
	mov ky_agent_table(%rip), %rdi
	call \function
	restore
	pop %rcx
	pop %rdx
	pop %rdi
	ret
	.endm
find_fde:
	into ky_agent_find_fde
loader:
	into ky_agent_loader
cyg_enter:
	into ky_agent_cyg_enter
cyg_exit:
	into ky_agent_cyg_exit
sandbox:
	into ky_agent_sandbox

	.section .note.GNU-stack, "", %progbits
