/* SPDX-License-Identifier: MIT */
/*
 * view_pyramids.c: distributes the rows of the tables to their pyramids: a counting sort by pyramid, which keeps the time
 * order. It reads a table twice from beginning to end and writes one place per pyramid, so the cost is that of reading the
 * columns.
 *
 * A pyramid whose rows are not in time order (thread states and losses do not promise it) is sorted afterwards.
 */
#include "server/view_pyramids.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

#define ROWS_A_STEP (1u << 20)

/* State of a pyramid while it is filled. */
struct filling {
	int64_t last_ts;
	uint32_t filled;
	bool unsorted;
};

/* ---- the tables ---- */

static uint32_t cpus_of(const struct ky_sched *sched)
{
	uint32_t cpus = 0;
	for (uint32_t i = 0; i < sched->rows.count; i++)
		if (sched->cpu[i] < KY_VIEW_CPUS_MAX && sched->cpu[i] >= cpus)
			cpus = sched->cpu[i] + 1;
	return cpus;
}

static void open_tables(struct ky_view *view)
{
	const struct ky_trace *const trace = view->trace;
	view->tables[KY_VIEW_SLICES] = (struct ky_view_table){
		.count = trace->slices.rows.count,
		.ts = trace->slices.ts,
		.dur = trace->slices.dur,
		.name = trace->slices.name,
		.key = trace->slices.track,
		.row = trace->slices.depth,
		.keys = trace->tracks.rows.count,
	};
	view->tables[KY_VIEW_COUNTER] = (struct ky_view_table){
		.count = trace->counters.rows.count,
		.ts = trace->counters.ts,
		.value = trace->counters.value,
		.key = trace->counters.track,
		.keys = trace->tracks.rows.count,
	};
	/* Idle tasks are not shown. */
	view->tables[KY_VIEW_SCHED] = (struct ky_view_table){
		.count = trace->sched.rows.count,
		.ts = trace->sched.ts,
		.dur = trace->sched.dur,
		.name = trace->sched.thread,
		.name_via = trace->threads.name,
		.key = trace->sched.cpu,
		.unless_of = trace->sched.thread,
		.unless = trace->threads.is_idle,
		.keys = cpus_of(&trace->sched),
	};
	view->tables[KY_VIEW_STATE] = (struct ky_view_table){
		.count = trace->thread_states.rows.count,
		.ts = trace->thread_states.ts,
		.dur = trace->thread_states.dur,
		.name = trace->thread_states.state,
		.key = trace->thread_states.thread,
		.keys = trace->threads.rows.count,
	};
	view->tables[KY_VIEW_SAMPLES] = (struct ky_view_table){
		.count = view->sample_spans.count,
		.ts = view->sample_spans.ts,
		.dur = view->sample_spans.dur,
		.name = view->sample_spans.frame,
		.name_via = trace->frames.name,
		.key = view->sample_spans.thread,
		.row = view->sample_spans.depth,
		.keys = trace->threads.rows.count,
	};
	view->tables[KY_VIEW_LOSS] = (struct ky_view_table){
		.count = trace->losses.rows.count,
		.ts = trace->losses.ts,
		.name = trace->losses.what,
		.keys = 1,
	};
}

int ky_view_pyramids_open(struct ky_view *view)
{
	view->tables = calloc(KY_VIEW_KINDS, sizeof(*view->tables));
	if (!view->tables)
		return -ENOMEM;
	open_tables(view);
	for (uint32_t t = 0; t < KY_VIEW_KINDS; t++) {
		struct ky_view_table *const table = &view->tables[t];
		if (table->keys &&
		    !KY_ARRAY_GROW_ZERO(table->pyramid_of, table->pyramid_of_room, table->keys))
			return -ENOMEM;
		for (uint32_t key = 0; key < table->keys; key++)
			table->pyramid_of[key] = KY_NONE;
	}
	return 0;
}

void ky_view_pyramids_close(struct ky_view *view)
{
	for (uint32_t t = 0; view->tables && t < KY_VIEW_KINDS; t++) {
		struct ky_view_table *const table = &view->tables[t];
		KY_ARRAY_FREE(table->pyramid_of, table->pyramid_of_room);
		KY_ARRAY_FREE(table->order, table->order_room);
		KY_ARRAY_FREE(table->spans, table->nodes_room);
	}
	free(view->tables);
	view->tables = NULL;
}

uint64_t ky_view_pyramids_memory(const struct ky_view *view)
{
	uint64_t bytes = 0;
	for (uint32_t t = 0; view->tables && t < KY_VIEW_KINDS; t++)
		bytes += view->tables[t].keys * sizeof(uint32_t) +
			 view->tables[t].order_count * sizeof(uint32_t) +
			 view->tables[t].nodes_count * sizeof(struct ky_span_node);
	return bytes;
}

/* ---- the pyramid ---- */

static uint8_t count_levels(uint32_t rows, uint64_t *nodes)
{
	uint8_t levels = 0;
	*nodes = 0;
	for (uint32_t count = rows; count > KY_PYRAMID_FAN; levels++) {
		count = ky_view_pyramids_above(count);
		*nodes += count;
	}
	return levels;
}

static inline void put_span(const struct ky_view_table *table,
			    const struct ky_view_pyramid *pyramid, uint32_t at, uint32_t row,
			    int64_t trace_end)
{
	const struct ky_span_node one = ky_view_pyramids_span(table, row, trace_end);
	struct ky_span_node *const node = &table->spans[pyramid->nodes_at + at / KY_PYRAMID_FAN];
	if (at % KY_PYRAMID_FAN == 0)
		*node = one;
	else
		ky_view_pyramids_join_span(node, &one);
}

static inline void put_point(const struct ky_view_table *table,
			     const struct ky_view_pyramid *pyramid, uint32_t at, uint32_t row)
{
	const struct ky_point_node one = ky_view_pyramids_point(table, row);
	struct ky_point_node *const node = &table->points[pyramid->nodes_at + at / KY_PYRAMID_FAN];
	if (at % KY_PYRAMID_FAN == 0)
		*node = one;
	else
		ky_view_pyramids_join_point(node, &one);
}

/* Put a row into the lowest level. */
static inline void put_row(const struct ky_view *view, const struct ky_view_pyramid *pyramid,
			   uint32_t at, uint32_t row)
{
	const struct ky_view_table *const table = &view->tables[pyramid->kind];
	if (table->value)
		put_point(table, pyramid, at, row);
	else
		put_span(table, pyramid, at, row, view->trace->end_ns);
}

static void spans_above(const struct ky_span_node *below, uint32_t count,
			struct ky_span_node *above)
{
	for (uint32_t i = 0; i < count; i++)
		if (i % KY_PYRAMID_FAN == 0)
			above[i / KY_PYRAMID_FAN] = below[i];
		else
			ky_view_pyramids_join_span(&above[i / KY_PYRAMID_FAN], &below[i]);
}

static void points_above(const struct ky_point_node *below, uint32_t count,
			 struct ky_point_node *above)
{
	for (uint32_t i = 0; i < count; i++)
		if (i % KY_PYRAMID_FAN == 0)
			above[i / KY_PYRAMID_FAN] = below[i];
		else
			ky_view_pyramids_join_point(&above[i / KY_PYRAMID_FAN], &below[i]);
}

static void finish_pyramid(const struct ky_view *view, const struct ky_view_pyramid *pyramid,
			   bool sorted)
{
	const struct ky_view_table *const table = &view->tables[pyramid->kind];
	const bool points = pyramid->kind == KY_VIEW_COUNTER;
	if (!pyramid->levels)
		return;
	for (uint32_t i = 0; !sorted && i < pyramid->count; i++)
		put_row(view, pyramid, i, table->order[pyramid->first + i]);
	uint64_t at = pyramid->nodes_at;
	uint32_t count = ky_view_pyramids_above(pyramid->count);
	for (uint8_t level = 1; level < pyramid->levels; level++) {
		if (points)
			points_above(table->points + at, count, table->points + at + count);
		else
			spans_above(table->spans + at, count, table->spans + at + count);
		at += count;
		count = ky_view_pyramids_above(count);
	}
}

/* ---- filling ---- */

static void count_rows(struct ky_view *view, const struct ky_view_table *table, uint32_t from,
		       uint32_t to)
{
	for (uint32_t row = from; row < to; row++) {
		const uint32_t pyramid = ky_view_pyramids_find(table, row);
		if (pyramid != KY_NONE)
			view->pyramids[pyramid].count++;
	}
}

static void fill_rows(const struct ky_view *view, const struct ky_view_table *table,
		      struct filling *fillings, uint32_t from, uint32_t to)
{
	for (uint32_t row = from; row < to; row++) {
		const uint32_t number = ky_view_pyramids_find(table, row);
		if (number == KY_NONE)
			continue;
		const struct ky_view_pyramid *const pyramid = &view->pyramids[number];
		struct filling *const filling = &fillings[number];
		const uint32_t at = filling->filled++;
		table->order[pyramid->first + at] = row;
		filling->unsorted |= at && table->ts[row] < filling->last_ts;
		filling->last_ts = table->ts[row];
		if (pyramid->levels)
			put_row(view, pyramid, at, row);
	}
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const int64_t *const ts = ((const struct ky_view_table *)context)->ts;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	return KY_COMPARE_THEN(ts[left], ts[right], KY_COMPARE(left, right));
}

static void finish_pyramids(const struct ky_view *view, const struct filling *fillings)
{
	for (uint32_t i = 0; i < view->pyramids_count; i++) {
		const struct ky_view_pyramid *const pyramid = &view->pyramids[i];
		struct ky_view_table *const table = &view->tables[pyramid->kind];
		if (fillings[i].unsorted)
			qsort_r(table->order + pyramid->first, pyramid->count,
				sizeof(*table->order), compare_rows, table);
		finish_pyramid(view, pyramid, !fillings[i].unsorted);
	}
}

/* Find where each pyramid begins, once its rows are counted. */
static int make_room(struct ky_view *view)
{
	for (uint32_t i = 0; i < view->pyramids_count; i++) {
		struct ky_view_pyramid *const pyramid = &view->pyramids[i];
		struct ky_view_table *const table = &view->tables[pyramid->kind];
		uint64_t nodes;
		pyramid->levels = count_levels(pyramid->count, &nodes);
		pyramid->first = (uint32_t)table->order_count;
		pyramid->nodes_at = table->nodes_count;
		table->order_count += pyramid->count;
		table->nodes_count += nodes;
	}
	for (uint32_t t = 0; t < KY_VIEW_KINDS; t++) {
		struct ky_view_table *const table = &view->tables[t];
		if (!KY_ARRAY_GROW(table->order, table->order_room, table->order_count) ||
		    !KY_ARRAY_GROW(table->spans, table->nodes_room, table->nodes_count))
			return -ENOMEM;
	}
	return 0;
}

/* Count or fill all tables in steps. */
static int pass(struct ky_view *view, struct filling *fillings,
		const struct ky_view_options *options)
{
	uint64_t done = 0, all = 0;
	for (uint32_t t = 0; t < KY_VIEW_KINDS; t++)
		all += view->tables[t].count;
	for (uint32_t t = 0; t < KY_VIEW_KINDS; t++) {
		const struct ky_view_table *const table = &view->tables[t];
		for (uint32_t from = 0, to; from < table->count; from = to) {
			to = table->count - from > ROWS_A_STEP ? from + ROWS_A_STEP : table->count;
			if (fillings)
				fill_rows(view, table, fillings, from, to);
			else
				count_rows(view, table, from, to);
			done += to - from;
			const int error = !options->progress
						  ? 0
						  : options->progress(options->context,
								      fillings ? "making levels"
									       : "counting rows",
								      done, all);
			if (error)
				return error;
		}
	}
	return 0;
}

int ky_view_pyramids_fill(struct ky_view *view, const struct ky_view_options *options)
{
	struct filling *const fillings =
		calloc((size_t)view->pyramids_count + 1, sizeof(*fillings));
	int error = fillings ? pass(view, NULL, options) : -ENOMEM;
	if (!error)
		error = make_room(view);
	if (!error)
		error = pass(view, fillings, options);
	if (!error)
		finish_pyramids(view, fillings);
	free(fillings);
	return error;
}
