/* SPDX-License-Identifier: MIT */
/*
 * tile_points.c: the points of a counter in one tile: one for each pixel in which the value changes, after the one that
 * holds when the tile begins. The walk is that of tile_spans.c.
 */
#include "server/tile.h"

struct point_walk {
	const struct ky_tile *tile;
	const struct ky_view_table *table;
	const struct ky_view_lane *lane;
	struct ky_tile_level levels[KY_TILE_LEVELS_MAX];
	uint64_t pixel_ns;
	struct ky_point_node merged;
	bool any;
	int64_t pixel;
	uint32_t last; /* index in the lane of the last one merged */
	uint32_t items;
};

static void put_merged(struct point_walk *walk)
{
	if (!walk->any)
		return;
	const uint32_t last = walk->table->order[walk->lane->first + walk->last];
	const struct ky_wire_point point = {
		.at_ns = (double)ky_tile_time(walk->tile, walk->merged.begin),
		.min = walk->merged.min,
		.max = walk->merged.max,
		.last = walk->table->value[last],
	};
	ky_buffer_add(walk->tile->out, &point, sizeof(point));
	walk->items++;
	walk->any = false;
}

static void merge(struct point_walk *walk, const struct ky_point_node *node, uint32_t last)
{
	const int64_t pixel = ky_tile_pixel(walk->tile, node->begin);
	if (walk->any && walk->pixel == pixel) {
		ky_view_lanes_join_point(&walk->merged, node);
	} else {
		put_merged(walk);
		walk->merged = *node;
		walk->pixel = pixel;
		walk->any = true;
	}
	walk->last = last;
}

static bool walk_rows(struct point_walk *walk, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const uint32_t row = walk->table->order[walk->lane->first + i];
		const struct ky_point_node one = ky_view_lanes_point(walk->table, row);
		if (one.begin > walk->tile->last_ns)
			return false;
		if (one.begin >= walk->tile->first_ns)
			merge(walk, &one, i);
	}
	return true;
}

static bool walk_nodes(struct point_walk *walk, uint8_t number, uint32_t from, uint32_t to)
{
	const struct ky_tile_level *const level = &walk->levels[number];
	const uint32_t below = level[-1].count;
	for (uint32_t i = from; i < to; i++) {
		const struct ky_point_node *const node = &walk->table->points[level->at + i];
		if (node->begin > walk->tile->last_ns)
			return false;
		if (node->end < walk->tile->first_ns)
			continue;
		if (node->begin >= walk->tile->first_ns && node->end <= walk->tile->last_ns &&
		    (uint64_t)node->end - (uint64_t)node->begin < walk->pixel_ns) {
			const uint64_t end = (i + 1) * level->rows, all = walk->lane->count;
			merge(walk, node, (uint32_t)(end < all ? end : all) - 1);
			continue;
		}
		const uint32_t child = i * KY_LANE_FAN;
		const uint32_t end = below - child < KY_LANE_FAN ? below : child + KY_LANE_FAN;
		if (!(number == 1 ? walk_rows(walk, child, end)
				  : walk_nodes(walk, (uint8_t)(number - 1), child, end)))
			return false;
	}
	return true;
}

/* Put the last point before the tile, unmerged. */
static void put_before(struct point_walk *walk)
{
	const uint32_t *const order = walk->table->order + walk->lane->first;
	uint32_t from = 0, to = walk->lane->count;
	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;
		if (walk->table->ts[order[middle]] < walk->tile->first_ns)
			from = middle + 1;
		else
			to = middle;
	}
	if (!from)
		return;
	const struct ky_point_node one = ky_view_lanes_point(walk->table, order[from - 1]);
	merge(walk, &one, from - 1);
	put_merged(walk);
}

uint32_t ky_tile_points(const struct ky_tile *tile, const struct ky_view_lane *lane)
{
	struct point_walk walk = {
		.tile = tile,
		.table = &tile->view->tables[lane->table],
		.lane = lane,
		.pixel_ns = 1ull << tile->level,
	};
	ky_tile_levels(lane, walk.levels);
	put_before(&walk);
	if (lane->levels)
		walk_nodes(&walk, lane->levels, 0, walk.levels[lane->levels].count);
	else
		walk_rows(&walk, 0, lane->count);
	put_merged(&walk);
	return walk.items;
}
