/* SPDX-License-Identifier: MIT */
/*
 * walk_json.c: RFC 8259 by recursive descent. Returns where the value ends, or NULL.
 */
#include <string.h>

#include "walk.h"

static const uint8_t *value(const uint8_t *s, const uint8_t *end);

static const uint8_t *blanks(const uint8_t *s, const uint8_t *end)
{
	while (s < end && (*s == ' ' || *s == '\n' || *s == '\r' || *s == '\t'))
		s++;
	return s;
}

static const uint8_t *digits(const uint8_t *s, const uint8_t *end)
{
	const uint8_t *first = s;
	while (s < end && *s >= '0' && *s <= '9')
		s++;
	return s > first ? s : NULL;
}

static const uint8_t *number(const uint8_t *s, const uint8_t *end)
{
	if (s < end && *s == '-')
		s++;
	const bool zero = s < end && *s == '0';
	const uint8_t *first = s;
	s = digits(s, end);
	if (!s || (zero && s - first > 1))
		return NULL;
	if (s < end && *s == '.')
		s = digits(s + 1, end);
	if (s && s < end && (*s == 'e' || *s == 'E')) {
		s++;
		if (s < end && (*s == '+' || *s == '-'))
			s++;
		s = digits(s, end);
	}
	return s;
}

static bool is_hex(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* After the backslash. Escapes of surrogates are valid JSON, but Perfetto refuses them. */
static const uint8_t *escape(const uint8_t *s, const uint8_t *end)
{
	if (s >= end)
		return NULL;
	if (*s != 'u')
		return strchr("\"\\/bfnrt", *s) ? s + 1 : NULL;
	if (end - s < 5 || !is_hex(s[1]) || !is_hex(s[2]) || !is_hex(s[3]) || !is_hex(s[4]))
		return NULL;
	return s[1] == 'd' || s[1] == 'D' ? NULL : s + 5;
}

/* By value, not by a table of bytes as the writers do it. */
static const uint8_t *character(const uint8_t *s, const uint8_t *end)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	if (*s < 0x80)
		return *s < 0x20 ? NULL : s + 1;
	const int bytes = *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
	if (!bytes || end - s < bytes)
		return NULL;
	uint32_t code = *s & (0x7fu >> bytes);
	for (int i = 1; i < bytes; i++) {
		if (s[i] >> 6 != 2)
			return NULL;
		code = code << 6 | (s[i] & 0x3fu);
	}
	const bool surrogate = code >= 0xd800 && code < 0xe000;
	return code < smallest[bytes] || surrogate || code > 0x10ffff ? NULL : s + bytes;
}

static const uint8_t *string(const uint8_t *s, const uint8_t *end)
{
	if (s >= end || *s++ != '"')
		return NULL;
	while (s && s < end && *s != '"')
		s = *s == '\\' ? escape(s + 1, end) : character(s, end);
	return s && s < end ? s + 1 : NULL;
}

static const uint8_t *pair(const uint8_t *s, const uint8_t *end)
{
	s = string(s, end);
	s = s ? blanks(s, end) : NULL;
	return s && s < end && *s == ':' ? value(blanks(s + 1, end), end) : NULL;
}

/* An array or an object, after its first bracket. */
static const uint8_t *list(const uint8_t *s, const uint8_t *end, uint8_t close)
{
	s = blanks(s, end);
	if (s < end && *s == close)
		return s + 1;
	while (s) {
		s = blanks(s, end);
		s = close == '}' ? pair(s, end) : value(s, end);
		s = s ? blanks(s, end) : NULL;
		if (!s || s >= end)
			return NULL;
		if (*s == close)
			return s + 1;
		s = *s == ',' ? s + 1 : NULL;
	}
	return NULL;
}

static const uint8_t *word(const uint8_t *s, const uint8_t *end, const char *text)
{
	const size_t bytes = strlen(text);
	return (size_t)(end - s) >= bytes && memcmp(s, text, bytes) == 0 ? s + bytes : NULL;
}

static const uint8_t *value(const uint8_t *s, const uint8_t *end)
{
	if (s >= end)
		return NULL;
	switch (*s) {
	case '{':
		return list(s + 1, end, '}');
	case '[':
		return list(s + 1, end, ']');
	case '"':
		return string(s, end);
	case 't':
		return word(s, end, "true");
	case 'f':
		return word(s, end, "false");
	case 'n':
		return word(s, end, "null");
	default:
		return number(s, end);
	}
}

bool walk_json(const uint8_t *data, size_t bytes)
{
	const uint8_t *end = data + bytes;
	const uint8_t *s = value(blanks(data, end), end);
	return s && blanks(s, end) == end;
}
