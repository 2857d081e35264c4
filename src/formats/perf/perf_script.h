/* SPDX-License-Identifier: MIT */
/* perf_script.h: the parts of the reader of `perf script`'s text. */
#ifndef KY_FORMATS_PERF_PERF_SCRIPT_H
#define KY_FORMATS_PERF_PERF_SCRIPT_H

#include "base/map.h"
#include "formats/load.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- lines: perf_script_line.c ---- */

struct ky_perf_text {
	const char *text;
	size_t bytes;
};

struct ky_perf_script_head {
	struct ky_perf_text comm; /* bytes 0: none */
	int64_t pid;              /* -1: unknown */
	int64_t tid;
	int64_t cpu; /* -1: unknown */
	int64_t time_ns;
	uint64_t period; /* 0: unknown */
	struct ky_perf_text event;
	struct ky_perf_text rest; /* of the line, without blanks around it */
};

struct ky_perf_script_frame {
	uint64_t address;
	struct ky_perf_text symbol; /* without its offset */
	uint64_t offset;
	struct ky_perf_text file; /* bytes 0: unknown */
};

/* A branch: from one place to another. */
struct ky_perf_script_branch {
	struct ky_perf_text kind; /* "call", "tr strt", ...; bytes 0: unknown */
	struct ky_perf_script_frame from;
	struct ky_perf_script_frame to;
};

bool ky_perf_script_head(const char *line, size_t bytes, struct ky_perf_script_head *head);
/* Parse a line of a call stack, with blanks in front or without. */
bool ky_perf_script_frame(const char *line, size_t bytes, struct ky_perf_script_frame *frame);
bool ky_perf_script_branch(const char *text, size_t bytes, struct ky_perf_script_branch *branch);

/* ---- the text while it is read ---- */

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
