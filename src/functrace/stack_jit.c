/* SPDX-License-Identifier: MIT */
/* stack_jit.c: see stack_jit.h. */
#include "functrace/stack_jit.h"

#include "process/perf_map.h"
#include "process/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (64u << 20)
#define LOOK_EVERY_NS 200000000u

void ky_stack_jit_free(struct ky_stack_jit *jit)
{
	ky_symbol_table_free(&jit->table);
	*jit = (struct ky_stack_jit){.pid = jit->pid};
}

static int open_map(pid_t pid, uint64_t *bytes)
{
	char path[96];
	struct stat status;
	snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%u.map", (int)pid,
		 (uint32_t)ky_proc_inner_pid(pid));
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
	    status.st_size <= (off_t)FILE_BYTES_MAX) {
		*bytes = (uint64_t)status.st_size;
		return fd;
	}
	close(fd);
	return -1;
}

/* Take a line of the map; if code was made again, the later line holds. */
static void on_line(void *context, uint64_t at, const struct ky_perf_map_line *line)
{
	struct ky_stack_jit *jit = context;
	if (line)
		(void)ky_symbol_table_add(&jit->table, line->start, line->bytes, (uint32_t)at,
					  line->name, line->name_bytes);
}

static void read_map(struct ky_stack_jit *jit)
{
	uint64_t bytes = 0;
	const int fd = open_map(jit->pid, &bytes);
	char *text = fd >= 0 && bytes > jit->file_bytes ? malloc(bytes) : NULL;
	const ssize_t got = text ? pread(fd, text, bytes, 0) : -1;
	if (got > 0) {
		ky_symbol_table_free(&jit->table);
		jit->file_bytes = (uint64_t)got;
		/* Take whole lines only: the last one may still be written. */
		const char *const last = memrchr(text, '\n', (size_t)got);
		if (last)
			ky_perf_map_lines(text, (size_t)(last - text), on_line, jit);
		ky_symbol_table_sort(&jit->table);
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

uint32_t ky_stack_jit_name(struct ky_stack_jit *jit, struct ky_strings *strings, uint64_t address,
			   uint64_t now_ns)
{
	uint32_t name = jit->table.count ? ky_symbol_table_find(&jit->table, strings, address) : 0;
	if (name || (jit->looked_ns && now_ns - jit->looked_ns < LOOK_EVERY_NS))
		return name;
	jit->looked_ns = now_ns;
	read_map(jit);
	return jit->table.count ? ky_symbol_table_find(&jit->table, strings, address) : 0;
}
