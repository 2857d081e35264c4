/* SPDX-License-Identifier: MIT */
/*
 * diff.h: two traces side by side, by the names of their slices: what got slower or faster.
 *
 * A name is called slower or faster only when all of these hold:
 *   - both traces have at least min_count slices of it;
 *   - the rank test (below) says so at alpha, after Holm's correction over all names that
 *     were judged: the chance that anything at all is called so between two runs of the same is
 *     alpha;
 *   - the effect is not negligible: Cliff's delta is at least KY_DIFF_DELTA_MIN, and the chosen
 *     measure changed by min_change in the same direction.
 */
#ifndef KY_QUERY_DIFF_H
#define KY_QUERY_DIFF_H

#include "query/stats.h"

#include <stdint.h>

#define KY_DIFF_DELTA_MIN 0.147

enum ky_diff_measure { KY_MEASURE_P50, KY_MEASURE_MEAN, KY_MEASURE_P95, KY_MEASURE_P99 };

enum ky_diff_verdict {
	KY_DIFF_SLOWER,
	KY_DIFF_FASTER,
	KY_DIFF_SAME,
	KY_DIFF_TOO_FEW, /* to be judged */
	KY_DIFF_NEW,     /* only in b */
	KY_DIFF_GONE     /* only in a */
};

struct ky_diff_options {
	const struct ky_stats_filter *a, *b; /* or NULL */
	enum ky_diff_measure measure;
	uint32_t min_count;
	double alpha;
	double min_change; /* 0.02 is 2 % */
};

struct ky_diff_row {
	uint32_t a_name, b_name;  /* string of a or b; both 0: slices without a name */
	struct ky_stats_row a, b; /* all 0 if only the other has it */
	enum ky_diff_verdict verdict;
	double p;       /* after the correction; 1 if not judged */
	double effect;  /* Cliff's delta */
	double change;  /* of the measure: 0.1 is 10 % more; infinite from 0 */
	double cost_ns; /* the change of the mean times all slices of b */
};

struct ky_diff {
	struct ky_diff_row *rows; /* by verdict in its order, then by cost or total */
	uint32_t count;
	uint32_t judged, slower, faster;
};

/* Compare two traces. 0 or -ENOMEM. */
int ky_diff_make(struct ky_diff *diff, struct ky_trace *a, struct ky_trace *b,
		 const struct ky_diff_options *options);
void ky_diff_free(struct ky_diff *diff);

double ky_diff_measure(const struct ky_stats_row *row, enum ky_diff_measure measure);

/* ---- the rank test ---- */

/*
 * Do the values of one series tend to be larger than those of another? Mann and Whitney's U answers that, by the normal
 * approximation, with the correction for ties.
 *
 * U requires independent values, which durations in a trace are not: a slow one is often followed by another slow one.
 * Its deviation is therefore widened by the ranks' correlation with their predecessors (lag 1, as for a first-order
 * autoregressive process), which does not change the result for independent values.
 */
struct ky_rank_test {
	double p;      /* two-sided probability of such a difference by chance */
	double effect; /* Cliff's delta: how often b is larger than a, less how often a is */
};

/*
 * Compare two series of values in the order of time; long ones are sampled at even distances. 0 or
 * -ENOMEM.
 */
int ky_diff_rank_test(struct ky_rank_test *result, const int64_t *a, uint64_t a_count,
		      const int64_t *b, uint64_t b_count);

#endif
