/* SPDX-License-Identifier: MIT */
/* perf_script.h: one text of `perf script` while it is read, for the files of its reader. */
#ifndef KY_FORMATS_PERF_PERF_SCRIPT_H
#define KY_FORMATS_PERF_PERF_SCRIPT_H

#include "base/map.h"
#include "formats/load.h"
#include "formats/perf/perf_script_line.h"

#define KY_PERF_SCRIPT_DEPTH_MAX 512u

/* The functions that a thread is in, by its branches. */
struct ky_perf_script_stack {
	uint32_t track;
	uint32_t depth;
	uint32_t names[KY_PERF_SCRIPT_DEPTH_MAX];
};

struct ky_perf_script {
	struct ky_trace *trace;
	bool open;                       /* a sample waits for its stack */
	struct ky_perf_script_head head; /* of it, only its numbers */
	uint32_t thread;
	uint32_t event;
	uint32_t *frames; /* of it, the innermost first */
	uint32_t frames_count;
	uint64_t frames_room;
	enum ky_cpu_mode mode;
	uint64_t samples;
	struct ky_u64_map stack_of; /* thread */
	struct ky_perf_script_stack **stacks;
	uint32_t stacks_count;
	uint64_t stacks_room;
	uint32_t category;
};

/* The thread's function changed. */
void ky_perf_script_branched(struct ky_perf_script *script,
			     const struct ky_perf_script_branch *branch);
void ky_perf_script_branches_free(struct ky_perf_script *script);

#endif
