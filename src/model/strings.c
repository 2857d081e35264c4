/* SPDX-License-Identifier: MIT */
/*
 * strings.c: see strings.h. An open hash table of numbers over one array of bytes; the hash reads eight bytes
 * at a time, for most texts are short.
 */
#include "model/strings.h"

#include "core/utf8_scan.h"
#include "model/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define SLOTS_FIRST 256u
#define NUMBERS_MAX (UINT32_MAX / 2)

__extension__ typedef unsigned __int128 ky_u128;

static uint64_t load64(const char *p)
{
	uint64_t word;
	memcpy(&word, p, 8);
	return word;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	const ky_u128 product = (ky_u128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t hash_of(const struct ky_strings *strings, const char *text, size_t bytes)
{
	uint64_t h = strings->seed ^ (bytes * UINT64_C(0x9e3779b97f4a7c15));
	size_t at = 0;
	for (; bytes - at >= 8; at += 8)
		h = mix(h ^ load64(text + at), UINT64_C(0xa0761d6478bd642f));
	uint64_t tail = 0;
	memcpy(&tail, text + at, bytes - at);
	h = mix(h ^ tail, UINT64_C(0xe7037ed1a0b428db) ^ strings->seed);
	return (uint32_t)(h ^ h >> 32);
}

int ky_strings_init(struct ky_strings *strings)
{
	memset(strings, 0, sizeof(*strings));
	if (getrandom(&strings->seed, sizeof(strings->seed), GRND_NONBLOCK) < 0)
		strings->seed = (uint64_t)(uintptr_t)strings * UINT64_C(0x9e3779b97f4a7c15);
	strings->slots = calloc(SLOTS_FIRST, sizeof(*strings->slots));
	if (!strings->slots ||
	    !ky_array_grow_raw((void **)&strings->entries, &strings->entries_room,
			       sizeof(*strings->entries), 1)) {
		ky_strings_free(strings);
		return -ENOMEM;
	}
	strings->slots_room = SLOTS_FIRST;
	strings->entries[0] = (struct ky_string_entry){0, 0, 0};
	strings->count = 1;
	return 0;
}

void ky_strings_free(struct ky_strings *strings)
{
	free(strings->slots);
	ky_array_free((void **)&strings->entries, &strings->entries_room);
	ky_array_free((void **)&strings->bytes, &strings->bytes_room);
	memset(strings, 0, sizeof(*strings));
}

/* The slot that holds the text or where it belongs. */
static uint64_t slot_of(const struct ky_strings *strings, uint32_t hash, const char *text,
			size_t bytes)
{
	const uint64_t mask = strings->slots_room - 1;
	uint64_t at = hash & mask;
	for (; strings->slots[at]; at = (at + 1) & mask) {
		const struct ky_string_entry *entry = &strings->entries[strings->slots[at]];
		if (entry->hash == hash && entry->size == bytes &&
		    memcmp(strings->bytes + entry->place, text, bytes) == 0)
			break;
	}
	return at;
}

static bool grow_slots(struct ky_strings *strings)
{
	const uint64_t room = strings->slots_room * 2;
	uint32_t *slots = calloc(room, sizeof(*slots));
	if (!slots)
		return false;
	for (uint32_t i = 1; i < strings->count; i++) {
		uint64_t at = strings->entries[i].hash & (room - 1);
		while (slots[at])
			at = (at + 1) & (room - 1);
		slots[at] = i;
	}
	free(strings->slots);
	strings->slots = slots;
	strings->slots_room = room;
	return true;
}

static uint32_t insert(struct ky_strings *strings, uint32_t hash, const char *text, size_t bytes)
{
	const uint64_t place = strings->bytes_used;
	if (strings->count >= NUMBERS_MAX || bytes > INT32_MAX ||
	    ((uint64_t)strings->count * 4 >= strings->slots_room * 3 && !grow_slots(strings)) ||
	    !ky_array_grow_raw((void **)&strings->entries, &strings->entries_room,
			       sizeof(*strings->entries), (uint64_t)strings->count + 1) ||
	    !ky_array_grow_raw((void **)&strings->bytes, &strings->bytes_room, 1,
			       place + bytes + 1))
		return 0;
	memcpy(strings->bytes + place, text, bytes);
	strings->bytes[place + bytes] = '\0';
	strings->bytes_used += bytes + 1;
	const uint32_t number = strings->count++;
	strings->entries[number] = (struct ky_string_entry){place, (uint32_t)bytes, hash};
	strings->slots[slot_of(strings, hash, text, bytes)] = number;
	return number;
}

uint32_t ky_strings_find(const struct ky_strings *strings, const char *text, size_t bytes)
{
	return strings->slots[slot_of(strings, hash_of(strings, text, bytes), text, bytes)];
}

uint32_t ky_strings_add(struct ky_strings *strings, const char *text, size_t bytes)
{
	const uint32_t hash = hash_of(strings, text, bytes);
	const uint32_t number = strings->slots[slot_of(strings, hash, text, bytes)];
	return number ? number : insert(strings, hash, text, bytes);
}

/* A copy with U+FFFD for what is not valid; the caller's to free. */
static char *repaired(const char *text, size_t bytes, size_t *repaired_bytes)
{
	if (bytes > INT32_MAX / 3)
		return NULL;
	char *copy = malloc(bytes * 3 + 1);
	if (!copy)
		return NULL;
	const uint8_t *s = (const uint8_t *)text;
	const uint8_t *end = s + bytes;
	size_t used = 0;
	while (s < end) {
		const size_t valid = ky_utf8_sequence(s, end);
		if (valid)
			memcpy(copy + used, s, valid);
		else
			memcpy(copy + used, "\xef\xbf\xbd", 3);
		used += valid ? valid : 3;
		s += valid ? valid : ky_utf8_subpart(s, end);
	}
	*repaired_bytes = used;
	return copy;
}

uint32_t ky_strings_add_utf8(struct ky_strings *strings, const char *text, size_t bytes)
{
	const uint32_t hash = hash_of(strings, text, bytes);
	const uint32_t number = strings->slots[slot_of(strings, hash, text, bytes)];
	if (number)
		return number;
	if (ky_utf8_valid((const uint8_t *)text, (const uint8_t *)text + bytes))
		return insert(strings, hash, text, bytes);
	char *copy = repaired(text, bytes, &bytes);
	const uint32_t added = copy ? ky_strings_add(strings, copy, bytes) : 0;
	free(copy);
	return added;
}

uint64_t ky_strings_memory(const struct ky_strings *strings)
{
	return strings->bytes_used + strings->count * sizeof(*strings->entries) +
	       strings->slots_room * sizeof(*strings->slots);
}
