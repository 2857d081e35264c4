/* SPDX-License-Identifier: MIT */
/*
 * info.h: the counts that kymo info shows, by thread. Events of a process without a thread, and of neither, have rows
 * of their own.
 */
#ifndef KY_CLI_INFO_H
#define KY_CLI_INFO_H

#include "base/json_out.h"
#include "model/trace.h"

#include <stdio.h>

struct ky_info_row {
	uint32_t process; /* or KY_NONE */
	uint32_t thread;  /* or KY_NONE */
	uint64_t slices, instants, counters, samples, sched;
	int64_t busy_ns; /* time in outermost slices */
};

struct ky_info_category {
	uint32_t name;
	uint64_t slices;
};

struct ky_info {
	struct ky_info_row *rows; /* the busiest first */
	uint32_t rows_count;
	uint32_t rows_used;                  /* rows that have any event */
	struct ky_info_category *categories; /* the most slices first */
	uint32_t categories_count;
	uint64_t spans, instants, unfinished;
	uint64_t file_bytes; /* 0: unknown */
	bool has_wall;
	int64_t wall_begin_ns, wall_end_ns; /* since 1970 */
};

const char *ky_info_severity(uint8_t severity);

void ky_info_json(const struct ky_info *info, const struct ky_trace *trace, const char *path,
		  FILE *to);
/* Add the members lost, the sum, and losses, each with its cause. */
void ky_info_json_losses(struct ky_json_out *json, const struct ky_trace *trace);
/* Add these and the member problems of the input. */
void ky_info_json_faults(struct ky_json_out *json, const struct ky_trace *trace);

/* A loss or a problem that a verb has counted itself, without a trace. */
struct ky_info_count {
	const char *text; /* of a loss: what is lost, and why */
	uint64_t count;   /* 0: there is none */
	const char *name; /* of a problem */
};
/* Add the same members from counts; a list ends where text is NULL. */
void ky_info_json_counts(struct ky_json_out *json, const struct ky_info_count *losses,
			 const struct ky_info_count *problems);

#endif
