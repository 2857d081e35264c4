/* SPDX-License-Identifier: MIT */
/*
 * sql_relatives.c: table functions: slices around a slice, flows that lead to it or from it.
 *
 * As in Perfetto: following flows are those that leave a slice or what it contains, and on from where they
 * arrive; preceding ones arrive at it or at what contains it, and on from where they left. Directly connected are
 * flows alone, and none turns back.
 */
#include "base/array.h"
#include "base/compare.h"
#include "base/map.h"
#include "query/sql_cells.h"

#include <stdlib.h>

bool ky_sql_rows_add(struct ky_sql_rows *rows, uint32_t row)
{
	return KY_ARRAY_ADD(rows->rows, rows->count, rows->room, row);
}

void ky_sql_rows_free(struct ky_sql_rows *rows)
{
	KY_ARRAY_FREE(rows->rows, rows->room);
	rows->count = 0;
}

static void sort_rows(struct ky_sql_rows *rows)
{
	if (rows->count > 1)
		qsort(rows->rows, rows->count, sizeof(rows->rows[0]), ky_compare_u32);
}

bool ky_sql_ancestors(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	if (slice < 0 || slice >= trace->slices.rows.count)
		return true;
	for (uint32_t at = trace->slices.parent[slice]; at != KY_NONE;
	     at = trace->slices.parent[at])
		if (!ky_sql_rows_add(rows, at))
			return false;
	sort_rows(rows);
	return true;
}

static bool add_children(struct ky_trace *trace, uint32_t slice, struct ky_sql_rows *rows)
{
	const struct ky_index_rows children = ky_index_get(trace, KY_INDEX_SLICE_PARENT, slice);

	for (uint32_t i = 0; i < children.count; i++)
		if (!ky_sql_rows_add(rows, children.rows[i]))
			return false;
	return true;
}

bool ky_sql_descendants(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	if (slice < 0 || slice >= trace->slices.rows.count)
		return true;
	if (!add_children(trace, (uint32_t)slice, rows))
		return false;
	for (uint32_t at = 0; at < rows->count; at++)
		if (!add_children(trace, rows->rows[at], rows))
			return false;
	sort_rows(rows);
	return true;
}

/* ---- flows ---- */

enum via { VIA_START, VIA_IN, VIA_OUT, VIA_RELATIVE };

#define GO_IN 1u
#define GO_OUT 2u
#define GO_UP 4u
#define GO_DOWN 8u

/* A walk over slices: those to visit, and all seen so far. */
struct flow_walk {
	struct ky_trace *trace;
	struct ky_sql_rows slices; /* in the order in which they were seen */
	struct ky_sql_rows via;
	struct ky_u64_map seen;
	struct ky_sql_rows *flows;
	unsigned go;
};

static bool visit(struct flow_walk *walk, uint32_t slice, enum via via)
{
	if (slice >= walk->trace->slices.rows.count)
		return true;
	bool made;
	if (!ky_u64_map_add(&walk->seen, slice, &made))
		return false;
	if (!made)
		return true;
	return ky_sql_rows_add(&walk->slices, slice) && ky_sql_rows_add(&walk->via, (uint32_t)via);
}

static bool visit_relatives(struct flow_walk *walk, uint32_t slice)
{
	struct ky_sql_rows relatives = {NULL, 0, 0};
	bool done = true;

	if (walk->go & GO_UP)
		done = ky_sql_ancestors(walk->trace, slice, &relatives);
	if (walk->go & GO_DOWN)
		done = ky_sql_descendants(walk->trace, slice, &relatives);
	for (uint32_t i = 0; done && i < relatives.count; i++)
		done = visit(walk, relatives.rows[i], VIA_RELATIVE);
	ky_sql_rows_free(&relatives);
	return done;
}

static bool visit_flows(struct flow_walk *walk, uint32_t slice, bool out)
{
	const struct ky_flows *flows = &walk->trace->flows;
	const struct ky_index_rows found =
		ky_index_get(walk->trace, out ? KY_INDEX_FLOW_OUT : KY_INDEX_FLOW_IN, slice);

	for (uint32_t i = 0; i < found.count; i++) {
		const uint32_t flow = found.rows[i];
		if (!ky_sql_rows_add(walk->flows, flow) ||
		    !visit(walk, out ? flows->in[flow] : flows->out[flow], out ? VIA_OUT : VIA_IN))
			return false;
	}
	return true;
}

static bool visit_all(struct flow_walk *walk)
{
	for (uint32_t at = 0; at < walk->slices.count; at++) {
		const uint32_t slice = walk->slices.rows[at];
		const uint32_t via = walk->via.rows[at];
		if (via != VIA_RELATIVE && !visit_relatives(walk, slice))
			return false;
		if ((walk->go & GO_IN) && via != VIA_OUT && !visit_flows(walk, slice, false))
			return false;
		if ((walk->go & GO_OUT) && via != VIA_IN && !visit_flows(walk, slice, true))
			return false;
	}
	return true;
}

static bool walk_flows(struct ky_trace *trace, int64_t slice, unsigned go,
		       struct ky_sql_rows *flows)
{
	struct flow_walk walk = {.trace = trace, .flows = flows, .go = go};

	if (slice < 0 || slice >= trace->slices.rows.count)
		return true;
	const bool done = visit(&walk, (uint32_t)slice, VIA_START) && visit_all(&walk);
	ky_sql_rows_free(&walk.slices);
	ky_sql_rows_free(&walk.via);
	ky_u64_map_free(&walk.seen);
	sort_rows(flows);
	return done;
}

bool ky_sql_following(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	return walk_flows(trace, slice, GO_OUT | GO_DOWN, rows);
}

bool ky_sql_preceding(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	return walk_flows(trace, slice, GO_IN | GO_UP, rows);
}

bool ky_sql_connected(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	return walk_flows(trace, slice, GO_IN | GO_OUT, rows);
}
