/* SPDX-License-Identifier: MIT */
/*
 * ftrace_files.c: reads a copy of tracefs, whatever it is kept in: its files by their paths, and pages of its ring buffers.
 *
 *   directory ──────────┐
 *                       ├─▶ files by path, pages by CPU ─▶ ky_ftrace_format ─▶ model
 *   stream of a .kymo ──┘
 *
 *   header_page, events/header_page                           the size of pages and of longs
 *   format/SYSTEM.EVENT, events/SYSTEM/EVENT/format           what an event's record holds
 *   saved_cmdlines, tasks, printk_formats, kallsyms, uname    names
 *   set_event_pid                                             that only some tasks were recorded
 *   per_cpu/cpuN/stats                                        what was lost, also where no page tells
 *
 * Unknown files are skipped, so that a copy may be complete. Files that explain events (formats, header_page,
 * printk_formats, kallsyms, uname) must come before the pages; saved_cmdlines, tasks and stats may come at any time.
 */
#include "formats/ftrace/ftrace_format.h"

#include "base/array.h"
#include "base/file.h"
#include "formats/kymo/kymo_layout.h"
#include "formats/load.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE_BYTES_MAX (1u << 20)
#define CPUS_MAX 65536u

struct tracefs_files {
	struct ky_ftrace_format *format;
	uint32_t page_bytes; /* as header_page has it */
	uint32_t formats;    /* of events, seen */
	struct {
		uint64_t first, last; /* lost in all, by the first and the last stats */
		bool there;
	} * lost;
	uint32_t lost_cpus;
};

/* Open it, in this machine's byte order. Return 0 or -ENOMEM. */
static int open_files(struct tracefs_files *files, struct ky_trace *trace)
{
	const bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	*files = (struct tracefs_files){.page_bytes = 4096};
	return ky_ftrace_format_open(&files->format, trace, big_endian, 8);
}

/* Get N of "cpuN" and the suffix; false for any other name. */
static bool cpu_of(const char *name, const char *suffix, uint32_t *cpu)
{
	char *end;
	if (strncmp(name, "cpu", 3) != 0 || !isdigit((unsigned char)name[3]))
		return false;
	const unsigned long number = strtoul(name + 3, &end, 10);
	*cpu = (uint32_t)number;
	return number < CPUS_MAX && strcmp(end, suffix) == 0;
}

/* "field: char data; offset:16; size:4080": data and the bytes before it are a page. */
static void learn_page(struct tracefs_files *files, const char *text, size_t bytes)
{
	const char *data = memmem(text, bytes, "data;", 5);
	const char *offset = data ? strstr(data, "offset:") : NULL;
	const char *size = data ? strstr(data, "size:") : NULL;
	ky_ftrace_format_header_page(files->format, text, bytes);
	if (!offset || !size)
		return;
	const unsigned long page = strtoul(offset + 7, NULL, 10) + strtoul(size + 5, NULL, 10);
	if (page >= 64 && page <= PAGE_BYTES_MAX)
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

static void take_stats(struct tracefs_files *files, uint32_t cpu, const char *text)
{
	if (!KY_ARRAY_GROW_ZERO(files->lost, files->lost_cpus, cpu + 1))
		return;
	files->lost[cpu].last = lost_of(text);
	if (!files->lost[cpu].there)
		files->lost[cpu].first = files->lost[cpu].last;
	files->lost[cpu].there = true;
}

static bool take_per_cpu(struct tracefs_files *files, const char *path, const char *text)
{
	uint32_t cpu;
	if (strncmp(path, "per_cpu/", 8) != 0 || !cpu_of(path + 8, "/stats", &cpu))
		return false;
	take_stats(files, cpu, text);
	return true;
}

/* Take a file; path is relative to tracefs; the text ends in a NUL. at: place in the input, or KY_NO_PLACE. */
static void take_text(struct tracefs_files *files, const char *path, const char *text, size_t bytes,
		      uint64_t at)
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
static void put_untold(struct tracefs_files *files)
{
	uint64_t lost = 0;
	for (uint32_t i = 0; i < files->lost_cpus; i++)
		if (files->lost[i].last > files->lost[i].first)
			lost += files->lost[i].last - files->lost[i].first;
	const uint64_t missed = ky_ftrace_format_missed(files->format);
	if (lost > missed)
		ky_put_lost(files->format->trace, KY_TIME_NONE, KY_NONE, KY_NONE, lost - missed,
			    KY_LOSS_FTRACE_OVERWRITTEN);
}

/* Put the facts that are known only after all pages, and close. */
static void finish_files(struct tracefs_files *files)
{
	put_untold(files);
	ky_ftrace_format_finish(files->format);
	ky_ftrace_format_close(&files->format);
	KY_ARRAY_FREE(files->lost, files->lost_cpus);
}

/* ---- the stream of a capture ---- */

/*
 * Records of files and pages, in the order in which kymo
 * wrote them, padded to 8 bytes each. A file with many lines may come in several records, each of whole lines. A page
 * is cut behind its last event. Records of other kinds are passed over.
 */

/* The largest record. kymo's own have at most a megabyte. */
#define RECORD_BYTES_MAX (64u << 20)
#define PATH_BYTES_MAX 512u

struct ftrace_records {
	struct ky_load *load;
	struct tracefs_files files;
};

static void take_record_file(struct ftrace_records *stream, const struct ky_kymo_ftrace *record,
			     const uint8_t *content, uint64_t at)
{
	char path[PATH_BYTES_MAX];
	const size_t bytes = record->bytes - sizeof(*record) - record->path_bytes;
	char *text = malloc(bytes + 1);
	if (!text) {
		stream->load->trace->error = -ENOMEM;
		return;
	}
	memcpy(path, content, record->path_bytes);
	path[record->path_bytes] = '\0';
	memcpy(text, content + record->path_bytes, bytes);
	text[bytes] = '\0';
	take_text(&stream->files, path, text, bytes, at);
	free(text);
}

/* Report whether its numbers agree; nothing can be found behind a record whose numbers do not. */
static bool is_sound(const struct ftrace_records *stream, const struct ky_kymo_ftrace *record,
		     uint64_t at)
{
	if (record->bytes < sizeof(*record) || record->bytes > RECORD_BYTES_MAX) {
		ky_problem(stream->load->trace, "ftrace_stream_record", KY_DATA_LOSS, at,
			   "a record of %u bytes; expected %zu to %u", record->bytes,
			   sizeof(*record), RECORD_BYTES_MAX);
		return false;
	}
	return true;
}

static void take_record(struct ftrace_records *stream, const struct ky_kymo_ftrace *record,
			const uint8_t *content, uint64_t at)
{
	const size_t bytes = record->bytes - sizeof(*record);
	const bool is_file = record->kind == KY_KYMO_FTRACE_FILE;
	const bool is_page = record->kind == KY_KYMO_FTRACE_PAGE;
	if (is_file && record->path_bytes <= bytes && record->path_bytes < PATH_BYTES_MAX)
		take_record_file(stream, record, content, at);
	else if (is_page && bytes <= PAGE_BYTES_MAX && record->cpu < CPUS_MAX)
		ky_ftrace_page(stream->files.format, record->cpu, content, bytes, at);
	else if (is_file || is_page)
		ky_problem(stream->load->trace, "ftrace_stream_record", KY_DATA_LOSS, at,
			   "a %s of %zu bytes, path of %u, CPU %u; it is left out",
			   is_file ? "file" : "page", bytes, record->path_bytes, record->cpu);
}

/* False at the end, or where the input is cut or damaged. */
static bool next_record(struct ftrace_records *stream)
{
	struct ky_input *input = stream->load->input;
	const uint64_t at = input->position;
	struct ky_kymo_ftrace record;
	if (!ky_input_need(input, 1))
		return false;
	if (ky_input_need(input, sizeof(record))) {
		memcpy(&record, input->at, sizeof(record));
		if (!is_sound(stream, &record, at))
			return false;
		if (ky_input_need(input, record.bytes)) {
			take_record(stream, &record, input->at + sizeof(record), at);
			return ky_input_skip_far(input, KY_KYMO_PADDED((uint64_t)record.bytes));
		}
	}
	ky_problem(stream->load->trace, "ftrace_stream_cut", KY_DATA_LOSS, at,
		   "the kernel's events end within a record");
	return false;
}

int ky_ftrace_stream_read(struct ky_load *load)
{
	struct ftrace_records stream = {.load = load};
	int error = open_files(&stream.files, load->trace);
	if (error)
		return error;
	while (next_record(&stream) && !load->trace->error)
		;
	finish_files(&stream.files);
	return load->trace->error;
}

/* ---- a directory ---- */

/*
 * Pages as trace_pipe_raw gives them, and the files beside them:
 *
 *   cpuN.raw                     header_page          format/SYSTEM.EVENT          a plain copy
 *   per_cpu/cpuN/trace_pipe_raw  events/header_page   events/SYSTEM/EVENT/format   a copy of tracefs
 */

#define FILE_BYTES_MAX (256u << 20)

struct pages {
	struct ky_load *load;
	struct tracefs_files files;
	uint32_t cpus; /* that have pages */
};

static bool is_there(const char *directory, const char *name)
{
	char path[PATH_MAX];
	return snprintf(path, sizeof(path), "%s/%s", directory, name) < PATH_MAX &&
	       access(path, R_OK) == 0;
}

static bool probe_pages(const struct ky_probe *probe)
{
	if (!is_there(probe->path, "header_page") && !is_there(probe->path, "events/header_page"))
		return false;
	return is_there(probe->path, "format") || is_there(probe->path, "events");
}

/* Take a file by its path in the directory; false when it is not there. */
static bool take_file(struct pages *pages, const char *name)
{
	char path[PATH_MAX];
	size_t bytes;
	if (snprintf(path, sizeof(path), "%s/%s", pages->load->path, name) >= PATH_MAX)
		return false;
	char *text = ky_file_read(path, FILE_BYTES_MAX, &bytes);
	if (!text)
		return false;
	take_text(&pages->files, name, text, bytes, KY_NO_PLACE);
	free(text);
	return true;
}

/*
 * Call each() with the path of every name in the directory, but those with a dot first. Paths are relative to the
 * trace.
 */
static void each_name(struct pages *pages, const char *directory,
		      void (*each)(struct pages *pages, const char *path))
{
	char path[PATH_MAX];
	const bool top = directory[0] == '\0';
	if (snprintf(path, sizeof(path), "%s/%s", pages->load->path, directory) >= PATH_MAX)
		return;
	DIR *open = opendir(path);
	const struct dirent *entry;
	while (open && (entry = readdir(open)))
		if (entry->d_name[0] != '.' && snprintf(path, sizeof(path), "%s%s%s", directory,
							top ? "" : "/", entry->d_name) < PATH_MAX)
			each(pages, path);
	if (open)
		closedir(open);
}

/* format/SYSTEM.EVENT */
static void plain_format(struct pages *pages, const char *path)
{
	(void)take_file(pages, path);
}

/* events/SYSTEM/EVENT/format */
static void event_format(struct pages *pages, const char *event)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/format", event) < PATH_MAX)
		(void)take_file(pages, path);
}

static void system_formats(struct pages *pages, const char *system)
{
	each_name(pages, system, event_format);
}

static void read_files(struct pages *pages)
{
	static const char *const beside[] = {"saved_cmdlines", "tasks", "printk_formats",
					     "kallsyms", "uname"};
	if (!take_file(pages, "header_page"))
		(void)take_file(pages, "events/header_page");
	each_name(pages, "format", plain_format);
	each_name(pages, "events", system_formats);
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
		(void)take_file(pages, beside[i]);
}

static void read_pages(struct pages *pages, const char *name, uint32_t cpu)
{
	char path[PATH_MAX];
	const size_t page_bytes = pages->files.page_bytes;
	uint8_t *page = malloc(page_bytes);
	uint64_t at = 0;
	int fd = -1;
	if (snprintf(path, sizeof(path), "%s/%s", pages->load->path, name) < PATH_MAX)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	pages->cpus += fd >= 0;
	while (page && fd >= 0) {
		size_t held = 0;
		ssize_t got = 1;
		while (held < page_bytes && got > 0) {
			got = read(fd, page + held, page_bytes - held);
			held += got > 0 ? (size_t)got : 0;
		}
		if (!held)
			break;
		ky_ftrace_page(pages->files.format, cpu, page, held, at);
		at += held;
		if (held < page_bytes)
			break;
	}
	if (fd >= 0)
		close(fd);
	free(page);
}

static void plain_cpu(struct pages *pages, const char *name)
{
	uint32_t cpu;
	if (cpu_of(name, ".raw", &cpu))
		read_pages(pages, name, cpu);
}

static void tracefs_cpu(struct pages *pages, const char *directory)
{
	char path[PATH_MAX];
	uint32_t cpu;
	if (cpu_of(directory + strlen("per_cpu/"), "", &cpu) &&
	    snprintf(path, sizeof(path), "%s/trace_pipe_raw", directory) < PATH_MAX)
		read_pages(pages, path, cpu);
}

static int read_directory(struct ky_load *load)
{
	struct pages pages = {.load = load};
	int error = open_files(&pages.files, load->trace);
	if (error)
		return error;
	read_files(&pages);
	each_name(&pages, "", plain_cpu);
	each_name(&pages, "per_cpu", tracefs_cpu);
	finish_files(&pages.files);
	if (!pages.cpus)
		error = ky_load_fail(load, KY_NO_PLACE,
				     "no pages; expected cpuN.raw or per_cpu/cpuN/trace_pipe_raw");
	else if (!pages.files.formats)
		error = ky_load_fail(load, KY_NO_PLACE,
				     "no formats of events; expected format/SYSTEM.EVENT or "
				     "events/SYSTEM/EVENT/format");
	return error;
}

const struct ky_reader ky_reader_ftrace_pages = {
	.name = "ftrace-pages",
	.title = "ftrace's raw pages",
	.directory = true,
	.probe = probe_pages,
	.read = read_directory,
};
