/* SPDX-License-Identifier: MIT */
/* perf_synthesize.c: see perf_synthesize.h. */
#include "capture/perf_synthesize.h"

#include "capture/sample_modules.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void read_comm(const char *path, char comm[16])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t count = fd < 0 ? -1 : read(fd, comm, 15);
	if (fd >= 0)
		close(fd);
	comm[count > 0 ? count : 0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
}

struct telling {
	struct ky_perf_out *out;
	pid_t pid;
	uint64_t time;
};

static void tell_thread(void *context, pid_t tid)
{
	const struct telling *telling = context;
	const struct ky_perf_who who = {(uint32_t)telling->pid, (uint32_t)tid, telling->time};
	char path[64];
	char comm[16];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)telling->pid, (int)tid);
	read_comm(path, comm);
	if (tid != telling->pid)
		ky_perf_out_thread(telling->out, who);
	ky_perf_out_comm(telling->out, who, comm);
}

uint32_t ky_sample_existing_threads(pid_t pid, void (*thread)(void *context, pid_t tid),
				    void *context)
{
	char path[64];
	uint32_t count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *folder = opendir(path);
	if (!folder)
		return 0;
	for (struct dirent *entry; (entry = readdir(folder));) {
		const long tid = strtol(entry->d_name, NULL, 10);
		if (tid <= 0 || tid > INT_MAX)
			continue;
		thread(context, (pid_t)tid);
		count++;
	}
	closedir(folder);
	return count;
}

/* What the last line was of: libraries have several mappings one after the other. */
struct last_file {
	char path[PATH_MAX];
	struct ky_perf_mapping mapping;
};

/* The kernel names memory without a file so in its own records. */
static const char *shown_path(const char *path)
{
	return path[0] ? path : "//anon";
}

static void identify(struct ky_perf_mapping *mapping, pid_t pid, struct last_file *last)
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

/* "55d0c0000000-55d0c0100000 r-xp 00001000 fd:01 1234  /usr/bin/x": only what can be run is told. */
static void tell_line(const struct telling *telling, char *line, struct last_file *last)
{
	struct ky_perf_mapping mapping = {0};
	unsigned long long start, end, offset, inode;
	char rights[5];
	int path_at = 0;
	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, rights, &offset,
		   &mapping.major, &mapping.minor, &inode, &path_at) != 7 ||
	    !path_at || rights[2] != 'x' || start >= end)
		return;
	mapping.start = start;
	mapping.end = end;
	mapping.offset = offset;
	mapping.inode = inode;
	mapping.protection = PROT_EXEC | (rights[0] == 'r' ? PROT_READ : 0u) |
			     (rights[1] == 'w' ? PROT_WRITE : 0u);
	mapping.flags = rights[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	mapping.path = shown_path(line + path_at);
	identify(&mapping, telling->pid, last);
	ky_perf_out_mapping(
		telling->out,
		(struct ky_perf_who){(uint32_t)telling->pid, (uint32_t)telling->pid, telling->time},
		&mapping);
}

static void tell_mappings(const struct telling *telling)
{
	char path[64];
	char *line = NULL;
	size_t room = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)telling->pid);
	FILE *maps = fopen(path, "re");
	struct last_file *last = maps ? calloc(1, sizeof(*last)) : NULL;
	while (last && getline(&line, &room, maps) > 0)
		tell_line(telling, line, last);
	free(line);
	free(last);
	if (maps)
		fclose(maps);
}

void ky_sample_existing(struct ky_perf_out *out, pid_t pid, uint64_t time)
{
	struct telling telling = {out, pid, time};
	/* The names come first: a COMM record begins a process in whoever reads. */
	ky_sample_existing_threads(pid, tell_thread, &telling);
	tell_mappings(&telling);
}

void ky_sample_existing_all(struct ky_perf_out *out, uint64_t time)
{
	DIR *folder = opendir("/proc");
	if (!folder)
		return;
	for (struct dirent *entry; (entry = readdir(folder));) {
		const long pid = strtol(entry->d_name, NULL, 10);
		if (pid > 0 && pid <= INT_MAX)
			ky_sample_existing(out, (pid_t)pid, time);
	}
	closedir(folder);
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
