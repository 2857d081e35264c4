/* SPDX-License-Identifier: MIT */
/*
 * compare.h: three-way comparison for qsort and bsearch.
 *
 *   static int by_time(const void *a, const void *b)
 *   {
 *           const struct event *x = a, *y = b;
 *           return KY_COMPARE_THEN(x->ts, y->ts, KY_COMPARE(x->id, y->id));
 *   }
 */
#ifndef KY_BASE_COMPARE_H
#define KY_BASE_COMPARE_H

#include <stdint.h>

/* -1, 0 or 1: a is less than, equal to or greater than b. */
#define KY_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
/* The same; when they are equal, the comparison that follows decides. */
#define KY_COMPARE_THEN(a, b, then) ((a) != (b) ? KY_COMPARE(a, b) : (then))

/* Compare items of plain arrays. */
static inline int ky_compare_u32(const void *a, const void *b)
{
	return KY_COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
}

static inline int ky_compare_u64(const void *a, const void *b)
{
	return KY_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

static inline int ky_compare_i64(const void *a, const void *b)
{
	return KY_COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

static inline int ky_compare_double(const void *a, const void *b)
{
	return KY_COMPARE(*(const double *)a, *(const double *)b);
}

#endif
