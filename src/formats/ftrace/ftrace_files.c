/* SPDX-License-Identifier: MIT */
/*
 * ftrace_files.c: which file of tracefs says what.
 *
 *   header_page, events/header_page                           the size of pages and of longs
 *   format/SYSTEM.EVENT, events/SYSTEM/EVENT/format           what an event's record holds
 *   saved_cmdlines, tasks, printk_formats, kallsyms, uname    names
 *   set_event_pid                                             that only some tasks were recorded
 *   per_cpu/cpuN/stats                                        what was lost, also where no page tells
 */
#include "formats/ftrace/ftrace_files.h"
#include "base/array.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int ky_ftrace_files_open(struct ky_ftrace_files *files, struct ky_trace *trace)
{
	const bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	*files = (struct ky_ftrace_files){.page_bytes = 4096};
	return ky_ftrace_format_open(&files->format, trace, big_endian, 8);
}

bool ky_ftrace_files_cpu(const char *name, const char *suffix, uint32_t *cpu)
{
	char *end;
	if (strncmp(name, "cpu", 3) != 0 || !isdigit((unsigned char)name[3]))
		return false;
	const unsigned long number = strtoul(name + 3, &end, 10);
	*cpu = (uint32_t)number;
	return number < KY_FTRACE_CPUS_MAX && strcmp(end, suffix) == 0;
}

/* "field: char data; offset:16; size:4080": data and the bytes before it are a page. */
static void learn_page(struct ky_ftrace_files *files, const char *text, size_t bytes)
{
	const char *data = memmem(text, bytes, "data;", 5);
	const char *offset = data ? strstr(data, "offset:") : NULL;
	const char *size = data ? strstr(data, "size:") : NULL;
	ky_ftrace_format_header_page(files->format, text, bytes);
	if (!offset || !size)
		return;
	const unsigned long page = strtoul(offset + 7, NULL, 10) + strtoul(size + 5, NULL, 10);
	if (page >= 64 && page <= KY_FTRACE_PAGE_BYTES_MAX)
		files->page_bytes = (uint32_t)page;
}

/* Get the system of "format/SYSTEM.EVENT" and "events/SYSTEM/EVENT/format"; false when the path is neither. */
static bool system_of(const char *path, char *system, size_t room)
{
	const bool plain = strncmp(path, "format/", 7) == 0;
	if (!plain && strncmp(path, "events/", 7) != 0)
		return false;
	const char *name = path + 7;
	const char *end = strchr(name, plain ? '.' : '/');
	const char *last = strrchr(path, '/');
	if (!end || end == name || (!plain && (last == end || strcmp(last, "/format") != 0)))
		return false;
	snprintf(system, room, "%.*s", (int)(end - name), name);
	return true;
}

/* "overrun: 12\ncommit overrun: 0\n...dropped events: 3\n": their sum. */
static uint64_t lost_of(const char *text)
{
	static const char *const keys[] = {
		"\noverrun: ", "\ncommit overrun: ", "\ndropped events: "};
	uint64_t lost = 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *found = strstr(text, keys[i]);
		lost += found ? strtoull(found + strlen(keys[i]), NULL, 10) : 0;
	}
	return lost;
}

static void take_stats(struct ky_ftrace_files *files, uint32_t cpu, const char *text)
{
	if (!KY_ARRAY_GROW_ZERO(files->lost, files->lost_cpus, cpu + 1))
		return;
	files->lost[cpu].last = lost_of(text);
	if (!files->lost[cpu].there)
		files->lost[cpu].first = files->lost[cpu].last;
	files->lost[cpu].there = true;
}

static bool take_per_cpu(struct ky_ftrace_files *files, const char *path, const char *text)
{
	uint32_t cpu;
	if (strncmp(path, "per_cpu/", 8) != 0 || !ky_ftrace_files_cpu(path + 8, "/stats", &cpu))
		return false;
	take_stats(files, cpu, text);
	return true;
}

void ky_ftrace_files_take(struct ky_ftrace_files *files, const char *path, const char *text,
			  size_t bytes, uint64_t at)
{
	static const struct {
		const char *path;
		void (*take)(struct ky_ftrace_format *format, const char *text, size_t bytes);
	} others[] = {
		{"saved_cmdlines", ky_ftrace_format_comms},
		{"tasks", ky_ftrace_format_tasks},
		{"printk_formats", ky_ftrace_format_printk},
		{"kallsyms", ky_ftrace_format_kallsyms},
		{"uname", ky_ftrace_format_uname},
		{"set_event_pid", ky_ftrace_format_watched},
	};
	char system[64];
	if (strcmp(path, "header_page") == 0 || strcmp(path, "events/header_page") == 0) {
		learn_page(files, text, bytes);
	} else if (system_of(path, system, sizeof(system))) {
		ky_ftrace_format_event(files->format, system, text, bytes, at);
		files->formats++;
	} else if (!take_per_cpu(files, path, text)) {
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			if (strcmp(path, others[i].path) == 0)
				others[i].take(files->format, text, bytes);
	}
}

/* Pages say how many events were lost before them only where they have room for the number. */
static void put_untold(struct ky_ftrace_files *files)
{
	uint64_t lost = 0;
	for (uint32_t i = 0; i < files->lost_cpus; i++)
		if (files->lost[i].last > files->lost[i].first)
			lost += files->lost[i].last - files->lost[i].first;
	const uint64_t told = ky_ftrace_format_missed(files->format);
	if (lost > told)
		ky_put_lost(files->format->trace, KY_TIME_NONE, KY_NONE, KY_NONE, lost - told,
			    "ftrace ring buffer, overwritten");
}

void ky_ftrace_files_finish(struct ky_ftrace_files *files)
{
	put_untold(files);
	ky_ftrace_format_finish(files->format);
	ky_ftrace_format_close(&files->format);
	KY_ARRAY_FREE(files->lost, files->lost_cpus);
}
