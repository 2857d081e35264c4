/* SPDX-License-Identifier: MIT */
/*
 * collapsed_read.c: reads collapsed stacks, as stackcollapse-*.pl and many profilers write them: a
 * line is frames with semicolons between them, the outermost first, then a space and how often it
 * was seen. Text is UTF-8, or UTF-16 with a byte order mark. Lines that are none are counted and
 * left out.
 *
 * The format has no times. A line becomes one sample with its number as the weight, and its time is
 * the sum of the weights before it, so that the samples keep their order and share of the whole.
 */
#include "base/array.h"
#include "formats/load.h"

#include <errno.h>

#include "formats/json/json_scan.h"

#define PROBE_LINES 32u

enum encoding { UTF_8, UTF_16_LITTLE, UTF_16_BIG };

struct collapsed {
	struct ky_trace *trace;
	struct ky_input *input;
	enum encoding encoding;
	char *line; /* UTF-16 as UTF-8 */
	uint64_t line_room;
	uint32_t thread, event;
	uint32_t mapping;
	int64_t ts;
	bool any; /* samples were put */
};

static enum encoding encoding_of(const uint8_t *at, size_t bytes, uint32_t *mark_bytes)
{
	*mark_bytes = 2;
	if (bytes >= 2 && at[0] == 0xff && at[1] == 0xfe)
		return UTF_16_LITTLE;
	if (bytes >= 2 && at[0] == 0xfe && at[1] == 0xff)
		return UTF_16_BIG;
	*mark_bytes = bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	return UTF_8;
}

static uint32_t unit_at(const uint8_t *at, enum encoding encoding)
{
	return encoding == UTF_16_BIG ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

/* The end of the line that begins at at, or NULL when it is not among the bytes. */
static const uint8_t *line_end(const uint8_t *at, const uint8_t *end, enum encoding encoding)
{
	if (encoding == UTF_8)
		return memchr(at, '\n', (size_t)(end - at));
	for (; end - at >= 2; at += 2)
		if (unit_at(at, encoding) == '\n')
			return at;
	return NULL;
}

static char *put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
		} else {
			*to++ = (char)(0xf0 | c >> 18);
			*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (c & 0x3f));
	return to;
}

/* UTF-16 to UTF-8: at most three bytes for each two. Halves of pairs become U+FFFD. */
static size_t to_utf8(const uint8_t *at, size_t bytes, enum encoding encoding, char *to)
{
	char *const begin = to;

	for (const uint8_t *end = at + (bytes & ~(size_t)1); at < end; at += 2) {
		uint32_t c = unit_at(at, encoding);
		if (c >= 0xd800 && c < 0xdc00 && end - at >= 4) {
			const uint32_t low = unit_at(at + 2, encoding);
			if (low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				at += 2;
			}
		}
		to = put_utf8(to, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	}
	return (size_t)(to - begin);
}

static void trim(const char **line, size_t *bytes)
{
	while (*bytes && ((*line)[*bytes - 1] == '\r' || (*line)[*bytes - 1] == ' ' ||
			  (*line)[*bytes - 1] == '\t' || (*line)[*bytes - 1] == '\n'))
		--*bytes;
	while (*bytes && (**line == ' ' || **line == '\t')) {
		++*line;
		--*bytes;
	}
}

/* Take a trimmed line apart: the bytes of its stack, and the number behind it. */
static bool split(const char *line, size_t bytes, size_t *stack_bytes, double *weight)
{
	const char *space = memrchr(line, ' ', bytes);
	struct ky_json_number number;

	if (!space || space == line)
		return false;
	const size_t digits = bytes - (size_t)(space - line) - 1;
	if (!ky_json_number_text((const uint8_t *)space + 1, digits, &number) || !(number.d > 0) ||
	    number.d > 9e18)
		return false;
	*stack_bytes = (size_t)(space - line);
	*weight = number.d;
	return true;
}

/* What the first lines of a text are. */
struct looks {
	uint32_t deep;   /* stacks of several frames */
	uint32_t single; /* a word and a number */
	uint32_t bad;
};

static bool has_controls(const char *line, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)line[i] < ' ' && line[i] != '\t')
			return true;
	return false;
}

static void look_at(const char *line, size_t bytes, struct looks *looks)
{
	size_t stack_bytes;
	double weight;
	if (!split(line, bytes, &stack_bytes, &weight))
		looks->bad++;
	else if (memchr(line, ';', stack_bytes))
		looks->deep++;
	else if (!memchr(line, ' ', stack_bytes))
		looks->single++;
	else
		looks->bad++;
}

/* Report whether text is lines of stacks: most are, and some have several frames; or all are a word and a number. */
static bool looks_right(const char *text, size_t bytes, bool whole)
{
	struct looks looks = {0};

	for (uint32_t lines = 0; bytes > 0 && lines < PROBE_LINES; lines++) {
		const char *stop = memchr(text, '\n', bytes);
		if (!stop && !whole)
			break;
		const char *line = text;
		size_t line_bytes = stop ? (size_t)(stop - text) : bytes;
		const size_t passed = line_bytes + (stop ? 1 : 0);
		text += passed;
		bytes -= passed;
		trim(&line, &line_bytes);
		if (has_controls(line, line_bytes))
			return false;
		if (line_bytes > 0 && *line != '#')
			look_at(line, line_bytes, &looks);
	}
	if (looks.bad == 0)
		return looks.deep + looks.single > 0;
	return looks.deep > 0 && looks.deep + looks.single > 2 * looks.bad;
}

static bool probe(const struct ky_probe *probe)
{
	char text[3 * 1024];
	uint32_t mark;
	const enum encoding encoding = encoding_of(probe->data, probe->bytes, &mark);

	if (encoding == UTF_8)
		return looks_right((const char *)probe->data + mark, probe->bytes - mark,
				   probe->whole);
	size_t bytes = probe->bytes - mark;
	const bool all = bytes <= 2048;
	if (!all)
		bytes = 2048;
	return looks_right(text, to_utf8(probe->data + mark, bytes, encoding, text),
			   all && probe->whole);
}

/* The callsite of a stack, KY_NONE when all its frames are empty. */
static uint32_t callsite_of(struct collapsed *collapsed, const char *stack, size_t bytes)
{
	uint32_t callsite = KY_NONE;

	while (bytes > 0) {
		const char *stop = memchr(stack, ';', bytes);
		const size_t frame = stop ? (size_t)(stop - stack) : bytes;
		if (frame > 0)
			callsite = ky_callsite(collapsed->trace, callsite,
					       ky_frame(collapsed->trace, collapsed->mapping, 0,
							ky_string(collapsed->trace, stack, frame),
							0, 0));
		stack += frame + (stop ? 1 : 0);
		bytes -= frame + (stop ? 1 : 0);
	}
	return callsite;
}

static void put_line(struct collapsed *collapsed, const char *line, size_t bytes, uint64_t at)
{
	size_t stack_bytes;
	double weight;

	trim(&line, &bytes);
	if (bytes == 0 || *line == '#')
		return;
	if (!split(line, bytes, &stack_bytes, &weight)) {
		ky_problem(collapsed->trace, "collapsed_line_invalid", KY_ERROR, at,
			   "expected frames, a space and a number above 0");
		return;
	}
	const uint32_t callsite = callsite_of(collapsed, line, stack_bytes);
	if (callsite == KY_NONE)
		return;
	ky_put_sample(collapsed->trace, collapsed->ts, collapsed->thread, callsite, KY_NONE,
		      KY_CPU_MODE_UNKNOWN, weight, collapsed->event);
	collapsed->any = true;
	if (__builtin_add_overflow(collapsed->ts, (int64_t)weight, &collapsed->ts))
		collapsed->ts = INT64_MAX;
}

static void put_raw_line(struct collapsed *collapsed, const uint8_t *at, size_t bytes)
{
	const uint64_t position = collapsed->input->position;

	if (collapsed->encoding == UTF_8) {
		put_line(collapsed, (const char *)at, bytes, position);
		return;
	}
	if (!KY_ARRAY_GROW(collapsed->line, collapsed->line_room, 2 * (uint64_t)bytes + 4)) {
		collapsed->trace->error = -ENOMEM;
		return;
	}
	const size_t line_bytes = to_utf8(at, bytes, collapsed->encoding, collapsed->line);
	put_line(collapsed, collapsed->line, line_bytes, position);
}

static void read_lines(struct collapsed *collapsed)
{
	struct ky_input *input = collapsed->input;
	const size_t newline = collapsed->encoding == UTF_8 ? 1 : 2;

	for (;;) {
		const uint8_t *stop = line_end(input->at, input->end, collapsed->encoding);
		const size_t have = (size_t)(input->end - input->at);
		if (stop) {
			put_raw_line(collapsed, input->at, (size_t)(stop - input->at));
			ky_input_skip(input, (size_t)(stop - input->at) + newline);
			continue;
		}
		/* Twice as much each time, so that a long line is not searched again and again. */
		(void)ky_input_need(input, have < 4096 ? 4096 : 2 * have);
		if ((size_t)(input->end - input->at) > have)
			continue;
		put_raw_line(collapsed, input->at, have);
		ky_input_skip(input, have);
		return;
	}
}

static int read_trace(struct ky_load *load)
{
	struct ky_trace *trace = load->trace;
	struct collapsed collapsed = {.trace = trace, .input = load->input};
	uint32_t mark;

	(void)ky_input_need(load->input, 3);
	collapsed.encoding =
		encoding_of(load->input->at, (size_t)(load->input->end - load->input->at), &mark);
	ky_input_skip(load->input, mark);
	collapsed.thread = ky_thread(trace, 1, 1);
	ky_thread_name(trace, collapsed.thread, ky_string_z(trace, "collapsed stacks"),
		       KY_NAME_TRACE);
	collapsed.event = ky_string_z(trace, "samples");
	collapsed.mapping = ky_mapping(
		trace, &(struct ky_mapping_spec){.name = ky_string_z(trace, "[collapsed_stack]")});
	read_lines(&collapsed);
	KY_ARRAY_FREE(collapsed.line, collapsed.line_room);
	if (!collapsed.any)
		return ky_load_fail(load, 0, "expected lines of frames, a space and a number");
	return 0;
}

const struct ky_reader ky_reader_collapsed = {
	.name = "collapsed",
	.title = "collapsed stacks",
	.probe = probe,
	.read = read_trace,
};
