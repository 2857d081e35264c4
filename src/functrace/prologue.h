/* SPDX-License-Identifier: MIT */
/*
 * prologue.h: the first instructions of an x86-64 function, which make place for a jump: which they are, and the same
 * instructions for another address. By capstone.
 */
#ifndef KY_FUNCTRACE_PROLOGUE_H
#define KY_FUNCTRACE_PROLOGUE_H

#include "functrace/functions.h"

#define KY_JUMP_BYTES 5u
#define KY_WINDOW_MAX                                                                              \
	31u /* bytes of whole instructions that a jump can touch, with endbr64 before them */
#define KY_MOVED_MAX 160u /* bytes that they can become */

/* Sets how, why, at and window of a function from its code; neighbour is where the next function begins. */
void ky_prologue_find(struct ky_function *function, const struct ky_functions *module,
		      uint64_t neighbour);

struct ky_moved {
	uint8_t code[KY_MOVED_MAX]; /* with the jump back behind the window */
	uint8_t bytes;
	uint8_t starts
		[KY_WINDOW_MAX +
		 1]; /* where the instruction at that byte of the window went; 0xff: none begins there */
};
/*
 * The window's instructions as they must be at address `to`, when the window is at `from` (addresses of the process). Both
 * within 2 GiB. 0; -ERANGE when something is too far away, -EINVAL when one cannot be moved.
 */
int ky_prologue_move(struct ky_moved *moved, const uint8_t *code, uint32_t window, uint64_t from,
		     uint64_t to);

#endif
