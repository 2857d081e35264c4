/* SPDX-License-Identifier: MIT */
/*
 * drum_make.h: plan the places of a new drum's parts and fill them. The recorder makes the drum of its process this way,
 * and kymo makes drums for other processes.
 */
#ifndef KY_CORE_DRUM_MAKE_H
#define KY_CORE_DRUM_MAKE_H

#include "core/drum.h"

/* What the header says of the drum's process. */
struct ky_drum_maker {
	uint32_t pid;
	uint32_t tick_source; /* enum ky_tick_source; not NONE */
	uint64_t image;
	uint64_t ring_bytes, total_bytes;
	const char *process_name;
};

/* Round up to whole pages. */
uint64_t ky_drum_make_page_up(uint64_t bytes);
/* Set places and sizes by the limits, with space_bytes for the rings; all else is zero. */
void ky_drum_make_plan(struct ky_drum_header *h, const struct ky_limits *limits,
		       uint64_t space_bytes);
/* Set the pointers to the parts, from the header at the base. */
void ky_drum_make_parts(struct ky_drum *drum);
/*
 * Fill the zeroed memory at drum->base, except for the magic number. categories, when not NULL, are on from the start.
 */
void ky_drum_make_fill(struct ky_drum *drum, const struct ky_drum_header *planned,
		       const struct ky_drum_maker *maker, const char *categories);
/* Set the magic number: from then on others may read the drum. */
void ky_drum_make_finish(struct ky_drum *drum);

#endif
