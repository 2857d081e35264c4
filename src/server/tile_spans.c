/* SPDX-License-Identifier: MIT */
/*
 * tile_spans.c: the items of one lane in one tile.
 *
 * A walk from the top of the lane's pyramid. A node that has nothing as wide as a pixel, is narrower than two, and
 * inside the tile is taken as a whole: what it has goes to the pixel where it begins. All others are opened, down to
 * the rows; of those so narrow only the two that the tile's edges cut, so that what reaches into the tile is counted
 * exactly. Nodes and pixels are where they are whatever is asked for, so that the same things are merged in each
 * picture. (Two, since the page asks for the level whose pixels are at most as wide as its own, down to half of that;
 * and since rows, which are all over memory, are what costs time: so no more than a few for each pixel are looked at.)
 *
 * The rows of a lane are all over the columns, and memory takes long to bring one but brings many at once. So what the
 * walk finds waits in a line until memory was asked for it.
 *
 * In a lane where nothing overlaps at most one span that is a pixel wide begins in a pixel. Where more do than
 * OWN_MAX, which only happens when rows ran out (view_strands.c), the rest is merged too, so that the answer is bounded
 * by the pixels whatever the data is.
 */
#include "server/tile.h"

#define OWN_MAX 4u
#define BATCH 64u
#define LINE 32u
#define LINE_ORDER 8u /* places in the line until the numbers of the rows are here */
/* The pixel of all that begins before the tile: none of its own. */
#define BEFORE INT64_MIN

/* A node that is merged as it is, or rows to be looked at. */
struct waiting {
	const struct ky_span_node *node; /* NULL: rows */
	uint32_t from, to;               /* places in the lane */
};

struct walk {
	const struct ky_tile *tile;
	const struct ky_view_table *table;
	const struct ky_view_lane *lane;
	struct ky_tile_level levels[KY_TILE_LEVELS_MAX];
	uint64_t pixel_ns;
	float pixel_width; /* the same */
	struct ky_span_node merged;
	uint32_t merged_count; /* 0: nothing is */
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

static void write_batch(struct walk *walk)
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
	/* Rounded as the page does it (embedded_tiles.ts). */
	const float rounded = part + 0.5f;
	return part < 1.0f ? node->busy > 0 : (uint8_t)rounded;
}

static void put_item(struct walk *walk, const struct ky_span_node *node, uint32_t count)
{
	const bool open = count == 1 && walk->table->dur && walk->table->dur[node->longest] < 0;
	const uint32_t flags = (count > 1 ? KY_ITEM_MERGED : 0) |
			       (node->longest_dur <= 0 ? KY_ITEM_INSTANT : 0) |
			       (open ? KY_ITEM_OPEN : 0);
	const uint32_t name =
		node->name == KY_NONE ? ky_view_lanes_name(walk->table, node->longest) : node->name;
	if (walk->batched == BATCH)
		write_batch(walk);
	walk->batch[walk->batched++] = (struct ky_wire_item){
		.begin_ns = (double)ky_tile_time(walk->tile, node->begin),
		.dur_ns = (double)((uint64_t)node->end - (uint64_t)node->begin),
		.event = node->longest,
		.name = name,
		.count = count,
		.row = walk->lane->row,
		.fill = count > 1 ? fill_of(node) : 255,
		.flags = (uint8_t)flags,
	};
	ky_tile_names_add(walk->tile->names, name);
}

static void put_merged(struct walk *walk)
{
	if (walk->merged_count)
		put_item(walk, &walk->merged, walk->merged_count);
	walk->merged_count = 0;
}

static void merge(struct walk *walk, const struct ky_span_node *node, uint32_t count, int64_t pixel)
{
	if (walk->merged_count && walk->merged_pixel == pixel) {
		ky_view_lanes_join_span(&walk->merged, node);
		walk->merged_count += count;
		return;
	}
	put_merged(walk);
	walk->merged = *node;
	walk->merged_count = count;
	walk->merged_pixel = pixel;
}

static int64_t pixel_of(const struct walk *walk, int64_t begin)
{
	return begin < walk->tile->first_ns ? BEFORE : ky_tile_pixel(walk->tile, begin);
}

static bool is_narrow(const struct walk *walk, const struct ky_span_node *node)
{
	return (uint64_t)node->end - (uint64_t)node->begin < 2 * walk->pixel_ns &&
	       node->longest_dur < walk->pixel_width;
}

/* As ky_view_lanes_span(), but what it is called is looked up when that is needed. */
static struct ky_span_node row_of(const struct walk *walk, uint32_t row)
{
	const int64_t begin = walk->table->ts[row];
	const int64_t end = ky_view_lanes_end(walk->table, row, walk->tile->view->trace->end_ns);
	const float dur = (float)((uint64_t)end - (uint64_t)begin);
	return (struct ky_span_node){begin, end, dur, dur, row, KY_NONE};
}

static void take_row(struct walk *walk, const struct ky_span_node *row)
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

/* ---- the line ---- */

static void walk_rows(struct walk *walk, uint32_t from, uint32_t to)
{
	const struct ky_tile *const tile = walk->tile;
	const uint32_t *const order = walk->table->order + walk->lane->first;
	for (uint32_t i = from; i < to && walk->table->ts[order[i]] <= tile->last_ns; i++) {
		const struct ky_span_node one = row_of(walk, order[i]);
		if (one.begin >= tile->first_ns || one.end > tile->first_ns)
			take_row(walk, &one);
	}
}

static void ask_memory(const struct walk *walk, const struct waiting *waiting)
{
	const struct ky_view_table *const table = walk->table;
	const uint32_t *const order = table->order + walk->lane->first;
	for (uint32_t i = waiting->from; !waiting->node && i < waiting->to; i++) {
		__builtin_prefetch(&table->ts[order[i]]);
		if (table->dur)
			__builtin_prefetch(&table->dur[order[i]]);
		if (table->name)
			__builtin_prefetch(&table->name[order[i]]);
	}
}

static void take_first(struct walk *walk)
{
	const struct waiting *const first = &walk->line[walk->line_first++ % LINE];
	if (first->node)
		merge(walk, first->node, first->to - first->from,
		      pixel_of(walk, first->node->begin));
	else
		walk_rows(walk, first->from, first->to);
}

static void put_in_line(struct walk *walk, const struct ky_span_node *node, uint32_t from,
			uint32_t to)
{
	if (walk->line_end - walk->line_first == LINE)
		take_first(walk);
	walk->line[walk->line_end++ % LINE] = (struct waiting){node, from, to};
	if (!node)
		__builtin_prefetch(&walk->table->order[walk->lane->first + from]);
	if (walk->line_end - walk->line_first > LINE_ORDER)
		ask_memory(walk, &walk->line[(walk->line_end - 1 - LINE_ORDER) % LINE]);
}

/* ---- the walk ---- */

/* Whether all in a node begins in a pixel that has as many spans of its own as it gets. */
static bool is_crowded(const struct walk *walk, const struct ky_span_node *node, uint32_t last)
{
	if (walk->own_count < OWN_MAX || node->begin < walk->tile->first_ns ||
	    pixel_of(walk, node->begin) != walk->own_pixel)
		return false;
	const int64_t begin = walk->table->ts[walk->table->order[walk->lane->first + last]];
	return begin <= walk->tile->last_ns && pixel_of(walk, begin) == walk->own_pixel;
}

/* One that ends where the next tile begins may have an instant there. */
static bool is_inside(const struct walk *walk, const struct ky_span_node *node)
{
	return node->begin >= walk->tile->first_ns && node->end <= walk->tile->last_ns;
}

/* Nodes of a level from one to before another; false behind the tile's end. */
static bool walk_nodes(struct walk *walk, uint8_t number, uint32_t from, uint32_t to)
{
	const struct ky_tile_level *const level = &walk->levels[number];
	const uint32_t below = level[-1].count;
	for (uint32_t i = from; i < to; i++) {
		const struct ky_span_node *const node = &walk->table->spans[level->at + i];
		const uint64_t first = i * level->rows, all = walk->lane->count;
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
			const uint32_t child = i * KY_LANE_FAN;
			if (!walk_nodes(walk, (uint8_t)(number - 1), child,
					below - child < KY_LANE_FAN ? below : child + KY_LANE_FAN))
				return false;
		}
	}
	return true;
}

uint32_t ky_tile_spans(const struct ky_tile *tile, const struct ky_view_lane *lane)
{
	struct walk walk;
	walk.tile = tile;
	walk.table = &tile->view->tables[lane->table];
	walk.lane = lane;
	walk.pixel_ns = 1ull << tile->level;
	walk.pixel_width = (float)walk.pixel_ns;
	walk.merged_count = walk.own_count = walk.items = walk.batched = 0;
	walk.line_first = walk.line_end = 0;
	walk.own_pixel = BEFORE;
	ky_tile_levels(lane, walk.levels);
	if (lane->levels)
		walk_nodes(&walk, lane->levels, 0, walk.levels[lane->levels].count);
	else
		walk_rows(&walk, 0, lane->count);
	while (walk.line_first != walk.line_end)
		take_first(&walk);
	put_merged(&walk);
	write_batch(&walk);
	return walk.items;
}
