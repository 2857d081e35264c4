/* SPDX-License-Identifier: MIT */
/*
 * jit_files.c: walks the records of a jitdump and the lines of a perf map. A function's debug info comes before the
 * function: its first file and line are kept until then. Code itself is passed over.
 */
#include "process/jit_files.h"

#include "base/chars.h"
#include "base/file.h"
#include "process/perf_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_HEAD_BYTES 16u
#define LOAD_BYTES 40u
#define MOVE_BYTES 48u
#define DEBUG_BYTES 16u
#define DEBUG_ENTRY_BYTES 16u

enum { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

struct walk {
	const struct ky_jitdump_input *input;
	uint64_t at; /* of the record */
	ky_jit_code_fn code;
	void *context;
	bool big;
	char *file; /* of the debug info that waits for its function; file_bytes of it, or NULL */
	size_t file_bytes;
	uint32_t line;
};

bool ky_jitdump_head(const uint8_t *data, size_t bytes, struct ky_jitdump_head *head)
{
	if (bytes < KY_JITDUMP_HEAD_BYTES)
		return false;
	const bool big = ky_perf_u32(data, true) == KY_JITDUMP_MAGIC;
	if (!big && ky_perf_u32(data, false) != KY_JITDUMP_MAGIC)
		return false;
	*head = (struct ky_jitdump_head){
		.version = ky_perf_u32(data + 4, big),
		.machine = ky_perf_u32(data + 12, big),
		.pid = ky_perf_u32(data + 20, big),
		.time_ns = ky_perf_u64(data + 24, big),
		.flags = ky_perf_u64(data + 32, big),
		.big = big,
	};
	return true;
}

static void forget_debug(struct walk *walk)
{
	free(walk->file);
	walk->file = NULL;
	walk->file_bytes = 0;
	walk->line = 0;
}

/* Take the first entry alone: where the function begins. */
static void take_debug(struct walk *walk, const uint8_t *body, size_t bytes)
{
	forget_debug(walk);
	if (bytes < DEBUG_BYTES + DEBUG_ENTRY_BYTES || ky_perf_u64(body + 8, walk->big) == 0)
		return;
	const uint8_t *file = body + DEBUG_BYTES + DEBUG_ENTRY_BYTES;
	const size_t length = strnlen((const char *)file, bytes - DEBUG_BYTES - DEBUG_ENTRY_BYTES);
	walk->file = malloc(length + 1);
	if (!walk->file)
		return;
	memcpy(walk->file, file, length);
	walk->file_bytes = length;
	walk->line = ky_perf_u32(body + DEBUG_BYTES + 8, walk->big);
}

static bool take_load(struct walk *walk, uint64_t time_ns, const uint8_t *body, size_t bytes)
{
	if (bytes < LOAD_BYTES + 1)
		return false;
	const char *name = (const char *)body + LOAD_BYTES;
	const struct ky_jit_code code = {
		.time_ns = time_ns,
		.pid = ky_perf_u32(body, walk->big),
		.tid = ky_perf_u32(body + 4, walk->big),
		.address = ky_perf_u64(body + 16, walk->big),
		.bytes = ky_perf_u64(body + 24, walk->big),
		.index = ky_perf_u64(body + 32, walk->big),
		.name = name,
		.name_bytes = strnlen(name, bytes - LOAD_BYTES),
		.file = walk->file,
		.file_bytes = walk->file_bytes,
		.line = walk->line,
	};
	walk->code(walk->context, &code);
	forget_debug(walk);
	return true;
}

static bool take_move(struct walk *walk, uint64_t time_ns, const uint8_t *body, size_t bytes)
{
	if (bytes < MOVE_BYTES)
		return false;
	const struct ky_jit_code code = {
		.time_ns = time_ns,
		.pid = ky_perf_u32(body, walk->big),
		.tid = ky_perf_u32(body + 4, walk->big),
		.old_address = ky_perf_u64(body + 16, walk->big),
		.address = ky_perf_u64(body + 24, walk->big),
		.bytes = ky_perf_u64(body + 32, walk->big),
		.index = ky_perf_u64(body + 40, walk->big),
		.moved = true,
	};
	walk->code(walk->context, &code);
	return true;
}

static bool take_record(struct walk *walk, uint32_t id, uint64_t time_ns, const uint8_t *body,
			size_t bytes)
{
	switch (id) {
	case CODE_LOAD:
		return take_load(walk, time_ns, body, bytes);
	case CODE_MOVE:
		return take_move(walk, time_ns, body, bytes);
	case CODE_DEBUG_INFO:
		take_debug(walk, body, bytes);
		return true;
	default:
		return true;
	}
}

static void damaged(const struct walk *walk, const char *what)
{
	walk->input->damaged(walk->input->context, walk->at, what);
}

/* Take one record; false at the end, good or bad. */
static bool next_record(struct walk *walk)
{
	const struct ky_jitdump_input *input = walk->input;
	size_t have;
	const uint8_t *at = input->need(input->context, RECORD_HEAD_BYTES, &have);
	if (have < RECORD_HEAD_BYTES) {
		if (have)
			damaged(walk, "the file ends within a record's head");
		return false;
	}
	const uint32_t id = ky_perf_u32(at, walk->big);
	const uint32_t bytes = ky_perf_u32(at + 4, walk->big);
	const uint64_t time_ns = ky_perf_u64(at + 8, walk->big);
	if (bytes < RECORD_HEAD_BYTES) {
		damaged(walk, "a record is shorter than its head");
		return false;
	}
	const size_t window = bytes < KY_JITDUMP_WINDOW ? bytes : KY_JITDUMP_WINDOW;
	at = input->need(input->context, window, &have);
	const size_t usable = have < window ? have : window;
	/* The process that writes the file may have cut it since. */
	if (usable < RECORD_HEAD_BYTES) {
		damaged(walk, "the file ends within a record");
		return false;
	}
	if (!take_record(walk, id, time_ns, at + RECORD_HEAD_BYTES, usable - RECORD_HEAD_BYTES))
		damaged(walk, "a record is shorter than its kind needs");
	if (have < window || !input->skip(input->context, bytes)) {
		damaged(walk, "the file ends within a record");
		return false;
	}
	walk->at += bytes;
	return true;
}

int ky_jitdump_read(const struct ky_jitdump_input *input, struct ky_jitdump_head *head,
		    ky_jit_code_fn code, void *context)
{
	struct walk walk = {.input = input, .code = code, .context = context};
	size_t have;
	const uint8_t *at = input->need(input->context, KY_JITDUMP_HEAD_BYTES, &have);
	if (!ky_jitdump_head(at, have, head))
		return -EBADMSG;
	walk.big = head->big;
	const uint32_t head_bytes = ky_perf_u32(at + 8, head->big);
	const uint32_t skipped =
		head_bytes < KY_JITDUMP_HEAD_BYTES ? KY_JITDUMP_HEAD_BYTES : head_bytes;
	if (!input->skip(input->context, skipped)) {
		damaged(&walk, "the file ends within its head");
		return 0;
	}
	walk.at = skipped;
	while (next_record(&walk))
		;
	forget_debug(&walk);
	return 0;
}

bool ky_jitdump_is_path(const char *path)
{
	const char *name = ky_file_name(path);
	if (strncmp(name, "jit-", 4) != 0)
		return false;
	name += 4;
	const size_t digits = strspn(name, "0123456789");
	return digits && strcmp(name + digits, ".dump") == 0;
}

/* ---- perf maps ---- */

/* Take a hexadecimal number and the blanks behind it. */
static bool take_hex(const char **at, const char *end, uint64_t *value)
{
	const char *p = *at;
	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	p = ky_chars_hex(p, end, value);
	if (!p || p == end || !ky_chars_is_blank(*p))
		return false;
	*at = ky_chars_skip_blanks(p, end);
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
