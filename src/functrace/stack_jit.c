/* SPDX-License-Identifier: MIT */
/* stack_jit.c: see stack_jit.h. */
#include "functrace/stack_jit.h"

#include "process/drum_find.h"
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

/* Whole lines only: the last one may still be written. Where code was made anew, the later line holds. */
static void read_lines(struct ky_stack_jit *jit, const char *text, size_t bytes)
{
	uint32_t number = 0;
	for (const char *end; (end = memchr(text, '\n', bytes)); number++) {
		struct ky_perf_map_line line;
		const size_t length = (size_t)(end - text);
		if (ky_perf_map_line(text, length, &line))
			(void)ky_symbol_table_add(&jit->table, line.start, line.bytes, number,
						  line.name, line.name_bytes);
		text = end + 1;
		bytes -= length + 1;
	}
	ky_symbol_table_sort(&jit->table);
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
		read_lines(jit, text, (size_t)got);
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

uint32_t ky_stack_jit_name(struct ky_stack_jit *jit, struct ky_trace *trace, uint64_t address,
			   uint64_t now_ns)
{
	uint32_t name = jit->table.count ? ky_symbol_table_find(&jit->table, trace, address) : 0;
	if (name || (jit->looked_ns && now_ns - jit->looked_ns < LOOK_EVERY_NS))
		return name;
	jit->looked_ns = now_ns;
	read_map(jit);
	return jit->table.count ? ky_symbol_table_find(&jit->table, trace, address) : 0;
}
