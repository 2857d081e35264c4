/* SPDX-License-Identifier: MIT */
/*
 * tile.h: makes tiles: tile.c the sections and names, tile_items.c the items of a pyramid.
 */
#ifndef KY_SERVER_TILE_H
#define KY_SERVER_TILE_H

#include "server/view_pyramids.h"
#include "server/wire.h"

/* Tiles [first, first + count) of some tracks. */
struct ky_tile_range {
	uint32_t level;
	int64_t first;
	uint32_t count;
	const uint32_t *tracks;
	uint32_t tracks_count;
};

#define KY_TILE_SECTIONS_MAX 4096u
#define KY_TILE_BYTES_MAX (256u << 20)

/*
 * Append the tiles in the format of wire.h. Return 0; -EINVAL if the level or a track does not exist, a track is a group, or
 * there are more than KY_TILE_SECTIONS_MAX sections; -E2BIG for more than KY_TILE_BYTES_MAX.
 */
int ky_tile_append(const struct ky_view *view, const struct ky_tile_range *tiles,
		   struct ky_buffer *out);

/* ---- private ---- */

/* The names of items, each once. */
struct ky_tile_names {
	uint32_t *list; /* strings, in the order of their first use */
	uint32_t count, room;
	uint64_t *seen; /* a bit per string of the trace */
	uint32_t strings;
	bool failed;
};

void ky_tile_names_add(struct ky_tile_names *names, uint32_t name);

/* A track's tile. Times are the trace's; last_ns is inside. */
struct ky_tile {
	const struct ky_view *view;
	int64_t first_ns, last_ns;
	uint32_t level;
	struct ky_tile_names *names;
	struct ky_buffer *out;
};

/* The levels of a pyramid: 0 is its rows. Enough for 32 bits of rows. */
#define KY_TILE_LEVELS_MAX 12u
struct ky_tile_level {
	uint64_t at;    /* the first of its nodes */
	uint64_t rows;  /* of each of its nodes */
	uint32_t count; /* of its nodes */
};

static inline void ky_tile_levels(const struct ky_view_pyramid *pyramid,
				  struct ky_tile_level levels[KY_TILE_LEVELS_MAX])
{
	levels[0] = (struct ky_tile_level){0, 1, pyramid->count};
	for (uint8_t i = 1; i <= pyramid->levels; i++)
		levels[i] = (struct ky_tile_level){i == 1 ? pyramid->nodes_at
							  : levels[i - 1].at + levels[i - 1].count,
						   levels[i - 1].rows * KY_PYRAMID_FAN,
						   ky_view_pyramids_above(levels[i - 1].count)};
}

/* Append the items of a pyramid, and return how many. */
uint32_t ky_tile_spans(const struct ky_tile *tile, const struct ky_view_pyramid *pyramid);
uint32_t ky_tile_points(const struct ky_tile *tile, const struct ky_view_pyramid *pyramid);

/* Convert to the view's time, clamped to 64 bits. */
static inline int64_t ky_tile_time(const struct ky_tile *tile, int64_t ts)
{
	int64_t time;
	if (__builtin_sub_overflow(ts, tile->view->base_ns, &time))
		return ts < 0 ? INT64_MIN : INT64_MAX;
	return time;
}

static inline int64_t ky_tile_pixel(const struct ky_tile *tile, int64_t ts)
{
	return ky_tile_time(tile, ts) >> tile->level;
}

#endif
