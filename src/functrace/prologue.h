/* SPDX-License-Identifier: MIT */
/*
 * prologue.h: the prologue of an x86-64 function: its first instructions, which make room for a jump. Finds them, and
 * makes the same instructions for another address. Uses capstone.
 */
#ifndef KY_FUNCTRACE_PROLOGUE_H
#define KY_FUNCTRACE_PROLOGUE_H

#include "functrace/functions.h"

#define KY_JUMP_BYTES 5u
/* bytes of whole instructions that a jump can touch, with endbr64 before them */
/* bytes that they can become */
#define KY_PROLOGUE_MAX 31u
#define KY_MOVED_MAX 160u

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
