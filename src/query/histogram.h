/* SPDX-License-Identifier: MIT */
/*
 * histogram.h: durations counted in buckets that people can read: linear ones have round edges,
 * logarithmic ones grow by the same factor each. A bucket is from its edge to before the next;
 * the last one has its upper edge too.
 */
#ifndef KY_QUERY_HISTOGRAM_H
#define KY_QUERY_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define KY_HISTOGRAM_BUCKETS_MAX 1000

struct ky_histogram {
	uint32_t count; /* buckets */
	bool log;
	int64_t *edges; /* count + 1 of them, ascending */
	uint64_t *counts;
};

enum ky_histogram_scale {
	KY_SCALE_AUTO, /* log when the largest is more than 50 times the smallest */
	KY_SCALE_LINEAR,
	KY_SCALE_LOG
};

/*
 * Make a histogram of at least one value, all 0 or more, with at most that many buckets. 0 or
 * -ENOMEM.
 */
int ky_histogram_make(struct ky_histogram *histogram, const int64_t *values, uint64_t count,
		      enum ky_histogram_scale scale, uint32_t buckets);
void ky_histogram_free(struct ky_histogram *histogram);
/* Return the bucket of a value. */
uint32_t ky_histogram_bucket(const struct ky_histogram *histogram, int64_t value);

#endif
