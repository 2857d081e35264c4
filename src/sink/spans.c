/* SPDX-License-Identifier: MIT */
/* spans.c: a stack of open spans for each thread. */
#include "sink/spans.h"

#include "core/span_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An item of the stack. */
struct open_span {
	const struct ky_site *site;
	uint64_t begin_ns;
	char *name; /* copy of a dynamic one, else NULL */
	uint32_t name_bytes;
};

struct ky_spans_thread {
	const struct ky_thread *thread;
	struct ky_span_stack stack;
	uint32_t made_up;  /* beginnings, since the start or the last gap */
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
	struct open_span *span =
		ky_span_stack_push(&t->stack, sizeof(*span), UINT32_MAX, event->site);
	if (!span) {
		spans->error = -ENOMEM;
		return;
	}
	*span = (struct open_span){event->site, event->time_ns, NULL, 0};
	if (event->site->flags & KYMO_SITE_NAME) {
		span->name = strdup(event->name.data);
		span->name_bytes = span->name ? event->name.bytes : 0;
	}
}

static const struct ky_site *pop(struct ky_spans_thread *t)
{
	struct open_span *span = ky_span_stack_pop(&t->stack, sizeof(*span));
	free(span->name);
	return span->site;
}

/* End the innermost open span at a time when nothing was recorded. */
static void close_top(struct ky_spans *spans, struct ky_spans_thread *t, uint64_t ns)
{
	const struct ky_site *const site = pop(t);
	const struct ky_event end = {.kind = KYMO_KIND_END,
				     .time_ns = ns,
				     .site = site,
				     .thread = t->thread,
				     .name = site->name};
	spans->emit(spans->context, &end);
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
	const struct ky_span_end ends =
		ky_span_stack_end(&t->stack, sizeof(struct open_span), event->site);
	for (uint32_t i = 0; i < ends.inner; i++)
		close_top(spans, t, event->time_ns);
	if (ends.found)
		pop(t);
	else
		make_up_begin(spans, t, event);
	spans->emit(spans->context, event);
}

static void close_all(struct ky_spans *spans, struct ky_spans_thread *t, uint64_t ns)
{
	while (t->stack.depth)
		close_top(spans, t, ns);
}

void ky_spans_end(struct ky_spans *spans, const struct ky_thread *thread, uint64_t time_ns)
{
	if (!spans->error && thread->index < spans->count)
		close_all(spans, &spans->threads[thread->index], time_ns);
}

static void pass_loss(struct ky_spans *spans, struct ky_spans_thread *t,
		      const struct ky_event *event)
{
	close_all(spans, t, t->last_ns);
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
		for (uint32_t d = 0; d < t->stack.depth; d++) {
			const struct open_span *span =
				ky_span_stack_at(&t->stack, sizeof(*span), d);
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
		while (spans->threads[i].stack.depth)
			pop(&spans->threads[i]);
		ky_span_stack_free(&spans->threads[i].stack);
	}
	free(spans->threads);
	spans->threads = NULL;
	spans->count = 0;
}
