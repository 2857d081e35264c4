/* SPDX-License-Identifier: MIT */
/* strings.c: see strings.h. */
#include "base/strings.h"

#include "base/array.h"
#include "base/memory.h"
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
	if (!copy) {
		ky_memory_missing();
		return NULL;
	}
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

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Of the table of distances between all their beginnings, three rows are kept: for i, i - 1 and i - 2 letters of a. */
uint32_t ky_strings_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	uint32_t rows[3][KY_STRINGS_WORD_BYTES_MAX + 1];
	if (b_bytes > KY_STRINGS_WORD_BYTES_MAX)
		return UINT32_MAX;
	for (uint32_t j = 0; j <= b_bytes; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_bytes; i++) {
		uint32_t *const row = rows[i % 3];
		const uint32_t *const above = rows[(i - 1) % 3], *const before = rows[(i + 1) % 3];
		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= b_bytes; j++) {
			row[j] = least(least(above[j], row[j - 1]) + 1,
				       above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
	}
	return rows[a_bytes % 3][b_bytes];
}
