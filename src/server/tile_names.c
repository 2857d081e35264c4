/* SPDX-License-Identifier: MIT */
/*
 * tile_names.c: the names that the items of an answer have, each once: a hash set of strings' numbers. Numbers are given
 * out one after the other, so that a multiplication spreads them.
 */
#include "server/tile_walk.h"

#include <stdlib.h>

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
