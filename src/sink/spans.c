/* SPDX-License-Identifier: MIT */
/* spans.c: a stack of open spans for each thread. */
#include "sink/spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct open_span {
	const struct ky_site *site;
	uint64_t begin_ns;
	char *name; /* copy of a dynamic one, else NULL */
	uint32_t name_bytes;
};

struct ky_spans_thread {
	const struct ky_thread *thread;
	struct open_span *open;
	uint32_t depth;
	uint32_t room;
	uint32_t made_up;  /* begins, since the start or the last gap */
	bool begun;        /* an event came since then */
	uint64_t first_ns; /* its time */
	uint64_t last_ns;  /* of the last event */
};

static struct ky_spans_thread *thread_of(struct ky_spans *spans, const struct ky_thread *thread)
{
	if (thread->index >= spans->count) {
		const uint32_t count = (thread->index + 64) * 2;
		struct ky_spans_thread *grown = realloc(spans->threads, count * sizeof(*grown));
		if (!grown) {
			spans->error = -ENOMEM;
			return NULL;
		}
		memset(grown + spans->count, 0, (count - spans->count) * sizeof(*grown));
		spans->threads = grown;
		spans->count = count;
	}
	spans->threads[thread->index].thread = thread;
	return &spans->threads[thread->index];
}

static void push(struct ky_spans *spans, struct ky_spans_thread *t, const struct ky_event *event)
{
	if (t->depth == t->room) {
		const uint32_t room = t->room ? t->room * 2 : 16;
		struct open_span *grown = realloc(t->open, room * sizeof(*grown));
		if (!grown) {
			spans->error = -ENOMEM;
			return;
		}
		t->open = grown;
		t->room = room;
	}
	struct open_span *span = &t->open[t->depth++];
	*span = (struct open_span){event->site, event->time_ns, NULL, 0};
	if (event->site->flags & KYMO_SITE_NAME) {
		span->name = strndup(event->name.data, event->name.bytes);
		span->name_bytes = span->name ? event->name.bytes : 0;
	}
}

static void pop(struct ky_spans_thread *t)
{
	free(t->open[--t->depth].name);
}

/* Ends the innermost open span at a time where nothing was recorded. */
static void close_top(struct ky_spans *spans, struct ky_spans_thread *t, uint64_t ns)
{
	const struct ky_event end = {.kind = KYMO_KIND_END,
				     .time_ns = ns,
				     .site = t->open[t->depth - 1].site,
				     .thread = t->thread,
				     .name = t->open[t->depth - 1].site->name};
	pop(t);
	spans->emit(spans->context, &end);
}

/* 1 + how many spans are open above the one that the end belongs to; 0 when there is none. */
static uint32_t find_open(const struct ky_spans_thread *t, const struct ky_event *end)
{
	if (!(end->site->flags & KYMO_SITE_SCOPE)) /* KYMO_END: the innermost, whatever it is */
		return t->depth != 0;
	for (uint32_t i = 0; i < t->depth; i++)
		if (t->open[t->depth - 1 - i].site == end->site)
			return i + 1;
	return 0;
}

static void make_up_begin(struct ky_spans *spans, struct ky_spans_thread *t,
			  const struct ky_event *end)
{
	static const char unknown[] = "(begin lost)";
	t->made_up++;
	struct ky_event begin = {.kind = KYMO_KIND_BEGIN,
				 .begin_lost = true,
				 .time_ns = t->first_ns > t->made_up ? t->first_ns - t->made_up : 0,
				 .site = end->site,
				 .thread = end->thread,
				 .name = end->site->name};
	if (begin.name.bytes == 0)
		begin.name = (struct ky_text){unknown, sizeof(unknown) - 1};
	spans->emit(spans->context, &begin);
}

static void pass_end(struct ky_spans *spans, struct ky_spans_thread *t,
		     const struct ky_event *event)
{
	const uint32_t found = find_open(t, event);
	const uint32_t above = found ? found - 1 : t->depth;
	for (uint32_t i = 0; i < above; i++)
		close_top(spans, t, event->time_ns);
	if (found)
		pop(t);
	else
		make_up_begin(spans, t, event);
	spans->emit(spans->context, event);
}

static void pass_loss(struct ky_spans *spans, struct ky_spans_thread *t,
		      const struct ky_event *event)
{
	while (t->depth)
		close_top(spans, t, t->last_ns);
	t->begun = false;
	t->made_up = 0;
	spans->emit(spans->context, event);
}

void ky_spans_pass(struct ky_spans *spans, const struct ky_event *event)
{
	struct ky_spans_thread *t = spans->error ? NULL : thread_of(spans, event->thread);
	if (!t) {
		spans->emit(spans->context, event);
		return;
	}
	if (event->kind == KYMO_KIND_LOST) {
		pass_loss(spans, t, event);
		return;
	}
	if (!t->begun) {
		t->begun = true;
		t->first_ns = event->time_ns;
	}
	t->last_ns = event->time_ns;
	if (event->kind == KYMO_KIND_END) {
		pass_end(spans, t, event);
		return;
	}
	if (event->kind == KYMO_KIND_BEGIN)
		push(spans, t, event);
	spans->emit(spans->context, event);
}

void ky_spans_reopen(struct ky_spans *spans)
{
	for (uint32_t i = 0; i < spans->count; i++) {
		const struct ky_spans_thread *t = &spans->threads[i];
		for (uint32_t d = 0; d < t->depth; d++) {
			const struct open_span *span = &t->open[d];
			struct ky_event begin = {.kind = KYMO_KIND_BEGIN,
						 .time_ns = span->begin_ns,
						 .site = span->site,
						 .thread = t->thread,
						 .name = span->site->name};
			if (span->name)
				begin.name = (struct ky_text){span->name, span->name_bytes};
			spans->emit(spans->context, &begin);
		}
	}
}

void ky_spans_free(struct ky_spans *spans)
{
	for (uint32_t i = 0; i < spans->count; i++) {
		while (spans->threads[i].depth)
			pop(&spans->threads[i]);
		free(spans->threads[i].open);
	}
	free(spans->threads);
	spans->threads = NULL;
	spans->count = 0;
}
