/* SPDX-License-Identifier: MIT */
/*
 * view_pack.c: rows for slices that overlap.
 *
 *   id 1  ├──────────┤                    row 0  ├──────────┤ ├────┤
 *         │ ├───┤    │                    row 1    ├───┤
 *   id 2        ├─────────┤        ──▶    row 2        ├─────────┤
 *   id 3                     ├────┤
 *
 * Root after root in the order of time: each goes to the first rows that are free for as many as its tree is high.
 * There are at most ROWS_MAX; what finds no place then overlaps others in the last ones.
 */
#include "server/view_parts.h"

#include <errno.h>
#include <stdlib.h>

#define ROWS_MAX 256u

/*
 * How high the tree over each packed slice is, in row_of for the time being. Children come after their parents: from the
 * last to the first each is known when its parent is looked at.
 */
static void measure(const struct ky_strands *strands, const struct ky_trace *trace,
		    uint16_t *row_of)
{
	const struct ky_slices *const slices = &trace->slices;
	for (uint32_t i = slices->rows.count; i-- > 0;) {
		const uint32_t track = slices->track[i], parent = slices->parent[i];
		if (!ky_strand_packs(&strands->items[strands->of[track]],
				     trace->tracks.flags[track]))
			continue;
		if (!row_of[i])
			row_of[i] = 1;
		if (parent != KY_NONE && row_of[parent] <= row_of[i])
			row_of[parent] = (uint16_t)(row_of[i] + 1);
	}
}

static bool grow(struct ky_strand *strand, uint32_t rows)
{
	if (rows <= strand->free_room)
		return true;
	uint32_t room = strand->free_room ? strand->free_room : 4;
	while (room < rows)
		room *= 2;
	int64_t *const free_at = realloc(strand->free_at, room * sizeof(*free_at));
	if (!free_at)
		return false;
	strand->free_at = free_at;
	strand->free_room = room;
	return true;
}

/* The first row from which on so many are free. */
static uint32_t free_row(const struct ky_strand *strand, int64_t begin, uint32_t height)
{
	uint32_t run = 0;
	for (uint32_t row = 0; row < strand->free_used; row++) {
		run = strand->free_at[row] <= begin ? run + 1 : 0;
		if (run == height)
			return row + 1 - height;
	}
	const uint32_t row = strand->free_used - run;
	if (row + height <= ROWS_MAX)
		return row;
	return height < ROWS_MAX ? ROWS_MAX - height : 0;
}

static bool place_root(struct ky_strand *strand, int64_t begin, int64_t end, uint16_t *row_of)
{
	const uint32_t height = *row_of, row = free_row(strand, begin, height);
	if (!grow(strand, row + height))
		return false;
	for (; strand->free_used < row + height; strand->free_used++)
		strand->free_at[strand->free_used] = INT64_MIN;
	for (uint32_t i = row; i < row + height; i++)
		if (strand->free_at[i] < end)
			strand->free_at[i] = end;
	*row_of = (uint16_t)(strand->base_row + row);
	return true;
}

static bool place(struct ky_strands *strands, const struct ky_view *view, uint16_t *row_of)
{
	const struct ky_slices *const slices = &view->trace->slices;
	const uint8_t *const flags = view->trace->tracks.flags;
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		const uint32_t track = slices->track[i], parent = slices->parent[i];
		struct ky_strand *const strand = &strands->items[strands->of[track]];
		if (!ky_strand_packs(strand, flags[track]))
			row_of[i] = slices->depth[i];
		else if (parent != KY_NONE)
			row_of[i] = (uint16_t)(row_of[parent] + 1);
		else if (!place_root(strand, slices->ts[i],
				     ky_lane_ends_at(&view->tables[KY_LANE_SLICES], i,
						     view->trace->end_ns),
				     &row_of[i]))
			return false;
	}
	return true;
}

int ky_strands_pack(struct ky_strands *strands, struct ky_view *view)
{
	const uint32_t count = view->trace->slices.rows.count;
	if (!strands->packed)
		return 0;
	view->row_of = calloc((size_t)count + 1, sizeof(*view->row_of));
	if (!view->row_of)
		return -ENOMEM;
	measure(strands, view->trace, view->row_of);
	if (!place(strands, view, view->row_of))
		return -ENOMEM;
	for (uint32_t i = 0; i < strands->count; i++)
		if (strands->items[i].packed)
			strands->items[i].rows = (uint16_t)(strands->items[i].base_row +
							    strands->items[i].free_used);
	view->tables[KY_LANE_SLICES].row = view->row_of;
	return 0;
}
