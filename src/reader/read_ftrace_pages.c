/* SPDX-License-Identifier: MIT */
/*
 * read_ftrace_pages.c: reads pages of the kernel's ring buffer as trace_pipe_raw gives them, from a directory that
 * also has the formats of the events:
 *
 *   cpuN.raw                     header_page          format/SYSTEM.EVENT          a plain copy
 *   per_cpu/cpuN/trace_pipe_raw  events/header_page   events/SYSTEM/EVENT/format   a copy of tracefs
 *
 * Beside them, where they are: saved_cmdlines, printk_formats, kallsyms, trace_clock, uname.
 */
#include "reader.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ftrace_format.h"

#define FILE_BYTES_MAX (256u << 20)
#define PAGE_BYTES_MAX (1u << 20)
#define CPUS_MAX 65536u

struct pages {
	struct ky_load *load;
	struct ky_ftrace_format *format;
	uint32_t page_bytes;
	uint32_t formats;
	uint32_t files;
};

static bool is_there(const char *directory, const char *name)
{
	char path[PATH_MAX];
	return snprintf(path, sizeof(path), "%s/%s", directory, name) < PATH_MAX &&
	       access(path, R_OK) == 0;
}

/* N of "cpuN" with what follows it; false when it is not that. */
static bool cpu_of(const char *name, const char *suffix, uint32_t *cpu)
{
	char *end;
	if (strncmp(name, "cpu", 3) != 0 || !isdigit((unsigned char)name[3]))
		return false;
	unsigned long number = strtoul(name + 3, &end, 10);
	*cpu = (uint32_t)number;
	return number < CPUS_MAX && strcmp(end, suffix) == 0;
}

static bool probe_pages(const struct ky_probe *probe)
{
	if (!is_there(probe->path, "header_page") && !is_there(probe->path, "events/header_page"))
		return false;
	return is_there(probe->path, "format") || is_there(probe->path, "events");
}

/* A file in memory, to be freed, with a NUL behind it; NULL when it is not there. */
static char *read_file(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *data = NULL;
	size_t room = 0;
	*bytes = 0;
	while (fd >= 0) {
		if (*bytes + 1 >= room) {
			size_t more = room ? room * 2 : 8192;
			char *larger = more > FILE_BYTES_MAX ? NULL : realloc(data, more);
			if (!larger)
				break;
			data = larger;
			room = more;
		}
		ssize_t got = read(fd, data + *bytes, room - *bytes - 1);
		if (got <= 0)
			break;
		*bytes += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	if (data)
		data[*bytes] = '\0';
	return data;
}

static char *read_named(const struct pages *pages, const char *name, size_t *bytes)
{
	char path[PATH_MAX];
	*bytes = 0;
	if (snprintf(path, sizeof(path), "%s/%s", pages->load->path, name) >= PATH_MAX)
		return NULL;
	return read_file(path, bytes);
}

/* ---- formats ---- */

static void take_format(struct pages *pages, const char *path, const char *system)
{
	size_t bytes;
	char *text = read_file(path, &bytes);
	if (!text)
		return;
	ky_ftrace_format_event(pages->format, system, text, bytes, KY_NO_PLACE);
	pages->formats++;
	free(text);
}

/* Calls each() with every name in the directory but those with a dot first. */
static void each_name(struct pages *pages, const char *directory,
		      void (*each)(struct pages *pages, const char *directory, const char *name))
{
	DIR *open = opendir(directory);
	const struct dirent *entry;
	while (open && (entry = readdir(open)))
		if (entry->d_name[0] != '.')
			each(pages, directory, entry->d_name);
	if (open)
		closedir(open);
}

/* format/SYSTEM.EVENT */
static void plain_format(struct pages *pages, const char *directory, const char *name)
{
	char path[PATH_MAX];
	char system[64];
	const char *dot = strchr(name, '.');
	if (!dot || snprintf(path, sizeof(path), "%s/%s", directory, name) >= PATH_MAX)
		return;
	snprintf(system, sizeof(system), "%.*s", (int)(dot - name), name);
	take_format(pages, path, system);
}

/* events/SYSTEM/EVENT/format */
static void event_format(struct pages *pages, const char *directory, const char *name)
{
	char path[PATH_MAX];
	const char *slash = strrchr(directory, '/');
	if (snprintf(path, sizeof(path), "%s/%s/format", directory, name) < PATH_MAX)
		take_format(pages, path, slash ? slash + 1 : directory);
}

static void system_formats(struct pages *pages, const char *directory, const char *name)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/%s", directory, name) < PATH_MAX)
		each_name(pages, path, event_format);
}

/* "field: char data; offset:16; size:4080": with what is before it, a page. */
static void learn_page(struct pages *pages, const char *text, size_t bytes)
{
	const char *data = memmem(text, bytes, "data;", 5);
	const char *offset = data ? strstr(data, "offset:") : NULL;
	const char *size = data ? strstr(data, "size:") : NULL;
	ky_ftrace_format_header_page(pages->format, text, bytes);
	if (!offset || !size)
		return;
	unsigned long page = strtoul(offset + 7, NULL, 10) + strtoul(size + 5, NULL, 10);
	if (page >= 64 && page <= PAGE_BYTES_MAX)
		pages->page_bytes = (uint32_t)page;
}

static void read_header(struct pages *pages)
{
	size_t bytes;
	char *text = read_named(pages, "header_page", &bytes);
	if (!text)
		text = read_named(pages, "events/header_page", &bytes);
	if (text)
		learn_page(pages, text, bytes);
	free(text);
}

static void read_beside(struct pages *pages)
{
	static const struct {
		const char *name;
		void (*take)(struct ky_ftrace_format *format, const char *text, size_t bytes);
	} files[] = {
		{"saved_cmdlines", ky_ftrace_format_comms},
		{"printk_formats", ky_ftrace_format_printk},
		{"kallsyms", ky_ftrace_format_kallsyms},
		{"uname", ky_ftrace_format_uname},
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		size_t bytes;
		char *text = read_named(pages, files[i].name, &bytes);
		if (text)
			files[i].take(pages->format, text, bytes);
		free(text);
	}
}

static void read_formats(struct pages *pages)
{
	char path[PATH_MAX];
	read_header(pages);
	if (snprintf(path, sizeof(path), "%s/format", pages->load->path) < PATH_MAX)
		each_name(pages, path, plain_format);
	if (snprintf(path, sizeof(path), "%s/events", pages->load->path) < PATH_MAX)
		each_name(pages, path, system_formats);
	read_beside(pages);
}

/* ---- pages ---- */

static void read_pages(struct pages *pages, const char *path, uint32_t cpu)
{
	uint8_t *page = malloc(pages->page_bytes);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint64_t at = 0;
	pages->files += fd >= 0;
	while (page && fd >= 0) {
		size_t held = 0;
		ssize_t got = 1;
		while (held < pages->page_bytes && got > 0) {
			got = read(fd, page + held, pages->page_bytes - held);
			held += got > 0 ? (size_t)got : 0;
		}
		if (!held)
			break;
		ky_ftrace_page(pages->format, cpu, page, held, at);
		at += held;
		if (held < pages->page_bytes)
			break;
	}
	if (fd >= 0)
		close(fd);
	free(page);
}

static void plain_cpu(struct pages *pages, const char *directory, const char *name)
{
	char path[PATH_MAX];
	uint32_t cpu;
	if (cpu_of(name, ".raw", &cpu) &&
	    snprintf(path, sizeof(path), "%s/%s", directory, name) < PATH_MAX)
		read_pages(pages, path, cpu);
}

static void tracefs_cpu(struct pages *pages, const char *directory, const char *name)
{
	char path[PATH_MAX];
	uint32_t cpu;
	if (cpu_of(name, "", &cpu) &&
	    snprintf(path, sizeof(path), "%s/%s/trace_pipe_raw", directory, name) < PATH_MAX)
		read_pages(pages, path, cpu);
}

static int read_directory(struct ky_load *load)
{
	struct pages pages = {.load = load, .page_bytes = 4096};
	char path[PATH_MAX];
	bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	int error = ky_ftrace_format_open(&pages.format, load->trace, big_endian, 8);
	if (error)
		return error;
	read_formats(&pages);
	each_name(&pages, load->path, plain_cpu);
	if (snprintf(path, sizeof(path), "%s/per_cpu", load->path) < PATH_MAX)
		each_name(&pages, path, tracefs_cpu);
	ky_ftrace_format_finish(pages.format);
	if (!pages.files)
		error = ky_load_fail(load, KY_NO_PLACE,
				     "no pages; expected cpuN.raw or per_cpu/cpuN/trace_pipe_raw");
	else if (!pages.formats)
		error = ky_load_fail(load, KY_NO_PLACE,
				     "no formats of events; expected format/SYSTEM.EVENT or "
				     "events/SYSTEM/EVENT/format");
	ky_ftrace_format_close(&pages.format);
	return error;
}

const struct ky_reader ky_reader_ftrace_pages = {
	.name = "ftrace-pages",
	.title = "ftrace's raw pages",
	.directory = true,
	.probe = probe_pages,
	.read = read_directory,
};
