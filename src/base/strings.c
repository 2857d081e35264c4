/* SPDX-License-Identifier: MIT */
/* strings.c: see strings.h. */
#include "base/strings.h"

#include "base/array.h"
#include "core/utf8_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX (UINT32_MAX / 2)
/* Room from the start: most traces have few texts, which come again and again; their chains are short. */
#define NUMBERS_FIRST 192u

int ky_strings_init(struct ky_strings *strings)
{
	*strings = (struct ky_strings){0};
	if (ky_hash_index_reserve(&strings->index, NUMBERS_FIRST) &&
	    KY_ARRAY_ADD(strings->entries, strings->count, strings->entries_room,
			 (struct ky_string_entry){0, 0}))
		return 0;
	ky_strings_free(strings);
	return -ENOMEM;
}

void ky_strings_free(struct ky_strings *strings)
{
	ky_hash_index_free(&strings->index);
	KY_ARRAY_FREE(strings->entries, strings->entries_room);
	KY_ARRAY_FREE(strings->bytes, strings->bytes_room);
	*strings = (struct ky_strings){0};
}

static inline uint32_t find(const struct ky_strings *strings, uint64_t hash, const char *text,
			    size_t bytes)
{
	struct ky_hash_probe probe = ky_hash_index_probe(&strings->index, hash);
	for (uint32_t number; ky_hash_index_next(&probe, &number);) {
		const struct ky_string_entry *entry = &strings->entries[number];
		if (entry->size == bytes && memcmp(strings->bytes + entry->place, text, bytes) == 0)
			return number;
	}
	return 0;
}

static uint32_t insert(struct ky_strings *strings, uint64_t hash, const char *text, size_t bytes)
{
	const uint64_t place = strings->bytes_used;
	if (strings->count >= NUMBERS_MAX || bytes > INT32_MAX ||
	    !KY_ARRAY_GROW(strings->entries, strings->entries_room, strings->count + 1) ||
	    !KY_ARRAY_GROW(strings->bytes, strings->bytes_room, place + bytes + 1) ||
	    !ky_hash_index_add(&strings->index, hash, strings->count))
		return 0;
	memcpy(strings->bytes + place, text, bytes);
	strings->bytes[place + bytes] = '\0';
	strings->bytes_used += bytes + 1;
	strings->entries[strings->count] = (struct ky_string_entry){place, (uint32_t)bytes};
	return strings->count++;
}

uint32_t ky_strings_find(const struct ky_strings *strings, const char *text, size_t bytes)
{
	return find(strings, ky_hash_bytes(text, bytes), text, bytes);
}

uint32_t ky_strings_add(struct ky_strings *strings, const char *text, size_t bytes)
{
	const uint64_t hash = ky_hash_bytes(text, bytes);
	const uint32_t number = find(strings, hash, text, bytes);
	return number ? number : insert(strings, hash, text, bytes);
}

/* Return a copy with U+FFFD for what is not valid; the caller frees it. */
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
	const uint64_t hash = ky_hash_bytes(text, bytes);
	const uint32_t number = find(strings, hash, text, bytes);
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
	       (uint64_t)strings->index.table.room * sizeof(struct ky_hash_index_slot);
}
