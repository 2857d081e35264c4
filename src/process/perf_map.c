/* SPDX-License-Identifier: MIT */
/* perf_map.c: takes a perf map apart, line by line. */
#include "process/perf_map.h"

#include "formats/text_lines.h"
#include "model/intake.h"

#include <errno.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 32);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A hexadecimal number and the blanks behind it. */
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

int ky_perf_map_read(struct ky_input *input, struct ky_trace *trace, ky_perf_map_fn line,
		     void *context)
{
	const char *text;
	size_t bytes;
	uint64_t at;
	while (ky_text_line(input, &text, &bytes, &at)) {
		struct ky_perf_map_line parsed;
		if (ky_perf_map_line(text, bytes, &parsed))
			line(context, &parsed);
		else if (bytes)
			ky_problem(trace, "perf_map_line", KY_DATA_LOSS, at,
				   "expected START SIZE name");
	}
	return input->error == -EBADMSG ? 0 : input->error;
}
