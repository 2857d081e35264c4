/* SPDX-License-Identifier: MIT */
/*
 * watch.c: see watch.h: triggers by kind, processes, and where each event goes.
 *
 * An event that concerns no trigger costs a look at its kind, at the last process, at a small table of sites, and for spans
 * a push or a pop. Globs are matched once for each trace point; after that an event costs a look into a small table by the
 * address of its site. Only events that bring their own name, in a watched category, are matched one by one.
 */
#include "capture/watch_state.h"

#include "core/glob.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sites: which triggers a trace point concerns ---- */

/* Which kinds of trigger a kind of event can concern. */
static uint64_t triggers_of_kind(const struct ky_watch *watch, uint8_t kind)
{
	switch (kind) {
	case KYMO_KIND_BEGIN:
	case KYMO_KIND_ASYNC_BEGIN:
	case KYMO_KIND_ASYNC_END:
		return watch->of_kind[KY_TRIGGER_SPAN] | watch->of_kind[KY_TRIGGER_GAP];
	case KYMO_KIND_INSTANT:
	case KYMO_KIND_ASYNC_INSTANT:
		return watch->of_kind[KY_TRIGGER_GAP];
	case KYMO_KIND_COUNTER:
		return watch->of_kind[KY_TRIGGER_GAP] | watch->of_kind[KY_TRIGGER_COUNTER];
	default:
		return 0;
	}
}

static uint64_t match_names(struct ky_watch *watch, uint64_t set, struct ky_text name)
{
	uint64_t matches = 0;
	while (set) {
		const uint32_t i = ky_watch_take(&set);
		const char *glob = watch->triggers[i]->name;
		if (ky_glob_match(glob, strlen(glob), name.data, name.bytes))
			matches |= UINT64_C(1) << i;
	}
	watch->seen |= matches;
	return matches;
}

/* Note the name of a trace point for triggers that are of its category and have another name. */
static void note_near(struct ky_watch *watch, uint64_t set, const struct ky_site *site)
{
	while (set) {
		const uint32_t i = ky_watch_take(&set);
		ky_nearest_note(&watch->nearest[i], watch->triggers[i]->name, site->name.data);
	}
}

static void decide(struct ky_watch *watch, const struct ky_site *site, struct ky_watch_site *known)
{
	uint64_t left = triggers_of_kind(watch, site->kind);
	*known = (struct ky_watch_site){.site = site,
					.category = site->category.data,
					.name = site->name.data,
					.line = site->line,
					.named = (site->flags & KYMO_SITE_NAME) != 0};
	while (left) {
		const uint32_t i = ky_watch_take(&left);
		if (ky_glob_list_match(watch->triggers[i]->category, site->category.data))
			known->triggers |= UINT64_C(1) << i;
	}
	watch->near_seen |= known->triggers;
	if (known->named)
		return;
	const uint64_t of_category = known->triggers;
	known->triggers = match_names(watch, of_category, site->name);
	note_near(watch, of_category & ~known->triggers & ~watch->seen, site);
}

static bool is_same(const struct ky_watch_site *known, const struct ky_site *site)
{
	return known->site == site && known->category == site->category.data &&
	       known->name == site->name.data && known->line == site->line;
}

static struct ky_watch_site *look_up(struct ky_watch *watch, struct ky_watch_process *process,
				     const struct ky_site *site)
{
	bool made = false;
	if (process->sites.table.count >= KY_WATCH_SITES_MAX &&
	    !ky_pair_map_find(&process->sites, (uintptr_t)site, 0))
		return NULL;
	uint64_t *at = ky_pair_map_add(&process->sites, (uintptr_t)site, 0, &made);
	if (!at)
		return NULL;
	struct ky_watch_site *known = (struct ky_watch_site *)(uintptr_t)*at;
	if (known && is_same(known, site))
		return known;
	if (!known)
		known = malloc(sizeof(*known));
	*at = (uintptr_t)known;
	if (known)
		decide(watch, site, known);
	return known;
}

static uint64_t concerns(struct ky_watch *watch, struct ky_watch_process *process,
			 const struct ky_event *event, struct ky_watch_site **out)
{
	const struct ky_site *site = event->site;
	const uintptr_t address = (uintptr_t)site;
	struct ky_watch_site **recent =
		&process->recent[(address >> 6 ^ address >> 14) & (KY_WATCH_RECENT - 1)];
	struct ky_watch_site *known = *recent;
	if (!known || !is_same(known, site)) {
		known = look_up(watch, process, site);
		if (!known) {
			watch->dropped++;
			return 0;
		}
		*recent = known;
	}
	*out = known;
	if (!known->named || !known->triggers)
		return known->triggers;
	return match_names(watch, known->triggers, event->name);
}

uint64_t ky_watch_key(const struct ky_event *event)
{
	const struct ky_text category = event->site->category;
	return ky_hash_pair(ky_hash_bytes(category.data, category.bytes),
			    ky_hash_bytes(event->name.data, event->name.bytes));
}

/*
 * ---- counters ----
 *
 * A counter is known by its category, name and id (not by its trace point, because several may count the same). It fires when
 * it goes beyond the limit, and not again before it came back. Of a counter with several values each may go beyond.
 */

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

static void take_value(struct ky_watch *watch, struct ky_watch_process *process,
		       const struct ky_event *event, struct ky_watch_site *site, uint64_t triggers)
{
	struct ky_watch_series *series = triggers & watch->of_kind[KY_TRIGGER_COUNTER]
						 ? series_of(watch, process, event, site)
						 : NULL;
	if (!series)
		return;
	for (uint64_t left = triggers & watch->of_kind[KY_TRIGGER_COUNTER]; left;) {
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

static void free_series(struct ky_watch_process *process)
{
	uint32_t at = 0;
	for (struct ky_pair_slot *entry; (entry = ky_pair_map_next(&process->series, &at));)
		free((void *)(uintptr_t)entry->value);
	ky_pair_map_free(&process->series);
}

/* ---- triggers and processes ---- */

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
	if (trigger->kind == KY_TRIGGER_API && !watch->api)
		watch->api = trigger;
	if (!trigger->category) /* api, and what other parts find */
		return 0;
	if (watch->count == KY_WATCH_TRIGGERS_MAX)
		return -E2BIG;
	watch->of_kind[trigger->kind] |= UINT64_C(1) << watch->count;
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
	for (struct ky_pair_slot *entry; (entry = ky_pair_map_next(&process->sites, &at));)
		free((void *)(uintptr_t)entry->value);
	ky_pair_map_free(&process->sites);
	ky_watch_spans_free(process);
	free_series(process);
	free(process);
}

void ky_watch_close(struct ky_watch **out)
{
	struct ky_watch *watch = *out;
	*out = NULL;
	if (!watch)
		return;
	uint32_t at = 0;
	for (struct ky_pair_slot *entry; (entry = ky_pair_map_next(&watch->processes, &at));)
		free_process((struct ky_watch_process *)(uintptr_t)entry->value);
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

static void fire_snapshot(struct ky_watch *watch, pid_t pid, const struct ky_event *event)
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

static void take_event(struct ky_watch *watch, struct ky_watch_process *process,
		       const struct ky_event *event)
{
	struct ky_watch_site *site = NULL;
	const uint64_t triggers = concerns(watch, process, event, &site);
	if (event->kind == KYMO_KIND_BEGIN)
		ky_watch_spans_begin(watch, process, event, triggers);
	else if (!triggers)
		return;
	else if (event->kind == KYMO_KIND_ASYNC_BEGIN)
		ky_watch_spans_async_begin(watch, process, event, triggers);
	else if (event->kind == KYMO_KIND_ASYNC_END)
		ky_watch_spans_async_end(watch, process, event);
	else
		ky_watch_spans_point(watch, process, event, triggers);
	if (event->kind == KYMO_KIND_COUNTER)
		take_value(watch, process, event, site, triggers);
}

void ky_watch_event(void *context, pid_t pid, const struct ky_event *event)
{
	struct ky_watch *watch = context;
	if (event->kind == KYMO_KIND_SNAPSHOT && watch->api && event->thread)
		fire_snapshot(watch, pid, event);
	if (!watch->count || !event->thread || (!event->site && event->kind != KYMO_KIND_LOST))
		return;
	struct ky_watch_process *process = process_of(watch, pid);
	if (!process)
		return;
	const bool stacks = (watch->of_kind[KY_TRIGGER_SPAN] | watch->of_kind[KY_TRIGGER_GAP]) != 0;
	switch (event->kind) {
	case KYMO_KIND_BEGIN:
		if (stacks)
			take_event(watch, process, event);
		break;
	case KYMO_KIND_INSTANT:
	case KYMO_KIND_COUNTER:
	case KYMO_KIND_ASYNC_BEGIN:
	case KYMO_KIND_ASYNC_INSTANT:
	case KYMO_KIND_ASYNC_END:
		take_event(watch, process, event);
		break;
	case KYMO_KIND_END:
		if (stacks)
			ky_watch_spans_end(watch, process, event);
		break;
	case KYMO_KIND_LOST:
		if (stacks)
			ky_watch_spans_lost(watch, process, event);
		break;
	default:
		break;
	}
}

void ky_watch_tick(struct ky_watch *watch, uint64_t now_ns)
{
	uint32_t at = 0;
	for (struct ky_pair_slot *entry; (entry = ky_pair_map_next(&watch->processes, &at));) {
		struct ky_watch_process *process =
			(struct ky_watch_process *)(uintptr_t)entry->value;
		if (!process)
			continue;
		ky_watch_spans_tick(watch, process, now_ns);
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

bool ky_watch_missing(const struct ky_watch *watch, uint32_t *at, char message[KY_MESSAGE_BYTES])
{
	const uint64_t missing = watch->near_seen & ~watch->seen;
	while (*at < watch->count && !(missing >> *at & 1))
		++*at;
	if (*at >= watch->count)
		return false;
	char hint[KY_NEAREST_TEXT_BYTES + 16];
	const struct ky_trigger *const trigger = watch->triggers[*at];
	ky_nearest_hint(&watch->nearest[*at], "", hint, sizeof(hint));
	ky_fail(message, 0, "--trigger %.100s: no event of that category is named '%.100s'%s",
		trigger->text, trigger->name, hint);
	++*at;
	return true;
}
