/* SPDX-License-Identifier: MIT */
/*
 * perf_synthesize.h: processes that run already when sampling begins, told in the records that the kernel would have written
 * when they began: from /proc.
 */
#ifndef KY_CAPTURE_PERF_SYNTHESIZE_H
#define KY_CAPTURE_PERF_SYNTHESIZE_H

#include "capture/perf_records.h"

#include <sys/types.h>

/* Its threads, their names, and the code it has mapped as far as this user may see it. time: of the records. */
void ky_sample_existing(struct ky_perf_out *out, pid_t pid, uint64_t time);
/* All processes there are. */
void ky_sample_existing_all(struct ky_perf_out *out, uint64_t time);
/* The threads of a process: calls back for each; how many. */
uint32_t ky_sample_existing_threads(pid_t pid, void (*thread)(void *context, pid_t tid),
				    void *context);
/* Where the kernel's code begins, 0 when this user may not know. */
uint64_t ky_sample_existing_kernel(void);

#endif
