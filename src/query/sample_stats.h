/* SPDX-License-Identifier: MIT */
/*
 * sample_stats.h: samples of call stacks summed up: how much of all was spent in a function
 * itself, and in it and what it called. A function that is on a stack more than once counts once.
 */
#ifndef KY_QUERY_SAMPLE_STATS_H
#define KY_QUERY_SAMPLE_STATS_H

#include "query/stats.h"

/* By callsite: what is of samples at it (here), and at it or below it. */
struct ky_callsite_sums {
	double *weight_here, *weight_below;
	uint64_t *samples_here, *samples_below;
	uint64_t samples; /* in all, those without a stack too */
	double weight;
};

/*
 * event: string, 0 for all. Of the filter the time, thread and process count; a name leaves only
 * the stacks that have a function that it matches. 0 or -ENOMEM.
 */
int ky_callsite_sums_make(struct ky_callsite_sums *sums, struct ky_trace *trace,
			  const struct ky_stats_filter *filter, uint32_t event);
void ky_callsite_sums_free(struct ky_callsite_sums *sums);

struct ky_function_row {
	uint32_t name;    /* string, 0: not known */
	uint32_t mapping; /* of its first frame, or KY_NONE */
	uint32_t
		frame; /* of its frames the one where most was spent: its line is the one to look at */
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

/* The event that most samples are of; *others is how many are of another. */
uint32_t ky_sample_main_event(const struct ky_trace *trace, uint64_t *others);

#endif
