/* SPDX-License-Identifier: MIT */
/*
 * entry.S: the agent's table, and the ways into it. All registers are kept: functions of one unit may rely on more of
 * them than the calling convention guarantees. The C code uses no vector registers.
 */
	.section .agent.table, "ax"
	.globl ky_agent_table
	.hidden ky_agent_table
ky_agent_table: /* struct ky_agent_table (agent_abi.h) */
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
/* Save the registers that C may change, except rax, rdx, rcx and rdi, and align the stack for C. */
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

/*
 * Called from a stub, with its data in rcx; rax, rdx and rcx are on the stack already. C returns where in the stub to
 * go on.
 */
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

/* The same from a stub's exit. C puts the return address into its place. */
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

/* Called with a function's arguments: C gets three of them, and after the second the address of the return address. */
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
