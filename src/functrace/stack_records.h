/* SPDX-License-Identifier: MIT */
/*
 * stack_records.h: the records of the sample engine's perf events, taken apart.
 *
 *   sample   head │ pid, tid │ time │ abi, registers │ bytes, top of the stack, bytes of it that are filled
 *   others   head │ what it says │ pid, tid │ time
 *
 * Nothing in a record is believed: what does not fit its size makes it none.
 */
#ifndef KY_FUNCTRACE_STACK_RECORDS_H
#define KY_FUNCTRACE_STACK_RECORDS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KY_STACK_SAMPLE_TYPE                                                                       \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
/* x86-64's general registers and the instruction pointer, in the kernel's numbers (asm/perf_regs.h). */
#define KY_STACK_REGISTERS UINT64_C(0xff01ff)
#define KY_STACK_REGISTERS_COUNT 17u /* in DWARF's numbers; the last is the instruction pointer */
#define KY_STACK_SP 7u
#define KY_STACK_PC 16u

enum ky_stack_record_kind {
	KY_STACK_SAMPLE,
	KY_STACK_MAPPING,
	KY_STACK_NAME,
	KY_STACK_BEGUN, /* a thread */
	KY_STACK_ENDED,
	KY_STACK_SWITCH,
	KY_STACK_LOST
};

/* Texts and bytes until the ring goes on. */
struct ky_stack_record {
	enum ky_stack_record_kind kind;
	uint32_t pid, tid;
	uint64_t ns;
	/* sample */
	bool has_registers; /* of a 64-bit program */
	uint64_t registers[KY_STACK_REGISTERS_COUNT];
	const uint8_t *stack; /* from the stack pointer on */
	uint64_t stack_bytes;
	/* mapping */
	uint64_t start, end, offset;
	uint64_t device, inode; /* major << 32 | minor */
	const char *text;       /* its path; the thread's name */
	/* begun */
	uint32_t parent_pid, parent_tid;
	/* name */
	bool exec; /* a new program has begun */
	/* switch */
	bool out, preempted;
	/* lost */
	uint64_t lost;
};

/* False when it is none that is of interest, or damaged. */
bool ky_stack_record_read(struct ky_stack_record *record, const struct perf_event_header *head);
/* When it was, without taking it apart; 0: it does not say. */
uint64_t ky_stack_record_ns(const struct perf_event_header *head);

#endif
