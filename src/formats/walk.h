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

#include "formats/export.h"

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
/* Return how many rows are done, and how many there are. */
uint64_t ky_walk_done(const struct ky_walk *walk);
uint64_t ky_walk_all(const struct ky_walk *walk);

/* Report whether that slice or thread is selected. */
bool ky_selected_slice(const struct ky_trace *trace, const struct ky_export_selection *selection,
		       uint32_t slice);
bool ky_selected_thread(const struct ky_export_selection *selection, uint32_t thread);

#endif
