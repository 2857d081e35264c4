/* SPDX-License-Identifier: MIT */
/* chars.h: characters and numbers of texts in ASCII, whatever the locale is. */
#ifndef KY_BASE_CHARS_H
#define KY_BASE_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ky_chars_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool ky_chars_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Report whether it may be in a name of C. */
static inline bool ky_chars_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || ky_chars_is_digit(c) || c == '_';
}

/* Return the value of a hexadecimal digit; -1: it is not a digit. */
static inline int ky_chars_hex_digit(char c)
{
	const char lower = (char)(c | 0x20);
	if (ky_chars_is_digit(c))
		return c - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static inline const char *ky_chars_skip_blanks(const char *at, const char *end)
{
	while (at < end && ky_chars_is_blank(*at))
		at++;
	return at;
}

/* Read a decimal number and return where it ends; NULL when there is none, or one above max. */
static inline const char *ky_chars_decimal(const char *at, const char *end, uint64_t max,
					   uint64_t *value)
{
	const char *const begin = at;
	for (*value = 0; at < end && ky_chars_is_digit(*at); at++)
		if (__builtin_mul_overflow(*value, UINT64_C(10), value) ||
		    __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value) || *value > max)
			return NULL;
	return at > begin ? at : NULL;
}

/* Do the same with a hexadecimal number of at most 16 digits and no prefix. */
static inline const char *ky_chars_hex(const char *at, const char *end, uint64_t *value)
{
	const char *const begin = at;
	for (*value = 0; at < end && ky_chars_hex_digit(*at) >= 0; at++)
		*value = *value << 4 | (uint64_t)ky_chars_hex_digit(*at);
	return at > begin && at - begin <= 16 ? at : NULL;
}

#endif
