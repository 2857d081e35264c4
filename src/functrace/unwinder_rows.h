/* SPDX-License-Identifier: MIT */
/*
 * unwinder_rows.h: how the caller's registers are found from those of a function, at an address of it.
 *
 *   kind PLAIN     CFA = register + offset; a register was saved at CFA + offset, or is as it was
 *   kind RULES     by the expressions that libdw has for the frame
 *   kind NONE      there is no row for the address
 */
#ifndef KY_FUNCTRACE_UNWINDER_ROWS_H
#define KY_FUNCTRACE_UNWINDER_ROWS_H

#include "functrace/stack_dump.h"
#include "functrace/stack_modules.h"

enum ky_unwind_kind { KY_UNWIND_EMPTY, KY_UNWIND_NONE, KY_UNWIND_PLAIN, KY_UNWIND_RULES };

#define KY_UNWIND_SAME INT32_MAX /* the register is as it was */
#define KY_UNWIND_UNDEFINED                                                                        \
	INT32_MIN /* it is lost; of the return address: this is the outermost frame */

struct ky_unwind_row {
	uint64_t address; /* of the file */
	uint32_t module;
	uint8_t kind;
	uint8_t cfa_register;
	bool signal; /* the caller was interrupted: it stands at its address, and called nothing */
	int32_t cfa_offset;
	int32_t saved[KY_STACK_REGISTERS_COUNT]; /* from the CFA */
	Dwarf_Frame *frame;                      /* RULES */
};

/* A stack that is walked. */
struct ky_unwind_state {
	uint64_t registers[KY_STACK_REGISTERS_COUNT];
	const uint8_t *stack;
	uint64_t stack_at, stack_bytes;
};

/* Asks libdw. */
void ky_unwind_row_fill(struct ky_unwind_row *row, const struct ky_stack_module *module,
			uint32_t number, uint64_t address);
void ky_unwind_row_free(struct ky_unwind_row *row);
bool ky_unwind_read(const struct ky_unwind_state *state, uint64_t address, uint64_t *value);
/* The caller's registers; 1, 0 when this is the outermost frame, -1 when it cannot be known. cfa may be known even then; else 0. */
int ky_unwind_row_apply(const struct ky_unwind_row *row, struct ky_unwind_state *state,
			uint64_t *cfa);

#endif
