/* SPDX-License-Identifier: MIT */
/*
 * strings.h: every text of a trace once, by number. Equal numbers are equal texts. 0 is no text at
 * all (NULL in SQL), which is not the empty text. Texts are any bytes but are NUL-terminated as well;
 * readers make what must be UTF-8 valid (ky_strings_add_utf8).
 */
#ifndef KY_MODEL_STRINGS_H
#define KY_MODEL_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ky_string_entry {
	uint64_t place; /* in bytes */
	uint32_t size;
	uint32_t hash;
};

struct ky_strings {
	char *bytes; /* all texts, each with its NUL */
	uint64_t bytes_used;
	uint64_t bytes_room;
	struct ky_string_entry *entries; /* by number */
	uint64_t entries_room;
	uint32_t count;
	uint32_t *slots; /* numbers by hash, 0 is free; a power of two in size */
	uint64_t slots_room;
	uint64_t seed; /* of the hash: nobody can make texts that collide */
};

int ky_strings_init(struct ky_strings *strings);
void ky_strings_free(struct ky_strings *strings);

/* The text's number, the same for the same text; 0 only without memory. bytes of any length below 2^31. */
uint32_t ky_strings_add(struct ky_strings *strings, const char *text, size_t bytes);
/* The same; what is not UTF-8 is replaced by U+FFFD. */
uint32_t ky_strings_add_utf8(struct ky_strings *strings, const char *text, size_t bytes);
/* The number of a text that is there already, else 0. */
uint32_t ky_strings_find(const struct ky_strings *strings, const char *text, size_t bytes);

/* The text; NULL for 0. Until the next add. */
static inline const char *ky_strings_text(const struct ky_strings *strings, uint32_t number)
{
	return number ? strings->bytes + strings->entries[number].place : NULL;
}

static inline uint32_t ky_strings_bytes(const struct ky_strings *strings, uint32_t number)
{
	return number ? strings->entries[number].size : 0;
}

uint64_t ky_strings_memory(const struct ky_strings *strings);

#endif
