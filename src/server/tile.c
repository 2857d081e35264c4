/* SPDX-License-Identifier: MIT */
/*
 * tile.c: the answer to a request for tiles: which moments a tile is of, its sections, the names behind them. What a
 * section has is made by tile_spans.c and tile_points.c.
 */
#include "server/tile_walk.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

__extension__ typedef __int128 ky_i128;

/*
 * A tile's first and last moment in the trace's clock; false when all of it is where no clock gets. Any number may be
 * asked for, so this is reckoned with twice the bits.
 */
static bool find_moments(struct ky_tile *tile, int64_t number)
{
	const ky_i128 width = (ky_i128)KY_TILE_PIXELS << tile->level;
	const ky_i128 first = tile->view->base_ns + number * width, last = first + width - 1;
	if (first > INT64_MAX || last < INT64_MIN)
		return false;
	tile->first_ns = first < INT64_MIN ? INT64_MIN : (int64_t)first;
	tile->last_ns = last > INT64_MAX ? INT64_MAX : (int64_t)last;
	return true;
}

static uint32_t put_items(const struct ky_tile *tile, const struct ky_view_track *track)
{
	uint32_t items = 0;
	for (uint32_t i = 0; i < track->lanes; i++) {
		const struct ky_lane *const lane = &tile->view->lanes[track->lanes_at + i];
		items += track->kind == KY_VIEW_COUNTER ? ky_tile_points(tile, lane)
							: ky_tile_spans(tile, lane);
	}
	return items;
}

static void put_section(struct ky_tile *tile, uint32_t track, int64_t number)
{
	struct ky_wire_section section = {.track = track, .tile = number};
	const size_t at = tile->out->bytes;
	ky_buffer_add(tile->out, &section, sizeof(section));
	if (find_moments(tile, number))
		section.items = put_items(tile, &tile->view->tracks[track]);
	if (!tile->out->failed)
		memcpy(tile->out->data + at, &section, sizeof(section));
}

static bool is_askable(const struct ky_view *view, const struct ky_tiles *tiles)
{
	int64_t last;
	if (tiles->level > KY_TILE_LEVEL_MAX ||
	    (uint64_t)tiles->count * tiles->tracks_count > KY_TILES_SECTIONS_MAX ||
	    __builtin_add_overflow(tiles->first, (int64_t)tiles->count, &last))
		return false;
	for (uint32_t i = 0; i < tiles->tracks_count; i++)
		if (tiles->tracks[i] >= view->tracks_count ||
		    view->tracks[tiles->tracks[i]].kind == KY_VIEW_GROUP)
			return false;
	return true;
}

static int put_sections(struct ky_tile *tile, const struct ky_tiles *tiles, size_t at)
{
	for (uint32_t t = 0; t < tiles->tracks_count; t++)
		for (uint32_t i = 0; i < tiles->count; i++) {
			put_section(tile, tiles->tracks[t], tiles->first + i);
			if (tile->out->bytes - at > KY_TILES_BYTES_MAX)
				return -E2BIG;
		}
	return 0;
}

int ky_view_tiles(const struct ky_view *view, const struct ky_tiles *tiles, struct ky_buffer *out)
{
	struct ky_tile_names names = {0};
	struct ky_tile tile = {.view = view, .level = tiles->level, .names = &names, .out = out};
	const size_t at = out->bytes;
	struct ky_wire_header header = {
		.magic = KY_WIRE_MAGIC,
		.generation = view->generation,
		.sections = tiles->tracks_count * tiles->count,
		.level = tiles->level,
	};
	if (!is_askable(view, tiles))
		return -EINVAL;
	ky_buffer_add(out, &header, sizeof(header));
	const int error = put_sections(&tile, tiles, at);
	header.strings = names.count;
	header.strings_at = (uint32_t)(out->bytes - at);
	if (!error)
		ky_tile_names_write(&names, &view->trace->strings, out);
	out->failed |= names.failed;
	if (error)
		out->bytes = at;
	else if (!out->failed)
		memcpy(out->data + at, &header, sizeof(header));
	ky_tile_names_free(&names);
	return error;
}
