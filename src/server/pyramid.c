/* SPDX-License-Identifier: MIT */
/*
 * pyramid.c: the levels of nodes over a lane. Level 1 is over the rows; ky_lanes_fill() makes it while it goes
 * through the table, which is then in the cache, and what is here makes the rest: an eighth of the work.
 */
#include "server/lanes.h"

uint8_t ky_pyramid_levels(uint32_t rows, uint64_t *nodes)
{
	uint8_t levels = 0;
	*nodes = 0;
	for (uint32_t count = rows; count > KY_LANE_FAN; levels++) {
		count = ky_pyramid_above(count);
		*nodes += count;
	}
	return levels;
}

static void spans_of_rows(const struct ky_view *view, const struct ky_lane *lane)
{
	const struct ky_lane_table *const table = &view->tables[lane->table];
	struct ky_span_node *const nodes = table->spans + lane->nodes_at;
	for (uint32_t i = 0; i < lane->count; i++) {
		const struct ky_span_node one =
			ky_span_of(table, table->order[lane->first + i], view->trace->end_ns);
		if (i % KY_LANE_FAN == 0)
			nodes[i / KY_LANE_FAN] = one;
		else
			ky_span_join(&nodes[i / KY_LANE_FAN], &one);
	}
}

static void points_of_rows(const struct ky_view *view, const struct ky_lane *lane)
{
	const struct ky_lane_table *const table = &view->tables[lane->table];
	struct ky_point_node *const nodes = table->points + lane->nodes_at;
	for (uint32_t i = 0; i < lane->count; i++) {
		const struct ky_point_node one = ky_point_of(table, table->order[lane->first + i]);
		if (i % KY_LANE_FAN == 0)
			nodes[i / KY_LANE_FAN] = one;
		else
			ky_point_join(&nodes[i / KY_LANE_FAN], &one);
	}
}

static void spans_above(const struct ky_span_node *below, uint32_t count,
			struct ky_span_node *above)
{
	for (uint32_t i = 0; i < count; i++)
		if (i % KY_LANE_FAN == 0)
			above[i / KY_LANE_FAN] = below[i];
		else
			ky_span_join(&above[i / KY_LANE_FAN], &below[i]);
}

static void points_above(const struct ky_point_node *below, uint32_t count,
			 struct ky_point_node *above)
{
	for (uint32_t i = 0; i < count; i++)
		if (i % KY_LANE_FAN == 0)
			above[i / KY_LANE_FAN] = below[i];
		else
			ky_point_join(&above[i / KY_LANE_FAN], &below[i]);
}

void ky_pyramid_finish(const struct ky_view *view, const struct ky_lane *lane, bool sorted)
{
	const struct ky_lane_table *const table = &view->tables[lane->table];
	const bool points = lane->table == KY_LANE_COUNTERS;
	if (!lane->levels)
		return;
	if (!sorted && points)
		points_of_rows(view, lane);
	else if (!sorted)
		spans_of_rows(view, lane);
	uint64_t at = lane->nodes_at;
	uint32_t count = ky_pyramid_above(lane->count);
	for (uint8_t level = 1; level < lane->levels; level++) {
		if (points)
			points_above(table->points + at, count, table->points + at + count);
		else
			spans_above(table->spans + at, count, table->spans + at + count);
		at += count;
		count = ky_pyramid_above(count);
	}
}
