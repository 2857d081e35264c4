/* SPDX-License-Identifier: MIT */
/*
 * symbols_jit.c: functions that were made at run time. What a process's perf map and jitdumps say is kept in the
 * order of time, and put into an address space when time gets there: later code takes the place of earlier.
 */
#include "process/symbols_parts.h"

#include "base/array.h"
#include "base/file.h"
#include "process/jit_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAP_BYTES_MAX ((size_t)1 << 30)

struct filling {
	struct ky_symbols *symbols;
	struct ky_symbols_jit *jit;
	bool timed; /* times are of the recording's clock, unless the dump says otherwise */
	struct ky_jitdump_head head; /* of a jitdump */
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

static void on_line(void *context, uint64_t at, const struct ky_perf_map_line *line)
{
	const struct filling *filling = context;
	if (!line) {
		if (filling->symbols->damaged)
			filling->symbols->damaged(filling->symbols->damaged_context,
						  "perf_map_line", at, "expected START SIZE name");
		return;
	}
	const struct ky_symbols_code code = {
		.start = line->start,
		.end = end_of(line->start, line->bytes),
		.name = ky_strings_add_utf8(filling->symbols->strings, line->name,
					    line->name_bytes),
	};
	add_code(filling->jit, &code);
}

static void on_code(void *context, const struct ky_jit_code *event)
{
	const struct filling *filling = context;
	struct ky_strings *strings = filling->symbols->strings;
	struct ky_symbols_code code = {
		.since = filling->timed && !(filling->head.flags & KY_JITDUMP_ARCH_TIME)
				 ? event->time_ns
				 : 0,
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
		code.name = ky_strings_add_utf8(strings, event->name, event->name_bytes);
		code.file = event->file_bytes
				    ? ky_strings_add_utf8(strings, event->file, event->file_bytes)
				    : 0;
	}
	if (code.name)
		add_code(filling->jit, &code);
}

/* Open a file of that name beside the recording, else at its own path; -1 when neither is a plain file. */
static int open_beside(const struct ky_symbols *symbols, const char *path)
{
	char beside[KY_SYMBOLS_PATH_BYTES];
	const char *name = ky_file_name(path);
	if (symbols->folder &&
	    snprintf(beside, sizeof(beside), "%s%s", symbols->folder, name) < (int)sizeof(beside)) {
		const int fd = ky_symbols_open_plain(beside);
		if (fd >= 0)
			return fd;
	}
	return path[0] == '/' ? ky_symbols_open_plain(path) : -1;
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
			*number = UINT32_MAX;
			return NULL;
		}
		symbols->jits[symbols->jits_count] = (struct ky_symbols_jit){0};
		*number = symbols->jits_count++;
	}
	return *number == UINT32_MAX ? NULL : &symbols->jits[*number];
}

/* A jitdump that is read part by part: code, which is most of it, is passed over. */
struct dump_file {
	const struct ky_symbols *symbols;
	int fd;
	uint64_t position;
	uint8_t data[KY_JITDUMP_WINDOW];
};

static const uint8_t *need(void *context, size_t bytes, size_t *have)
{
	struct dump_file *file = context;
	const int64_t got = ky_file_pread_all(file->fd, file->data, bytes, file->position);
	*have = got > 0 ? (size_t)got : 0;
	return file->data;
}

static bool skip(void *context, uint64_t bytes)
{
	struct dump_file *file = context;
	struct stat status;
	file->position += bytes;
	return fstat(file->fd, &status) == 0 && file->position <= (uint64_t)status.st_size;
}

static void damaged(void *context, uint64_t at, const char *what)
{
	const struct dump_file *file = context;
	if (file->symbols->damaged)
		file->symbols->damaged(file->symbols->damaged_context, "jitdump_damaged", at, what);
}

void ky_symbols_jitdump(struct ky_symbols *symbols, int64_t pid, const char *path, bool timed)
{
	struct ky_symbols_jit *jit = jit_of(symbols, pid);
	const int fd = jit ? open_beside(symbols, path) : -1;
	struct dump_file *file = fd >= 0 ? calloc(1, sizeof(*file)) : NULL;
	if (file) {
		struct filling filling = {symbols, jit, timed, {0}};
		const struct ky_jitdump_input input = {need, skip, damaged, file};
		file->fd = fd;
		file->symbols = symbols;
		(void)ky_jitdump_read(&input, &filling.head, on_code, &filling);
	}
	free(file);
	if (fd >= 0)
		close(fd);
}

static void load_map(struct ky_symbols *symbols, struct ky_symbols_jit *jit, int64_t pid)
{
	char path[64];
	size_t bytes = 0;
	struct filling filling = {symbols, jit, false, {0}};
	jit->map_tried = true;
	snprintf(path, sizeof(path), "/tmp/perf-%lld.map", (long long)pid);
	const int fd = open_beside(symbols, path);
	char *const text = fd >= 0 ? ky_file_read_fd(fd, MAP_BYTES_MAX, &bytes) : NULL;
	if (text)
		ky_perf_map_lines(text, bytes, on_line, &filling);
	free(text);
	if (fd >= 0)
		close(fd);
}

KY_ORDER(by_time, struct ky_symbols_code,
	 KY_COMPARE_THEN(a->since, b->since, KY_COMPARE(a->order, b->order)))

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
