/* SPDX-License-Identifier: MIT */
/* json_out.c: see json_out.h. */
#include "base/json_out.h"

#include "core/utf8_scan.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"
#define VALUE 'v' /* in last: a whole value */

static void put(struct ky_json_out *json, const void *data, size_t bytes)
{
	if (json->file)
		fwrite(data, 1, bytes, json->file);
	else
		ky_buffer_add(json->buffer, data, bytes);
}

static void put_text(struct ky_json_out *json, const char *text)
{
	put(json, text, strlen(text));
}

static void new_line(struct ky_json_out *json)
{
	fprintf(json->file, "\n%*s", (int)(json->depth * 2), "");
}

/* ---- strings ---- */

static bool is_plain(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* The short escapes are for people: \n and \t in files. */
static void put_escape(struct ky_json_out *json, uint8_t byte)
{
	char text[8] = {'\\', (char)byte, '\0'};
	if (json->file && byte == '\n')
		text[1] = 'n';
	else if (json->file && byte == '\t')
		text[1] = 't';
	else if (byte != '"' && byte != '\\')
		snprintf(text, sizeof(text), "\\u%04x", byte);
	put_text(json, text);
}

/*
 * Report characters that control a terminal or change the direction of writing: U+0080 to U+009F (U+009B is an escape
 * sequence's beginning), U+2028 to U+202E, U+2066 to U+2069.
 */
static bool is_control(const uint8_t *s, size_t bytes)
{
	if (bytes == 2)
		return s[0] == 0xc2 && s[1] < 0xa0;
	return bytes == 3 && s[0] == 0xe2 &&
	       ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
		(s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

/* Write a character of two or three bytes as its number. */
static void put_code(struct ky_json_out *json, const uint8_t *s, size_t bytes)
{
	char text[8];
	const unsigned code = bytes == 2
				      ? (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)
				      : (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
	snprintf(text, sizeof(text), "\\u%04x", code & 0xffffu);
	put_text(json, text);
}

/* Write what stands for the bytes at s, which are not plain; return how many they are. */
static size_t put_special(struct ky_json_out *json, const uint8_t *s, const uint8_t *end)
{
	if (*s < 0x80) {
		put_escape(json, *s);
		return 1;
	}
	const size_t bytes = ky_utf8_sequence(s, end);
	if (is_control(s, bytes)) {
		put_code(json, s, bytes);
		return bytes;
	}
	if (bytes) {
		put(json, s, bytes);
		return bytes;
	}
	put_text(json, REPLACEMENT);
	return ky_utf8_subpart(s, end);
}

static void put_quoted(struct ky_json_out *json, const char *text, size_t bytes)
{
	const uint8_t *s = (const uint8_t *)text;
	const uint8_t *const end = s + bytes;
	put(json, "\"", 1);
	while (s < end) {
		const uint8_t *const from = s;
		while (s < end && is_plain(*s))
			s++;
		put(json, from, (size_t)(s - from));
		if (s < end)
			s += put_special(json, s, end);
	}
	put(json, "\"", 1);
}

/* ---- structure ---- */

/* Write the comma, line and key before a value. */
static void before(struct ky_json_out *json, const char *key)
{
	const bool line = json->depth && json->depth <= json->lines;
	if (json->depth && json->last == VALUE)
		put_text(json, json->file && !line ? ", " : ",");
	if (line)
		new_line(json);
	if (key) {
		put_quoted(json, key, strlen(key));
		put_text(json, json->file ? ": " : ":");
	}
	json->last = VALUE;
}

void ky_json_out_begin(struct ky_json_out *json, const char *key, char bracket)
{
	assert(bracket == '{' || bracket == '[');
	before(json, key);
	put(json, &bracket, 1);
	json->depth++;
	json->last = bracket;
}

void ky_json_out_end(struct ky_json_out *json, char bracket)
{
	assert(bracket == '}' || bracket == ']');
	assert(json->depth);
	const bool line = json->depth <= json->lines && json->last == VALUE;
	json->depth--;
	if (line)
		new_line(json);
	put(json, &bracket, 1);
	if (json->file && !json->depth)
		put(json, "\n", 1);
	json->last = VALUE;
}

/* ---- values ---- */

void ky_json_out_raw(struct ky_json_out *json, const char *key, const char *value, size_t bytes)
{
	before(json, key);
	put(json, value, bytes);
}

static void word(struct ky_json_out *json, const char *key, const char *value)
{
	ky_json_out_raw(json, key, value, strlen(value));
}

void ky_json_out_string(struct ky_json_out *json, const char *key, const char *text, size_t bytes)
{
	if (!text) {
		ky_json_out_null(json, key);
		return;
	}
	before(json, key);
	put_quoted(json, text, bytes);
}

void ky_json_out_text(struct ky_json_out *json, const char *key, const char *text)
{
	ky_json_out_string(json, key, text, text ? strlen(text) : 0);
}

void ky_json_out_int(struct ky_json_out *json, const char *key, int64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, value);
	word(json, key, text);
}

void ky_json_out_uint(struct ky_json_out *json, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, value);
	word(json, key, text);
}

void ky_json_out_digits(struct ky_json_out *json, const char *key, int64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "\"%" PRId64 "\"", value);
	word(json, key, text);
}

/* A file gets all 17 digits; a buffer the fewest, of those that printf makes, that read back as the same double. */
void ky_json_out_real(struct ky_json_out *json, const char *key, double value)
{
	char text[32];

	if (!isfinite(value)) {
		ky_json_out_null(json, key);
		return;
	}
	for (int digits = json->file ? 17 : 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	word(json, key, text);
}

void ky_json_out_bool(struct ky_json_out *json, const char *key, bool value)
{
	word(json, key, value ? "true" : "false");
}

void ky_json_out_null(struct ky_json_out *json, const char *key)
{
	word(json, key, "null");
}
