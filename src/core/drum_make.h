/* SPDX-License-Identifier: MIT */
/*
 * drum_make.h: where the parts of a new drum are, and what is in them to begin with. The recorder makes its process's
 * own this way, and kymo makes drums for other processes.
 */
#ifndef KY_CORE_DRUM_MAKE_H
#define KY_CORE_DRUM_MAKE_H

#include "core/drum.h"

/* Whose it is, and what the events in it count. */
struct ky_drum_maker {
	uint32_t pid;
	uint32_t tick_source; /* enum ky_tick_source; not NONE */
	uint64_t image;
	uint64_t ring_bytes, total_bytes;
	const char *process_name;
};

/* Bytes in whole pages. */
uint64_t ky_drum_page_up(uint64_t bytes);
/* Places and sizes by the limits; the rings have space_bytes. What is not a place or a size is zero. */
void ky_drum_plan(struct ky_drum_header *h, const struct ky_limits *limits, uint64_t space_bytes);
/* The pointers, from the header that is at the base. */
void ky_drum_find_parts(struct ky_drum *drum);
/*
 * Fills the zeroed memory at drum->base, but for the magic number: until that is there nobody reads it. categories, when not NULL,
 * are on from the start.
 */
void ky_drum_fill(struct ky_drum *drum, const struct ky_drum_header *planned,
		  const struct ky_drum_maker *maker, const char *categories);
void ky_drum_finish(struct ky_drum *drum);

#endif
