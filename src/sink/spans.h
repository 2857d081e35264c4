/* SPDX-License-Identifier: MIT */
/*
 * spans.h: keeps the spans of each thread balanced, for the writers.
 *
 * An end whose begin was overwritten (or came before the session) gets a begin made up for it,
 * marked so, a nanosecond per level before the first event that is there. After a gap nobody knows
 * which spans ended in it: those open are closed where the gap begins, and go on behind it as spans
 * whose begin is lost. An end of a scope closes spans above it that were never ended.
 */
#ifndef KY_SINK_SPANS_H
#define KY_SINK_SPANS_H

#include "core/event.h"

typedef void ky_spans_emit_fn(void *context, const struct ky_event *event);

struct ky_spans_open;
struct ky_spans {
	struct ky_spans_thread *threads; /* by index */
	uint32_t count;
	ky_spans_emit_fn *emit;
	void *context;
	int error; /* -ENOMEM: from then on events pass as they are */
};

void ky_spans_pass(struct ky_spans *spans, const struct ky_event *event);
/* Emits a begin for every open span, outermost first: at the head of a new file. */
void ky_spans_reopen(struct ky_spans *spans);
void ky_spans_free(struct ky_spans *spans);

#endif
