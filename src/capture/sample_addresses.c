/* SPDX-License-Identifier: MIT */
/* sample_addresses.c: an open hash table of addresses. */
#include "capture/sample_addresses.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define ROOM_FIRST 4096u
#define ROOM_MAX (1u << 20)

void ky_sample_addresses_free(struct ky_sample_addresses *places)
{
	free(places->slots);
	*places = (struct ky_sample_addresses){0};
}

static bool is_same(const struct ky_sample_address *a, const struct ky_sample_address *b)
{
	return a->address == b->address && a->module == b->module && a->pid == b->pid;
}

static struct ky_sample_address *slot_of(const struct ky_sample_addresses *places,
					 const struct ky_sample_address *place)
{
	uint64_t hash = (place->address ^ places->seed) * 0x9e3779b97f4a7c15u;
	hash = (hash ^ hash >> 32 ^ (uint64_t)place->module << 32 ^ place->pid) *
	       0xbf58476d1ce4e5b9u;
	for (size_t i = (size_t)(hash >> 32);; i++) {
		struct ky_sample_address *slot = &places->slots[i & (places->room - 1)];
		if (!slot->seen || is_same(slot, place))
			return slot;
	}
}

/* Make a new table, with what is not forgotten. Return false without memory. */
static bool rebuild(struct ky_sample_addresses *places, size_t room, uint64_t keep_ns)
{
	struct ky_sample_addresses next = {
		.room = room, .seed = places->seed, .left_out = places->left_out};
	next.slots = calloc(room, sizeof(*next.slots));
	if (!next.slots)
		return false;
	for (size_t i = 0; i < places->room; i++) {
		const struct ky_sample_address *place = &places->slots[i];
		if (!place->seen || (!place->wanted && place->seen < keep_ns))
			continue;
		*slot_of(&next, place) = *place;
		next.count++;
	}
	free(places->slots);
	*places = next;
	return true;
}

static bool make_room(struct ky_sample_addresses *places, uint64_t keep_ns)
{
	if (!places->room) {
		if (getrandom(&places->seed, sizeof(places->seed), GRND_NONBLOCK) < 0)
			places->seed = (uint64_t)(uintptr_t)places;
		return rebuild(places, ROOM_FIRST, 0);
	}
	if (places->count < places->room / 4 * 3)
		return true;
	if (places->room < ROOM_MAX)
		return rebuild(places, 2 * places->room, 0);
	/* Half of it must have been freed: or each new place would build the table again. */
	return !places->left_out && rebuild(places, places->room, keep_ns) &&
	       places->count < places->room / 2;
}

void ky_sample_addresses_add(struct ky_sample_addresses *places,
			     const struct ky_sample_address *place, uint64_t keep_ns)
{
	if (places->room) {
		struct ky_sample_address *slot = slot_of(places, place);
		if (slot->seen) {
			slot->seen = place->seen;
			slot->wanted |= place->wanted;
			return;
		}
	}
	if (!make_room(places, keep_ns)) {
		places->left_out++;
		return;
	}
	*slot_of(places, place) = *place;
	places->count++;
}

void ky_sample_addresses_want(struct ky_sample_addresses *places, uint64_t since)
{
	for (size_t i = 0; i < places->room; i++)
		places->slots[i].wanted |= places->slots[i].seen && places->slots[i].seen >= since;
}

static int by_module(const void *a_, const void *b_)
{
	const struct ky_sample_address *a = a_;
	const struct ky_sample_address *b = b_;
	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

size_t ky_sample_addresses_sort(struct ky_sample_addresses *places)
{
	size_t count = 0;
	for (size_t i = 0; i < places->room; i++)
		if (places->slots[i].wanted)
			places->slots[count++] = places->slots[i];
	if (count)
		qsort(places->slots, count, sizeof(*places->slots), by_module);
	return count;
}
