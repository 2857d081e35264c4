/* SPDX-License-Identifier: MIT */
/* utf8_scan.c: find valid UTF-8. */
#include "core/utf8_scan.h"

#include <string.h>

size_t ky_utf8_promised(uint8_t first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2)
		return 0;
	if (first < 0xe0)
		return 2;
	if (first < 0xf0)
		return 3;
	return first < 0xf5 ? 4 : 0;
}

/* Overlong forms, surrogates and what is beyond Unicode show in the first two bytes. */
static bool is_forbidden(uint8_t first, uint8_t second)
{
	return (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
	       (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
}

size_t ky_utf8_sequence(const uint8_t *s, const uint8_t *end)
{
	const size_t bytes = ky_utf8_promised(*s);
	if (bytes < 2)
		return bytes;
	if ((size_t)(end - s) < bytes || is_forbidden(s[0], s[1]))
		return 0;
	for (size_t i = 1; i < bytes; i++)
		if (!ky_utf8_is_continuation(s[i]))
			return 0;
	return bytes;
}

/* Unicode's "maximal subpart", as in browsers and Python. */
size_t ky_utf8_subpart(const uint8_t *s, const uint8_t *end)
{
	const size_t promised = ky_utf8_promised(*s);
	if (promised < 2 || end - s < 2 || !ky_utf8_is_continuation(s[1]) ||
	    is_forbidden(s[0], s[1]))
		return 1;
	size_t bytes = 2;
	while (bytes < promised && s + bytes < end && ky_utf8_is_continuation(s[bytes]))
		bytes++;
	return bytes;
}

/* Eight bytes at a time while they are ASCII, as nearly all text is. */
bool ky_utf8_valid(const uint8_t *s, const uint8_t *end)
{
	while (s < end) {
		uint64_t word;
		if (end - s >= 8 &&
		    (memcpy(&word, s, 8), (word & UINT64_C(0x8080808080808080)) == 0)) {
			s += 8;
			continue;
		}
		const size_t bytes = ky_utf8_sequence(s, end);
		if (!bytes)
			return false;
		s += bytes;
	}
	return true;
}
