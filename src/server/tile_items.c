/* SPDX-License-Identifier: MIT */
/*
 * tile_items.c: the items of one pyramid in one tile: spans, and points of counters.
 *
 * A walk from the top of the pyramid takes a node as a whole if nothing in it is as wide as a pixel, it is narrower
 * than two, and it lies inside the tile: its events go to the pixel where it begins. All other nodes are opened, down to the
 * rows; among the narrow ones only the two at the tile's edges, so that the events in the tile are counted exactly. Nodes and
 * pixels do not depend on the request, so the same events are merged in every picture. (Two pixels, because the page requests
 * the level whose pixels are half to one of its own, and because rows, which are scattered in memory, are what costs time.)
 *
 * Memory takes long to deliver one row but delivers many at once. So what the walk finds is queued until its memory was
 * prefetched.
 *
 * In a pyramid without overlaps at most one span of a pixel's width begins in a pixel. If more than OWN_MAX do, which only
 * happens when rows ran out (view_strands.c), the rest is merged too, so that the pixels bound the response for any data.
 */
#include "server/tile.h"

#include "base/array.h"

/* ---- spans ---- */

#define OWN_MAX 4u
#define BATCH 64u
#define LINE 32u
#define LINE_ORDER 8u /* entries in the queue until the row numbers have arrived */
/* The pixel of everything that begins before the tile. */
#define BEFORE INT64_MIN

/* A node to be merged whole, or rows to be visited. */
struct waiting {
	const struct ky_span_node *node; /* NULL: rows */
	uint32_t from, to;               /* indices in the pyramid */
};

struct span_walk {
	const struct ky_tile *tile;
	const struct ky_view_table *table;
	const struct ky_view_pyramid *pyramid;
	struct ky_tile_level levels[KY_TILE_LEVELS_MAX];
	uint64_t pixel_ns;
	float pixel_width; /* the same */
	struct ky_span_node merged;
	uint32_t merged_count; /* 0: none */
	int64_t merged_pixel;
	int64_t own_pixel;
	uint32_t own_count; /* spans that began in own_pixel and were not merged */
	uint32_t items;
	uint32_t batched;
	uint32_t line_first, line_end;
	struct waiting line[LINE];
	struct ky_wire_item batch[BATCH];
};

/* ---- items ---- */

static void write_batch(struct span_walk *walk)
{
	ky_buffer_add(walk->tile->out, walk->batch, walk->batched * sizeof(walk->batch[0]));
	walk->items += walk->batched;
	walk->batched = 0;
}

static uint8_t fill_of(const struct ky_span_node *node)
{
	const float width = (float)((uint64_t)node->end - (uint64_t)node->begin);
	const float part = width > 0 ? node->busy / width * 255.0f : 255.0f;
	if (part >= 255.0f)
		return 255;
	/* Rounds as embedded_tiles.ts does. */
	const float rounded = part + 0.5f;
	return part < 1.0f ? node->busy > 0 : (uint8_t)rounded;
}

static void put_item(struct span_walk *walk, const struct ky_span_node *node, uint32_t count)
{
	const bool open = count == 1 && walk->table->dur && walk->table->dur[node->longest] < 0;
	const uint32_t flags = (count > 1 ? KY_ITEM_MERGED : 0) |
			       (node->longest_dur <= 0 ? KY_ITEM_INSTANT : 0) |
			       (open ? KY_ITEM_OPEN : 0);
	const uint32_t name = node->name == KY_NONE
				      ? ky_view_pyramids_name(walk->table, node->longest)
				      : node->name;
	if (walk->batched == BATCH)
		write_batch(walk);
	walk->batch[walk->batched++] = (struct ky_wire_item){
		.begin_ns = (double)ky_tile_time(walk->tile, node->begin),
		.dur_ns = (double)((uint64_t)node->end - (uint64_t)node->begin),
		.event = node->longest,
		.name = name,
		.count = count,
		.row = walk->pyramid->row,
		.fill = count > 1 ? fill_of(node) : 255,
		.flags = (uint8_t)flags,
	};
	ky_tile_names_add(walk->tile->names, name);
}

static void put_merged(struct span_walk *walk)
{
	if (walk->merged_count)
		put_item(walk, &walk->merged, walk->merged_count);
	walk->merged_count = 0;
}

static void merge(struct span_walk *walk, const struct ky_span_node *node, uint32_t count,
		  int64_t pixel)
{
	if (walk->merged_count && walk->merged_pixel == pixel) {
		ky_view_pyramids_join_span(&walk->merged, node);
		walk->merged_count += count;
		return;
	}
	put_merged(walk);
	walk->merged = *node;
	walk->merged_count = count;
	walk->merged_pixel = pixel;
}

static int64_t pixel_of(const struct span_walk *walk, int64_t begin)
{
	return begin < walk->tile->first_ns ? BEFORE : ky_tile_pixel(walk->tile, begin);
}

static bool is_narrow(const struct span_walk *walk, const struct ky_span_node *node)
{
	return (uint64_t)node->end - (uint64_t)node->begin < 2 * walk->pixel_ns &&
	       node->longest_dur < walk->pixel_width;
}

/* Like ky_view_pyramids_span(), but the name is looked up when it is needed. */
static struct ky_span_node row_of(const struct span_walk *walk, uint32_t row)
{
	const int64_t begin = walk->table->ts[row];
	const int64_t end = ky_view_pyramids_end(walk->table, row, walk->tile->view->trace->end_ns);
	const float dur = (float)((uint64_t)end - (uint64_t)begin);
	return (struct ky_span_node){begin, end, dur, dur, row, KY_NONE};
}

static void take_row(struct span_walk *walk, const struct ky_span_node *row)
{
	const int64_t pixel = pixel_of(walk, row->begin);
	if (walk->own_count && walk->own_pixel != pixel)
		walk->own_count = 0;
	if (row->longest_dur < walk->pixel_width || walk->own_count == OWN_MAX) {
		merge(walk, row, 1, pixel);
		return;
	}
	put_merged(walk);
	put_item(walk, row, 1);
	walk->own_pixel = pixel;
	walk->own_count++;
}

/* ---- the queue ---- */

static void walk_rows(struct span_walk *walk, uint32_t from, uint32_t to)
{
	const struct ky_tile *const tile = walk->tile;
	const uint32_t *const order = walk->table->order + walk->pyramid->first;
	for (uint32_t i = from; i < to && walk->table->ts[order[i]] <= tile->last_ns; i++) {
		const struct ky_span_node one = row_of(walk, order[i]);
		if (one.begin >= tile->first_ns || one.end > tile->first_ns)
			take_row(walk, &one);
	}
}

static void ask_memory(const struct span_walk *walk, const struct waiting *waiting)
{
	const struct ky_view_table *const table = walk->table;
	const uint32_t *const order = table->order + walk->pyramid->first;
	for (uint32_t i = waiting->from; !waiting->node && i < waiting->to; i++) {
		__builtin_prefetch(&table->ts[order[i]]);
		if (table->dur)
			__builtin_prefetch(&table->dur[order[i]]);
		if (table->name)
			__builtin_prefetch(&table->name[order[i]]);
	}
}

static void take_first(struct span_walk *walk)
{
	const struct waiting *const first = &walk->line[walk->line_first++ % LINE];
	if (first->node)
		merge(walk, first->node, first->to - first->from,
		      pixel_of(walk, first->node->begin));
	else
		walk_rows(walk, first->from, first->to);
}

static void put_in_line(struct span_walk *walk, const struct ky_span_node *node, uint32_t from,
			uint32_t to)
{
	if (walk->line_end - walk->line_first == LINE)
		take_first(walk);
	walk->line[walk->line_end++ % LINE] = (struct waiting){node, from, to};
	if (!node)
		__builtin_prefetch(&walk->table->order[walk->pyramid->first + from]);
	if (walk->line_end - walk->line_first > LINE_ORDER)
		ask_memory(walk, &walk->line[(walk->line_end - 1 - LINE_ORDER) % LINE]);
}

/* ---- the walk ---- */

/* Report whether all of a node begins in a pixel that already has OWN_MAX spans. */
static bool is_crowded(const struct span_walk *walk, const struct ky_span_node *node, uint32_t last)
{
	if (walk->own_count < OWN_MAX || node->begin < walk->tile->first_ns ||
	    pixel_of(walk, node->begin) != walk->own_pixel)
		return false;
	const int64_t begin = walk->table->ts[walk->table->order[walk->pyramid->first + last]];
	return begin <= walk->tile->last_ns && pixel_of(walk, begin) == walk->own_pixel;
}

/* A node that ends where the next tile begins may have an instant there. */
static bool is_inside(const struct span_walk *walk, const struct ky_span_node *node)
{
	return node->begin >= walk->tile->first_ns && node->end <= walk->tile->last_ns;
}

/* Walk nodes [from, to) of a level. Return false after the tile's end. */
static bool walk_nodes(struct span_walk *walk, uint8_t number, uint32_t from, uint32_t to)
{
	const struct ky_tile_level *const level = &walk->levels[number];
	const uint32_t below = level[-1].count;
	for (uint32_t i = from; i < to; i++) {
		const struct ky_span_node *const node = &walk->table->spans[level->at + i];
		const uint64_t first = i * level->rows, all = walk->pyramid->count;
		const uint32_t end =
			(uint32_t)(all - first < level->rows ? all : first + level->rows);
		if (node->begin > walk->tile->last_ns)
			return false;
		if (node->end < walk->tile->first_ns)
			continue;
		if ((is_narrow(walk, node) && is_inside(walk, node)) ||
		    is_crowded(walk, node, end - 1)) {
			put_in_line(walk, node, (uint32_t)first, end);
		} else if (number == 1) {
			put_in_line(walk, NULL, (uint32_t)first, end);
		} else {
			const uint32_t child = i * KY_PYRAMID_FAN;
			if (!walk_nodes(walk, (uint8_t)(number - 1), child,
					below - child < KY_PYRAMID_FAN ? below
								       : child + KY_PYRAMID_FAN))
				return false;
		}
	}
	return true;
}

uint32_t ky_tile_spans(const struct ky_tile *tile, const struct ky_view_pyramid *pyramid)
{
	struct span_walk walk;
	walk.tile = tile;
	walk.table = &tile->view->tables[pyramid->kind];
	walk.pyramid = pyramid;
	walk.pixel_ns = 1ull << tile->level;
	walk.pixel_width = (float)walk.pixel_ns;
	walk.merged_count = walk.own_count = walk.items = walk.batched = 0;
	walk.line_first = walk.line_end = 0;
	walk.own_pixel = BEFORE;
	ky_tile_levels(pyramid, walk.levels);
	if (pyramid->levels)
		walk_nodes(&walk, pyramid->levels, 0, walk.levels[pyramid->levels].count);
	else
		walk_rows(&walk, 0, pyramid->count);
	while (walk.line_first != walk.line_end)
		take_first(&walk);
	put_merged(&walk);
	write_batch(&walk);
	return walk.items;
}

/* ---- points ---- */

/*
 * One for each pixel in which the value changes, after the one that holds when the tile begins. The walk is that of spans.
 */

struct point_walk {
	const struct ky_tile *tile;
	const struct ky_view_table *table;
	const struct ky_view_pyramid *pyramid;
	struct ky_tile_level levels[KY_TILE_LEVELS_MAX];
	uint64_t pixel_ns;
	struct ky_point_node merged;
	bool any;
	int64_t pixel;
	uint32_t last; /* index in the pyramid of the last one merged */
	uint32_t items;
};

static void put_point(struct point_walk *walk)
{
	if (!walk->any)
		return;
	const uint32_t last = walk->table->order[walk->pyramid->first + walk->last];
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

static void merge_point(struct point_walk *walk, const struct ky_point_node *node, uint32_t last)
{
	const int64_t pixel = ky_tile_pixel(walk->tile, node->begin);
	if (walk->any && walk->pixel == pixel) {
		ky_view_pyramids_join_point(&walk->merged, node);
	} else {
		put_point(walk);
		walk->merged = *node;
		walk->pixel = pixel;
		walk->any = true;
	}
	walk->last = last;
}

static bool walk_point_rows(struct point_walk *walk, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const uint32_t row = walk->table->order[walk->pyramid->first + i];
		const struct ky_point_node one = ky_view_pyramids_point(walk->table, row);
		if (one.begin > walk->tile->last_ns)
			return false;
		if (one.begin >= walk->tile->first_ns)
			merge_point(walk, &one, i);
	}
	return true;
}

static bool walk_point_nodes(struct point_walk *walk, uint8_t number, uint32_t from, uint32_t to)
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
			const uint64_t end = (i + 1) * level->rows, all = walk->pyramid->count;
			merge_point(walk, node, (uint32_t)(end < all ? end : all) - 1);
			continue;
		}
		const uint32_t child = i * KY_PYRAMID_FAN;
		const uint32_t end =
			below - child < KY_PYRAMID_FAN ? below : child + KY_PYRAMID_FAN;
		if (!(number == 1 ? walk_point_rows(walk, child, end)
				  : walk_point_nodes(walk, (uint8_t)(number - 1), child, end)))
			return false;
	}
	return true;
}

/* Put the last point before the tile, unmerged. */
static void put_before(struct point_walk *walk)
{
	const uint32_t *const order = walk->table->order + walk->pyramid->first;
	const uint32_t from = KY_ARRAY_SEARCH(0, walk->pyramid->count, at,
					      walk->table->ts[order[at]] < walk->tile->first_ns);
	if (!from)
		return;
	const struct ky_point_node one = ky_view_pyramids_point(walk->table, order[from - 1]);
	merge_point(walk, &one, from - 1);
	put_point(walk);
}

uint32_t ky_tile_points(const struct ky_tile *tile, const struct ky_view_pyramid *pyramid)
{
	struct point_walk walk = {
		.tile = tile,
		.table = &tile->view->tables[pyramid->kind],
		.pyramid = pyramid,
		.pixel_ns = 1ull << tile->level,
	};
	ky_tile_levels(pyramid, walk.levels);
	put_before(&walk);
	if (pyramid->levels)
		walk_point_nodes(&walk, pyramid->levels, 0, walk.levels[pyramid->levels].count);
	else
		walk_point_rows(&walk, 0, pyramid->count);
	put_point(&walk);
	return walk.items;
}
