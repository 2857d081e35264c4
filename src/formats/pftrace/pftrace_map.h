/* SPDX-License-Identifier: MIT */
/*
 * pftrace_map.h: numbers by the ids of a trace. Ids are mostly small and given out in order (interned
 * ids, sequences): those are an array. The others (uuids, what a hostile file has) are hashed. All
 * is forgotten at once by beginning a new generation.
 *
 * The array grows only as far as the ids in it are dense, so that memory stays in proportion to the input.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_MAP_H
#define KY_FORMATS_PFTRACE_PFTRACE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_pf_map_item {
	uint32_t generation;
	uint32_t value;
};

struct ky_pf_map_slot {
	uint64_t key;
	uint32_t generation; /* 0: free */
	uint32_t value;
};

/* All zero is an empty map. */
struct ky_pf_map {
	struct ky_pf_map_item *dense;
	uint32_t dense_room;
	uint32_t dense_used;
	struct ky_pf_map_slot *slots;
	uint32_t room; /* a power of two */
	uint32_t used;
	uint32_t past; /* generations before this one */
};

/* Part of ky_pf_map_find(). */
uint32_t *ky_pf_map_find_hashed(const struct ky_pf_map *map, uint64_t key);

/* The value, or NULL; until the next add. */
static inline uint32_t *ky_pf_map_find(const struct ky_pf_map *map, uint64_t key)
{
	if (key < map->dense_room && map->dense[key].generation == map->past + 1)
		return &map->dense[key].value;
	return map->used ? ky_pf_map_find_hashed(map, key) : NULL;
}

/* The value, made as 0 when there is none (*made). NULL without memory. */
uint32_t *ky_pf_map_add(struct ky_pf_map *map, uint64_t key, bool *made);
/* Forgets all. */
void ky_pf_map_clear(struct ky_pf_map *map);
void ky_pf_map_free(struct ky_pf_map *map);

#endif
