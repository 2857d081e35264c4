/* SPDX-License-Identifier: MIT */
/*
 * pftrace_map.c: an array and an open hash table behind one interface. The address of the table is part
 * of the hash, so that a file cannot be made for it. Items of past generations are free
 * to be taken in the array, and go when the table grows.
 */
#include "formats/pftrace/pftrace_map.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash(const struct ky_pf_map *map, uint64_t key)
{
	uint64_t x = key ^ (uint64_t)(uintptr_t)map->slots;
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

/* Where the key is, or the free slot where it would be. */
static struct ky_pf_map_slot *probe(const struct ky_pf_map *map, uint64_t key)
{
	const uint64_t mask = map->room - 1;
	for (uint64_t i = hash(map, key) & mask;; i = (i + 1) & mask)
		if (!map->slots[i].generation || map->slots[i].key == key)
			return &map->slots[i];
}

uint32_t *ky_pf_map_find_hashed(const struct ky_pf_map *map, uint64_t key)
{
	struct ky_pf_map_slot *slot = probe(map, key);
	return slot->generation == map->past + 1 ? &slot->value : NULL;
}

static bool grow_dense(struct ky_pf_map *map, uint32_t need)
{
	const uint32_t room = need < 32 ? 32 : need * 2;
	struct ky_pf_map_item *dense = realloc(map->dense, room * sizeof(*dense));
	if (!dense)
		return false;
	memset(dense + map->dense_room, 0, (room - map->dense_room) * sizeof(*dense));
	map->dense = dense;
	map->dense_room = room;
	return true;
}

static bool grow_hashed(struct ky_pf_map *map)
{
	struct ky_pf_map old = *map;
	const uint32_t room = old.room ? old.room * 2 : 32;
	if (old.room > UINT32_MAX / 4)
		return false;
	map->slots = calloc(room, sizeof(*map->slots));
	if (!map->slots) {
		map->slots = old.slots;
		return false;
	}
	map->room = room;
	map->used = 0;
	for (uint32_t i = 0; i < old.room; i++) {
		if (old.slots[i].generation != map->past + 1)
			continue;
		*probe(map, old.slots[i].key) = old.slots[i];
		map->used++;
	}
	free(old.slots);
	return true;
}

static bool is_dense(const struct ky_pf_map *map, uint64_t key)
{
	return key < map->dense_room ||
	       (key < 2 * (uint64_t)map->dense_used + 32 && key < UINT32_MAX / 8);
}

uint32_t *ky_pf_map_add(struct ky_pf_map *map, uint64_t key, bool *made)
{
	uint32_t *value = ky_pf_map_find(map, key);
	*made = !value;
	if (value)
		return value;
	if (is_dense(map, key)) {
		if (key >= map->dense_room && !grow_dense(map, (uint32_t)key + 1))
			return NULL;
		map->dense_used += map->dense[key].generation == 0;
		map->dense[key] = (struct ky_pf_map_item){map->past + 1, 0};
		return &map->dense[key].value;
	}
	if ((uint64_t)map->used * 2 >= map->room && !grow_hashed(map))
		return NULL;
	struct ky_pf_map_slot *slot = probe(map, key);
	map->used += slot->generation == 0;
	*slot = (struct ky_pf_map_slot){.key = key, .generation = map->past + 1};
	return &slot->value;
}

void ky_pf_map_clear(struct ky_pf_map *map)
{
	if (++map->past == UINT32_MAX)
		ky_pf_map_free(map);
}

void ky_pf_map_free(struct ky_pf_map *map)
{
	free(map->dense);
	free(map->slots);
	*map = (struct ky_pf_map){0};
}
