/* SPDX-License-Identifier: MIT */
/*
 * strings.h: the string table: every text once, by number. Equal numbers are equal texts. 0 is no text at all
 * (NULL in SQL), which is not the empty text. Texts are any bytes, NUL-terminated as well; ky_strings_add_utf8()
 * makes them valid UTF-8.
 *
 * All texts are in one array of bytes, each with its NUL; an entry for each number holds where its text is.
 * At the end: how far two words are apart.
 */
#ifndef KY_BASE_STRINGS_H
#define KY_BASE_STRINGS_H

#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_string_entry {
	uint64_t place; /* in bytes */
	uint32_t size;
};

struct ky_strings {
	char *bytes;
	uint64_t bytes_used;
	uint64_t bytes_room;
	struct ky_string_entry *entries; /* by number */
	uint32_t entries_room;
	uint32_t count; /* of numbers, with 0 */
	struct ky_hash_index index;
};

/* Make an empty table. 0 or -ENOMEM. */
int ky_strings_init(struct ky_strings *strings);
/* Free the table. */
void ky_strings_free(struct ky_strings *strings);

/* Return the number of a text of less than 2^31 bytes, adding it if it is new; 0 only without memory. */
uint32_t ky_strings_add(struct ky_strings *strings, const char *text, size_t bytes);
/* Do the same with U+FFFD for everything that is not valid UTF-8. */
uint32_t ky_strings_add_utf8(struct ky_strings *strings, const char *text, size_t bytes);
/* Return the number of a text that was added, else 0. */
uint32_t ky_strings_find(const struct ky_strings *strings, const char *text, size_t bytes);

/* Return the text of a number, valid until the next add; NULL for 0. */
static inline const char *ky_strings_text(const struct ky_strings *strings, uint32_t number)
{
	return number ? strings->bytes + strings->entries[number].place : NULL;
}

/* Return the size of a number's text; 0 for 0. */
static inline uint32_t ky_strings_bytes(const struct ky_strings *strings, uint32_t number)
{
	return number ? strings->entries[number].size : 0;
}

/* Return the memory that the table uses. */
uint64_t ky_strings_memory(const struct ky_strings *strings);

/*
 * Return how many letters to change, add, remove or swap with their neighbour to turn one word into the other; UINT32_MAX:
 * b is longer than KY_STRINGS_WORD_BYTES_MAX.
 */
#define KY_STRINGS_WORD_BYTES_MAX 96u
uint32_t ky_strings_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes);

#endif
