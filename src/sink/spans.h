/* SPDX-License-Identifier: MIT */
/*
 * spans.h: keep the spans of each thread balanced for the writers, by the rules of core/span_stack.h.
 *
 * A beginning that is made up is marked so. It comes before the first event that is there, a nanosecond per level.
 * Spans that were open before a gap continue after it as spans whose beginning is lost.
 */
#ifndef KY_SINK_SPANS_H
#define KY_SINK_SPANS_H

#include "core/event.h"

typedef void ky_spans_emit_fn(void *context, const struct ky_event *event);

struct ky_spans {
	struct ky_spans_thread *threads; /* by index */
	uint32_t count;
	ky_spans_emit_fn *emit;
	void *context;
	int error; /* -ENOMEM: from then on events pass unchanged */
};

/* Emit the event, and before it the ends and the beginning that it implies. */
void ky_spans_pass(struct ky_spans *spans, const struct ky_event *event);
/* Emit the ends of all open spans of a thread that ended then. */
void ky_spans_end(struct ky_spans *spans, const struct ky_thread *thread, uint64_t time_ns);
/* Emit a beginning for every open span, the outermost first: at the head of a new file. */
void ky_spans_reopen(struct ky_spans *spans);
void ky_spans_free(struct ky_spans *spans);

#endif
