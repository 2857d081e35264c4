/* SPDX-License-Identifier: MIT */
/*
 * walk.h: a finished trace as a sequence of events in the order of time, for all exporters.
 *
 *   slices ──▶ begin, end, instant ┐
 *   counters, sched, samples, ...  ├──▶ one item after the other ──▶ exporter
 *   (those that are selected)      ┘
 *
 * Among items of the same time, an end comes before a slice that begins beside it and after one that began inside it: a
 * reader that keeps their order builds the same nesting again. Children of a slice that is left out move up.
 */
#ifndef KY_FORMATS_WALK_H
#define KY_FORMATS_WALK_H

#include "core/event.h"
#include "formats/export.h"
#include "formats/out.h"
#include "model/intake.h"

enum ky_walk_what {
	KY_WALK_BEGIN, /* row is a slice */
	KY_WALK_END,   /* row is the slice */
	KY_WALK_INSTANT,
	KY_WALK_COUNTER,
	KY_WALK_SCHED, /* end_ns is when it ends, KY_TIME_NONE: it did not */
	KY_WALK_STATE,
	KY_WALK_SAMPLE,
	KY_WALK_LOG,
	KY_WALK_RAW,
	KY_WALK_WHATS
};

struct ky_walk_item {
	enum ky_walk_what what;
	uint32_t row;
	int64_t ts;
	int64_t end_ns; /* of KY_WALK_SCHED and KY_WALK_STATE */
	bool named; /* KY_WALK_END: not of the innermost; its name and category must say of which */
};

struct ky_walk;

/*
 * Open a walk. Rows with a time before 0, which no format has, are counted in left. named_ends: the format can end a
 * span around one that never ends; else that one ends with it. Return 0 or -ENOMEM.
 */
int ky_walk_open(struct ky_walk **walk, const struct ky_trace *trace,
		 const struct ky_export_selection *selection, bool named_ends,
		 struct ky_export_left *left);
void ky_walk_close(struct ky_walk **walk);
/* Get the next item; false at the end, or without memory (error is set then). */
bool ky_walk_next(struct ky_walk *walk, struct ky_walk_item *item);
int ky_walk_error(const struct ky_walk *walk);

/* Report whether what lasts from ts to end reaches into the selection's time. */
bool ky_selected_range(const struct ky_export_selection *selection, int64_t ts, int64_t end);
/* Report whether that slice or thread is selected. */
bool ky_selected_slice(const struct ky_trace *trace, const struct ky_export_selection *selection,
		       uint32_t slice);
/* The same, also when it begins before time 0, which the formats of events cannot say. */
bool ky_selected_any_slice(const struct ky_trace *trace,
			   const struct ky_export_selection *selection, uint32_t slice);
bool ky_selected_thread(const struct ky_export_selection *selection, uint32_t thread);

/* ---- the loop of exporters ---- */

/*
 * The loop over the rows of a trace in the order of time, which counts those that the format cannot carry, pushes the
 * buffer on and reports progress.
 */

typedef void (*ky_walk_row_fn)(void *self, const struct ky_walk_item *item);

/* How a format writes each kind of row. Rows of a kind that is NULL are counted as left out. */
struct ky_walk_rows {
	ky_walk_row_fn slice; /* begin, end, instant */
	ky_walk_row_fn counter, sched, state, sample, log, raw;
	bool named_ends; /* as in ky_walk_open() */
};

/* Return 0 or -errno: of the buffer, of memory or of progress. */
int ky_walk_each(const struct ky_export_job *job, const struct ky_walk_rows *rows, void *self);

/* Count the trace's clock snapshots. */
uint64_t ky_walk_snapshots(const struct ky_trace *trace);

/* Return the time of what is missing: where it has none, the beginning of the trace. */
static inline int64_t ky_walk_missing_ns(const struct ky_trace *trace,
					 const struct ky_missing *missing)
{
	const int64_t ts = missing->ts < 0 ? trace->begin_ns : missing->ts;
	return ts < 0 ? 0 : ts;
}

static inline struct ky_text ky_walk_text(const struct ky_trace *trace, uint32_t string)
{
	if (!string)
		return (struct ky_text){"", 0};
	return (struct ky_text){ky_text_of(trace, string),
				ky_strings_bytes(&trace->strings, string)};
}

/* ---- switches of CPUs ---- */

/*
 * The switches of each CPU from scheduling slices, in the order of the walk. A slice is a switch at
 * its start, away from the slice before; where that ended earlier, the CPU went idle in between.
 */

struct ky_cpu_slice {
	uint32_t cpu;
	uint32_t row; /* of sched; KY_NONE: idle */
	int64_t end;  /* KY_TIME_NONE: unknown */
};

/* All zero is empty. */
struct ky_cpu_switches {
	struct ky_cpu_slice *items;
	uint32_t count, room;
};

/* prev and next are rows of sched, or KY_NONE for idle. */
typedef void ky_cpu_switch_fn(void *self, uint32_t cpu, int64_t ts, uint32_t prev, uint32_t next);

/* Report the switches up to this slice; false without memory. */
bool ky_cpu_switches_add(struct ky_cpu_switches *switches, const struct ky_trace *trace,
			 const struct ky_walk_item *item, ky_cpu_switch_fn *put, void *self);
/* Report the switches at the ends of the last slices. */
void ky_cpu_switches_end(const struct ky_cpu_switches *switches, ky_cpu_switch_fn *put, void *self);
void ky_cpu_switches_free(struct ky_cpu_switches *switches);

#endif
