/* SPDX-License-Identifier: MIT */
/*
 * watch_series.c: counters. One is known by its category, name and id (not by its trace point, for several may count
 * the same), and fires when it goes beyond the limit, not again before it came back. Of a counter with several
 * values each may go beyond.
 */
#include "capture/watch_parts.h"

#include <stdlib.h>

static double value_of(const struct kymo_arg *arg)
{
	switch (arg->type) {
	case KYMO_TYPE_INT:
		return (double)arg->value.i;
	case KYMO_TYPE_DOUBLE:
		return arg->value.d;
	case KYMO_TYPE_STRING:
		return 0;
	default:
		return (double)arg->value.u;
	}
}

/* The first value that is beyond the limit, or NULL. */
static const struct kymo_arg *find_beyond(const struct ky_trigger *trigger,
					  const struct ky_event *event)
{
	for (uint32_t i = 0; i < event->args_count; i++) {
		const struct kymo_arg *arg = &event->args[i];
		if (arg->type == KYMO_TYPE_STRING)
			continue;
		const double value = value_of(arg);
		if (trigger->below ? value < trigger->limit : value > trigger->limit)
			return arg;
	}
	return NULL;
}

static struct ky_watch_series *series_of(struct ky_watch *watch, struct ky_watch_process *process,
					 const struct ky_event *event, struct ky_watch_site *site)
{
	const bool alone = !site->named && !(event->site->flags & KYMO_SITE_ID);
	if (alone && site->series)
		return site->series;
	const uint64_t key = ky_watch_key(event);
	uint64_t *at = ky_pair_map_find(&process->series, key, event->id);
	bool made = false;
	if (!at && process->series.table.count < KY_WATCH_SERIES_MAX)
		at = ky_pair_map_add(&process->series, key, event->id, &made);
	if (at && !*at)
		*at = (uintptr_t)calloc(1, sizeof(struct ky_watch_series));
	struct ky_watch_series *series = at ? (struct ky_watch_series *)(uintptr_t)*at : NULL;
	if (!series)
		watch->dropped++;
	if (alone)
		site->series = series;
	return series;
}

void ky_watch_value(struct ky_watch *watch, struct ky_watch_process *process,
		    const struct ky_event *event, struct ky_watch_site *site, uint64_t triggers)
{
	struct ky_watch_series *series =
		triggers & watch->counters ? series_of(watch, process, event, site) : NULL;
	if (!series)
		return;
	for (uint64_t left = triggers & watch->counters; left;) {
		const uint32_t i = ky_watch_take(&left);
		const uint64_t bit = UINT64_C(1) << i;
		const struct kymo_arg *arg = find_beyond(watch->triggers[i], event);
		if (arg && !(series->beyond & bit))
			ky_watch_fire(watch, watch->triggers[i], process->pid, event->thread->tid,
				      event->time_ns, "%s/%s is %.15g", event->site->category.data,
				      event->name.data, value_of(arg));
		series->beyond = arg ? series->beyond | bit : series->beyond & ~bit;
	}
}

void ky_watch_series_free(struct ky_watch_process *process)
{
	uint32_t at = 0;
	for (struct ky_pair_slot *slot; (slot = ky_pair_map_next(&process->series, &at));)
		free((void *)(uintptr_t)slot->value);
	ky_pair_map_free(&process->series);
}
