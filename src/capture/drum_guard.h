/* SPDX-License-Identifier: MIT */
/*
 * drum_guard.h: memory that maps a file which somebody may cut short. Touching a page behind the
 * file's end is SIGBUS; with a guard the rest of the mapping becomes zeros instead, and the guard
 * tells.
 */
#ifndef KY_CAPTURE_DRUM_GUARD_H
#define KY_CAPTURE_DRUM_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* Which one, or -errno: -EMFILE when there are too many. Before the memory is touched. */
int ky_drum_guard_add(void *at, uint64_t bytes, bool writable);
/* Before the memory is unmapped. -1 is no guard. */
void ky_drum_guard_remove(int guard);
/* Whether a part of it was not there when it was touched. */
bool ky_drum_guard_hit(int guard);

#endif
