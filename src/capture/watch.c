/* SPDX-License-Identifier: MIT */
/*
 * watch.c: see watch.h: the triggers by kind, processes, and where each event goes. What an event that concerns
 * nobody costs: a look at its kind, at the last process, at a small table of sites, and for spans a push or a pop.
 */
#include "capture/watch_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t *set_of(struct ky_watch *watch, enum ky_trigger_kind kind)
{
	switch (kind) {
	case KY_TRIGGER_SPAN:
		return &watch->spans;
	case KY_TRIGGER_GAP:
		return &watch->gaps;
	case KY_TRIGGER_COUNTER:
		return &watch->counters;
	default:
		return NULL;
	}
}

static int add_category(struct ky_watch *watch, const char *category)
{
	char *list = NULL;
	if (asprintf(&list, "%s%s%s", watch->categories ? watch->categories : "",
		     watch->categories ? "," : "", category) < 0)
		return -ENOMEM;
	free(watch->categories);
	watch->categories = list;
	return 0;
}

static int add_trigger(struct ky_watch *watch, const struct ky_trigger *trigger)
{
	uint64_t *set = set_of(watch, trigger->kind);
	if (trigger->kind == KY_TRIGGER_API && !watch->api)
		watch->api = trigger;
	if (!set)
		return 0;
	if (watch->count == KY_WATCH_TRIGGERS_MAX)
		return -E2BIG;
	*set |= UINT64_C(1) << watch->count;
	watch->triggers[watch->count++] = trigger;
	return add_category(watch, trigger->category);
}

int ky_watch_open(struct ky_watch **out, const struct ky_trigger *triggers, uint32_t count,
		  ky_fired_fn fired, void *context)
{
	struct ky_watch *watch = calloc(1, sizeof(*watch));
	int error = watch ? 0 : -ENOMEM;
	*out = NULL;
	for (uint32_t i = 0; !error && i < count; i++)
		error = add_trigger(watch, &triggers[i]);
	if (error) {
		ky_watch_close(&watch);
		return error;
	}
	watch->fired = fired;
	watch->context = context;
	*out = watch;
	return 0;
}

static void free_process(struct ky_watch_process *process)
{
	if (!process)
		return;
	uint32_t at = 0;
	for (struct ky_pair_slot *slot; (slot = ky_pair_map_next(&process->sites, &at));)
		free((void *)(uintptr_t)slot->value);
	ky_pair_map_free(&process->sites);
	ky_watch_spans_free(process);
	ky_watch_series_free(process);
	free(process);
}

void ky_watch_close(struct ky_watch **out)
{
	struct ky_watch *watch = *out;
	*out = NULL;
	if (!watch)
		return;
	uint32_t at = 0;
	for (struct ky_pair_slot *slot; (slot = ky_pair_map_next(&watch->processes, &at));)
		free_process((struct ky_watch_process *)(uintptr_t)slot->value);
	ky_pair_map_free(&watch->processes);
	free(watch->categories);
	free(watch);
}

void ky_watch_fire(struct ky_watch *watch, const struct ky_trigger *trigger, pid_t pid, int32_t tid,
		   uint64_t time_ns, const char *format, ...)
{
	char reason[512];
	va_list list;
	va_start(list, format);
	vsnprintf(reason, sizeof(reason), format, list);
	va_end(list);
	const struct ky_fired fired = {
		.trigger = trigger, .time_ns = time_ns, .pid = pid, .tid = tid, .reason = reason};
	watch->fired(watch->context, &fired);
}

static struct ky_watch_process *process_of(struct ky_watch *watch, pid_t pid)
{
	bool made = false;
	if (watch->last && watch->last->pid == pid)
		return watch->last;
	uint64_t *at = ky_pair_map_add(&watch->processes, (uint64_t)pid, 0, &made);
	if (at && !*at)
		*at = (uintptr_t)calloc(1, sizeof(struct ky_watch_process));
	watch->last = at ? (struct ky_watch_process *)(uintptr_t)*at : NULL;
	if (watch->last)
		watch->last->pid = pid;
	else
		watch->dropped++;
	return watch->last;
}

static void tell_snapshot(struct ky_watch *watch, pid_t pid, const struct ky_event *event)
{
	struct ky_fired fired = {.trigger = watch->api,
				 .time_ns = event->time_ns,
				 .pid = pid,
				 .tid = event->thread->tid,
				 .reason = event->name.data};
	for (uint32_t i = 0; i < event->args_count && fired.args_count < 2; i++)
		if (event->args[i].type != KYMO_TYPE_STRING)
			fired.args[fired.args_count++] = event->args[i].value.u;
	watch->fired(watch->context, &fired);
}

/* A point in time: for gaps an event that ends as it begins. */
static void tell_point(struct ky_watch *watch, struct ky_watch_process *process,
		       const struct ky_event *event, uint64_t triggers)
{
	ky_watch_gap_begin(watch, process, triggers, event->thread->tid, event->time_ns);
	ky_watch_gap_end(watch, process, triggers, event->time_ns);
}

static void tell_event(struct ky_watch *watch, struct ky_watch_process *process,
		       const struct ky_event *event)
{
	struct ky_watch_site *site = NULL;
	const uint64_t triggers = ky_watch_concerns(watch, process, event, &site);
	if (event->kind == KYMO_KIND_BEGIN)
		ky_watch_begin(watch, process, event, triggers);
	else if (!triggers)
		return;
	else if (event->kind == KYMO_KIND_ASYNC_BEGIN)
		ky_watch_async_begin(watch, process, event, triggers);
	else if (event->kind == KYMO_KIND_ASYNC_END)
		ky_watch_async_end(watch, process, event);
	else
		tell_point(watch, process, event, triggers);
	if (event->kind == KYMO_KIND_COUNTER)
		ky_watch_value(watch, process, event, site, triggers);
}

void ky_watch_event(void *context, pid_t pid, const struct ky_event *event)
{
	struct ky_watch *watch = context;
	if (event->kind == KYMO_KIND_SNAPSHOT && watch->api && event->thread)
		tell_snapshot(watch, pid, event);
	if (!watch->count || !event->thread || (!event->site && event->kind != KYMO_KIND_LOST))
		return;
	struct ky_watch_process *process = process_of(watch, pid);
	if (!process)
		return;
	const bool stacks = (watch->spans | watch->gaps) != 0;
	switch (event->kind) {
	case KYMO_KIND_BEGIN:
		if (stacks)
			tell_event(watch, process, event);
		break;
	case KYMO_KIND_INSTANT:
	case KYMO_KIND_COUNTER:
	case KYMO_KIND_ASYNC_BEGIN:
	case KYMO_KIND_ASYNC_INSTANT:
	case KYMO_KIND_ASYNC_END:
		tell_event(watch, process, event);
		break;
	case KYMO_KIND_END:
		if (stacks)
			ky_watch_end(watch, process, event);
		break;
	case KYMO_KIND_LOST:
		if (stacks)
			ky_watch_lost(watch, process, event);
		break;
	default:
		break;
	}
}

void ky_watch_tick(struct ky_watch *watch, uint64_t now_ns)
{
	uint32_t at = 0;
	for (struct ky_pair_slot *slot; (slot = ky_pair_map_next(&watch->processes, &at));) {
		struct ky_watch_process *process =
			(struct ky_watch_process *)(uintptr_t)slot->value;
		if (!process)
			continue;
		ky_watch_spans_tick(watch, process, now_ns);
		ky_watch_gaps_tick(watch, process, now_ns);
	}
}

void ky_watch_ended(struct ky_watch *watch, pid_t pid)
{
	const uint64_t *at = ky_pair_map_find(&watch->processes, (uint64_t)pid, 0);
	if (!at)
		return;
	free_process((struct ky_watch_process *)(uintptr_t)*at);
	ky_pair_map_remove(&watch->processes, (uint64_t)pid, 0);
	watch->last = NULL;
}

const char *ky_watch_categories(const struct ky_watch *watch)
{
	return watch->categories;
}

uint64_t ky_watch_dropped(const struct ky_watch *watch)
{
	return watch->dropped;
}
