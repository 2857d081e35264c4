/* SPDX-License-Identifier: MIT */
/* unwinder.c: see unwinder.h. */
#include "functrace/unwinder.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- samples ---- */

/* Convert the registers from the kernel's order to DWARF's. */
static void take_registers(struct ky_stack_dump *dump, struct ky_perf_cursor *cursor)
{
	static const uint8_t number[KY_STACK_REGISTERS_COUNT] = {
		0, 3, 2, 1, 4, 5, 6, KY_STACK_SP, KY_STACK_PC, 8, 9, 10, 11, 12, 13, 14, 15};
	const uint64_t abi = ky_perf_take_u64(cursor);
	dump->has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
	for (unsigned i = 0; abi != PERF_SAMPLE_REGS_ABI_NONE && i < KY_STACK_REGISTERS_COUNT; i++)
		dump->registers[number[i]] = ky_perf_take_u64(cursor);
}

bool ky_stack_dump_read(struct ky_stack_dump *dump, const struct perf_event_header *head)
{
	struct ky_perf_cursor cursor = {(const uint8_t *)(head + 1),
					(const uint8_t *)head + head->size, KY_PERF_BIG_HERE,
					false};
	*dump = (struct ky_stack_dump){0};
	dump->pid = ky_perf_take_u32(&cursor);
	dump->tid = ky_perf_take_u32(&cursor);
	dump->ns = ky_perf_take_u64(&cursor);
	take_registers(dump, &cursor);
	const uint64_t room = ky_perf_take_u64(&cursor);
	dump->stack = ky_perf_take(&cursor, room);
	dump->stack_bytes = room ? ky_perf_take_u64(&cursor) : 0;
	return !cursor.short_of && dump->stack_bytes <= room;
}

/* ---- rows: rules for the caller's registers ---- */

enum ky_unwind_kind { KY_UNWIND_EMPTY, KY_UNWIND_NONE, KY_UNWIND_PLAIN, KY_UNWIND_RULES };

#define KY_UNWIND_SAME INT32_MAX /* the register is unchanged */
/* it is lost; of the return address: this is the outermost frame */
#define KY_UNWIND_UNDEFINED INT32_MIN

struct ky_unwind_row {
	uint64_t address; /* of the file */
	uint32_t module;
	uint8_t kind;
	uint8_t cfa_register;
	bool signal; /* the caller was interrupted at its address, and called nothing */
	int32_t cfa_offset;
	int32_t saved[KY_STACK_REGISTERS_COUNT]; /* from the CFA */
	Dwarf_Frame *frame;                      /* RULES */
};

/* A stack being walked. */
struct ky_unwind_state {
	uint64_t registers[KY_STACK_REGISTERS_COUNT];
	const uint8_t *stack;
	uint64_t stack_at, stack_bytes;
};

#define EVALUATED_MAX 64u /* operations of an expression */
#define VALUES_MAX 16u

static bool read_stack(const struct ky_unwind_state *state, uint64_t address, uint64_t *value)
{
	const uint64_t at = address - state->stack_at;
	if (address < state->stack_at || at > state->stack_bytes || state->stack_bytes - at < 8)
		return false;
	memcpy(value, state->stack + at, sizeof(*value));
	return true;
}

/* ---- expressions ---- */

struct evaluation {
	const struct ky_unwind_state *state;
	uint64_t cfa;
	uint64_t values[VALUES_MAX];
	uint32_t count;
	bool is_value; /* the result is the value, not its address */
};

static bool push(struct evaluation *evaluation, uint64_t value)
{
	if (evaluation->count == VALUES_MAX)
		return false;
	evaluation->values[evaluation->count++] = value;
	return true;
}

static bool push_register(struct evaluation *evaluation, uint64_t number, uint64_t offset)
{
	return number < KY_STACK_REGISTERS_COUNT &&
	       push(evaluation, evaluation->state->registers[number] + offset);
}

/* Apply operations of two values: those that compilers and linkers use in .eh_frame. */
static bool combine(struct evaluation *evaluation, uint8_t atom)
{
	if (evaluation->count < 2)
		return false;
	const uint64_t b = evaluation->values[--evaluation->count];
	uint64_t *a = &evaluation->values[evaluation->count - 1];
	switch (atom) {
	case DW_OP_plus:
		*a += b;
		return true;
	case DW_OP_minus:
		*a -= b;
		return true;
	case DW_OP_mul:
		*a *= b;
		return true;
	case DW_OP_and:
		*a &= b;
		return true;
	case DW_OP_or:
		*a |= b;
		return true;
	case DW_OP_shl:
		*a = b < 64 ? *a << b : 0;
		return true;
	case DW_OP_ge:
		*a = (int64_t)*a >= (int64_t)b;
		return true;
	default:
		return false;
	}
}

static bool step(struct evaluation *evaluation, const Dwarf_Op *op)
{
	uint64_t *top = evaluation->count ? &evaluation->values[evaluation->count - 1] : NULL;
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push_register(evaluation, op->atom - DW_OP_breg0, op->number);
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
		/* It is kept in another register. */
		evaluation->is_value = true;
		return push_register(evaluation, op->atom - DW_OP_reg0, 0);
	}
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(evaluation, op->atom - DW_OP_lit0);
	switch (op->atom) {
	case DW_OP_bregx:
		return push_register(evaluation, op->number, op->number2);
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push(evaluation, op->number);
	case DW_OP_call_frame_cfa:
		return push(evaluation, evaluation->cfa);
	case DW_OP_plus_uconst:
		if (top)
			*top += op->number;
		return top != NULL;
	case DW_OP_deref:
		return top && read_stack(evaluation->state, *top, top);
	case DW_OP_stack_value:
		evaluation->is_value = true;
		return top != NULL;
	case DW_OP_nop:
		return true;
	default:
		return combine(evaluation, op->atom);
	}
}

static bool evaluate(struct evaluation *evaluation, const Dwarf_Op *ops, size_t count)
{
	if (!count || count > EVALUATED_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!step(evaluation, &ops[i]))
			return false;
	return evaluation->count != 0;
}

/* ---- a row ---- */

static bool fits(uint64_t offset)
{
	const int64_t value = (int64_t)offset;
	return value > INT32_MIN && value < INT32_MAX;
}

static bool fill_cfa(struct ky_unwind_row *row)
{
	Dwarf_Op *ops;
	size_t count;
	if (dwarf_frame_cfa(row->frame, &ops, &count) != 0 || count != 1)
		return false;
	const bool numbered = ops[0].atom == DW_OP_bregx;
	if (!numbered && (ops[0].atom < DW_OP_breg0 || ops[0].atom > DW_OP_breg15))
		return false;
	const uint64_t number = numbered ? ops[0].number : (uint64_t)(ops[0].atom - DW_OP_breg0);
	const uint64_t offset = numbered ? ops[0].number2 : ops[0].number;
	if (number >= KY_STACK_PC || !fits(offset))
		return false;
	row->cfa_register = (uint8_t)number;
	row->cfa_offset = (int32_t)(int64_t)offset;
	return true;
}

/*
 * Fill the rule of a register. libdw describes an unchanged register by no operations, a lost one by no operations at
 * a place.
 */
static bool fill_register(struct ky_unwind_row *row, unsigned number)
{
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t count;
	int32_t *saved = &row->saved[number];
	if (dwarf_frame_register(row->frame, (int)number, memory, &ops, &count) != 0)
		return false;
	*saved = ops ? KY_UNWIND_UNDEFINED : KY_UNWIND_SAME;
	if (!count || !ops)
		return true;
	if (ops[0].atom != DW_OP_call_frame_cfa || count > 2)
		return false;
	if (count == 2 && (ops[1].atom != DW_OP_plus_uconst || !fits(ops[1].number)))
		return false;
	*saved = count == 2 ? (int32_t)(int64_t)ops[1].number : 0;
	return true;
}

static bool is_plain(struct ky_unwind_row *row)
{
	if (!fill_cfa(row))
		return false;
	for (unsigned i = 0; i < KY_STACK_REGISTERS_COUNT; i++)
		if (i != KY_STACK_SP && !fill_register(row, i))
			return false;
	row->saved[KY_STACK_SP] = KY_UNWIND_SAME;
	return true;
}

static void row_free(struct ky_unwind_row *row)
{
	free(row->frame);
	row->frame = NULL;
}

/* Ask libdw for the row. */
static void row_fill(struct ky_unwind_row *row, const struct ky_stack_module *module,
		     uint32_t number, uint64_t address)
{
	Dwarf_Addr start, end;
	*row = (struct ky_unwind_row){.address = address, .module = number, .kind = KY_UNWIND_NONE};
	for (unsigned i = 0; i < 2 && !row->frame; i++)
		if (module->cfi[i] &&
		    dwarf_cfi_addrframe(module->cfi[i], address, &row->frame) != 0)
			row->frame = NULL;
	if (!row->frame)
		return;
	/* The return address has the same number in all rows of a CPU: others are not understood. */
	if (dwarf_frame_info(row->frame, &start, &end, &row->signal) != (int)KY_STACK_PC) {
		row_free(row);
		return;
	}
	row->kind = KY_UNWIND_RULES;
	if (!is_plain(row))
		return;
	row->kind = KY_UNWIND_PLAIN;
	free(row->frame);
	row->frame = NULL;
}

static int apply_plain(const struct ky_unwind_row *row, struct ky_unwind_state *state,
		       uint64_t *cfa)
{
	const uint64_t at =
		state->registers[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
	*cfa = at;
	if (row->saved[KY_STACK_PC] == KY_UNWIND_UNDEFINED)
		return 0;
	/* At a function's end rows describe registers that were taken off the stack already: they are unchanged. */
	for (unsigned i = 0; i < KY_STACK_REGISTERS_COUNT; i++) {
		const int32_t saved = row->saved[i];
		if (saved == KY_UNWIND_SAME || saved == KY_UNWIND_UNDEFINED)
			continue;
		if (!read_stack(state, at + (uint64_t)(int64_t)saved, &state->registers[i]) &&
		    i == KY_STACK_PC)
			return -1;
	}
	state->registers[KY_STACK_SP] = at;
	return 1;
}

/* Return 1; 0: it is lost; -1: it cannot be known. */
static int rule(const struct ky_unwind_row *row, const struct ky_unwind_state *state, uint64_t cfa,
		unsigned number, uint64_t *value)
{
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t count;
	struct evaluation evaluation = {.state = state, .cfa = cfa};
	if (dwarf_frame_register(row->frame, (int)number, memory, &ops, &count) != 0)
		return -1;
	if (!count)
		return ops ? 0 : 1;
	if (!evaluate(&evaluation, ops, count))
		return -1;
	*value = evaluation.values[evaluation.count - 1];
	return evaluation.is_value || read_stack(state, *value, value) ? 1 : -1;
}

static int apply_rules(const struct ky_unwind_row *row, struct ky_unwind_state *state,
		       uint64_t *cfa)
{
	struct evaluation evaluation = {.state = state};
	Dwarf_Op *ops;
	size_t count;
	if (dwarf_frame_cfa(row->frame, &ops, &count) != 0 || !evaluate(&evaluation, ops, count))
		return -1;
	*cfa = evaluation.values[evaluation.count - 1];
	struct ky_unwind_state caller = *state;
	caller.registers[KY_STACK_SP] = *cfa;
	for (unsigned i = 0; i < KY_STACK_REGISTERS_COUNT; i++) {
		const int found = rule(row, state, *cfa, i, &caller.registers[i]);
		/* A lost register is not needed, except the return address. */
		if (i == KY_STACK_PC && found <= 0)
			return found;
	}
	*state = caller;
	return 1;
}

/*
 * Compute the caller's registers. Return 1; 0 when this is the outermost frame; -1 when they are unknown. cfa may be
 * known even then; otherwise 0.
 */
static int row_apply(const struct ky_unwind_row *row, struct ky_unwind_state *state, uint64_t *cfa)
{
	*cfa = 0;
	return row->kind == KY_UNWIND_PLAIN ? apply_plain(row, state, cfa)
					    : apply_rules(row, state, cfa);
}

/* ---- walking ---- */

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
		row_free(&(*unwinder)->rows[i]);
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
		row_free(row);
		row_fill(row, module, range->module, address);
	}
	return row->kind == KY_UNWIND_NONE ? NULL : row;
}
_Static_assert(ROWS == 1u << (64 - 49), "the hash's upper bits");

/* Do as row_apply(). A thread's first function has a caller's frame pointer of 0. */
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
	if (!read_stack(state, at, &caller) || !read_stack(state, at + 8, &returns))
		return -1;
	state->registers[FRAME_POINTER] = caller;
	state->registers[KY_STACK_PC] = returns;
	state->registers[KY_STACK_SP] = *cfa;
	return 1;
}

/* Use the return address on top: at its first and its last instruction a function has no frame pointer of its own. */
static int apply_top(const struct ky_address_space *space, struct ky_unwind_state *state,
		     uint64_t *cfa)
{
	uint64_t returns;
	const uint64_t at = state->registers[KY_STACK_SP];
	if (!read_stack(state, at, &returns) || !ky_address_space_find(space, returns - 1))
		return -1;
	*cfa = at + 8;
	state->registers[KY_STACK_PC] = returns;
	state->registers[KY_STACK_SP] = *cfa;
	return 1;
}

/* Unwind unknown code, which is only assumed to have a frame pointer. */
static int apply_unknown(const struct ky_address_space *space, struct ky_unwind_state *state,
			 bool innermost, uint64_t *cfa)
{
	const int found = apply_frame_pointer(state, cfa);
	return found < 0 && innermost ? apply_top(space, state, cfa) : found;
}

/* Return why a frame could not be read: it lies beyond the copy, or not. */
static enum ky_unwind_end end_of(const struct ky_unwind_state *state, uint64_t place)
{
	return place > state->stack_at + state->stack_bytes ? KY_UNWIND_CUT : KY_UNWIND_ASTRAY;
}

/*
 * Report whether a frame is above the one before. The stack grows downwards: a frame that is not higher is invalid.
 * But handlers may have stacks of their own, and vfork takes its return address off the stack.
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
		const int more = row ? row_apply(row, &state, &frame->place)
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
