/* SPDX-License-Identifier: MIT */
/*
 * coarse.h: the time of events in a thread that may not read the CPU's counter (seccomp's strict mode on x86): guessed from a
 * clock of the system that is in memory and ticks a few hundred times a second.
 */
#ifndef KY_CORE_COARSE_H
#define KY_CORE_COARSE_H

#include "core/drum.h"

struct ky_coarse {
	uint64_t ticks, ns; /* at the same moment */
	uint64_t rate;      /* ticks in 2^20 ns; 0: not begun */
	uint64_t last;      /* what the last event got; it only grows */
};

/* Read the clocks and measure the counter's rate, for some milliseconds. */
void ky_coarse_begin(struct ky_coarse *coarse, struct ky_drum *drum);
/* Return the time of an event. */
uint64_t ky_coarse_ticks(struct ky_coarse *coarse);

#endif
