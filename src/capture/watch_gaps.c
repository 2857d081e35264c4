/* SPDX-License-Identifier: MIT */
/*
 * watch_gaps.c: for each gap: trigger and process, since when nothing of that name was open. A gap begins with the end
 * of an event: a process that never had one has no gap. It fires once, as soon as it is too long.
 */
#include "capture/watch_parts.h"

#include "model/quantity.h"

static void look(struct ky_watch *watch, struct ky_watch_process *process, uint32_t index,
		 int32_t tid, uint64_t now_ns)
{
	struct ky_watch_gap *gap = &process->gaps[index];
	const struct ky_trigger *trigger = watch->triggers[index];
	char text[KY_QUANTITY_BYTES];
	if (gap->open || !gap->known || gap->fired || now_ns <= gap->last_end_ns ||
	    now_ns - gap->last_end_ns <= (uint64_t)trigger->limit_ns)
		return;
	gap->fired = true;
	ky_watch_fire(watch, trigger, process->pid, tid, now_ns, "no %s/%s for %s",
		      trigger->category, trigger->name,
		      ky_quantity_duration(text, (int64_t)(now_ns - gap->last_end_ns)));
}

void ky_watch_gap_begin(struct ky_watch *watch, struct ky_watch_process *process, uint64_t triggers,
			int32_t tid, uint64_t time_ns)
{
	for (uint64_t left = triggers & watch->gaps; left;) {
		const uint32_t i = ky_watch_take(&left);
		look(watch, process, i, tid, time_ns);
		process->gaps[i].open++;
	}
}

static void begin_gap(struct ky_watch_gap *gap, uint64_t time_ns)
{
	if (gap->known && time_ns < gap->last_end_ns)
		return;
	gap->last_end_ns = time_ns;
	gap->known = true;
	gap->fired = false;
}

void ky_watch_gap_end(struct ky_watch *watch, struct ky_watch_process *process, uint64_t triggers,
		      uint64_t time_ns)
{
	for (uint64_t left = triggers & watch->gaps; left;) {
		struct ky_watch_gap *gap = &process->gaps[ky_watch_take(&left)];
		if (gap->open)
			gap->open--;
		if (!gap->open)
			begin_gap(gap, time_ns);
	}
}

void ky_watch_gap_lost(struct ky_watch *watch, struct ky_watch_process *process, uint64_t time_ns)
{
	for (uint64_t left = watch->gaps; left;) {
		struct ky_watch_gap *gap = &process->gaps[ky_watch_take(&left)];
		if (gap->known && !gap->open)
			begin_gap(gap, time_ns);
	}
}

void ky_watch_gaps_tick(struct ky_watch *watch, struct ky_watch_process *process, uint64_t now_ns)
{
	for (uint64_t left = watch->gaps; left;)
		look(watch, process, ky_watch_take(&left), 0, now_ns);
}
