/* SPDX-License-Identifier: MIT */
/*
 * utf8.c: makes text valid UTF-8. See utf8.h.
 */
#include "utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS "\xe2\x80\xa6"

static bool is_continuation(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* How many bytes a sequence with that first byte has; 0 when none begins so. */
static size_t promised_bytes(uint8_t first)
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

/* The length of the valid sequence at s, or 0. */
static size_t sequence_bytes(const uint8_t *s, const uint8_t *end)
{
	const size_t bytes = promised_bytes(*s);
	if (bytes < 2)
		return bytes;
	if ((size_t)(end - s) < bytes || is_forbidden(s[0], s[1]))
		return 0;
	for (size_t i = 1; i < bytes; i++)
		if (!is_continuation(s[i]))
			return 0;
	return bytes;
}

/*
 * How many bytes at s, which begin no valid sequence, are replaced together: Unicode's "maximal
 * subpart", which is what browsers and Python do.
 */
static size_t subpart_bytes(const uint8_t *s, const uint8_t *end)
{
	const size_t promised = promised_bytes(*s);
	if (promised < 2 || end - s < 2 || !is_continuation(s[1]) || is_forbidden(s[0], s[1]))
		return 1;
	size_t bytes = 2;
	while (bytes < promised && s + bytes < end && is_continuation(s[bytes]))
		bytes++;
	return bytes;
}

/* Eight bytes at a time while they are ASCII: nearly all text is. */
static bool is_valid(const uint8_t *s, const uint8_t *end)
{
	while (s < end) {
		uint64_t word;
		if (end - s >= 8 &&
		    (memcpy(&word, s, 8), (word & UINT64_C(0x8080808080808080)) == 0)) {
			s += 8;
			continue;
		}
		const size_t bytes = sequence_bytes(s, end);
		if (!bytes)
			return false;
		s += bytes;
	}
	return true;
}

/* Where the character begins that the cut went through, or end. */
static const uint8_t *whole_end(const uint8_t *s, const uint8_t *end)
{
	const uint8_t *last = end;
	while (last > s && end - last < 4 && is_continuation(last[-1]))
		last--;
	if (last == s)
		return end;
	const size_t promised = promised_bytes(last[-1]);
	return promised > (size_t)(end - last) + 1 ? last - 1 : end;
}

struct ky_text ky_utf8_text(struct ky_out *scratch, struct ky_text text, bool cut)
{
	const uint8_t *s = (const uint8_t *)text.data;
	const uint8_t *end = s + text.bytes;
	if (!cut && is_valid(s, end))
		return text;
	if (cut)
		end = whole_end(s, end);
	scratch->used = 0;
	while (s < end) {
		const size_t bytes = sequence_bytes(s, end);
		if (bytes)
			ky_out_append(scratch, s, bytes);
		else
			ky_out_append(scratch, REPLACEMENT, 3);
		s += bytes ? bytes : subpart_bytes(s, end);
	}
	if (cut)
		ky_out_append(scratch, ELLIPSIS, 3);
	return (struct ky_text){(const char *)scratch->data, (uint32_t)scratch->used};
}

struct ky_text ky_utf8_arg(struct ky_out *scratch, const struct kymo_arg *arg)
{
	if (!arg->string)
		return (struct ky_text){"(null)", 6};
	return ky_utf8_text(scratch, (struct ky_text){arg->string, arg->string_bytes}, arg->cut);
}
