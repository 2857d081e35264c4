/* SPDX-License-Identifier: MIT */
/*
 * rank_test.h: test whether the values of one series tend to be larger than those of another: Mann and Whitney's U, by
 * the normal approximation, with the correction for ties.
 *
 * U requires independent values, which durations in a trace are not: a slow one is often followed by another slow one.
 * Its deviation is therefore widened by the ranks' correlation with their predecessors (lag 1, as for a first-order
 * autoregressive process), which does not change the result for independent values.
 */
#ifndef KY_QUERY_RANK_TEST_H
#define KY_QUERY_RANK_TEST_H

#include <stdint.h>

struct ky_rank_test {
	double p;      /* two-sided probability of such a difference by chance */
	double effect; /* Cliff's delta: how often b is larger than a, less how often a is */
};

/*
 * Compare two series of values in the order of time; long ones are sampled at even distances. 0 or
 * -ENOMEM.
 */
int ky_rank_test(struct ky_rank_test *result, const int64_t *a, uint64_t a_count, const int64_t *b,
		 uint64_t b_count);

#endif
