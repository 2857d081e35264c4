/* SPDX-License-Identifier: MIT */
/*
 * sample_stats.h: totals of sampled call stacks: the share of a function itself, and together with
 * its callees. A function that is on a stack more than once counts once.
 */
#ifndef KY_QUERY_SAMPLE_STATS_H
#define KY_QUERY_SAMPLE_STATS_H

#include "query/stats.h"

/* By callsite: samples at it (here), and at it or below it. */
struct ky_callsite_sums {
	double *weight_here, *weight_below;
	uint64_t *samples_here, *samples_below;
	uint64_t samples; /* in all, those without a stack too */
	double weight;
};

/*
 * Sum up the samples of an event (string, 0: all). The filter's time, thread and process apply; a
 * name keeps the stacks with a function that matches. 0 or -ENOMEM.
 */
int ky_callsite_sums_make(struct ky_callsite_sums *sums, struct ky_trace *trace,
			  const struct ky_stats_filter *filter, uint32_t event);
void ky_callsite_sums_free(struct ky_callsite_sums *sums);

struct ky_function_row {
	uint32_t name;    /* string, 0: not known */
	uint32_t mapping; /* of its first frame, or KY_NONE */
	uint32_t frame;   /* the frame with the most samples: its line is the hot one */
	uint64_t self_samples, total_samples;
	double self_weight, total_weight;
};

struct ky_function_stats {
	struct ky_function_row *rows;
	uint32_t count;
	uint64_t samples;
	double weight;
};

/* Rows come in descending order of self_weight. */
int ky_function_stats_make(struct ky_function_stats *stats, struct ky_trace *trace,
			   const struct ky_stats_filter *filter, uint32_t event);
void ky_function_stats_free(struct ky_function_stats *stats);

/* The samples of a thread or a process; KY_NONE: of none. */
struct ky_sample_owner {
	uint32_t owner;
	uint64_t samples;
	double weight;
};

/* Sum up by thread or process, in descending order of weight; the caller frees *rows. Return 0 or -ENOMEM. */
int ky_sample_owners_make(struct ky_sample_owner **rows, uint32_t *count, struct ky_trace *trace,
			  enum ky_stats_by by, const struct ky_stats_filter *filter,
			  uint32_t event);

/* Return the event of most samples, and in *others the number of samples of other events. */
uint32_t ky_sample_main_event(const struct ky_trace *trace, uint64_t *others);

#endif
