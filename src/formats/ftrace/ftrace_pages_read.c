/* SPDX-License-Identifier: MIT */
/*
 * ftrace_pages_read.c: reads pages of the kernel's ring buffer as trace_pipe_raw gives them, from a directory that
 * also has the formats of the events:
 *
 *   cpuN.raw                     header_page          format/SYSTEM.EVENT          a plain copy
 *   per_cpu/cpuN/trace_pipe_raw  events/header_page   events/SYSTEM/EVENT/format   a copy of tracefs
 *
 * Beside them, where they are: saved_cmdlines, printk_formats, kallsyms, uname.
 */
#include "base/file.h"
#include "formats/load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/ftrace/ftrace_files.h"

#define FILE_BYTES_MAX (256u << 20)

struct pages {
	struct ky_load *load;
	struct ky_ftrace_files files;
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

/* ---- files ---- */

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
	ky_ftrace_files_take(&pages->files, name, text, bytes, KY_NO_PLACE);
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

/* ---- pages ---- */

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
	if (ky_ftrace_files_cpu(name, ".raw", &cpu))
		read_pages(pages, name, cpu);
}

static void tracefs_cpu(struct pages *pages, const char *directory)
{
	char path[PATH_MAX];
	uint32_t cpu;
	if (ky_ftrace_files_cpu(directory + strlen("per_cpu/"), "", &cpu) &&
	    snprintf(path, sizeof(path), "%s/trace_pipe_raw", directory) < PATH_MAX)
		read_pages(pages, path, cpu);
}

static int read_directory(struct ky_load *load)
{
	struct pages pages = {.load = load};
	int error = ky_ftrace_files_open(&pages.files, load->trace);
	if (error)
		return error;
	read_files(&pages);
	each_name(&pages, "", plain_cpu);
	each_name(&pages, "per_cpu", tracefs_cpu);
	ky_ftrace_files_finish(&pages.files);
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
