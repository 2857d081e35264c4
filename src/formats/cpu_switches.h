/* SPDX-License-Identifier: MIT */
/*
 * cpu_switches.h: makes the switches of each CPU from scheduling slices, in the order of the walk. A slice is a switch at
 * its start, away from the slice before; where that ended earlier, the CPU went idle in between.
 */
#ifndef KY_FORMATS_CPU_SWITCHES_H
#define KY_FORMATS_CPU_SWITCHES_H

#include "formats/walk.h"

struct ky_cpu_slice {
	uint32_t cpu;
	uint32_t row; /* of sched; KY_NONE: idle */
	int64_t end;  /* KY_TIME_NONE: unknown */
};

/* All zero is empty. */
struct ky_cpu_switches {
	struct ky_cpu_slice *items;
	uint32_t count, room;
};

/* prev and next are rows of sched, or KY_NONE for idle. */
typedef void ky_cpu_switch_fn(void *self, uint32_t cpu, int64_t ts, uint32_t prev, uint32_t next);

/* Report the switches up to this slice; false without memory. */
bool ky_cpu_switches_add(struct ky_cpu_switches *switches, const struct ky_trace *trace,
			 const struct ky_walk_item *item, ky_cpu_switch_fn *put, void *self);
/* Report the switches at the ends of the last slices. */
void ky_cpu_switches_end(const struct ky_cpu_switches *switches, ky_cpu_switch_fn *put, void *self);
void ky_cpu_switches_free(struct ky_cpu_switches *switches);

#endif
