/* SPDX-License-Identifier: MIT */
/*
 * stats.h: slices summed up by name, category, thread or process: the basis of report, hist and diff.
 *
 * Self time is a slice's duration minus that of its children. Slices that never ended last to the end of the trace,
 * and are also counted separately. Instants have only a count. Formatted messages have the name of their format.
 */
#ifndef KY_QUERY_STATS_H
#define KY_QUERY_STATS_H

#include "model/trace.h"

#include <stdint.h>

struct ky_filter_ends;

enum ky_stats_by {
	KY_BY_NAME,
	KY_BY_CATEGORY,
	KY_BY_THREAD,
	KY_BY_PROCESS,
	KY_BY_NAME_CATEGORY /* a span and a function of one name are two rows; messages go by their format */
};

struct ky_stats_filter {
	int64_t from_ns, to_ns; /* KY_TIME_NONE: open */
	const char *name;       /* glob or NULL */
	const char *category;
	const char *thread;                /* glob over the thread's name, or its tid */
	const char *process;               /* glob over the process's name, or its pid */
	const uint8_t *tracks;             /* NULL, or not 0 for each track whose slices count */
	const uint8_t *threads;            /* NULL, or not 0 for each thread whose samples count */
	const struct ky_filter_ends *ends; /* NULL, or the trace's: makes short ranges cheap */
	const int *stop;                   /* NULL, or atomic: not 0 to stop */
};

struct ky_stats_row {
	uint32_t key;      /* string, thread or process, as grouped */
	uint32_t category; /* string, of KY_BY_NAME_CATEGORY */
	uint64_t count;
	uint64_t unfinished;
	uint64_t instants;
	int64_t total_ns; /* by name, slices in slices of the same name count once */
	int64_t self_ns;
	int64_t until_ns; /* the latest end */
	int64_t min_ns, max_ns;
	int64_t p50_ns, p95_ns, p99_ns;
	double mean_ns, stddev_ns;
};

struct ky_stats {
	struct ky_stats_row *rows;
	uint32_t count;
};

/* Sum up slices, in descending order of total_ns. 0, -ENOMEM, or -EINTR when stopped. */
int ky_stats_make(struct ky_stats *stats, struct ky_trace *trace, enum ky_stats_by by,
		  const struct ky_stats_filter *filter);
void ky_stats_free(struct ky_stats *stats);

/*
 * Collect the durations of all slices that pass the filter, unordered; the caller frees *durations.
 */
int ky_stats_durations(struct ky_trace *trace, const struct ky_stats_filter *filter,
		       int64_t **durations, uint64_t *count);

/* ---- labels ---- */

#define KY_STATS_LABEL_BYTES 160
/* Write "worker 1234" or "thread 1234" to KY_STATS_LABEL_BYTES of buf, and return buf; "" for none. */
const char *ky_stats_label_thread(char *buf, const struct ky_trace *trace, uint32_t thread);
const char *ky_stats_label_process(char *buf, const struct ky_trace *trace, uint32_t process);

/* ---- percentiles, exact and without sorting ---- */

/*
 * Return the value at a rank (below count) of the sorted values. Changes their order. The time is linear for any values: each
 * step looks at some bits of the values and keeps those that share them with the value in question.
 */
int64_t ky_stats_select(int64_t *values, uint64_t count, uint64_t rank);

/*
 * Return the rank of a percentile: the smallest value that at least that share of all does not
 * exceed.
 */
static inline uint64_t ky_stats_rank(uint64_t count, double part)
{
	const double exact = (double)count * part;
	uint64_t rank = (uint64_t)exact;
	if ((double)rank < exact)
		rank++;
	return rank ? (rank <= count ? rank - 1 : count - 1) : 0;
}

#endif
