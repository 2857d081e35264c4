/* SPDX-License-Identifier: MIT */
/*
 * instruction.h: the length of an x86-64 instruction, and the parts of it that depend on its address.
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
	uint8_t map;    /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a; of VEX and EVEX 0x10 more */
	uint8_t opcode; /* its last byte */
	uint8_t opcode_at;
	uint8_t rex;             /* 0: none */
	uint8_t modrm_at;        /* 0: none */
	uint8_t displacement_at; /* 0: none */
	uint8_t displacement_bytes;
	bool rip_relative; /* the displacement is, by 4 bytes */
	bool size_prefix;  /* 66 */
	bool address_prefix;
	int64_t displacement;
	int64_t branch; /* kinds that name a place: distance from the instruction's end */
};

/* Decode an instruction of at most room bytes; return false when it is invalid or cut off. */
bool ky_instruction_read(struct ky_instruction *instruction, const uint8_t *code, size_t room);

/* Report whether it is only padding: nop of any length, int3. */
bool ky_instruction_is_padding(const struct ky_instruction *instruction, const uint8_t *code);

#endif
