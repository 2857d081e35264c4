/* SPDX-License-Identifier: MIT */
/*
 * map.h: from a pair of 64-bit keys to a number: an open hash table. The hash is seeded, so that an input cannot
 * make keys that collide.
 */
#ifndef KY_MODEL_MAP_H
#define KY_MODEL_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct ky_map_slot {
	uint64_t a, b;
	uint64_t value;
	bool used;
};

struct ky_map {
	struct ky_map_slot *slots;
	uint64_t count;
	uint64_t room; /* a power of two, or 0 */
};

/* Where the value of the key is, or NULL. Until the next add. */
uint64_t *ky_map_find(const struct ky_map *map, uint64_t a, uint64_t b);
/* The same, made with value 0 when it is not there (*made); NULL without memory. */
uint64_t *ky_map_add(struct ky_map *map, uint64_t a, uint64_t b, bool *made);
void ky_map_remove(struct ky_map *map, uint64_t a, uint64_t b);
void ky_map_free(struct ky_map *map);

/* A seeded hash of two words, for keys of more than two. */
uint64_t ky_map_mix(uint64_t a, uint64_t b);

#endif
