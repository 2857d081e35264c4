/* SPDX-License-Identifier: MIT */
/*
 * oom_watch.h: whether the kernel killed something because memory was short, since a moment.
 *
 * It does not tell whom. It counts such kills for each control group, by whose process was killed,
 * and for the machine (/proc/vmstat). When the count of the process's group grew while it was
 * watched, and it then died of SIGKILL, that was it, in all likelihood; the machine's is asked
 * where groups are not to be seen.
 */
#ifndef KY_CAPTURE_OOM_WATCH_H
#define KY_CAPTURE_OOM_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ky_out_of_memory {
	char *path;    /* of the file with the count */
	int64_t count; /* then; -1: not known */
};

/* From now on. What it allocates is freed by ky_out_of_memory_end(). */
void ky_out_of_memory_begin(struct ky_out_of_memory *memory, pid_t pid);
bool ky_out_of_memory_grew(const struct ky_out_of_memory *memory);
void ky_out_of_memory_end(struct ky_out_of_memory *memory);

#endif
