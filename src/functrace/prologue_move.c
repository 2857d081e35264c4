/* SPDX-License-Identifier: MIT */
/*
 * prologue_move.c: ky_window_move(): see prologue.h. What becomes of instructions elsewhere:
 *
 *   operands relative to rip     the same with another distance
 *   jmp, jcc, short or near      the near form
 *   loop, jrcxz X                loop over a jump that leads on to a jump to X
 *   call X                       push where it would have returned to; jmp X. So it returns to the function itself, and
 *                                unwinders and threads never see a return address in moved code
 *   all else                     as it is
 *
 * Behind them is a jump to what follows the window, unless nothing of them leads there.
 */
#include "functrace/prologue.h"

#include "functrace/instruction.h"

#include <errno.h>
#include <string.h>

struct moving {
	struct ky_moved *moved;
	const uint8_t *code; /* of the instruction */
	uint64_t at;         /* where it is, */
	uint64_t to;         /* and where the moved code begins */
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

/* Four bytes that lead to an address from behind them and `more` bytes. */
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

/* push imm32, which fills the upper half with its sign; mov dword [rsp + 4], the upper half. No flag and no register changes. */
static void put_push(struct moving *moving, uint64_t value)
{
	const uint32_t low = (uint32_t)value;
	const uint32_t high = (uint32_t)(value >> 32);
	put(moving, "\x68", 1);
	put(moving, &low, sizeof(low));
	put(moving, "\xc7\x44\x24\x04", 4);
	put(moving, &high, sizeof(high));
}

/* As it is, but for what is relative to rip. */
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

/* The same operand, as a jump: /2 becomes /4. */
static void put_call_indirect(struct moving *moving, const struct ky_instruction *it)
{
	uint8_t code[KY_INSTRUCTION_MAX];
	memcpy(code, moving->code, it->bytes);
	code[it->modrm_at] = (uint8_t)((code[it->modrm_at] & 0xc7) | 4 << 3);
	put_push(moving, moving->at + it->bytes);
	put_same(moving, code, it);
}

static bool is_call(const struct ky_instruction *it)
{
	return it->kind == KY_INSTRUCTION_CALL || it->kind == KY_INSTRUCTION_CALL_INDIRECT;
}

/* True when nothing runs behind it. */
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

int ky_window_move(struct ky_moved *moved, const uint8_t *code, uint32_t window, uint64_t from,
		   uint64_t to)
{
	struct moving moving = {.moved = moved, .to = to};
	bool ended = false;
	moved->bytes = 0;
	memset(moved->starts, 0xff, sizeof(moved->starts));
	if (window > KY_WINDOW_MAX)
		return -EINVAL;
	for (uint32_t at = 0; at < window && !ended && !moving.error;) {
		struct ky_instruction it;
		if (!ky_instruction_read(&it, code + at, window - at))
			return -EINVAL;
		moving.code = code + at;
		moving.at = from + at;
		moved->starts[at] = moved->bytes;
		ended = put_one(&moving, &it);
		at += it.bytes;
		if (at < window && is_call(&it))
			return -EINVAL; /* what is behind a call runs, when it returns */
	}
	if (!ended)
		put_jump(&moving, from + window);
	return moving.error;
}
