/* SPDX-License-Identifier: MIT */
/*
 * prologue.c: see prologue.h. Which instructions of a function's beginning a jump overwrites:
 *
 *   endbr64   push rbp   mov rbp, rsp   sub rsp, 32
 *   stays     └─── window, 5 bytes or more ─────┘   whole instructions only
 *
 * When the function ends in it (ret, jmp), the rest must be padding up to the neighbour, which nothing runs. A call must be the
 * last: then its return address can be the original one.
 */
#include "functrace/prologue.h"

#include "functrace/functions_parts.h"
#include "functrace/instruction.h"

#include <string.h>

static bool is_endbr(const uint8_t *code, uint64_t room)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	return room >= sizeof(endbr) && memcmp(code, endbr, sizeof(endbr)) == 0;
}

/* What is moved must be the same for both decoders. */
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

/* A call through memory that the stack pointer leads to would find it elsewhere: something is pushed before. */
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

/* The instructions from `code` on, of which `own` bytes are the function's and `room` may be overwritten. */
static enum ky_function_why measure(const struct ky_functions *module, const uint8_t *code,
				    uint64_t own, uint64_t room, uint8_t *window)
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
	*window = (uint8_t)bytes;
	return KY_WHY_NONE;
}

void ky_window_find(struct ky_function *function, const struct ky_functions *module,
		    uint64_t neighbour)
{
	uint64_t room;
	const uint8_t *code = ky_functions_code(module, function->address, &room);
	uint64_t own = function->bytes;
	function->how = KY_FUNCTION_NOT;
	function->at = 0;
	function->window = 0;
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
					 &function->window);
	if (function->why == KY_WHY_NONE)
		function->how = KY_FUNCTION_PATCH;
}
