/* SPDX-License-Identifier: MIT */
/*
 * stack_dump.h: decodes a sample of the sample engine's perf events: the registers and the top of the stack.
 *
 *   head │ pid, tid │ time │ abi, registers │ bytes, top of the stack, bytes of it that are filled
 *
 * Nothing in it is trusted: a sample that does not fit its size is refused. Other records are those of
 * process/perf_record.h.
 */
#ifndef KY_FUNCTRACE_STACK_DUMP_H
#define KY_FUNCTRACE_STACK_DUMP_H

#include "process/perf_record.h"

#define KY_STACK_SAMPLE_TYPE                                                                       \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
/* x86-64's general registers and the instruction pointer, in the kernel's numbers (asm/perf_regs.h). */
#define KY_STACK_REGISTERS UINT64_C(0xff01ff)
#define KY_STACK_REGISTERS_COUNT 17u /* in DWARF's numbers; the last is the instruction pointer */
#define KY_STACK_SP 7u
#define KY_STACK_PC 16u

/* A decoded sample; its stack lies in the record. */
struct ky_stack_dump {
	uint32_t pid, tid;
	uint64_t ns;
	bool has_registers; /* of a 64-bit program */
	uint64_t registers[KY_STACK_REGISTERS_COUNT];
	const uint8_t *stack; /* from the stack pointer on */
	uint64_t stack_bytes;
};

/* Decode a sample. Return false when it is damaged. */
bool ky_stack_dump_read(struct ky_stack_dump *dump, const struct perf_event_header *head);

#endif
