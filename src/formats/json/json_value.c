/* SPDX-License-Identifier: MIT */
/*
 * json_value.c: JSON tokens. See json_value.h.
 *
 * Doubles: most that programs trace have few decimals. Those are found by scaling to an integer n of
 * at most 2^53: if n / 10^6 gives the double back, so does any correct reader of the digits, because
 * both n and 10^6 are exact and the division is correctly rounded. The rest goes through printf.
 */
#include "formats/json/json_value.h"

#include "formats/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

uint8_t *ky_json_put_uint(uint8_t *to, uint64_t value)
{
	uint8_t digits[20];
	uint8_t *first = digits + sizeof(digits);
	do {
		*--first = (uint8_t)('0' + value % 10);
		value /= 10;
	} while (value);
	const size_t bytes = (size_t)(digits + sizeof(digits) - first);
	memcpy(to, first, bytes);
	return to + bytes;
}

uint8_t *ky_json_put_int(uint8_t *to, int64_t value)
{
	if (value >= 0)
		return ky_json_put_uint(to, (uint64_t)value);
	*to++ = '-';
	return ky_json_put_uint(to, -(uint64_t)value);
}

uint8_t *ky_json_put_hex(uint8_t *to, uint64_t value)
{
	memcpy(to, "\"0x", 3);
	to += 3;
	const int bits = value ? 64 - __builtin_clzll(value) : 1;
	for (int shift = (bits - 1) / 4 * 4; shift >= 0; shift -= 4)
		*to++ = (uint8_t) "0123456789abcdef"[value >> shift & 15];
	*to++ = '"';
	return to;
}

static uint8_t *put(uint8_t *to, const char *text)
{
	const size_t bytes = strlen(text);
	memcpy(to, text, bytes);
	return to + bytes;
}

#define DECIMALS 6
#define SCALE 1000000u

/* The double with at most DECIMALS decimals, or NULL when it takes more. */
static uint8_t *put_decimal(uint8_t *to, double value)
{
	const double magnitude = fabs(value);
	const double scaled = magnitude * SCALE + 0.5;
	const uint64_t n = scaled < 0x1p53 ? (uint64_t)scaled : 0;
	const double back = (double)n / SCALE;
	if (back < magnitude || back > magnitude)
		return NULL;
	if (signbit(value))
		*to++ = '-';
	to = ky_json_put_uint(to, n / SCALE);
	*to++ = '.';
	uint64_t rest = n % SCALE;
	uint64_t unit = SCALE / 10;
	do {
		*to++ = (uint8_t)('0' + rest / unit);
		rest %= unit;
		unit /= 10;
	} while (rest);
	return to;
}

/* printf's digits with a point for whatever the program's locale has there, and a mark of a double. */
static uint8_t *put_unlocalized(uint8_t *to, const char *text)
{
	bool is_double = false;
	for (; *text; text++) {
		const bool digit = *text >= '0' && *text <= '9';
		if (digit || *text == '-' || *text == '+' || *text == 'e') {
			*to++ = (uint8_t)*text;
			is_double |= *text == 'e';
		} else if (to[-1] != '.') {
			*to++ = '.';
			is_double = true;
		}
	}
	return is_double ? to : put(to, ".0");
}

uint8_t *ky_json_put_double(uint8_t *to, double value)
{
	if (isnan(value))
		return put(to, "\"NaN\"");
	if (isinf(value))
		return put(to, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	uint8_t *end = put_decimal(to, value);
	if (end)
		return end;
	char text[64];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		const double back = strtod(text, NULL);
		if (!(back < value) && !(back > value))
			break;
	}
	return put_unlocalized(to, text);
}

/* Return the short escape of a character, or 0. */
static char short_escape(uint8_t c)
{
	switch (c) {
	case '"':
	case '\\':
		return (char)c;
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return 0;
	}
}

static uint8_t *put_escape(uint8_t *to, uint8_t c)
{
	const char letter = short_escape(c);
	*to++ = '\\';
	if (letter) {
		*to++ = (uint8_t)letter;
		return to;
	}
	memcpy(to, "u00", 3);
	to[3] = (uint8_t) "0123456789abcdef"[c >> 4];
	to[4] = (uint8_t) "0123456789abcdef"[c & 15];
	return to + 5;
}

#define PART_BYTES 4096u /* of input at once: in the worst case six times so many are written */

void ky_json_quote(struct ky_out *out, struct ky_text text)
{
	const uint8_t *s = (const uint8_t *)text.data;
	size_t left = text.bytes;
	ky_out_append(out, "\"", 1);
	while (left) {
		const size_t part = left < PART_BYTES ? left : PART_BYTES;
		uint8_t *to = ky_out_room(out, part * 6);
		for (size_t i = 0; i < part; i++) {
			if (s[i] >= 0x20 && s[i] != '"' && s[i] != '\\')
				*to++ = s[i];
			else
				to = put_escape(to, s[i]);
		}
		ky_out_done(out, to);
		s += part;
		left -= part;
	}
	ky_out_append(out, "\"", 1);
}

void ky_json_append_uint_arg(struct ky_out *out, uint64_t value)
{
	const char *quote = value > INT64_MAX ? "\"" : "";
	ky_json_append(out, quote);
	ky_json_append_uint(out, value);
	ky_json_append(out, quote);
}

void ky_json_append_text(struct ky_out *out, struct ky_out *scratch, struct ky_text text)
{
	ky_json_quote(out, ky_utf8_text(scratch, text, false));
}
