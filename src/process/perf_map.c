/* SPDX-License-Identifier: MIT */
/* perf_map.c: takes a perf map apart, line by line. */
#include "process/perf_map.h"

#include <string.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 32);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes a hexadecimal number and the blanks behind it. */
static bool take_hex(const char **at, const char *end, uint64_t *value)
{
	const char *p = *at;
	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	const char *first = p;
	*value = 0;
	for (; p < end && hex_digit(*p) >= 0; p++)
		*value = *value << 4 | (uint64_t)hex_digit(*p);
	if (p == first || p - first > 16 || p == end || (*p != ' ' && *p != '\t'))
		return false;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	*at = p;
	return true;
}

bool ky_perf_map_line(const char *text, size_t bytes, struct ky_perf_map_line *line)
{
	const char *at = text;
	const char *end = text + bytes;
	if (!take_hex(&at, end, &line->start) || !take_hex(&at, end, &line->bytes) || at == end)
		return false;
	line->name = at;
	line->name_bytes = (size_t)(end - at);
	return true;
}

void ky_perf_map_lines(const char *text, size_t bytes, ky_perf_map_fn line, void *context)
{
	const char *const begin = text, *const end = text + bytes;
	while (text < end) {
		struct ky_perf_map_line parsed;
		const char *const newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		const char *const next = newline ? newline + 1 : end;
		stop -= stop > text && stop[-1] == '\r';
		const bool is_line = ky_perf_map_line(text, (size_t)(stop - text), &parsed);
		if (stop > text)
			line(context, (uint64_t)(text - begin), is_line ? &parsed : NULL);
		text = next;
	}
}
