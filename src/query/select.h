/* SPDX-License-Identifier: MIT */
/*
 * select.h: the value of a rank among many, exactly, without sorting them. The time is linear in
 * their number whatever they are: each step looks at some bits of the values and keeps those that
 * share them with the one that is looked for.
 */
#ifndef KY_QUERY_SELECT_H
#define KY_QUERY_SELECT_H

#include <stdint.h>

/*
 * The value that has that many smaller ones before it when in order; rank < count. Changes their
 * order.
 */
int64_t ky_select(int64_t *values, uint64_t count, uint64_t rank);

/* The rank of a percentile: the smallest value that at least that part of all does not exceed. */
static inline uint64_t ky_select_rank(uint64_t count, double part)
{
	const double exact = (double)count * part;
	uint64_t rank = (uint64_t)exact;
	if ((double)rank < exact)
		rank++;
	return rank ? (rank <= count ? rank - 1 : count - 1) : 0;
}

#endif
