/* SPDX-License-Identifier: MIT */
/*
 * unwinder.h: finds the frames of a call stack, from its registers and a copy of its top.
 *
 *   pc ─▶ range of the process ─▶ module ─▶ row of its .eh_frame (libdw): CFA = rsp + 24, rbp at CFA - 16 ...
 *                                              │
 *        rows, by module and address ◀─────────┘   a table of fixed size: a later row takes an earlier one's place
 *
 * libdwfl would do it too, but looks up the row and runs its program again for every frame of every sample: half a
 * microsecond each, which is too slow for ten thousand deep stacks a second. Here libdw is asked once for each
 * address; a frame takes a tenth of a microsecond with its name and its span. Rows that are not plain offsets (signal
 * handlers' frames, stubs of the linker) are kept as libdw has them, and are evaluated.
 *
 * Code without a row (a JIT's) is assumed to have a frame pointer.
 */
#ifndef KY_FUNCTRACE_UNWINDER_H
#define KY_FUNCTRACE_UNWINDER_H

#include "functrace/stack_names.h"
#include "process/perf_record.h"

/* ---- samples ---- */

/*
 * A sample of the engine sample's perf events: the registers and the top of the stack.
 *
 *   head │ pid, tid │ time │ abi, registers │ bytes, top of the stack, bytes of it that are filled
 *
 * Nothing in it is trusted: a sample that does not fit its size is refused. Other records are those of
 * process/perf_record.h.
 */
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

/* ---- walking ---- */

#define KY_UNWIND_FRAMES_MAX 1024u

struct ky_unwinder;

/* A frame with its place on the stack. */
struct ky_unwound {
	/* an address in the call (the return address minus one), or the interrupted instruction */
	uint64_t pc;
	uint64_t place;                       /* CFA; 0: unknown */
	uint64_t returns;                     /* 0: unknown, or the outermost */
	const struct ky_address_range *range; /* NULL: the address is unknown */
};

/* How a walk ended. */
enum ky_unwind_end {
	KY_UNWIND_WHOLE,  /* at the thread's first function */
	KY_UNWIND_CUT,    /* at the end of the copy of the stack */
	KY_UNWIND_ASTRAY, /* without a rule to go on */
};

int ky_unwinder_open(struct ky_unwinder **unwinder);
void ky_unwinder_close(struct ky_unwinder **unwinder);
/* Return the frames, the innermost first, and how many. The dump has registers. */
uint32_t ky_unwinder_walk(struct ky_unwinder *unwinder, const struct ky_stack_modules *modules,
			  const struct ky_address_space *space, const struct ky_stack_dump *dump,
			  struct ky_unwound frames[KY_UNWIND_FRAMES_MAX], enum ky_unwind_end *end);

#endif
