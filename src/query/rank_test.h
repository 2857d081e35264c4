/* SPDX-License-Identifier: MIT */
/*
 * rank_test.h: whether the values of one sample tend to be larger than those of another: Mann and
 * Whitney's U, by the normal approximation, with the correction for ties.
 *
 * U asks for independent values, which durations in a trace are not: a slow one is often followed
 * by a slow one. Its deviation is therefore widened by what the ranks' correlation with their
 * predecessors says (lag 1, as for a first-order autoregressive process), which leaves
 * independent values as they are.
 */
#ifndef KY_QUERY_RANK_TEST_H
#define KY_QUERY_RANK_TEST_H

#include <stdint.h>

struct ky_rank_test {
	double p;      /* two-sided: how likely a difference like this is by chance */
	double effect; /* Cliff's delta: how often b is larger than a, less how often a is */
};

/* Values in the order of time; of very many, some are taken at even distances. 0 or -ENOMEM. */
int ky_rank_test(struct ky_rank_test *result, const int64_t *a, uint64_t a_count, const int64_t *b,
		 uint64_t b_count);

#endif
