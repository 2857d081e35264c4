/* SPDX-License-Identifier: MIT */
/*
 * stats.h: slices summed up by what they have in common: the ground of report, hist and diff.
 *
 * Self time is a slice's duration less that of its children. Slices that never ended count with
 * what they lasted to the trace's end, and are told apart. Instants have a count alone.
 */
#ifndef KY_QUERY_STATS_H
#define KY_QUERY_STATS_H

#include "model/trace.h"

struct ky_reach;

enum ky_stats_by { KY_BY_NAME, KY_BY_CATEGORY, KY_BY_THREAD, KY_BY_PROCESS };

struct ky_stats_filter {
	int64_t from_ns, to_ns; /* KY_TIME_NONE: open */
	const char *name;       /* glob or NULL */
	const char *category;
	const char *thread;           /* glob over the thread's name, or its tid */
	const char *process;          /* glob over the process's name, or its pid */
	const uint8_t *tracks;        /* NULL, or not 0 for each track whose slices count */
	const uint8_t *threads;       /* NULL, or not 0 for each thread whose samples count */
	const struct ky_reach *reach; /* NULL, or of the trace: makes short ranges cheap */
	const int *stop; /* NULL, or atomic: not 0 once nobody wants the answer any more */
};

struct ky_stats_row {
	uint32_t key; /* string, thread or process by what it is grouped by */
	uint64_t count;
	uint64_t unfinished;
	uint64_t instants;
	int64_t total_ns;
	int64_t self_ns;
	int64_t min_ns, max_ns;
	int64_t p50_ns, p95_ns, p99_ns;
	double mean_ns, stddev_ns;
};

struct ky_stats {
	struct ky_stats_row *rows;
	uint32_t count;
};

/* 0, -ENOMEM, or -EINTR when it was stopped. Rows come in descending order of total_ns. */
int ky_stats_make(struct ky_stats *stats, struct ky_trace *trace, enum ky_stats_by by,
		  const struct ky_stats_filter *filter);
void ky_stats_free(struct ky_stats *stats);

/*
 * All durations of the slices that the filter lets through, unordered; *durations is the caller's
 * to free.
 */
int ky_stats_durations(struct ky_trace *trace, const struct ky_stats_filter *filter,
		       int64_t **durations, uint64_t *count);

#endif
