/* SPDX-License-Identifier: MIT */
/*
 * map.h: the hash table, in three forms:
 *
 *   ky_u64_map      a 64-bit key to a 32-bit value
 *   ky_pair_map     two 64-bit keys to a 64-bit value
 *   ky_hash_index   a hash to the numbers of items that the caller keeps and compares, for keys of any other kind
 *
 * All are one open table with linear probing. A slot begins with a tag: the hash, with a bit that marks it as used;
 * 0 is a free slot. Growing and removing need the tags alone, so one core serves all forms.
 *
 * Hashes are seeded at run time, so no input can choose keys that collide; tables grow when they are half full
 * (u64_map) or three quarters full, and earlier where a chain became long: probes stay short.
 *
 * All zero is an empty table. A pointer to a value is valid until the next add or remove.
 */
#ifndef KY_BASE_MAP_H
#define KY_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- hashes ---- */

extern uint64_t ky_hash_seed;

/* Return a seeded hash of a word, good in its upper half. */
static inline uint64_t ky_hash_u64(uint64_t key)
{
	uint64_t hash = (key ^ ky_hash_seed) * UINT64_C(0x9e3779b97f4a7c15);
	hash ^= hash >> 29;
	return hash * UINT64_C(0xbf58476d1ce4e5b9);
}

/* Return a seeded hash of two words; chain it for more. */
uint64_t ky_hash_pair(uint64_t a, uint64_t b);
/* Return a seeded hash of bytes. */
uint64_t ky_hash_bytes(const void *data, size_t bytes);

/* ---- the core ---- */

struct ky_hash_table {
	void *slots;   /* each begins with its uint32_t tag */
	uint32_t room; /* a power of two, or 0 */
	uint32_t count;
};

static inline uint32_t ky_hash_table_tag(uint64_t hash)
{
	return (uint32_t)(hash >> 32) | UINT32_C(1) << 31;
}

/* Return the next slot with the tag at or after *at, and move *at behind it; NULL at the end of the chain. */
static inline __attribute__((always_inline)) void *ky_hash_table_next(
	const struct ky_hash_table *table, size_t slot_bytes, uint32_t tag, uint32_t *at)
{
	for (uint32_t i = *at;; i++) {
		char *const slot =
			(char *)table->slots + (size_t)(i & (table->room - 1)) * slot_bytes;
		uint32_t there;
		memcpy(&there, slot, sizeof(there));
		if (there != tag && there)
			continue;
		*at = i + 1;
		return there ? slot : NULL;
	}
}

/* Return the used slot at or after number *at, and move *at behind it; NULL at the end. */
void *ky_hash_table_each(const struct ky_hash_table *table, size_t slot_bytes, uint32_t *at);

/* ---- a 64-bit key to a 32-bit value ---- */

struct ky_u64_slot {
	uint32_t tag;
	uint32_t value;
	uint64_t key;
};

struct ky_u64_map {
	struct ky_hash_table table;
};

/* Return where the key's value is, or NULL. */
static inline uint32_t *ky_u64_map_find(const struct ky_u64_map *map, uint64_t key)
{
	if (!map->table.room)
		return NULL;
	const uint32_t tag = ky_hash_table_tag(ky_hash_u64(key));
	struct ky_u64_slot *slot;
	for (uint32_t at = tag; (slot = ky_hash_table_next(&map->table, sizeof(*slot), tag, &at));)
		if (slot->key == key)
			return &slot->value;
	return NULL;
}

/* Return where the key's value is, adding it as 0 (*made is then true); NULL without memory. */
uint32_t *ky_u64_map_add(struct ky_u64_map *map, uint64_t key, bool *made);
/* Remove the key, if it is there. */
void ky_u64_map_remove(struct ky_u64_map *map, uint64_t key);
/* Free the map and make it empty. */
void ky_u64_map_free(struct ky_u64_map *map);

/* Return the next slot, in no order, starting with *at = 0; NULL at the end. */
static inline struct ky_u64_slot *ky_u64_map_next(const struct ky_u64_map *map, uint32_t *at)
{
	return ky_hash_table_each(&map->table, sizeof(struct ky_u64_slot), at);
}

/* ---- two 64-bit keys to a 64-bit value ---- */

struct ky_pair_slot {
	uint32_t tag;
	uint64_t a, b;
	uint64_t value;
};

struct ky_pair_map {
	struct ky_hash_table table;
};

/* Return where the value of the keys is, or NULL. */
uint64_t *ky_pair_map_find(const struct ky_pair_map *map, uint64_t a, uint64_t b);
/* Return where the value of the keys is, adding it as 0 (*made is then true); NULL without memory. */
uint64_t *ky_pair_map_add(struct ky_pair_map *map, uint64_t a, uint64_t b, bool *made);
/* Remove the keys, if they are there. */
void ky_pair_map_remove(struct ky_pair_map *map, uint64_t a, uint64_t b);
/* Free the map and make it empty. */
void ky_pair_map_free(struct ky_pair_map *map);

/* Return the next slot, in no order, starting with *at = 0; NULL at the end. */
static inline struct ky_pair_slot *ky_pair_map_next(const struct ky_pair_map *map, uint32_t *at)
{
	return ky_hash_table_each(&map->table, sizeof(struct ky_pair_slot), at);
}

/* ---- a hash to numbers of items ---- */

struct ky_hash_index {
	struct ky_hash_table table;
};

/*
 * A search for the items of a hash:
 *
 *   struct ky_hash_probe probe = ky_hash_index_probe(&list->index, hash);
 *   for (uint32_t i; ky_hash_index_next(&probe, &i);)
 *           if (is_same(&list->items[i], key))
 *                   return i;
 */
struct ky_hash_probe {
	const struct ky_hash_table *table;
	uint32_t tag;
	uint32_t at;
};

struct ky_hash_index_slot {
	uint32_t tag;
	uint32_t number;
};

/* Start a search for the items of a hash, whose upper half must be good. */
static inline struct ky_hash_probe ky_hash_index_probe(const struct ky_hash_index *index,
						       uint64_t hash)
{
	const uint32_t tag = ky_hash_table_tag(hash);
	return (struct ky_hash_probe){&index->table, tag, tag};
}

/* Set *number to the next item that may have the hash; false when there are no more. */
static inline bool ky_hash_index_next(struct ky_hash_probe *probe, uint32_t *number)
{
	if (!probe->table->room)
		return false;
	const struct ky_hash_index_slot *slot =
		ky_hash_table_next(probe->table, sizeof(*slot), probe->tag, &probe->at);
	if (slot)
		*number = slot->number;
	return slot != NULL;
}

/* Make room for that many items in all: adding up to them cannot fail then. Return false without memory. */
bool ky_hash_index_reserve(struct ky_hash_index *index, uint32_t count);
/* Add an item that is not there yet; false without memory. */
bool ky_hash_index_add(struct ky_hash_index *index, uint64_t hash, uint32_t number);
/* Free the index and make it empty. */
void ky_hash_index_free(struct ky_hash_index *index);

#endif
