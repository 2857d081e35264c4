/* SPDX-License-Identifier: MIT */
/*
 * oom_watch.c: the kernel's counts of kills for want of memory, by control group (both
 * versions) and of the machine.
 */
#include "capture/oom_watch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind "oom_kill " at the begin of a line; -1 without. */
static int64_t read_count(const char *path)
{
	static const char key[] = "oom_kill ";
	char line[256];
	int64_t count = -1;
	FILE *file = path ? fopen(path, "re") : NULL;
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			count = strtoll(line + sizeof(key) - 1, NULL, 10);
	if (file)
		fclose(file);
	return count;
}

/*
 * The file of a group with the count, of a line of /proc/PID/cgroup; NULL when it is not the
 * memory's group.
 */
static char *events_of(const char *line)
{
	static const char v2[] = "0::/", v1[] = ":memory:/";
	const char *group = strstr(line, v1);
	char *path = NULL;
	int length = -1;
	if (strncmp(line, v2, sizeof(v2) - 1) == 0)
		length = asprintf(&path, "/sys/fs/cgroup%s/memory.events", line + sizeof(v2) - 2);
	else if (group)
		length = asprintf(&path, "/sys/fs/cgroup/memory%s/memory.oom_control",
				  group + sizeof(v1) - 2);
	return length < 0 ? NULL : path;
}

/* Of the process's control group; NULL when there is none that tells. */
static char *find_group(pid_t pid)
{
	char name[64], line[PATH_MAX], *path = NULL;
	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	FILE *file = fopen(name, "re");
	while (file && !path && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		path = events_of(line);
		if (path && read_count(path) < 0) {
			free(path);
			path = NULL;
		}
	}
	if (file)
		fclose(file);
	return path;
}

void ky_out_of_memory_begin(struct ky_out_of_memory *memory, pid_t pid)
{
	ky_out_of_memory_end(memory);
	memory->path = find_group(pid);
	if (!memory->path)
		memory->path = strdup("/proc/vmstat");
	memory->count = read_count(memory->path);
}

bool ky_out_of_memory_grew(const struct ky_out_of_memory *memory)
{
	return memory->path && memory->count >= 0 && read_count(memory->path) > memory->count;
}

void ky_out_of_memory_end(struct ky_out_of_memory *memory)
{
	free(memory->path);
	*memory = (struct ky_out_of_memory){0};
}
