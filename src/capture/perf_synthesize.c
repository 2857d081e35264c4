/* SPDX-License-Identifier: MIT */
/* perf_synthesize.c: see perf_synthesize.h. */
#include "capture/perf_synthesize.h"

#include "capture/sample_modules.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct telling {
	struct ky_perf_out *out;
	pid_t pid;
	uint64_t time;
};

static void tell_thread(void *context, pid_t tid)
{
	const struct telling *telling = context;
	const struct ky_perf_who who = {(uint32_t)telling->pid, (uint32_t)tid, telling->time};
	char comm[16];
	(void)ky_proc_comm(telling->pid, tid, comm, sizeof(comm));
	if (tid != telling->pid)
		ky_perf_out_thread(telling->out, who);
	ky_perf_out_comm(telling->out, who, comm);
}

uint32_t ky_sample_existing_threads(pid_t pid, void (*thread)(void *context, pid_t tid),
				    void *context)
{
	uint32_t count = 0;
	DIR *const tasks = ky_proc_tasks(pid);
	for (pid_t tid; (tid = ky_proc_next(tasks)) > 0; count++)
		thread(context, tid);
	ky_proc_close(tasks);
	return count;
}

/* What the last line was of: libraries have several mappings one after the other. */
struct last_file {
	char path[PATH_MAX];
	struct ky_proc_mapping mapping;
};

/* The kernel names memory without a file so in its own records. */
static const char *shown_path(const char *path)
{
	return path[0] ? path : "//anon";
}

static void identify(struct ky_proc_mapping *mapping, pid_t pid, struct last_file *last)
{
	if (strcmp(last->path, mapping->path) == 0 && last->mapping.inode == mapping->inode) {
		memcpy(mapping->build_id, last->mapping.build_id, sizeof(mapping->build_id));
		mapping->build_id_bytes = last->mapping.build_id_bytes;
		return;
	}
	const int fd = mapping->inode ? ky_sample_modules_open_path(mapping->path, pid) : -1;
	if (fd >= 0) {
		ky_sample_modules_build_id(fd, mapping);
		close(fd);
	}
	snprintf(last->path, sizeof(last->path), "%s", mapping->path);
	last->mapping = *mapping;
}

static void tell_mapping(const struct telling *telling, struct ky_proc_mapping *mapping,
			 struct last_file *last)
{
	mapping->path = shown_path(mapping->path);
	identify(mapping, telling->pid, last);
	ky_perf_out_mapping(
		telling->out,
		(struct ky_perf_who){(uint32_t)telling->pid, (uint32_t)telling->pid, telling->time},
		mapping);
}

static void tell_mappings(const struct telling *telling)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	struct last_file *const last = calloc(1, sizeof(*last));
	if (last && ky_proc_maps_open(&maps, telling->pid) == 0) {
		while (ky_proc_maps_next(&maps, &mapping))
			if (mapping.protection & PROT_EXEC)
				tell_mapping(telling, &mapping, last);
		ky_proc_maps_close(&maps);
	}
	free(last);
}

void ky_sample_existing(struct ky_perf_out *out, pid_t pid, uint64_t time)
{
	struct telling telling = {out, pid, time};
	/* The names come first: for a reader a process begins with its COMM record. */
	ky_sample_existing_threads(pid, tell_thread, &telling);
	tell_mappings(&telling);
}

void ky_sample_existing_all(struct ky_perf_out *out, uint64_t time)
{
	DIR *const processes = ky_proc_processes();
	for (pid_t pid; (pid = ky_proc_next(processes)) > 0;)
		ky_sample_existing(out, pid, time);
	ky_proc_close(processes);
}

uint64_t ky_sample_existing_kernel(void)
{
	char *line = NULL;
	size_t room = 0;
	unsigned long long address;
	char type;
	char name[32];
	uint64_t text = 0;
	FILE *symbols = fopen("/proc/kallsyms", "re");
	/* It is among the first of all: the rest need not be read. */
	for (unsigned i = 0; symbols && !text && i < 65536 && getline(&line, &room, symbols) > 0;
	     i++)
		if (sscanf(line, "%llx %c %31s", &address, &type, name) == 3 &&
		    strcmp(name, "_text") == 0)
			text = address;
	free(line);
	if (symbols)
		fclose(symbols);
	return text;
}
