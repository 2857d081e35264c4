/* SPDX-License-Identifier: MIT */
/*
 * tile.c: a response with tiles: the time of each tile, its section, and the names of the items. tile_items.c
 * makes the items.
 */
#include "server/tile.h"

#include "base/array.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* Longer names are cut: no slice is so wide. The details have the whole name. */
#define TEXT_BYTES_MAX 1024u

void ky_tile_names_add(struct ky_tile_names *names, uint32_t name)
{
	if (name >= names->strings)
		return;
	uint64_t *const seen = &names->seen[name / 64];
	const uint64_t bit = UINT64_C(1) << name % 64;
	if (*seen & bit)
		return;
	*seen |= bit;
	if (!KY_ARRAY_ADD(names->list, names->count, names->room, name))
		names->failed = true;
}

static void free_names(struct ky_tile_names *names)
{
	free(names->seen);
	KY_ARRAY_FREE(names->list, names->room);
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

static void write_names(const struct ky_tile_names *names, const struct ky_strings *strings,
			struct ky_buffer *out)
{
	static const char zeros[8] = {0};
	for (uint32_t i = 0; i < names->count; i++) {
		const uint32_t name = names->list[i];
		const char *const text = ky_strings_text(strings, name);
		const uint32_t head[2] = {name,
					  text ? cut(text, ky_strings_bytes(strings, name)) : 0};
		ky_buffer_add(out, head, sizeof(head));
		if (text)
			ky_buffer_add(out, text, head[1]);
		ky_buffer_add(out, zeros, (8 - head[1] % 8) % 8);
	}
}

/* ---- sections ---- */

__extension__ typedef __int128 ky_i128;

/*
 * Find a tile's first and last moment in the trace's clock. Return false if it is outside the clock's range. Any number may
 * be requested, hence 128 bits.
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
	for (uint32_t i = 0; i < track->pyramids; i++) {
		const struct ky_view_pyramid *const pyramid =
			&tile->view->pyramids[track->pyramids_at + i];
		items += track->kind == KY_VIEW_COUNTER ? ky_tile_points(tile, pyramid)
							: ky_tile_spans(tile, pyramid);
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

static bool is_valid(const struct ky_view *view, const struct ky_tile_range *tiles)
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
	if (!is_valid(view, tiles))
		return -EINVAL;
	names.strings = view->trace->strings.count;
	names.seen = calloc((size_t)names.strings / 64 + 1, sizeof(*names.seen));
	if (!names.seen) {
		out->failed = true;
		return 0;
	}
	ky_buffer_add(out, &header, sizeof(header));
	const int error = put_sections(&tile, tiles, at);
	header.strings = names.count;
	header.strings_at = (uint32_t)(out->bytes - at);
	if (!error)
		write_names(&names, &view->trace->strings, out);
	out->failed |= names.failed;
	if (error)
		out->bytes = at;
	else if (!out->failed)
		memcpy(out->data + at, &header, sizeof(header));
	free_names(&names);
	return error;
}
