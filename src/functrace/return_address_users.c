/* SPDX-License-Identifier: MIT */
/*
 * return_address_users.c: see functions_parts.h. Finds functions that look at their own return address, or take it
 * away: hooked, they would see ours. dlsym(RTLD_NEXT) looks for its caller, setjmp keeps it, vfork pops it; stripped
 * files have no names that would show it.
 *
 *   f: push %rbx           depth 8
 *      sub $16, %rsp       depth 24     the stack pointer is followed from the entry, as long as the code is straight
 *      mov 24(%rsp), %rax  looks
 *
 *   g: xor %esi, %esi      g goes on in f, so f has g's return address: g counts as one that looks. The same for
 *      jmp f               entries of .plt for functions of other files that are known to look
 */
#include "base/array.h"
#include "functrace/functions_parts.h"

#include "functrace/instruction.h"

#include <stdlib.h>
#include <string.h>

#define TAILS_MAX (16u << 20)
#define CHAIN_MAX 16u
#define PLT_PLAIN_MAX 2u /* instructions before the jump of an entry of .plt */

/* ---- the stack pointer ---- */

static int64_t immediate_of(const struct ky_instruction *it, const uint8_t *code)
{
	int32_t value;
	if (it->opcode == 0x83)
		return (int8_t)code[it->bytes - 1];
	memcpy(&value, code + it->bytes - 4, sizeof(value));
	return value;
}

/* Report whether an operand in memory is the return address. */
static bool names_return_address(const struct ky_functions_stack *stack,
				 const struct ky_instruction *it, const uint8_t *code)
{
	const uint8_t modrm = it->modrm_at ? code[it->modrm_at] : 0xff;
	const bool is_lea = it->map == 0 && it->opcode == 0x8d; /* keeps rsp, in assembly */
	const bool is_fence = code[0] == 0xf0;                  /* lock or $0, (%rsp) */
	if (modrm >> 6 == 3 || it->rex & 3 || it->map & 0x10 || is_lea || is_fence)
		return false;
	if ((modrm & 7) == 4 && code[it->modrm_at + 1] == 0x24)
		return it->displacement == stack->depth;
	return (modrm & 7) == 5 && modrm >> 6 != 0 && stack->frame_depth >= 0 &&
	       it->displacement == stack->frame_depth;
}

static bool changes_stack_otherwise(const struct ky_instruction *it, const uint8_t *code)
{
	const uint8_t modrm = it->modrm_at ? code[it->modrm_at] : 0;
	if (it->map != 0)
		return false;
	switch (it->opcode) {
	case 0x5c: /* pop rsp */
	case 0xc8: /* enter, leave, popf */
	case 0xc9:
	case 0x9d:
		return true;
	case 0x81:
	case 0x83:
	case 0x89:
	case 0x01:
	case 0x29:
	case 0x21:
	case 0x31:
	case 0x87:
		return modrm >> 6 == 3 && (modrm & 7) == 4 && !(it->rex & 1);
	case 0x8b:
	case 0x8d:
	case 0x03:
	case 0x2b:
		return (modrm >> 3 & 7) == 4 && !(it->rex & 4);
	default:
		return false;
	}
}

/* Take push, pop, sub and add; false: it is another instruction. */
static bool moves_stack(struct ky_functions_stack *stack, const struct ky_instruction *it,
			const uint8_t *code)
{
	const uint8_t modrm = it->modrm_at ? code[it->modrm_at] : 0;
	if (it->map != 0)
		return false;
	if ((it->opcode & 0xf8) == 0x50 || it->opcode == 0x68 || it->opcode == 0x6a ||
	    it->opcode == 0x9c || (it->opcode == 0xff && (modrm >> 3 & 7) == 6))
		stack->depth += 8;
	else if ((it->opcode & 0xf8) == 0x58 && it->opcode != 0x5c)
		stack->depth -= 8;
	else if ((it->opcode == 0x83 || it->opcode == 0x81) && modrm == 0xec && !(it->rex & 1))
		stack->depth += immediate_of(it, code);
	else if ((it->opcode == 0x83 || it->opcode == 0x81) && modrm == 0xc4 && !(it->rex & 1))
		stack->depth -= immediate_of(it, code);
	else
		return false;
	return true;
}

/*
 * Report whether rsp becomes another value while nothing is on the stack: another stack, which has its own return
 * address.
 */
static bool leaves_stack(const struct ky_functions_stack *stack, const struct ky_instruction *it,
			 const uint8_t *code)
{
	const uint8_t modrm = it->modrm_at ? code[it->modrm_at] : 0;
	if (it->map != 0 || stack->depth != 0 || stack->frame_depth >= 0)
		return false;
	if (it->opcode == 0x89)
		return modrm >> 6 == 3 && (modrm & 7) == 4 && !(it->rex & 1);
	return it->opcode == 0x8b && (modrm >> 3 & 7) == 4 && !(it->rex & 4);
}

static bool sets_frame_pointer(const struct ky_instruction *it, const uint8_t *code)
{
	return it->map == 0 && it->rex == 0x48 &&
	       ((it->opcode == 0x89 && code[it->modrm_at] == 0xe5) ||
		(it->opcode == 0x8b && code[it->modrm_at] == 0xec));
}

/* Take one instruction; true when it looks at the return address. */
static bool follow(struct ky_functions_stack *stack, const struct ky_instruction *it,
		   const uint8_t *code)
{
	if (!stack->follows)
		return false;
	if (names_return_address(stack, it, code) || leaves_stack(stack, it, code))
		return true;
	if (it->kind == KY_INSTRUCTION_JUMP || it->kind == KY_INSTRUCTION_JUMP_INDIRECT ||
	    it->kind == KY_INSTRUCTION_RETURN || it->kind == KY_INSTRUCTION_TRAP) {
		stack->follows = false;
		return false;
	}
	if (moves_stack(stack, it, code)) {
		stack->follows = stack->depth >= 0;
		return stack->depth == -8 && (it->opcode & 0xf8) == 0x58;
	}
	if (sets_frame_pointer(it, code))
		stack->frame_depth = stack->depth;
	else if (changes_stack_otherwise(it, code))
		stack->follows = false;
	return false;
}

/* ---- tail calls ---- */

static bool tails_room(struct ky_functions_looks *looks)
{
	return looks->tails_count < TAILS_MAX &&
	       KY_ARRAY_GROW(looks->tails, looks->tails_room, looks->tails_count + 1);
}

static void take_tail(struct ky_functions_looks *looks, uint64_t target)
{
	const struct ky_functions *out = looks->reading->out;
	const struct ky_function *from = &out->functions[looks->in];
	const struct ky_function *to =
		target - from->address < from->bytes ? NULL : ky_functions_find(out, target);
	if (to && tails_room(looks))
		looks->tails[looks->tails_count++] =
			(struct ky_functions_tail){looks->in, (uint32_t)(to - out->functions)};
}

static void take_looking_slot(void *context, const char *name, uint64_t address)
{
	struct ky_functions_looks *looks = context;
	if (looks->slots_count < KY_FUNCTIONS_SLOTS_MAX && ky_functions_runtime_looks(name))
		looks->slots[looks->slots_count++] = address;
}

/* Report whether there is a jmp *slot(%rip) at the given address. */
static bool goes_through_slot(const struct ky_functions_looks *looks,
			      const struct ky_instruction *it, uint64_t address)
{
	const uint64_t slot = address + it->bytes + (uint64_t)it->displacement;
	bool known = false;
	for (uint32_t i = 0; i < looks->slots_count; i++)
		known |= looks->slots[i] == slot;
	return known && it->kind == KY_INSTRUCTION_JUMP_INDIRECT && it->rip_relative;
}

/*
 * Report whether it is an entry of .plt for such a function: the jump, perhaps behind endbr64 and, as mold makes it,
 * a move of the entry's number.
 */
static bool is_entry_of_looker(const struct ky_functions_looks *looks, uint64_t entry)
{
	uint64_t left;
	const uint8_t *code = ky_functions_in(&looks->reading->plt, entry)
				      ? ky_functions_bytes(looks->reading->own, entry, true, &left)
				      : NULL;
	struct ky_instruction it;
	uint64_t at = 0;
	for (unsigned i = 0; code && i <= PLT_PLAIN_MAX; i++, at += it.bytes) {
		if (!ky_instruction_read(&it, code + at, left - at))
			return false;
		if (it.kind != KY_INSTRUCTION_PLAIN)
			return goes_through_slot(looks, &it, entry + at);
	}
	return false;
}

/* Report whether it goes on in a function of another file that looks, which has the return address of this one. */
static bool goes_on_in_looker(const struct ky_functions_looks *looks,
			      const struct ky_instruction *it, uint64_t address)
{
	if (!looks->slots_count)
		return false;
	if (it->kind == KY_INSTRUCTION_JUMP)
		return is_entry_of_looker(looks, address + it->bytes + (uint64_t)it->branch);
	return goes_through_slot(looks, it, address);
}

/* ---- everything ---- */

bool ky_return_address_users_open(struct ky_functions_looks *looks,
				  struct ky_functions_reading *reading)
{
	*looks = (struct ky_functions_looks){.reading = reading, .in = UINT32_MAX};
	looks->found = calloc(reading->out->count + 1u, sizeof(*looks->found));
	if (looks->found)
		ky_compiler_marks_slots(reading, take_looking_slot, looks);
	return looks->found != NULL;
}

void ky_return_address_users_close(struct ky_functions_looks *looks)
{
	free(looks->found);
	KY_ARRAY_FREE(looks->tails, looks->tails_room);
}

void ky_return_address_users_enter(struct ky_functions_looks *looks, uint32_t function)
{
	looks->in = function;
	looks->stack = (struct ky_functions_stack){true, 0, -1};
}

void ky_return_address_users_at(struct ky_functions_looks *looks, const struct ky_instruction *it,
				const uint8_t *code, uint64_t address)
{
	if (looks->in == UINT32_MAX)
		return;
	if (it->kind == KY_INSTRUCTION_JUMP || it->kind == KY_INSTRUCTION_JUMP_IF)
		take_tail(looks, address + it->bytes + (uint64_t)it->branch);
	if (goes_on_in_looker(looks, it, address))
		looks->found[looks->in] = true;
	if (follow(&looks->stack, it, code)) {
		looks->found[looks->in] = true;
		looks->stack.follows = false;
	}
}

/* Spread it to callers: setjmp is xor %esi, %esi; jmp __sigsetjmp. Such chains are short. */
static void spread(struct ky_functions_looks *looks)
{
	bool more = true;
	for (unsigned round = 0; more && round < CHAIN_MAX; round++) {
		more = false;
		for (uint32_t i = 0; i < looks->tails_count; i++) {
			const struct ky_functions_tail *tail = &looks->tails[i];
			if (!looks->found[tail->to] || looks->found[tail->from])
				continue;
			looks->found[tail->from] = true;
			more = true;
		}
	}
}

void ky_return_address_users_take(struct ky_functions_looks *looks)
{
	struct ky_functions *out = looks->reading->out;
	/* they all look, but only to find where they were called from */
	if (out->calls_cyg)
		return;
	spread(looks);
	for (uint32_t i = 0; i < out->count; i++) {
		struct ky_function *function = &out->functions[i];
		if (!looks->found[i] || function->why != KY_WHY_NONE)
			continue;
		function->how = KY_FUNCTION_NOT;
		function->why = KY_WHY_RUNTIME;
	}
}
