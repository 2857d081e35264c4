/* SPDX-License-Identifier: MIT */
/*
 * wire.h: the binary response with tiles: what the page draws.
 *
 * Time is cut into tiles: at level k a pixel is 2^k ns wide and a tile KY_TILE_PIXELS of them, so tile i of level
 * k is [i * KY_TILE_PIXELS * 2^k, (i + 1) * KY_TILE_PIXELS * 2^k) of the view's time (ns since its base; i may
 * be negative). A tile of a track never changes within a generation, so pages may cache it.
 *
 *   ┌────────┬─────────┬───────┬───────┬─────┬─────────┬───────┬ ... ┬───────────────────┐
 *   │ header │ section │ item  │ item  │ ... │ section │ item  │     │ strings           │
 *   └────────┴─────────┴───────┴───────┴─────┴─────────┴───────┴ ... ┴───────────────────┘
 *
 * A section is one track's tile; sections come track by track in the requested order, tiles ascending. Items are sorted by
 * row, then by begin. Everything that reaches into the tile is there: as an item of its own if at least a pixel wide, else
 * merged with its neighbours that begin in the same pixel (or just after it) and row, never dropped. An item keeps its true
 * begin and duration, not cut to the tile: the same one may be in several tiles. So the first point of a counter's tile is
 * the last one before it, whose value holds when the tile begins.
 *
 * Little endian; every struct is a multiple of 8 bytes, so that a page may map typed arrays onto it. Strings: for each
 * distinct name of the items a u32 number, a u32 size, the UTF-8 text, and zeros up to a multiple of 8.
 */
#ifndef KY_SERVER_WIRE_H
#define KY_SERVER_WIRE_H

#include <stdint.h>

#define KY_TILE_PIXELS 512
#define KY_TILE_LEVEL_MAX 46
#define KY_WIRE_MAGIC 0x3154594bu /* "KYT1" */

struct ky_wire_header {
	uint32_t magic;
	uint32_t generation;
	uint32_t sections;
	uint32_t strings;
	uint32_t strings_at; /* byte of the first one */
	uint32_t level;
};

struct ky_wire_section {
	uint32_t track;
	uint32_t items;
	int64_t tile;
};

/* Of slices, scheduling, states and samples. */
struct ky_wire_item {
	double begin_ns;
	double dur_ns;  /* merged: from the first beginning to the last end */
	uint32_t event; /* row of its table; merged: that of the longest */
	uint32_t name;  /* string; merged: that of the longest */
	uint32_t count; /* 1, or how many were merged */
	uint16_t row;   /* of the track, from above */
	uint8_t fill;   /* merged: covered part of the time, of 255 */
	uint8_t flags;  /* KY_ITEM_ */
};

#define KY_ITEM_MERGED 1u
#define KY_ITEM_INSTANT 2u /* without duration; merged: all are */
#define KY_ITEM_OPEN 4u    /* never ended; lasts to the end of the trace */

/* Of counters: the values within a pixel; a value holds until the next point. */
struct ky_wire_point {
	double at_ns; /* of the first one in it */
	double min, max, last;
};

_Static_assert(sizeof(struct ky_wire_header) == 24, "the page relies on it");
_Static_assert(sizeof(struct ky_wire_section) == 16, "the page relies on it");
_Static_assert(sizeof(struct ky_wire_item) == 32, "the page relies on it");
_Static_assert(sizeof(struct ky_wire_point) == 32, "the page relies on it");

#endif
