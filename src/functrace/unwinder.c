/* SPDX-License-Identifier: MIT */
/* unwinder.c: see unwinder.h. */
#include "functrace/unwinder.h"

#include "functrace/unwinder_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS (1u << 15)
#define FRAME_POINTER 6u

struct ky_unwinder {
	struct ky_unwind_row rows[ROWS];
};

int ky_unwinder_open(struct ky_unwinder **unwinder)
{
	*unwinder = calloc(1, sizeof(**unwinder));
	return *unwinder ? 0 : -ENOMEM;
}

void ky_unwinder_close(struct ky_unwinder **unwinder)
{
	for (uint32_t i = 0; *unwinder && i < ROWS; i++)
		ky_unwind_row_free(&(*unwinder)->rows[i]);
	free(*unwinder);
	*unwinder = NULL;
}

static const struct ky_unwind_row *row_at(struct ky_unwinder *unwinder,
					  const struct ky_stack_modules *modules,
					  const struct ky_address_range *range, uint64_t pc)
{
	uint64_t address;
	const struct ky_stack_module *module = range ? &modules->items[range->module] : NULL;
	if (!module ||
	    !ky_stack_module_address(module, pc - range->start + range->offset, &address))
		return NULL;
	const uint64_t hash = (address ^ (uint64_t)range->module << 40) * 0x9e3779b97f4a7c15u;
	struct ky_unwind_row *row = &unwinder->rows[hash >> 49];
	if (row->kind == KY_UNWIND_EMPTY || row->address != address ||
	    row->module != range->module) {
		ky_unwind_row_free(row);
		ky_unwind_row_fill(row, module, range->module, address);
	}
	return row->kind == KY_UNWIND_NONE ? NULL : row;
}
_Static_assert(ROWS == 1u << (64 - 49), "the hash's upper bits");

/* As ky_unwind_row_apply(). A thread's first function has no frame pointer of a caller: it is 0. */
static int apply_frame_pointer(struct ky_unwind_state *state, uint64_t *cfa)
{
	const uint64_t at = state->registers[FRAME_POINTER];
	uint64_t caller, returns;
	*cfa = 0;
	if (!at)
		return 0;
	if (at < state->registers[KY_STACK_SP])
		return -1;
	*cfa = at + 16;
	if (!ky_unwind_read(state, at, &caller) || !ky_unwind_read(state, at + 8, &returns))
		return -1;
	state->registers[FRAME_POINTER] = caller;
	state->registers[KY_STACK_PC] = returns;
	state->registers[KY_STACK_SP] = *cfa;
	return 1;
}

/* At its first and its last instruction a function has no frame pointer of its own, and its return address is on top. */
static int apply_top(const struct ky_address_space *space, struct ky_unwind_state *state,
		     uint64_t *cfa)
{
	uint64_t returns;
	const uint64_t at = state->registers[KY_STACK_SP];
	if (!ky_unwind_read(state, at, &returns) || !ky_address_space_find(space, returns - 1))
		return -1;
	*cfa = at + 8;
	state->registers[KY_STACK_PC] = returns;
	state->registers[KY_STACK_SP] = *cfa;
	return 1;
}

/* Code of which nothing is known but that it has a frame pointer. */
static int apply_unknown(const struct ky_address_space *space, struct ky_unwind_state *state,
			 bool innermost, uint64_t *cfa)
{
	const int found = apply_frame_pointer(state, cfa);
	return found < 0 && innermost ? apply_top(space, state, cfa) : found;
}

/* A frame that lies behind the copy could not be read for that reason. */
static enum ky_unwind_end end_of(const struct ky_unwind_state *state, uint64_t place)
{
	return place > state->stack_at + state->stack_bytes ? KY_UNWIND_CUT : KY_UNWIND_ASTRAY;
}

/*
 * The stack grows downwards: a frame that does not lie higher is none. But handlers may have stacks of their own, and vfork
 * takes its return address off the stack.
 */
static bool is_above(uint64_t place, uint64_t below, const struct ky_unwind_row *row,
		     uint32_t count)
{
	return place > below || (place == below && count == 1) || (row && row->signal);
}

uint32_t ky_unwinder_walk(struct ky_unwinder *unwinder, const struct ky_stack_modules *modules,
			  const struct ky_address_space *space, const struct ky_stack_dump *dump,
			  struct ky_unwound frames[KY_UNWIND_FRAMES_MAX], enum ky_unwind_end *end)
{
	struct ky_unwind_state state = {.stack = dump->stack,
					.stack_at = dump->registers[KY_STACK_SP],
					.stack_bytes = dump->stack_bytes};
	memcpy(state.registers, dump->registers, sizeof(state.registers));
	bool called = false;
	uint32_t count = 0;
	*end = KY_UNWIND_CUT;
	while (count < KY_UNWIND_FRAMES_MAX) {
		const uint64_t at = state.registers[KY_STACK_PC];
		const uint64_t below = state.registers[KY_STACK_SP];
		struct ky_unwound *frame = &frames[count++];
		*frame = (struct ky_unwound){.pc = at - called};
		frame->range = ky_address_space_find(space, frame->pc);
		const struct ky_unwind_row *row =
			row_at(unwinder, modules, frame->range, frame->pc);
		const int more = row ? ky_unwind_row_apply(row, &state, &frame->place)
				     : apply_unknown(space, &state, count == 1, &frame->place);
		if (more == 0 || (more > 0 && state.registers[KY_STACK_PC] == 0)) {
			*end = KY_UNWIND_WHOLE;
			return count;
		}
		if (more < 0 || !is_above(frame->place, below, row, count)) {
			*end = end_of(&state, frame->place);
			return count;
		}
		frame->returns = state.registers[KY_STACK_PC];
		called = !(row && row->signal);
	}
	return count;
}
