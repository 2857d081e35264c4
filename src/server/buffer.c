/* SPDX-License-Identifier: MIT */
/*
 * buffer.c: see buffer.h. A comma is due unless the last byte opened something or ends a key: JSON's own brackets
 * and colon are never the last byte of a value.
 */
#include "server/buffer.h"
#include "core/utf8_scan.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

static void add_comma(struct ky_buffer *buffer)
{
	if (buffer->failed || !buffer->bytes)
		return;
	const char last = buffer->data[buffer->bytes - 1];
	if (last != '{' && last != '[' && last != ':')
		ky_buffer_add(buffer, ",", 1);
}

void ky_json_begin(struct ky_buffer *buffer, char bracket)
{
	assert(bracket == '{' || bracket == '[');
	add_comma(buffer);
	ky_buffer_add(buffer, &bracket, 1);
}

void ky_json_end(struct ky_buffer *buffer, char bracket)
{
	assert(bracket == '}' || bracket == ']');
	ky_buffer_add(buffer, &bracket, 1);
}

void ky_json_key(struct ky_buffer *buffer, const char *key)
{
	ky_json_text(buffer, key);
	ky_buffer_add(buffer, ":", 1);
}

static void add_escape(struct ky_buffer *buffer, uint8_t byte)
{
	if (byte == '"' || byte == '\\')
		ky_buffer_format(buffer, "\\%c", byte);
	else
		ky_buffer_format(buffer, "\\u%04x", byte);
}

static bool is_plain(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* What stands for the bytes at s, which are not plain; how many they are. */
static size_t add_special(struct ky_buffer *buffer, const uint8_t *s, const uint8_t *end)
{
	if (*s < 0x80) {
		add_escape(buffer, *s);
		return 1;
	}
	const size_t bytes = ky_utf8_sequence(s, end);
	if (bytes) {
		ky_buffer_add(buffer, s, bytes);
		return bytes;
	}
	ky_buffer_text(buffer, REPLACEMENT);
	return ky_utf8_subpart(s, end);
}

void ky_json_string(struct ky_buffer *buffer, const char *text, size_t bytes)
{
	if (!text) {
		ky_json_null(buffer);
		return;
	}
	const uint8_t *s = (const uint8_t *)text;
	const uint8_t *const end = s + bytes;
	add_comma(buffer);
	ky_buffer_add(buffer, "\"", 1);
	while (s < end && !buffer->failed) {
		const uint8_t *const from = s;
		while (s < end && is_plain(*s))
			s++;
		ky_buffer_add(buffer, from, (size_t)(s - from));
		if (s < end)
			s += add_special(buffer, s, end);
	}
	ky_buffer_add(buffer, "\"", 1);
}

void ky_json_text(struct ky_buffer *buffer, const char *text)
{
	ky_json_string(buffer, text, text ? strlen(text) : 0);
}

void ky_json_int(struct ky_buffer *buffer, int64_t value)
{
	add_comma(buffer);
	ky_buffer_format(buffer, "%" PRId64, value);
}

void ky_json_digits(struct ky_buffer *buffer, int64_t value)
{
	add_comma(buffer);
	ky_buffer_format(buffer, "\"%" PRId64 "\"", value);
}

void ky_json_uint(struct ky_buffer *buffer, uint64_t value)
{
	add_comma(buffer);
	ky_buffer_format(buffer, "%" PRIu64, value);
}

/* The shortest form that reads back as the same double, of those that printf makes. */
void ky_json_real(struct ky_buffer *buffer, double value)
{
	char text[32];

	if (!isfinite(value)) {
		ky_json_null(buffer);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	add_comma(buffer);
	ky_buffer_text(buffer, text);
}

void ky_json_bool(struct ky_buffer *buffer, bool value)
{
	add_comma(buffer);
	ky_buffer_text(buffer, value ? "true" : "false");
}

void ky_json_null(struct ky_buffer *buffer)
{
	add_comma(buffer);
	ky_buffer_text(buffer, "null");
}
