/* SPDX-License-Identifier: MIT */
/* cpu_switches.c: the switches of each CPU, from scheduling slices. */
#include "formats/cpu_switches.h"

#include "base/array.h"

static struct ky_cpu_slice *slice_of(struct ky_cpu_switches *switches, uint32_t cpu)
{
	for (uint32_t i = 0; i < switches->count; i++)
		if (switches->items[i].cpu == cpu)
			return &switches->items[i];
	if (!KY_ARRAY_ADD(switches->items, switches->count, switches->room,
			  (struct ky_cpu_slice){cpu, KY_NONE, KY_TIME_NONE}))
		return NULL;
	return &switches->items[switches->count - 1];
}

static bool has_ended(const struct ky_cpu_slice *slice)
{
	return slice->row != KY_NONE && slice->end != KY_TIME_NONE;
}

bool ky_cpu_switches_add(struct ky_cpu_switches *switches, const struct ky_trace *trace,
			 const struct ky_walk_item *item, ky_cpu_switch_fn *put, void *self)
{
	struct ky_cpu_slice *last = slice_of(switches, trace->sched.cpu[item->row]);
	if (!last)
		return false;
	if (has_ended(last) && last->end < item->ts) {
		put(self, last->cpu, last->end, last->row, KY_NONE);
		last->row = KY_NONE;
	}
	put(self, last->cpu, item->ts, last->row, item->row);
	last->row = item->row;
	last->end = item->end_ns;
	return true;
}

void ky_cpu_switches_end(const struct ky_cpu_switches *switches, ky_cpu_switch_fn *put, void *self)
{
	for (uint32_t i = 0; i < switches->count; i++) {
		const struct ky_cpu_slice *last = &switches->items[i];
		if (has_ended(last))
			put(self, last->cpu, last->end, last->row, KY_NONE);
	}
}

void ky_cpu_switches_free(struct ky_cpu_switches *switches)
{
	KY_ARRAY_FREE(switches->items, switches->room);
	switches->count = 0;
}
