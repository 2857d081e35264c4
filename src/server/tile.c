/* SPDX-License-Identifier: MIT */
/*
 * tile.c: the answer to a request for tiles: which moments a tile is of, its sections, the names behind them. What a
 * section has is made by tile_spans.c and tile_points.c.
 */
#include "server/tile.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
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
		const struct ky_view_lane *const lane = &tile->view->lanes[track->lanes_at + i];
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

static bool is_askable(const struct ky_view *view, const struct ky_tile_range *tiles)
{
	int64_t last;
	if (tiles->level > KY_TILE_LEVEL_MAX ||
	    (uint64_t)tiles->count * tiles->tracks_count > KY_TILE_SECTIONS_MAX ||
	    __builtin_add_overflow(tiles->first, (int64_t)tiles->count, &last))
		return false;
	for (uint32_t i = 0; i < tiles->tracks_count; i++)
		if (tiles->tracks[i] >= view->tracks_count ||
		    view->tracks[tiles->tracks[i]].kind == KY_VIEW_GROUP)
			return false;
	return true;
}

static int put_sections(struct ky_tile *tile, const struct ky_tile_range *tiles, size_t at)
{
	for (uint32_t t = 0; t < tiles->tracks_count; t++)
		for (uint32_t i = 0; i < tiles->count; i++) {
			put_section(tile, tiles->tracks[t], tiles->first + i);
			if (tile->out->bytes - at > KY_TILE_BYTES_MAX)
				return -E2BIG;
		}
	return 0;
}

int ky_tile_append(const struct ky_view *view, const struct ky_tile_range *tiles,
		   struct ky_buffer *out)
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

/* ---- names ---- */

#define ROOM_MIN 256u
/* A name that is longer is cut on its way to the picture: no slice is so wide. Its details have all of it. */
#define TEXT_BYTES_MAX 1024u

static uint32_t *slot_of(const struct ky_tile_names *names, uint32_t name)
{
	uint32_t at = (name * 0x9e3779b1u) & (names->room - 1);
	while (names->slots[at] && names->slots[at] != name + 1)
		at = (at + 1) & (names->room - 1);
	return &names->slots[at];
}

static bool grow(struct ky_tile_names *names)
{
	struct ky_tile_names larger = {.room = names->room ? names->room * 2 : ROOM_MIN,
				       .count = names->count};
	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (uint32_t i = 0; i < names->room; i++)
		if (names->slots[i])
			*slot_of(&larger, names->slots[i] - 1) = names->slots[i];
	free(names->slots);
	larger.last = names->last;
	*names = larger;
	return true;
}

void ky_tile_names_add(struct ky_tile_names *names, uint32_t name)
{
	if (names->count && names->last == name)
		return;
	if (names->count >= names->room / 2 && !grow(names)) {
		names->failed = true;
		return;
	}
	uint32_t *const slot = slot_of(names, name);
	names->count += !*slot;
	*slot = name + 1;
	names->last = name;
}

void ky_tile_names_free(struct ky_tile_names *names)
{
	free(names->slots);
	*names = (struct ky_tile_names){0};
}

static uint32_t cut(const char *text, uint32_t bytes)
{
	if (bytes <= TEXT_BYTES_MAX)
		return bytes;
	bytes = TEXT_BYTES_MAX;
	while (bytes && ((unsigned char)text[bytes] & 0xc0u) == 0x80u)
		bytes--;
	return bytes;
}

void ky_tile_names_write(const struct ky_tile_names *names, const struct ky_strings *strings,
			 struct ky_buffer *out)
{
	static const char zeros[8] = {0};
	for (uint32_t i = 0; i < names->room; i++) {
		if (!names->slots[i])
			continue;
		const uint32_t name = names->slots[i] - 1;
		const char *const text = ky_strings_text(strings, name);
		const uint32_t head[2] = {name,
					  text ? cut(text, ky_strings_bytes(strings, name)) : 0};
		ky_buffer_add(out, head, sizeof(head));
		if (text)
			ky_buffer_add(out, text, head[1]);
		ky_buffer_add(out, zeros, (8 - head[1] % 8) % 8);
	}
}
