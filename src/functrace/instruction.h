/* SPDX-License-Identifier: MIT */
/*
 * instruction.h: the length of an x86-64 instruction, and the parts of it that depend on its address; prologues,
 * whose instructions are made for another address.
 *
 *   prefixes  opcode        modrm  sib   displacement   immediate
 *   66 f3 48  0f 3a xx      mm     ss    dd dd dd dd    ii
 *             one of the maps      └ at `displacement`, relative to the end when rip_relative
 *
 * kymo looks at every instruction of a module, to find its branches: 7 million in node. capstone takes 2.4 s for that
 * without any detail, this decoder 0.14 s. Instructions that are moved in a program are decoded by both, and not
 * moved if they disagree.
 */
#ifndef KY_FUNCTRACE_INSTRUCTION_H
#define KY_FUNCTRACE_INSTRUCTION_H

#include "functrace/functions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KY_INSTRUCTION_MAX 15u

enum ky_instruction_kind {
	KY_INSTRUCTION_PLAIN,
	KY_INSTRUCTION_JUMP,          /* jmp to a place that it names */
	KY_INSTRUCTION_JUMP_IF,       /* jcc */
	KY_INSTRUCTION_LOOP,          /* loop, jrcxz: short alone */
	KY_INSTRUCTION_CALL,          /* to a place that it names */
	KY_INSTRUCTION_JUMP_INDIRECT, /* by a register or memory */
	KY_INSTRUCTION_CALL_INDIRECT,
	KY_INSTRUCTION_RETURN,
	KY_INSTRUCTION_TRAP,    /* int3, ud2, hlt: nothing comes behind it */
	KY_INSTRUCTION_STRANGE, /* far, of transactions, of interrupts: not movable */
};

struct ky_instruction {
	uint8_t bytes;
	uint8_t kind;
	uint8_t map;      /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a; of VEX and EVEX 0x10 more */
	uint8_t opcode;   /* its last byte */
	uint8_t rex;      /* 0: none */
	uint8_t modrm_at; /* 0: none */
	uint8_t displacement_at; /* 0: none */
	bool rip_relative;       /* the displacement is, by 4 bytes */
	bool size_prefix;        /* 66 */
	bool address_prefix;
	int64_t displacement;
	int64_t branch; /* kinds that name a place: distance from the instruction's end */
};

/* Decode an instruction of at most room bytes; return false when it is invalid or cut off. */
bool ky_instruction_read(struct ky_instruction *instruction, const uint8_t *code, size_t room);

/* Report whether it is only padding: nop of any length, int3. */
bool ky_instruction_is_padding(const struct ky_instruction *instruction, const uint8_t *code);

/* ---- prologue.c: the first instructions of a function, which make room for a jump ---- */

#define KY_JUMP_BYTES 5u
#define KY_PROLOGUE_MAX                                                                            \
	31u /* bytes of whole instructions that a jump can touch, with endbr64 before them */
#define KY_MOVED_MAX 160u /* bytes that they can become */

/* Set how, why, at and the prologue of a function from its code; neighbour is the start of the next function. */
void ky_prologue_find(struct ky_function *function, const struct ky_functions *module,
		      uint64_t neighbour);

struct ky_moved {
	uint8_t code[KY_MOVED_MAX]; /* with the jump back behind the prologue */
	uint8_t bytes;
	/* the offset of the moved instruction that was at that byte of the prologue; 0xff: none begins there */
	uint8_t starts[KY_PROLOGUE_MAX + 1];
};
/*
 * Make the prologue's instructions for address `to`, when the prologue is at `from` (addresses of the process). Both
 * within 2 GiB. Return 0; -ERANGE when something is too far away, -EINVAL when one cannot be moved.
 */
int ky_prologue_move(struct ky_moved *moved, const uint8_t *code, uint32_t prologue, uint64_t from,
		     uint64_t to);

#endif
