/* SPDX-License-Identifier: MIT */
/* map.c: see map.h. */
#include "model/map.h"

#include <stdlib.h>
#include <sys/random.h>

#define ROOM_FIRST 64u

__extension__ typedef unsigned __int128 ky_u128;

static uint64_t seed;

__attribute__((constructor)) static void make_seed(void)
{
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
		seed = UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t ky_map_mix(uint64_t a, uint64_t b)
{
	ky_u128 product = (ky_u128)(a ^ seed ^ UINT64_C(0xa0761d6478bd642f)) *
			  (b ^ UINT64_C(0xe7037ed1a0b428db));
	const uint64_t once = (uint64_t)product ^ (uint64_t)(product >> 64);
	product = (ky_u128)(once ^ a) * (UINT64_C(0x8ebc6af09c88c6e3) ^ seed);
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The slot of the key, or the free one where it belongs. */
static struct ky_map_slot *slot_of(const struct ky_map *map, uint64_t a, uint64_t b)
{
	uint64_t at = ky_map_mix(a, b) & (map->room - 1);
	while (map->slots[at].used && (map->slots[at].a != a || map->slots[at].b != b))
		at = (at + 1) & (map->room - 1);
	return &map->slots[at];
}

static bool grow(struct ky_map *map)
{
	struct ky_map larger = {.room = map->room ? map->room * 2 : ROOM_FIRST,
				.count = map->count};
	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (uint64_t i = 0; i < map->room; i++)
		if (map->slots[i].used)
			*slot_of(&larger, map->slots[i].a, map->slots[i].b) = map->slots[i];
	free(map->slots);
	*map = larger;
	return true;
}

uint64_t *ky_map_find(const struct ky_map *map, uint64_t a, uint64_t b)
{
	if (!map->room)
		return NULL;
	struct ky_map_slot *slot = slot_of(map, a, b);
	return slot->used ? &slot->value : NULL;
}

uint64_t *ky_map_add(struct ky_map *map, uint64_t a, uint64_t b, bool *made)
{
	if (map->count * 4 >= map->room * 3 && !grow(map))
		return NULL;
	struct ky_map_slot *slot = slot_of(map, a, b);
	*made = !slot->used;
	if (*made) {
		*slot = (struct ky_map_slot){a, b, 0, true};
		map->count++;
	}
	return &slot->value;
}

/* Slots behind it that were pushed there by it move up, so that no search stops short. */
void ky_map_remove(struct ky_map *map, uint64_t a, uint64_t b)
{
	if (!map->room || !slot_of(map, a, b)->used)
		return;
	uint64_t hole = (uint64_t)(slot_of(map, a, b) - map->slots);
	map->slots[hole].used = false;
	map->count--;
	const uint64_t mask = map->room - 1;
	for (uint64_t at = (hole + 1) & mask; map->slots[at].used; at = (at + 1) & mask) {
		const uint64_t home = ky_map_mix(map->slots[at].a, map->slots[at].b) & mask;
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		map->slots[hole] = map->slots[at];
		map->slots[at].used = false;
		hole = at;
	}
}

void ky_map_free(struct ky_map *map)
{
	free(map->slots);
	*map = (struct ky_map){0};
}
