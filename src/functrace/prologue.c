/* SPDX-License-Identifier: MIT */
/*
 * prologue.c: see instruction.h. The instructions at a function's start that a jump overwrites:
 *
 *   endbr64   push rbp   mov rbp, rsp   sub rsp, 32
 *   stays     └── prologue, 5 bytes or more ────┘   whole instructions only
 *
 * When the function ends in it (ret, jmp), the rest must be padding up to the neighbour, which nothing runs. A call
 * must be the last: then its return address can be the original one.
 */
#include "functrace/functions_parts.h"
#include "functrace/instruction.h"

#include <errno.h>
#include <string.h>

static bool is_endbr(const uint8_t *code, uint64_t room)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	return room >= sizeof(endbr) && memcmp(code, endbr, sizeof(endbr)) == 0;
}

/* Report whether both decoders agree: only such code is moved. */
static bool agree(const struct ky_functions *module, const struct ky_instruction *it,
		  const uint8_t *code)
{
	const struct ky_functions_own *own = module->private_data;
	const uint8_t *at = code;
	size_t room = it->bytes;
	uint64_t address = 0;
	return cs_disasm_iter(own->capstone, &at, &room, &address, own->instruction) &&
	       own->instruction->size == it->bytes;
}

/*
 * Report whether it calls through memory that the stack pointer leads to: something is pushed before, so it would
 * read another place.
 */
static bool is_on_stack(const struct ky_instruction *it, const uint8_t *code)
{
	const uint8_t modrm = code[it->modrm_at];
	if (it->rex & 1 || (modrm & 7) != 4)
		return false;
	return modrm >> 6 == 3 || (code[it->modrm_at + 1] & 7) == 4;
}

static bool is_movable(const struct ky_instruction *it, const uint8_t *code)
{
	if (it->kind == KY_INSTRUCTION_STRANGE || (it->rip_relative && it->address_prefix) ||
	    (it->map == 0 && it->opcode == 0xcc))
		return false;
	return it->kind != KY_INSTRUCTION_CALL_INDIRECT || !is_on_stack(it, code);
}

static bool ends_flow(const struct ky_instruction *it)
{
	return it->kind == KY_INSTRUCTION_JUMP || it->kind == KY_INSTRUCTION_JUMP_INDIRECT ||
	       it->kind == KY_INSTRUCTION_RETURN || it->kind == KY_INSTRUCTION_TRAP;
}

static bool is_call(const struct ky_instruction *it)
{
	return it->kind == KY_INSTRUCTION_CALL || it->kind == KY_INSTRUCTION_CALL_INDIRECT;
}

/* Measure the instructions from `code` on, of which `own` bytes are the function's and `room` may be overwritten. */
static enum ky_function_why measure(const struct ky_functions *module, const uint8_t *code,
				    uint64_t own, uint64_t room, uint8_t *prologue)
{
	bool ended = false;
	unsigned bytes = 0;
	while (bytes < KY_JUMP_BYTES) {
		struct ky_instruction it;
		if (bytes >= room)
			return KY_WHY_SHORT;
		if (!ky_instruction_read(&it, code + bytes, room - bytes))
			return KY_WHY_STRANGE;
		const bool padding = ky_instruction_is_padding(&it, code + bytes);
		ended |= bytes >= own;
		if (ended && !padding)
			return bytes >= own ? KY_WHY_SHORT : KY_WHY_JUMPED_INTO;
		if (!ended && (!is_movable(&it, code + bytes) || !agree(module, &it, code + bytes)))
			return KY_WHY_STRANGE;
		bytes += it.bytes;
		if (!ended && is_call(&it) && bytes < KY_JUMP_BYTES)
			return KY_WHY_CALL;
		ended |= ends_flow(&it);
	}
	*prologue = (uint8_t)bytes;
	return KY_WHY_NONE;
}

void ky_prologue_find(struct ky_function *function, const struct ky_functions *module,
		      uint64_t neighbour)
{
	uint64_t room;
	const uint8_t *code = ky_functions_code(module, function->address, &room);
	uint64_t own = function->bytes;
	function->how = KY_FUNCTION_NOT;
	function->at = 0;
	function->prologue = 0;
	if (neighbour > function->address && neighbour - function->address < room)
		room = neighbour - function->address;
	function->why = KY_WHY_SHORT;
	if (!code)
		return;
	if (is_endbr(code, room)) {
		function->at = 4;
		own = own > 4 ? own - 4 : 0;
		room -= 4;
	}
	function->why = (uint8_t)measure(module, code + function->at, own < room ? own : room, room,
					 &function->prologue);
	if (function->why == KY_WHY_NONE)
		function->how = KY_FUNCTION_PATCH;
}

/* ---- moving ---- */

struct moving {
	struct ky_moved *moved;
	const uint8_t *code; /* of the instruction */
	uint64_t at;         /* its address, */
	uint64_t to;         /* and the start of the moved code */
	int error;
};

static void put(struct moving *moving, const void *bytes, size_t count)
{
	struct ky_moved *moved = moving->moved;
	if (count > sizeof(moved->code) - moved->bytes) {
		moving->error = -EINVAL;
		return;
	}
	memcpy(moved->code + moved->bytes, bytes, count);
	moved->bytes = (uint8_t)(moved->bytes + count);
}

/* Put four bytes that lead to an address from behind them and `more` bytes. */
static void put_distance(struct moving *moving, uint64_t target, unsigned more)
{
	const uint64_t from = moving->to + moving->moved->bytes + 4 + more;
	const int64_t distance = (int64_t)(target - from);
	const int32_t near = (int32_t)distance;
	if (near != distance)
		moving->error = -ERANGE;
	put(moving, &near, sizeof(near));
}

static void put_jump(struct moving *moving, uint64_t target)
{
	put(moving, "\xe9", 1);
	put_distance(moving, target, 0);
}

/*
 * Put push imm32, which fills the upper half with its sign; mov dword [rsp + 4], the upper half. No flag and no
 * register changes.
 */
static void put_push(struct moving *moving, uint64_t value)
{
	const uint32_t low = (uint32_t)value;
	const uint32_t high = (uint32_t)(value >> 32);
	put(moving, "\x68", 1);
	put(moving, &low, sizeof(low));
	put(moving, "\xc7\x44\x24\x04", 4);
	put(moving, &high, sizeof(high));
}

/* Put it unchanged, except for operands relative to rip. */
static void put_same(struct moving *moving, const uint8_t *code, const struct ky_instruction *it)
{
	if (!it->rip_relative) {
		put(moving, code, it->bytes);
		return;
	}
	const unsigned behind = it->displacement_at + 4u;
	put(moving, code, it->displacement_at);
	put_distance(moving, moving->at + it->bytes + (uint64_t)it->displacement,
		     it->bytes - behind);
	put(moving, code + behind, it->bytes - behind);
}

static void put_jump_if(struct moving *moving, const struct ky_instruction *it, uint64_t target)
{
	const uint8_t opcode[] = {0x0f, (uint8_t)(0x80 | (it->opcode & 0x0f))};
	put(moving, opcode, sizeof(opcode));
	put_distance(moving, target, 0);
}

static void put_loop(struct moving *moving, const struct ky_instruction *it, uint64_t target)
{
	put(moving, moving->code, it->bytes - 1u); /* with its prefixes */
	put(moving, "\x02\xeb\x05", 3);
	put_jump(moving, target);
}

/* Put the same operand, as a jump: /2 becomes /4. */
static void put_call_indirect(struct moving *moving, const struct ky_instruction *it)
{
	uint8_t code[KY_INSTRUCTION_MAX];
	memcpy(code, moving->code, it->bytes);
	code[it->modrm_at] = (uint8_t)((code[it->modrm_at] & 0xc7) | 4 << 3);
	put_push(moving, moving->at + it->bytes);
	put_same(moving, code, it);
}

/* Return true when nothing runs behind it. */
static bool put_one(struct moving *moving, const struct ky_instruction *it)
{
	const uint64_t target = moving->at + it->bytes + (uint64_t)it->branch;
	switch (it->kind) {
	case KY_INSTRUCTION_JUMP:
		put_jump(moving, target);
		return true;
	case KY_INSTRUCTION_JUMP_IF:
		put_jump_if(moving, it, target);
		return false;
	case KY_INSTRUCTION_LOOP:
		put_loop(moving, it, target);
		return false;
	case KY_INSTRUCTION_CALL:
		put_push(moving, moving->at + it->bytes);
		put_jump(moving, target);
		return true;
	case KY_INSTRUCTION_CALL_INDIRECT:
		put_call_indirect(moving, it);
		return true;
	case KY_INSTRUCTION_STRANGE:
		moving->error = -EINVAL;
		return true;
	default:
		put_same(moving, moving->code, it);
		return it->kind == KY_INSTRUCTION_JUMP_INDIRECT ||
		       it->kind == KY_INSTRUCTION_RETURN || it->kind == KY_INSTRUCTION_TRAP;
	}
}

int ky_prologue_move(struct ky_moved *moved, const uint8_t *code, uint32_t prologue, uint64_t from,
		     uint64_t to)
{
	struct moving moving = {.moved = moved, .to = to};
	bool ended = false;
	moved->bytes = 0;
	memset(moved->starts, 0xff, sizeof(moved->starts));
	if (prologue > KY_PROLOGUE_MAX)
		return -EINVAL;
	for (uint32_t at = 0; at < prologue && !ended && !moving.error;) {
		struct ky_instruction it;
		if (!ky_instruction_read(&it, code + at, prologue - at))
			return -EINVAL;
		moving.code = code + at;
		moving.at = from + at;
		moved->starts[at] = moved->bytes;
		ended = put_one(&moving, &it);
		at += it.bytes;
		/* code behind a call runs when it returns */
		if (at < prologue && is_call(&it))
			return -EINVAL;
	}
	if (!ended)
		put_jump(&moving, from + prologue);
	return moving.error;
}
