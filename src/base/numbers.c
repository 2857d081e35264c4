/* SPDX-License-Identifier: MIT */
/* numbers.c: the hash table of numbers.h, at most half full. */
#include "base/numbers.h"

#include <stdlib.h>
#include <sys/random.h>

void ky_numbers_free(struct ky_numbers *numbers)
{
	free(numbers->slots);
	*numbers = (struct ky_numbers){0};
}

static struct ky_number *free_slot(const struct ky_numbers *numbers, uint64_t key)
{
	uint32_t i = ky_numbers_slot(numbers, key);
	while (numbers->slots[i].used)
		i = (i + 1) & (numbers->room - 1);
	return &numbers->slots[i];
}

static bool grow(struct ky_numbers *numbers)
{
	struct ky_numbers larger = *numbers;
	if (numbers->room >= 1u << 31)
		return false;
	larger.room = numbers->room ? numbers->room * 2 : 64;
	if (!numbers->room && getrandom(&larger.seed, sizeof(larger.seed), GRND_NONBLOCK) < 0)
		larger.seed = (uint64_t)(uintptr_t)&larger;
	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (uint32_t i = 0; i < numbers->room; i++)
		if (numbers->slots[i].used)
			*free_slot(&larger, numbers->slots[i].key) = numbers->slots[i];
	free(numbers->slots);
	*numbers = larger;
	return true;
}

uint32_t *ky_numbers_make(struct ky_numbers *numbers, uint64_t key, bool *made)
{
	uint32_t *found = ky_numbers_find(numbers, key);
	*made = !found;
	if (found)
		return found;
	if (numbers->count >= numbers->room / 2 && !grow(numbers))
		return NULL;
	struct ky_number *slot = free_slot(numbers, key);
	*slot = (struct ky_number){.key = key, .used = 1};
	numbers->count++;
	return &slot->value;
}
