/* SPDX-License-Identifier: MIT */
/* map.c: the core of map.h, and what its forms do not do inline. */
#include "base/map.h"

#include "base/memory.h"

#include <stdlib.h>
#include <sys/random.h>

#define ROOM_FIRST 64u
#define ROOM_MAX (1u << 31)
/* A chain this long makes the table grow, unless it is nearly empty: then growing does not help. */
#define CHAIN_MAX 128u
#define LOAD_MIN 1u

#define LOAD_U64 4u
#define LOAD_PAIR 6u
#define LOAD_INDEX 6u

__extension__ typedef unsigned __int128 ky_u128;

uint64_t ky_hash_seed;

__attribute__((constructor)) static void make_seed(void)
{
	if (getrandom(&ky_hash_seed, sizeof(ky_hash_seed), GRND_NONBLOCK) < 0)
		ky_hash_seed = UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t)&ky_hash_seed;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	const ky_u128 product = (ky_u128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t ky_hash_pair(uint64_t a, uint64_t b)
{
	const uint64_t once = mix(a ^ ky_hash_seed ^ UINT64_C(0xa0761d6478bd642f),
				  b ^ UINT64_C(0xe7037ed1a0b428db));
	return mix(once ^ a, UINT64_C(0x8ebc6af09c88c6e3) ^ ky_hash_seed);
}

/* Eight bytes at a time, for most texts are short. */
uint64_t ky_hash_bytes(const void *data, size_t bytes)
{
	const char *at = data;
	uint64_t hash = ky_hash_seed ^ (bytes * UINT64_C(0x9e3779b97f4a7c15));
	uint64_t word;
	for (; bytes >= 8; bytes -= 8, at += 8) {
		memcpy(&word, at, 8);
		hash = mix(hash ^ word, UINT64_C(0xa0761d6478bd642f));
	}
	word = 0;
	if (bytes)
		memcpy(&word, at, bytes);
	return mix(hash ^ word, UINT64_C(0xe7037ed1a0b428db) ^ ky_hash_seed);
}

/* ---- the core: inline, so that the compiler knows the size of a slot ---- */

#define CORE static inline __attribute__((always_inline))

CORE char *slot_at(const struct ky_hash_table *table, size_t slot_bytes, uint32_t at)
{
	return (char *)table->slots + (size_t)(at & (table->room - 1)) * slot_bytes;
}

CORE uint32_t tag_of(const void *slot)
{
	uint32_t tag;
	memcpy(&tag, slot, sizeof(tag));
	return tag;
}

/* Return how far from its home the first free slot for the tag is. */
CORE uint32_t chain_of(const struct ky_hash_table *table, size_t slot_bytes, uint32_t tag)
{
	uint32_t length = 0;
	while (tag_of(slot_at(table, slot_bytes, tag + length)))
		length++;
	return length;
}

CORE bool grow(struct ky_hash_table *table, size_t slot_bytes)
{
	struct ky_hash_table larger = *table;
	if (table->room >= ROOM_MAX)
		return false;
	larger.room = table->room ? table->room * 2 : ROOM_FIRST;
	larger.slots = calloc(larger.room, slot_bytes);
	if (!larger.slots) {
		ky_memory_missing();
		return false;
	}
	for (uint32_t i = 0; i < table->room; i++) {
		const char *slot = slot_at(table, slot_bytes, i);
		const uint32_t tag = tag_of(slot);
		if (tag)
			memcpy(slot_at(&larger, slot_bytes,
				       tag + chain_of(&larger, slot_bytes, tag)),
			       slot, slot_bytes);
	}
	free(table->slots);
	*table = larger;
	return true;
}

/* Add a slot with the tag and return it, the rest of it zero; NULL without memory. Full at load eighths. */
CORE void *put(struct ky_hash_table *table, size_t slot_bytes, uint32_t load, uint32_t tag)
{
	if ((uint64_t)table->count * 8 >= (uint64_t)table->room * load && !grow(table, slot_bytes))
		return NULL;
	uint32_t chain = chain_of(table, slot_bytes, tag);
	if (chain > CHAIN_MAX && (uint64_t)table->count * 8 >= (uint64_t)table->room * LOAD_MIN &&
	    grow(table, slot_bytes))
		chain = chain_of(table, slot_bytes, tag);
	char *slot = slot_at(table, slot_bytes, tag + chain);
	memcpy(slot, &tag, sizeof(tag));
	table->count++;
	return slot;
}

/* Free a slot, and move those behind it that would no longer be found. */
CORE void take(struct ky_hash_table *table, size_t slot_bytes, void *slot)
{
	const uint32_t mask = table->room - 1;
	uint32_t hole = (uint32_t)((size_t)((char *)slot - (char *)table->slots) / slot_bytes);
	uint32_t tag;
	for (uint32_t at = hole + 1; (tag = tag_of(slot_at(table, slot_bytes, at))); at++) {
		if (((at - tag) & mask) < ((at - hole) & mask))
			continue;
		memcpy(slot_at(table, slot_bytes, hole), slot_at(table, slot_bytes, at),
		       slot_bytes);
		hole = at;
	}
	memset(slot_at(table, slot_bytes, hole), 0, slot_bytes);
	table->count--;
}

void *ky_hash_table_each(const struct ky_hash_table *table, size_t slot_bytes, uint32_t *at)
{
	while (*at < table->room) {
		char *slot = slot_at(table, slot_bytes, (*at)++);
		if (tag_of(slot))
			return slot;
	}
	return NULL;
}

static void clear(struct ky_hash_table *table)
{
	free(table->slots);
	*table = (struct ky_hash_table){0};
}

/* ---- a 64-bit key to a 32-bit value ---- */

uint32_t *ky_u64_map_add(struct ky_u64_map *map, uint64_t key, bool *made)
{
	uint32_t *found = ky_u64_map_find(map, key);
	*made = !found;
	if (found)
		return found;
	struct ky_u64_slot *slot =
		put(&map->table, sizeof(*slot), LOAD_U64, ky_hash_table_tag(ky_hash_u64(key)));
	if (!slot)
		return NULL;
	slot->key = key;
	return &slot->value;
}

void ky_u64_map_remove(struct ky_u64_map *map, uint64_t key)
{
	uint32_t *value = ky_u64_map_find(map, key);
	if (value)
		take(&map->table, sizeof(struct ky_u64_slot),
		     (char *)value - offsetof(struct ky_u64_slot, value));
}

void ky_u64_map_free(struct ky_u64_map *map)
{
	clear(&map->table);
}

/* ---- two 64-bit keys to a 64-bit value ---- */

static struct ky_pair_slot *pair_slot(const struct ky_pair_map *map, uint32_t tag, uint64_t a,
				      uint64_t b)
{
	struct ky_pair_slot *slot;
	if (!map->table.room)
		return NULL;
	for (uint32_t at = tag; (slot = ky_hash_table_next(&map->table, sizeof(*slot), tag, &at));)
		if (slot->a == a && slot->b == b)
			return slot;
	return NULL;
}

uint64_t *ky_pair_map_find(const struct ky_pair_map *map, uint64_t a, uint64_t b)
{
	struct ky_pair_slot *slot = pair_slot(map, ky_hash_table_tag(ky_hash_pair(a, b)), a, b);
	return slot ? &slot->value : NULL;
}

uint64_t *ky_pair_map_add(struct ky_pair_map *map, uint64_t a, uint64_t b, bool *made)
{
	const uint32_t tag = ky_hash_table_tag(ky_hash_pair(a, b));
	struct ky_pair_slot *slot = pair_slot(map, tag, a, b);
	*made = !slot;
	if (slot)
		return &slot->value;
	slot = put(&map->table, sizeof(*slot), LOAD_PAIR, tag);
	if (!slot)
		return NULL;
	slot->a = a;
	slot->b = b;
	return &slot->value;
}

void ky_pair_map_remove(struct ky_pair_map *map, uint64_t a, uint64_t b)
{
	struct ky_pair_slot *slot = pair_slot(map, ky_hash_table_tag(ky_hash_pair(a, b)), a, b);
	if (slot)
		take(&map->table, sizeof(*slot), slot);
}

void ky_pair_map_free(struct ky_pair_map *map)
{
	clear(&map->table);
}

/* ---- a hash to numbers of items ---- */

bool ky_hash_index_reserve(struct ky_hash_index *index, uint32_t count)
{
	while ((uint64_t)count * 8 > (uint64_t)index->table.room * LOAD_INDEX)
		if (!grow(&index->table, sizeof(struct ky_hash_index_slot)))
			return false;
	return true;
}

bool ky_hash_index_add(struct ky_hash_index *index, uint64_t hash, uint32_t number)
{
	struct ky_hash_index_slot *slot =
		put(&index->table, sizeof(*slot), LOAD_INDEX, ky_hash_table_tag(hash));
	if (slot)
		slot->number = number;
	return slot != NULL;
}

void ky_hash_index_free(struct ky_hash_index *index)
{
	clear(&index->table);
}
