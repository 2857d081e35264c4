/* SPDX-License-Identifier: MIT */
/*
 * symbols_jit.c: functions that were made at run time. What a process's perf map and jitdumps tell is kept in the
 * order of time, and put into an address space when time gets there: later code takes the place of earlier.
 */
#include "base/array.h"
#include "process/symbols_parts.h"

#include "model/intake.h"
#include "process/jitdump.h"
#include "process/perf_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct filling {
	struct ky_symbols *symbols;
	struct ky_symbols_jit *jit;
	bool timed;
};

static void add_code(struct ky_symbols_jit *jit, const struct ky_symbols_code *code)
{
	if (code->start >= code->end || !KY_ARRAY_GROW_ZERO(jit->codes, jit->room, jit->count + 1))
		return;
	jit->codes[jit->count] = *code;
	jit->codes[jit->count].order = jit->count;
	jit->count++;
	jit->sorted = false;
}

static uint64_t end_of(uint64_t start, uint64_t bytes)
{
	return bytes > UINT64_MAX - start ? UINT64_MAX : start + bytes;
}

static void on_line(void *context, const struct ky_perf_map_line *line)
{
	const struct filling *filling = context;
	const struct ky_symbols_code code = {
		.start = line->start,
		.end = end_of(line->start, line->bytes),
		.name = ky_string(filling->symbols->trace, line->name, line->name_bytes),
	};
	add_code(filling->jit, &code);
}

static void on_code(void *context, const struct ky_jit_code *event)
{
	const struct filling *filling = context;
	struct ky_trace *trace = filling->symbols->trace;
	struct ky_symbols_code code = {
		.since = filling->timed ? event->time_ns : 0,
		.start = event->address,
		.end = end_of(event->address, event->bytes),
		.line = event->line,
	};
	if (event->moved) {
		/* The last that was put at the old address. */
		for (uint32_t i = filling->jit->count; i-- && filling->jit->count - i < 4096;)
			if (filling->jit->codes[i].start == event->old_address) {
				code.name = filling->jit->codes[i].name;
				break;
			}
	} else {
		code.name = ky_string(trace, event->name, event->name_bytes);
		code.file =
			event->file_bytes ? ky_string(trace, event->file, event->file_bytes) : 0;
	}
	if (code.name)
		add_code(filling->jit, &code);
}

/* Opens a file that is a plain one; NULL otherwise. */
static struct ky_input *open_input(const char *path)
{
	char message[KY_INPUT_MESSAGE_BYTES];
	struct ky_input *input;
	const int fd = ky_symbols_open_plain(path);
	if (fd < 0)
		return NULL;
	close(fd);
	return ky_input_open(&input, path, NULL, NULL, message) == 0 ? input : NULL;
}

/* A file of that name beside the recording, else at its own path. */
static struct ky_input *open_beside(const struct ky_symbols *symbols, const char *path)
{
	char beside[KY_SYMBOLS_PATH_BYTES];
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	if (symbols->folder &&
	    snprintf(beside, sizeof(beside), "%s%s", symbols->folder, name) < (int)sizeof(beside)) {
		struct ky_input *input = open_input(beside);
		if (input)
			return input;
	}
	return path[0] == '/' ? open_input(path) : NULL;
}

static struct ky_symbols_jit *jit_of(struct ky_symbols *symbols, int64_t pid)
{
	bool made;
	uint32_t *number = ky_u64_map_add(&symbols->jit_of, (uint64_t)pid, &made);
	if (!number)
		return NULL;
	if (made) {
		if (!KY_ARRAY_GROW_ZERO(symbols->jits, symbols->jits_room,
					symbols->jits_count + 1)) {
			*number = KY_NONE;
			return NULL;
		}
		symbols->jits[symbols->jits_count] = (struct ky_symbols_jit){0};
		*number = symbols->jits_count++;
	}
	return *number == KY_NONE ? NULL : &symbols->jits[*number];
}

void ky_symbols_jitdump(struct ky_symbols *symbols, int64_t pid, const char *path, bool timed)
{
	struct ky_jitdump_head head;
	struct ky_symbols_jit *jit = jit_of(symbols, pid);
	struct ky_input *input = jit ? open_beside(symbols, path) : NULL;
	if (!input)
		return;
	(void)ky_input_need(input, KY_JITDUMP_HEAD_BYTES);
	if (ky_jitdump_head(input->at, (size_t)(input->end - input->at), &head)) {
		struct filling filling = {symbols, jit,
					  timed && !(head.flags & KY_JITDUMP_ARCH_TIME)};
		(void)ky_jitdump_read(input, symbols->trace, &head, on_code, &filling);
	}
	ky_input_close(&input);
}

static void load_map(struct ky_symbols *symbols, struct ky_symbols_jit *jit, int64_t pid)
{
	char path[64];
	struct filling filling = {symbols, jit, false};
	jit->map_tried = true;
	snprintf(path, sizeof(path), "/tmp/perf-%lld.map", (long long)pid);
	struct ky_input *input = open_beside(symbols, path);
	if (!input)
		return;
	(void)ky_perf_map_read(input, symbols->trace, on_line, &filling);
	ky_input_close(&input);
}

static int by_time(const void *a, const void *b)
{
	const struct ky_symbols_code *x = a;
	const struct ky_symbols_code *y = b;
	if (x->since != y->since)
		return x->since < y->since ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static void sort(struct ky_symbols_jit *jit)
{
	bool ordered = true;
	for (uint32_t i = jit->done + 1; i < jit->count && ordered; i++)
		ordered = jit->codes[i - 1].since <= jit->codes[i].since;
	if (!ordered)
		qsort(jit->codes + jit->done, jit->count - jit->done, sizeof(*jit->codes), by_time);
	jit->sorted = true;
}

uint32_t ky_symbols_in_jit(struct ky_symbols *symbols, int64_t pid, uint64_t address, uint64_t time,
			   uint32_t *file, uint32_t *line)
{
	struct ky_symbols_jit *jit = jit_of(symbols, pid);
	uint32_t code;
	*file = *line = 0;
	if (!jit)
		return 0;
	if (!jit->map_tried)
		load_map(symbols, jit, pid);
	if (!jit->sorted)
		sort(jit);
	for (; jit->done < jit->count && jit->codes[jit->done].since <= time; jit->done++)
		ky_ranges_put(&symbols->ranges, &jit->space, jit->codes[jit->done].start,
			      jit->codes[jit->done].end, jit->done);
	if (!ky_ranges_find(&symbols->ranges, &jit->space, address, &code))
		return 0;
	*file = jit->codes[code].file;
	*line = jit->codes[code].line;
	return jit->codes[code].name;
}
