/* SPDX-License-Identifier: MIT */
/*
 * select.h: the exact value of a rank without sorting. The time is linear for any values: each step
 * looks at some bits of the values and keeps those that share them with the value in question.
 */
#ifndef KY_QUERY_SELECT_H
#define KY_QUERY_SELECT_H

#include <stdint.h>

/* Return the value at a rank (below count) of the sorted values. Changes their order. */
int64_t ky_select(int64_t *values, uint64_t count, uint64_t rank);

/*
 * Return the rank of a percentile: the smallest value that at least that share of all does not
 * exceed.
 */
static inline uint64_t ky_select_rank(uint64_t count, double part)
{
	const double exact = (double)count * part;
	uint64_t rank = (uint64_t)exact;
	if ((double)rank < exact)
		rank++;
	return rank ? (rank <= count ? rank - 1 : count - 1) : 0;
}

#endif
