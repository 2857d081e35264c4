/* SPDX-License-Identifier: MIT */
/*
 * export_loop.h: what exporters have in common: the loop over the rows of a trace in the order of time, which counts
 * those that the format cannot carry, pushes the buffer on and reports progress.
 */
#ifndef KY_FORMATS_EXPORT_LOOP_H
#define KY_FORMATS_EXPORT_LOOP_H

#include "formats/walk.h"

#include "core/event.h"
#include "formats/out.h"

typedef void (*ky_export_row_fn)(void *self, const struct ky_walk_item *item);

/* How a format writes each kind of row. Rows of a kind that is NULL are counted as left out. */
struct ky_export_rows {
	ky_export_row_fn slice; /* begin, end, instant */
	ky_export_row_fn counter, sched, state, sample, log, raw;
	bool named_ends; /* as in ky_walk_open() */
};

/* Return 0 or -errno: of the buffer, of memory or of progress. */
int ky_export_loop(const struct ky_export_job *job, const struct ky_export_rows *rows, void *self);

/* Count the trace's clock snapshots. */
uint64_t ky_export_loop_snapshots(const struct ky_trace *trace);

/* Return the time of a loss: where it has none, the beginning of the trace. */
static inline int64_t ky_export_loss_ns(const struct ky_trace *trace, uint32_t row)
{
	const int64_t ts = trace->losses.ts[row] < 0 ? trace->begin_ns : trace->losses.ts[row];
	return ts < 0 ? 0 : ts;
}

static inline struct ky_text ky_export_text(const struct ky_trace *trace, uint32_t string)
{
	if (!string)
		return (struct ky_text){"", 0};
	return (struct ky_text){ky_text_of(trace, string),
				ky_strings_bytes(&trace->strings, string)};
}

#endif
