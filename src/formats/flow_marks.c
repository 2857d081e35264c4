/* SPDX-License-Identifier: MIT */
/*
 * flow_marks.c: makes the events of flows from arrows between slices.
 *
 *   rows of flows, by (id, category, name)    a─▶b  b─▶c   │  d─▶e  d─▶f
 *   written as                                s a, t b, f c │  s d, f e with the id; s d, f f with another
 */
#include "formats/flow_marks.h"

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

enum { LEAVES = 1, ARRIVES = 2 };

#define MADE_UP UINT64_C(0x6b79666c00000000)

struct builder {
	struct ky_flow_marks *marks;
	const struct ky_trace *trace;
	const struct ky_export_selection *selection;
	struct ky_export_left *left;
	const struct ky_addresses *addresses;
	uint32_t *order; /* rows of flows, by key */
	uint32_t rows;
	uint32_t flows; /* written so far */
};

static _Thread_local const struct ky_flows *sorting; /* qsort has no context in C17 */

static int compare_keys(const struct ky_flows *f, uint32_t a, uint32_t b)
{
	if (f->id[a] != f->id[b])
		return f->id[a] < f->id[b] ? -1 : 1;
	if (f->category[a] != f->category[b])
		return f->category[a] < f->category[b] ? -1 : 1;
	if (f->name[a] != f->name[b])
		return f->name[a] < f->name[b] ? -1 : 1;
	return 0;
}

static int by_key(const void *left, const void *right)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const int order = compare_keys(sorting, a, b);
	return order ? order : (a > b) - (a < b);
}

static int by_slice(const void *left, const void *right)
{
	const struct ky_flow_mark *a = left, *b = right;
	if (a->slice != b->slice)
		return a->slice < b->slice ? -1 : 1;
	if (a->at_end != b->at_end)
		return a->at_end - b->at_end;
	return a->flow < b->flow ? -1 : a->flow > b->flow;
}

/* ---- one flow ---- */

static int64_t end_of(const struct ky_trace *trace, uint32_t slice)
{
	const int64_t dur = trace->slices.dur[slice];
	int64_t end;
	if (dur < 0 || __builtin_add_overflow(trace->slices.ts[slice], dur, &end))
		return INT64_MAX;
	return end;
}

/* Report whether a mark at b's beginning comes after one at a's. */
static bool follows(const struct ky_trace *trace, uint32_t a, uint32_t b)
{
	const int64_t *ts = trace->slices.ts;
	return ts[b] != ts[a] ? ts[b] > ts[a] : b > a;
}

/* False when b is over before a begins. */
static bool put_mark(struct builder *x, uint32_t row, uint32_t before, uint32_t slice,
		     uint8_t phase, uint64_t id)
{
	struct ky_flow_mark *mark = &x->marks->marks[x->marks->count];
	*mark = (struct ky_flow_mark){.id = id,
				      .slice = slice,
				      .name = x->trace->flows.name[row],
				      .category = x->trace->flows.category[row],
				      .flow = x->flows,
				      .phase = phase};
	if (before != KY_NONE && !follows(x->trace, before, slice)) {
		mark->at_end = 1;
		if (x->trace->slices.kind[slice] == KY_SLICE_INSTANT ||
		    end_of(x->trace, slice) == INT64_MAX ||
		    end_of(x->trace, slice) < x->trace->slices.ts[before])
			return false;
	}
	x->marks->count++;
	return true;
}

static void finish_flow(struct builder *x, uint32_t first)
{
	struct ky_flow_mark *marks = x->marks->marks;
	uint8_t late = 0, foreign = 0;
	for (uint32_t i = first; i < x->marks->count; i++) {
		const uint32_t track = x->trace->slices.track[marks[i].slice];
		late |= marks[i].at_end;
		foreign |= x->addresses && x->addresses->tracks[track].form != KY_AT_THREAD;
	}
	for (uint32_t i = first; i < x->marks->count; i++) {
		marks[i].late = late;
		marks[i].foreign = foreign;
	}
	x->flows++;
}

static void put_arrow(struct builder *x, uint32_t row, uint64_t id)
{
	const struct ky_flows *f = &x->trace->flows;
	const uint32_t first = x->marks->count;
	if (put_mark(x, row, KY_NONE, f->out[row], KY_FLOW_BEGIN, id) &&
	    put_mark(x, row, f->out[row], f->in[row], KY_FLOW_END, id)) {
		finish_flow(x, first);
		return;
	}
	x->marks->count = first;
	x->left->flows++;
}

/* Report whether the rows continue each other, forwards, so that all marks are at beginnings. */
static bool is_chain(const struct builder *x, const uint32_t *rows, uint32_t count)
{
	const struct ky_flows *f = &x->trace->flows;
	for (uint32_t i = 0; i < count; i++)
		if (!follows(x->trace, f->out[rows[i]], f->in[rows[i]]) ||
		    (i && f->out[rows[i]] != f->in[rows[i - 1]]))
			return false;
	return true;
}

static void put_chain(struct builder *x, const uint32_t *rows, uint32_t count)
{
	const struct ky_flows *f = &x->trace->flows;
	const uint32_t first = x->marks->count;
	const uint64_t id = f->id[rows[0]];
	put_mark(x, rows[0], KY_NONE, f->out[rows[0]], KY_FLOW_BEGIN, id);
	for (uint32_t i = 0; i < count; i++)
		put_mark(x, rows[i], f->out[rows[i]], f->in[rows[i]],
			 i + 1 < count ? KY_FLOW_STEP : KY_FLOW_END, id);
	finish_flow(x, first);
}

static void put_group(struct builder *x, const uint32_t *rows, uint32_t count)
{
	if (is_chain(x, rows, count)) {
		put_chain(x, rows, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		put_arrow(x, rows[i], i ? MADE_UP | rows[i] : x->trace->flows.id[rows[i]]);
}

/* ---- all ---- */

static void select_rows(struct builder *x)
{
	static const struct ky_export_selection all = {.from_ns = KY_TIME_NONE,
						       .to_ns = KY_TIME_NONE};
	const struct ky_export_selection *s = x->selection ? x->selection : &all;
	const struct ky_flows *f = &x->trace->flows;
	for (uint32_t i = 0; i < f->rows.count; i++)
		if (ky_selected_slice(x->trace, s, f->out[i]) &&
		    ky_selected_slice(x->trace, s, f->in[i]))
			x->order[x->rows++] = i;
}

/*
 * Report whether arrows or other ends have the same key. Marks are written where slices begin, and a begin and an end that
 * did not meet before could then.
 */
static bool is_ambiguous(const struct builder *x, const struct ky_pair_map *keys, uint32_t row)
{
	const struct ky_flow_ends *e = &x->trace->flow_ends;
	const uint64_t *uses =
		ky_pair_map_find(keys, e->id[row], (uint64_t)e->category[row] << 32 | e->name[row]);
	return !uses || *uses != (e->arrives[row] ? ARRIVES : LEAVES);
}

static int map_uses(const struct builder *x, struct ky_pair_map *keys)
{
	const struct ky_flows *f = &x->trace->flows;
	const struct ky_flow_ends *e = &x->trace->flow_ends;
	for (uint32_t i = 0; i < e->rows.count; i++) {
		bool made;
		uint64_t *uses = ky_pair_map_add(
			keys, e->id[i], (uint64_t)e->category[i] << 32 | e->name[i], &made);
		if (!uses)
			return -ENOMEM;
		*uses |= e->arrives[i] ? ARRIVES : LEAVES;
	}
	for (uint32_t i = 0; e->rows.count && i < f->rows.count; i++) {
		uint64_t *uses = ky_pair_map_find(keys, f->id[i],
						  (uint64_t)f->category[i] << 32 | f->name[i]);
		if (uses)
			*uses |= ARRIVES | LEAVES;
	}
	return 0;
}

static int put_loose(struct builder *x)
{
	struct ky_pair_map keys = {0};
	static const struct ky_export_selection all = {.from_ns = KY_TIME_NONE,
						       .to_ns = KY_TIME_NONE};
	const struct ky_flow_ends *e = &x->trace->flow_ends;
	const int error = map_uses(x, &keys);
	for (uint32_t i = 0; !error && i < e->rows.count; i++) {
		const uint32_t first = x->marks->count;
		if (!ky_selected_slice(x->trace, x->selection ? x->selection : &all, e->slice[i]))
			continue;
		if (is_ambiguous(x, &keys, i)) {
			x->left->flows++;
			continue;
		}
		x->marks->marks[x->marks->count++] =
			(struct ky_flow_mark){.id = e->id[i],
					      .slice = e->slice[i],
					      .name = e->name[i],
					      .category = e->category[i],
					      .flow = x->flows,
					      .phase = e->arrives[i] ? KY_FLOW_END : KY_FLOW_BEGIN,
					      .loose = 1};
		finish_flow(x, first);
	}
	ky_pair_map_free(&keys);
	return error;
}

int ky_flow_marks_open(struct ky_flow_marks *marks, const struct ky_trace *trace,
		       const struct ky_export_selection *selection,
		       const struct ky_addresses *addresses, struct ky_export_left *left)
{
	const uint32_t count = trace->flows.rows.count;
	struct builder x = {.marks = marks,
			    .trace = trace,
			    .selection = selection,
			    .left = left,
			    .addresses = addresses};
	*marks = (struct ky_flow_marks){0};
	const uint32_t loose = trace->flow_ends.rows.count;
	if (!count && !loose)
		return 0;
	x.order = malloc(((size_t)count + 1) * sizeof(*x.order));
	marks->marks = malloc(((size_t)count * 2 + loose + 1) * sizeof(*marks->marks));
	if (!x.order || !marks->marks) {
		free(x.order);
		ky_flow_marks_close(marks);
		return -ENOMEM;
	}
	select_rows(&x);
	sorting = &trace->flows;
	qsort(x.order, x.rows, sizeof(*x.order), by_key);
	for (uint32_t from = 0, to; from < x.rows; from = to) {
		for (to = from + 1; to < x.rows; to++)
			if (compare_keys(&trace->flows, x.order[from], x.order[to]) != 0)
				break;
		put_group(&x, x.order + from, to - from);
	}
	const int error = put_loose(&x);
	qsort(marks->marks, marks->count, sizeof(*marks->marks), by_slice);
	free(x.order);
	return error;
}

void ky_flow_marks_close(struct ky_flow_marks *marks)
{
	free(marks->marks);
	*marks = (struct ky_flow_marks){0};
}

const struct ky_flow_mark *ky_flow_marks_of(const struct ky_flow_marks *marks, uint32_t slice,
					    bool at_end, uint32_t *count)
{
	uint32_t low = 0, high = marks->count;
	const uint64_t key = (uint64_t)slice * 2 + at_end;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const struct ky_flow_mark *mark = &marks->marks[middle];
		if ((uint64_t)mark->slice * 2 + mark->at_end < key)
			low = middle + 1;
		else
			high = middle;
	}
	const uint32_t first = low;
	while (low < marks->count &&
	       (uint64_t)marks->marks[low].slice * 2 + marks->marks[low].at_end == key)
		low++;
	*count = low - first;
	return *count ? marks->marks + first : NULL;
}

void ky_flow_marks_put(const struct ky_flow_marks *marks, const struct ky_walk_item *item,
		       struct ky_export_left *left, ky_flow_mark_fn *put, void *self)
{
	if (!marks->count)
		return;
	uint32_t count;
	const struct ky_flow_mark *mark =
		ky_flow_marks_of(marks, item->row, item->what == KY_WALK_END, &count);
	for (const struct ky_flow_mark *end = mark + count; mark < end; mark++) {
		if (!mark->foreign)
			put(self, mark, item->ts);
		else
			left->flows += mark->phase != KY_FLOW_BEGIN;
	}
}
