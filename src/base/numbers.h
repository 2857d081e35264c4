/* SPDX-License-Identifier: MIT */
/*
 * numbers.h: from a 64-bit key to a 32-bit number: an open hash table for readers' own keys (an event's
 * id, a pid, an address in a process). The hash is seeded at run time: no input can be made to collide.
 */
#ifndef KY_BASE_NUMBERS_H
#define KY_BASE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_number {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};

struct ky_numbers {
	struct ky_number *slots;
	uint32_t room; /* a power of two, or 0 */
	uint32_t count;
	uint64_t seed;
};

void ky_numbers_free(struct ky_numbers *numbers);
/* Where the key's value is, made 0 when *made; NULL without memory. Until the next make. */
uint32_t *ky_numbers_make(struct ky_numbers *numbers, uint64_t key, bool *made);

static inline uint32_t ky_numbers_slot(const struct ky_numbers *numbers, uint64_t key)
{
	uint64_t hash = (key ^ numbers->seed) * 0x9e3779b97f4a7c15u;
	hash ^= hash >> 29;
	hash *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(hash >> 32) & (numbers->room - 1);
}

/* The key's value, or NULL. */
static inline uint32_t *ky_numbers_find(const struct ky_numbers *numbers, uint64_t key)
{
	if (!numbers->room)
		return NULL;
	for (uint32_t i = ky_numbers_slot(numbers, key);; i = (i + 1) & (numbers->room - 1)) {
		struct ky_number *slot = &numbers->slots[i];
		if (!slot->used)
			return NULL;
		if (slot->key == key)
			return &slot->value;
	}
}

#endif
