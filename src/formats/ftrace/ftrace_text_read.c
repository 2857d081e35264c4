/* SPDX-License-Identifier: MIT */
/*
 * ftrace_text_read.c: reads ftrace's text line by line: tracefs's trace and trace_pipe, trace-cmd report, atrace,
 * also what `atrace -z` makes: a line "TRACE:" and then a zlib stream of the text.
 */
#include "base/chars.h"
#include "formats/ftrace/ftrace_event.h"

#include "formats/load.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

/* ---- lists of processes ---- */

/*
 * The lists of processes that atrace and systrace append to a trace: which process a thread
 * belongs to, and names that are longer than a comm.
 */

#define TOKENS_MAX 11

struct dump_token {
	const char *text;
	size_t bytes;
};

/* The last of max takes the rest of the line. */
static size_t split(const char *line, size_t bytes, struct dump_token *tokens, size_t max)
{
	size_t count = 0;
	const char *at = line;
	const char *end = line + bytes;
	while (count < max) {
		while (at < end && *at == ' ')
			at++;
		if (at == end)
			break;
		const char *begin = at;
		while (at < end && *at != ' ')
			at++;
		if (count + 1 == max)
			at = end;
		tokens[count++] = (struct dump_token){begin, (size_t)(at - begin)};
	}
	return count;
}

static bool is(struct dump_token token, const char *text)
{
	return token.bytes == strlen(text) && memcmp(token.text, text, token.bytes) == 0;
}

static bool number(struct dump_token token, int64_t *value)
{
	const char *const end = token.text + token.bytes;
	uint64_t read = 0;
	const bool is_number =
		token.bytes <= 9 && ky_chars_decimal(token.text, end, UINT64_MAX, &read) == end;
	*value = (int64_t)read;
	return is_number;
}

static bool long_line(struct ky_trace *trace, const char *line, size_t bytes)
{
	struct dump_token tokens[10];
	int64_t pid;
	int64_t parent;
	if (split(line, bytes, tokens, 10) < 10 || !number(tokens[1], &pid) ||
	    !number(tokens[2], &parent))
		return false;
	uint32_t parent_process = ky_process(trace, parent);
	uint32_t process = ky_process(trace, pid);
	(void)ky_thread(trace, pid, pid);
	if (process < trace->processes.rows.count && process != parent_process)
		trace->processes.parent[process] = parent_process;
	ky_process_name(trace, process, ky_string(trace, tokens[8].text, tokens[8].bytes),
			KY_NAME_SYSTEM);
	return true;
}

static bool short_line(struct ky_trace *trace, const char *line, size_t bytes)
{
	struct dump_token tokens[4];
	int64_t pid;
	int64_t tid;
	if (split(line, bytes, tokens, 4) < 4 || !number(tokens[1], &pid) ||
	    !number(tokens[2], &tid))
		return false;
	(void)ky_thread(trace, pid, pid);
	ky_thread_name(trace, ky_thread(trace, pid, tid),
		       ky_string(trace, tokens[3].text, tokens[3].bytes), KY_NAME_KERNEL_OTHER);
	return true;
}

bool ky_ftrace_dump_line(struct ky_trace *trace, struct ky_ftrace_dump *dump, const char *line,
			 size_t bytes)
{
	struct dump_token tokens[TOKENS_MAX];
	size_t count = split(line, bytes, tokens, TOKENS_MAX);
	if (count >= 4 && is(tokens[0], "USER") && is(tokens[1], "PID")) {
		dump->form = is(tokens[2], "TID")    ? KY_DUMP_SHORT
			     : is(tokens[2], "PPID") ? KY_DUMP_LONG
						     : KY_DUMP_NONE;
		return dump->form != KY_DUMP_NONE;
	}
	if (dump->form == KY_DUMP_LONG)
		return long_line(trace, line, bytes);
	return dump->form == KY_DUMP_SHORT && short_line(trace, line, bytes);
}

/* Lines above are damage. */
#define LINE_BYTES_MAX (1u << 20)
#define PROBE_LINES 40

struct ftrace_lines {
	struct ky_trace *trace;
	struct ky_ftrace_dump dump;
	struct ky_ftrace_graph graph;
};

static bool contains(const struct ky_probe *probe, const char *what)
{
	return memmem(probe->data, probe->bytes, what, strlen(what)) != NULL;
}

static bool probe_text(const struct ky_probe *probe)
{
	const char *at = (const char *)probe->data;
	const char *end = at + probe->bytes;
	if (memchr(at, '\0', probe->bytes < 256 ? probe->bytes : 256))
		return contains(probe, "TRACE:\nx");
	if (contains(probe, "# tracer: ") || contains(probe, "TRACE:\n"))
		return true;
	for (int i = 0; i < PROBE_LINES && at < end; i++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		if (!stop && !probe->whole)
			return false;
		stop = stop ? stop : end;
		if (ky_ftrace_text_is_line(at, (size_t)(stop - at)))
			return true;
		at = stop + (stop < end);
	}
	return false;
}

static void read_line(struct ftrace_lines *text, const char *line, size_t bytes, uint64_t at)
{
	struct ky_trace *trace = text->trace;
	if (bytes && line[bytes - 1] == '\r')
		bytes--;
	if (bytes >= 12 && memcmp(line, "PROCESS DUMP", 12) == 0) {
		text->dump.form = KY_DUMP_LONG;
		return;
	}
	if (ky_ftrace_dump_line(trace, &text->dump, line, bytes) ||
	    ky_ftrace_graph_line(trace, &text->graph, line, bytes))
		return;
	ky_ftrace_text_line(trace, line, bytes, at);
}

/* Read the lines of a buffer up to the last whole one; return the bytes read. */
static size_t read_lines(struct ftrace_lines *text, const char *data, size_t bytes, bool last,
			 uint64_t at)
{
	size_t used = 0;
	while (used < bytes) {
		const char *stop = memchr(data + used, '\n', bytes - used);
		if (!stop && !last)
			break;
		size_t line_bytes = stop ? (size_t)(stop - data) - used : bytes - used;
		read_line(text, data + used, line_bytes, at + used);
		used += line_bytes + (stop != NULL);
	}
	return used;
}

static void too_long(struct ftrace_lines *text, uint64_t at)
{
	ky_problem(text->trace, "systrace_parse_failure", KY_ERROR, at,
		   "a line of more than %u bytes", LINE_BYTES_MAX);
}

/* Read a zlib stream of text, from the input's place on. */
static int read_zlib(struct ky_load *load, struct ftrace_lines *text)
{
	static const size_t room = 2 * LINE_BYTES_MAX;
	struct ky_input *input = load->input;
	z_stream stream = {0};
	char *out = malloc(room);
	if (!out || inflateInit(&stream) != Z_OK) {
		free(out);
		return -ENOMEM;
	}
	size_t held = 0;
	int status = Z_OK;
	while (status == Z_OK && ky_input_need(input, 1)) {
		size_t there = (size_t)(input->end - input->at);
		stream.next_in = (Bytef *)(uintptr_t)input->at;
		stream.avail_in = there > UINT32_MAX ? UINT32_MAX : (uInt)there;
		uInt given = stream.avail_in;
		stream.next_out = (Bytef *)out + held;
		stream.avail_out = (uInt)(room - held);
		status = inflate(&stream, Z_NO_FLUSH);
		ky_input_skip(input, given - stream.avail_in);
		held = room - stream.avail_out;
		size_t used = read_lines(text, out, held, status == Z_STREAM_END, input->position);
		if (!used && held == room) {
			too_long(text, input->position);
			used = held;
		}
		memmove(out, out + used, held - used);
		held -= used;
		if (status == Z_BUF_ERROR)
			status = Z_OK;
	}
	if (status != Z_STREAM_END)
		ky_problem(load->trace, "zlib_stream", KY_DATA_LOSS, input->position,
			   "the compressed text %s",
			   status == Z_OK ? "is cut short" : "is damaged");
	(void)read_lines(text, out, held, true, input->position);
	inflateEnd(&stream);
	free(out);
	return input->error == -EBADMSG ? 0 : input->error;
}

/* "TRACE:" and a zlib header behind it. */
static bool is_zlib(struct ky_input *input)
{
	return ky_input_need(input, 9) && memcmp(input->at, "TRACE:\nx", 8) == 0 &&
	       ((unsigned)input->at[7] << 8 | input->at[8]) % 31 == 0;
}

/* Skip the text before the trace ("capturing trace... done"). */
static void skip_to_trace(struct ky_input *input)
{
	(void)ky_input_need(input, 4096);
	size_t bytes = (size_t)(input->end - input->at);
	const uint8_t *found = memmem(input->at, bytes < 4096 ? bytes : 4096, "TRACE:\n", 7);
	if (found)
		ky_input_skip(input, (size_t)(found - input->at));
}

static int read_text(struct ky_load *load)
{
	struct ky_input *input = load->input;
	struct ftrace_lines text = {.trace = load->trace};
	skip_to_trace(input);
	if (is_zlib(input)) {
		ky_input_skip(input, 7);
		int error = read_zlib(load, &text);
		ky_ftrace_graph_end(&text.graph);
		return error;
	}
	while (ky_input_need(input, 1)) {
		size_t bytes = (size_t)(input->end - input->at);
		size_t used = read_lines(&text, (const char *)input->at, bytes, input->ended,
					 input->position);
		if (!used && bytes > LINE_BYTES_MAX) {
			too_long(&text, input->position);
			used = bytes;
		}
		ky_input_skip(input, used);
		if (!used)
			(void)ky_input_more(input);
	}
	ky_ftrace_graph_end(&text.graph);
	return input->error == -EBADMSG ? 0 : input->error;
}

const struct ky_reader ky_reader_ftrace_text = {
	.name = "ftrace",
	.title = "ftrace text",
	.probe = probe_text,
	.read = read_text,
};
