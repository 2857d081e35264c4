/* SPDX-License-Identifier: MIT */
/*
 * watch_spans.c: open spans and gaps. Spans of a thread are a stack, balanced by the rules of core/span_stack.h; those open
 * when events got lost are forgotten. Asynchronous ones are found by category, name and id.
 *
 * A span fires once: while it is open, when a tick finds that it lasts too long already, or when it ends.
 */
#include "capture/watch_state.h"

#include "base/array.h"
#include "model/quantity.h"

#include <stdlib.h>
#include <string.h>

/*
 * ---- gaps ----
 *
 * For each gap: trigger and process, the time since which no event of that name was open. A gap begins with the end of an
 * event: a process that never had one has no gap. It fires once, as soon as it is too long.
 */

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

static void gap_begin(struct ky_watch *watch, struct ky_watch_process *process, uint64_t triggers,
		      int32_t tid, uint64_t time_ns)
{
	for (uint64_t left = triggers & watch->of_kind[KY_TRIGGER_GAP]; left;) {
		const uint32_t i = ky_watch_take(&left);
		look(watch, process, i, tid, time_ns);
		process->gaps[i].open++;
	}
}

static void start_gap(struct ky_watch_gap *gap, uint64_t time_ns)
{
	if (gap->known && time_ns < gap->last_end_ns)
		return;
	gap->last_end_ns = time_ns;
	gap->known = true;
	gap->fired = false;
}

static void gap_end(struct ky_watch *watch, struct ky_watch_process *process, uint64_t triggers,
		    uint64_t time_ns)
{
	for (uint64_t left = triggers & watch->of_kind[KY_TRIGGER_GAP]; left;) {
		struct ky_watch_gap *gap = &process->gaps[ky_watch_take(&left)];
		if (gap->open)
			gap->open--;
		if (!gap->open)
			start_gap(gap, time_ns);
	}
}

/* Events before that time are lost and unknown, so a gap begins there at the latest. */
static void gap_lost(struct ky_watch *watch, struct ky_watch_process *process, uint64_t time_ns)
{
	for (uint64_t left = watch->of_kind[KY_TRIGGER_GAP]; left;) {
		struct ky_watch_gap *gap = &process->gaps[ky_watch_take(&left)];
		if (gap->known && !gap->open)
			start_gap(gap, time_ns);
	}
}

static void tick_gaps(struct ky_watch *watch, struct ky_watch_process *process, uint64_t now_ns)
{
	for (uint64_t left = watch->of_kind[KY_TRIGGER_GAP]; left;)
		look(watch, process, ky_watch_take(&left), 0, now_ns);
}

/* ---- one span ---- */

static void open_span(struct ky_watch_span *span, const struct ky_event *event, uint64_t triggers)
{
	*span = (struct ky_watch_span){.site = event->site,
				       .begin_ns = event->time_ns,
				       .triggers = triggers,
				       .tid = event->thread->tid};
	if (triggers && event->site->flags & KYMO_SITE_NAME)
		span->name = strndup(event->name.data, event->name.bytes);
}

static void fire_over(struct ky_watch *watch, const struct ky_watch_process *process,
		      struct ky_watch_span *span, uint64_t now_ns, const char *format)
{
	const uint64_t lasted_ns = now_ns > span->begin_ns ? now_ns - span->begin_ns : 0;
	for (uint64_t left = span->triggers & watch->of_kind[KY_TRIGGER_SPAN] & ~span->fired;
	     left;) {
		const uint32_t i = ky_watch_take(&left);
		const struct ky_trigger *trigger = watch->triggers[i];
		char text[KY_QUANTITY_BYTES];
		if (lasted_ns <= (uint64_t)trigger->limit_ns)
			continue;
		span->fired |= UINT64_C(1) << i;
		ky_watch_fire(watch, trigger, process->pid, span->tid, now_ns, "%s/%s %s %s",
			      span->site->category.data,
			      span->name ? span->name : span->site->name.data, format,
			      ky_quantity_duration(text, (int64_t)lasted_ns));
	}
}

static void close_span(struct ky_watch *watch, struct ky_watch_process *process,
		       struct ky_watch_span *span, uint64_t end_ns)
{
	if (!span->triggers)
		return;
	fire_over(watch, process, span, end_ns, "took");
	gap_end(watch, process, span->triggers, end_ns);
	free(span->name);
}

/* ---- of threads ---- */

static struct ky_watch_thread *thread_of(struct ky_watch *watch, struct ky_watch_process *process,
					 const struct ky_thread *thread)
{
	if (process->last_thread == thread && process->last)
		return process->last;
	uint64_t *at = ky_pair_map_find(&process->threads, (uintptr_t)thread, 0);
	bool made = false;
	if (!at && process->threads.table.count < KY_WATCH_THREADS_MAX)
		at = ky_pair_map_add(&process->threads, (uintptr_t)thread, 0, &made);
	if (at && !*at)
		*at = (uintptr_t)calloc(1, sizeof(struct ky_watch_thread));
	process->last_thread = thread;
	process->last = at ? (struct ky_watch_thread *)(uintptr_t)*at : NULL;
	if (!process->last)
		watch->dropped++;
	return process->last;
}

static struct ky_watch_span *span_at(const struct ky_watch_thread *t, uint32_t level)
{
	return ky_span_stack_at(&t->stack, sizeof(struct ky_watch_span), level);
}

void ky_watch_spans_begin(struct ky_watch *watch, struct ky_watch_process *process,
			  const struct ky_event *event, uint64_t triggers)
{
	struct ky_watch_thread *t = thread_of(watch, process, event->thread);
	struct ky_watch_span *span =
		t ? ky_span_stack_push(&t->stack, sizeof(*span), KY_WATCH_DEPTH_MAX, event->site)
		  : NULL;
	gap_begin(watch, process, triggers, event->thread->tid, event->time_ns);
	if (span) {
		open_span(span, event, triggers);
		t->watched += triggers != 0;
		return;
	}
	watch->dropped++;
	gap_end(watch, process, triggers, event->time_ns);
}

static void pop(struct ky_watch *watch, struct ky_watch_process *process, struct ky_watch_thread *t,
		uint64_t end_ns)
{
	struct ky_watch_span *span = ky_span_stack_pop(&t->stack, sizeof(*span));
	t->watched -= span->triggers != 0;
	close_span(watch, process, span, end_ns);
}

void ky_watch_spans_end(struct ky_watch *watch, struct ky_watch_process *process,
			const struct ky_event *event)
{
	struct ky_watch_thread *t = thread_of(watch, process, event->thread);
	if (!t || ky_span_stack_end_beyond(&t->stack))
		return;
	const struct ky_span_end ends =
		ky_span_stack_end(&t->stack, sizeof(struct ky_watch_span), event->site);
	for (uint32_t count = ends.inner + ends.found; count; count--)
		pop(watch, process, t, event->time_ns);
}

static void forget(struct ky_watch_thread *t, struct ky_watch *watch,
		   struct ky_watch_process *process, uint64_t time_ns)
{
	while (t->stack.depth) {
		struct ky_watch_span *span = ky_span_stack_pop(&t->stack, sizeof(*span));
		gap_end(watch, process, span->triggers, time_ns);
		free(span->name);
	}
	t->watched = 0;
	t->stack.beyond = 0;
}

void ky_watch_spans_lost(struct ky_watch *watch, struct ky_watch_process *process,
			 const struct ky_event *event)
{
	struct ky_watch_thread *t = thread_of(watch, process, event->thread);
	if (t)
		forget(t, watch, process, event->time_ns);
	gap_lost(watch, process, event->time_ns);
}

/* ---- asynchronous ---- */

static struct ky_watch_async *new_async(struct ky_watch_process *process)
{
	if (process->asyncs_free) {
		struct ky_watch_async *async = &process->asyncs[process->asyncs_free - 1];
		process->asyncs_free = async->below;
		return async;
	}
	return process->asyncs_count < KY_WATCH_ASYNCS_MAX
		       ? KY_ARRAY_NEW(process->asyncs, process->asyncs_count, process->asyncs_room)
		       : NULL;
}

static void free_async(struct ky_watch_process *process, struct ky_watch_async *async)
{
	async->span = (struct ky_watch_span){0};
	async->below = process->asyncs_free;
	process->asyncs_free = 1 + (uint32_t)(async - process->asyncs);
}

void ky_watch_spans_async_begin(struct ky_watch *watch, struct ky_watch_process *process,
				const struct ky_event *event, uint64_t triggers)
{
	const uint64_t key = ky_watch_key(event);
	bool made = false;
	gap_begin(watch, process, triggers, event->thread->tid, event->time_ns);
	struct ky_watch_async *async = new_async(process);
	uint64_t *at = async ? ky_pair_map_add(&process->async_of, key, event->id, &made) : NULL;
	if (!at) {
		if (async)
			free_async(process, async);
		watch->dropped++;
		gap_end(watch, process, triggers, event->time_ns);
		return;
	}
	*async = (struct ky_watch_async){.key = key, .id = event->id, .below = (uint32_t)*at};
	open_span(&async->span, event, triggers);
	*at = 1 + (uint64_t)(async - process->asyncs);
}

void ky_watch_spans_async_end(struct ky_watch *watch, struct ky_watch_process *process,
			      const struct ky_event *event)
{
	const uint64_t key = ky_watch_key(event);
	uint64_t *at = ky_pair_map_find(&process->async_of, key, event->id);
	if (!at)
		return;
	struct ky_watch_async *async = &process->asyncs[*at - 1];
	*at = async->below;
	if (!*at)
		ky_pair_map_remove(&process->async_of, key, event->id);
	close_span(watch, process, &async->span, event->time_ns);
	free_async(process, async);
}

/* ---- all ---- */

/* A point in time is an event that ends as it begins. */
void ky_watch_spans_point(struct ky_watch *watch, struct ky_watch_process *process,
			  const struct ky_event *event, uint64_t triggers)
{
	gap_begin(watch, process, triggers, event->thread->tid, event->time_ns);
	gap_end(watch, process, triggers, event->time_ns);
}

void ky_watch_spans_tick(struct ky_watch *watch, struct ky_watch_process *process, uint64_t now_ns)
{
	static const char lasts[] = "lasts for over";
	uint32_t at = 0;
	for (struct ky_pair_slot *entry; (entry = ky_pair_map_next(&process->threads, &at));) {
		struct ky_watch_thread *t = (struct ky_watch_thread *)(uintptr_t)entry->value;
		for (uint32_t d = 0; t && t->watched && d < t->stack.depth; d++)
			if (span_at(t, d)->triggers)
				fire_over(watch, process, span_at(t, d), now_ns, lasts);
	}
	for (uint32_t i = 0; i < process->asyncs_count; i++)
		if (process->asyncs[i].span.triggers)
			fire_over(watch, process, &process->asyncs[i].span, now_ns, lasts);
	tick_gaps(watch, process, now_ns);
}

void ky_watch_spans_free(struct ky_watch_process *process)
{
	uint32_t at = 0;
	for (struct ky_pair_slot *entry; (entry = ky_pair_map_next(&process->threads, &at));) {
		struct ky_watch_thread *t = (struct ky_watch_thread *)(uintptr_t)entry->value;
		for (uint32_t d = 0; t && d < t->stack.depth; d++)
			free(span_at(t, d)->name);
		if (t)
			ky_span_stack_free(&t->stack);
		free(t);
	}
	for (uint32_t i = 0; i < process->asyncs_count; i++)
		free(process->asyncs[i].span.name);
	KY_ARRAY_FREE(process->asyncs, process->asyncs_room);
	ky_pair_map_free(&process->threads);
	ky_pair_map_free(&process->async_of);
}
