/* SPDX-License-Identifier: MIT */
/*
 * systrace_html_read.c: reads the page that systrace makes: a viewer, and the trace in script elements.
 *
 *   <script class="trace-data" type="application/text">   ftrace text, lists of processes, JSON
 *   <script id="viewer-data" type="...">                  JSON, or gzip in base64 (trace2html)
 *   var linuxPerfData = "...\n\                           ftrace text in a literal, a line a line (of 2012)
 *
 * The whole page is held in memory, and so is unpacked base64 data.
 */
#include "formats/load.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/ftrace/ftrace_event.h"

struct html_block {
	const char *at;
	const char *end;
	uint64_t position;
};

/* ASCII letters of either case; what is in small ones. */
static bool starts(const char *at, const char *end, const char *what)
{
	for (; *what; what++, at++)
		if (at == end || (*at | (*what >= 'a' && *what <= 'z' ? 0x20 : 0)) != *what)
			return false;
	return true;
}

static bool probe_html(const struct ky_probe *probe)
{
	const char *at = (const char *)probe->data;
	const char *end = at + probe->bytes;
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	return starts(at, end, "<!doctype html") || starts(at, end, "<html");
}

static const char *find(const char *at, const char *end, const char *what)
{
	return memmem(at, (size_t)(end - at), what, strlen(what));
}

/* Find the next script element that holds a trace, from at on. */
static bool next_block(const char *page, const char *at, const char *end, struct html_block *block)
{
	while ((at = find(at, end, "<script")) != NULL) {
		const char *close = memchr(at, '>', (size_t)(end - at));
		if (!close)
			return false;
		bool holds = find(at, close, "trace-data") || find(at, close, "viewer-data");
		at = close + 1;
		if (!holds)
			continue;
		const char *stop = find(at, end, "</script>");
		*block = (struct html_block){at, stop ? stop : end, (uint64_t)(at - page)};
		return true;
	}
	return false;
}

/* Report whether the line belongs to one of the lists that systrace adds, not to the trace. */
static bool read_dump(struct ky_trace *trace, struct ky_ftrace_dump *dump, bool *cgroups,
		      const char *line, size_t bytes)
{
	if (bytes >= 12 && memcmp(line, "PROCESS DUMP", 12) == 0) {
		dump->form = KY_DUMP_LONG;
		return true;
	}
	*cgroups |= bytes >= 11 && memcmp(line, "CGROUP DUMP", 11) == 0;
	return *cgroups || ky_ftrace_dump_line(trace, dump, line, bytes);
}

static void read_lines(struct ky_trace *trace, const struct html_block *block)
{
	struct ky_ftrace_dump dump = {0};
	bool cgroups = false;
	const char *at = block->at;
	while (at < block->end) {
		const char *stop = memchr(at, '\n', (size_t)(block->end - at));
		stop = stop ? stop : block->end;
		size_t bytes = (size_t)(stop - at);
		if (bytes && at[bytes - 1] == '\r')
			bytes--;
		if (!read_dump(trace, &dump, &cgroups, at, bytes))
			ky_ftrace_text_line(trace, at, bytes,
					    block->position + (uint64_t)(at - block->at));
		at = stop + 1;
	}
}

/* Bytes in base64, up to the first that is not; blanks are skipped. NULL without memory. */
static uint8_t *unpack_base64(const struct html_block *block, size_t *bytes, const char **stop)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t *out = malloc((size_t)(block->end - block->at) / 4 * 3 + 3);
	uint32_t held = 0;
	unsigned bits = 0;
	*bytes = 0;
	const char *at = block->at;
	for (; out && at < block->end && *at != '='; at++) {
		const char *digit = *at ? strchr(digits, *at) : NULL;
		if (*at == '\n' || *at == '\r' || *at == ' ')
			continue;
		if (!digit)
			break;
		held = held << 6 | (uint32_t)(digit - digits);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[(*bytes)++] = (uint8_t)(held >> bits);
		}
	}
	*stop = at;
	return out;
}

/* The JSON reader reads the block as if it were the input. */
static int read_json(struct ky_load *load, const void *data, size_t bytes)
{
	struct ky_load inner = *load;
	int error = ky_input_open_memory(&inner.input, data, bytes, load->path);
	if (error)
		return error;
	bool truncated;
	error = ky_reader_json.read(&inner);
	const char *damage = ky_input_damage(inner.input, &truncated);
	if (damage)
		ky_problem(load->trace, truncated ? "input_truncated" : "input_corrupt", KY_ERROR,
			   KY_NO_PLACE, "%s", damage);
	ky_input_close(&inner.input);
	if (error == -EBADMSG)
		ky_problem(load->trace, "html_json", KY_DATA_LOSS, KY_NO_PLACE, "%s",
			   inner.message);
	return error == -EBADMSG ? 0 : error;
}

static int read_block(struct ky_load *load, const struct html_block *block)
{
	const char *at = block->at;
	while (at < block->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	if (at < block->end && (*at == '{' || *at == '['))
		return read_json(load, at, (size_t)(block->end - at));
	if (block->end - at < 4 || memcmp(at, "H4sI", 4) != 0) {
		read_lines(load->trace, block);
		return 0;
	}
	size_t bytes;
	const char *stop;
	uint8_t *packed = unpack_base64(block, &bytes, &stop);
	if (!packed)
		return -ENOMEM;
	if (stop < block->end && *stop != '=')
		ky_problem(load->trace, "html_base64", KY_DATA_LOSS,
			   block->position + (uint64_t)(stop - block->at),
			   "packed data ends at a byte that is not base64");
	const int error = read_json(load, packed, bytes);
	free(packed);
	return error;
}

/* Read the literal of the oldest pages: each line of the trace ends with an escaped newline and a continuation. */
static bool read_literal(struct ky_trace *trace, const char *page, const char *end)
{
	const char *at = find(page, end, "linuxPerfData = \"");
	const char *stop = at ? find(at, end, "\";") : NULL;
	if (!stop)
		return false;
	at += strlen("linuxPerfData = \"");
	while (at < stop) {
		const char *line_end = memchr(at, '\n', (size_t)(stop - at));
		const char *next = line_end ? line_end + 1 : stop;
		const char *mark = find(at, next, "\\n");
		if (mark)
			ky_ftrace_text_line(trace, at, (size_t)(mark - at), (uint64_t)(at - page));
		at = next;
	}
	return true;
}

static int read_html(struct ky_load *load)
{
	struct ky_input *input = load->input;
	while (ky_input_more(input))
		;
	if (input->error && input->error != -EBADMSG)
		return input->error;
	const char *page = (const char *)input->at;
	const char *end = (const char *)input->end;
	struct html_block block = {page, page, 0};
	uint32_t blocks = 0;
	while (next_block(page, block.end, end, &block)) {
		int error = read_block(load, &block);
		if (error)
			return error;
		blocks++;
	}
	return blocks || read_literal(load->trace, page, end)
		       ? 0
		       : ky_load_fail(
				 load, KY_NO_PLACE,
				 "a page without a trace: no script of class trace-data in it");
}

const struct ky_reader ky_reader_systrace_html = {
	.name = "systrace-html",
	.title = "systrace HTML",
	.probe = probe_html,
	.read = read_html,
};
