/* SPDX-License-Identifier: MIT */
/* histogram.c: see histogram.h. */
#include "query/histogram.h"

#include "base/array.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LOG_FROM_RATIO 50

/* Return the smallest of 1, 2 and 5 times a power of ten that is not below value. */
static double round_step(double least)
{
	double power = 1;
	while (power * 10 <= least)
		power *= 10;
	return least <= power       ? power
	       : least <= 2 * power ? 2 * power
	       : least <= 5 * power ? 5 * power
				    : 10 * power;
}

static int64_t whole(double ns)
{
	return ns < 0x1p63 ? (int64_t)ns : INT64_MAX;
}

static int64_t next(int64_t ns)
{
	return ns < INT64_MAX ? ns + 1 : ns;
}

static void linear_edges(struct ky_histogram *histogram, int64_t min, int64_t max, uint32_t buckets)
{
	const double span = (double)max - (double)min;
	double step = round_step(span / buckets > 1 ? span / buckets : 1);
	double first = floor((double)min / step) * step;
	/* The round start may need one more bucket than allowed. */
	if (first + step * buckets <= (double)max) {
		step = round_step(step * 1.01);
		first = floor((double)min / step) * step;
	}
	for (double edge = first; histogram->count < buckets && edge <= (double)max; edge += step)
		histogram->edges[histogram->count++] = whole(edge);
	/* Beyond 2^53 a double rounds, and might leave the largest value out. */
	const int64_t last = whole(first + step * histogram->count);
	histogram->edges[histogram->count] = last > max ? last : next(max);
}

/* Edges are integers: small ones may coincide, which leaves fewer buckets. */
static void log_edges(struct ky_histogram *histogram, int64_t min, int64_t max, uint32_t buckets)
{
	const double low = min > 0 ? (double)min : 1;
	const double factor = pow(((double)max + 1) / low, 1.0 / buckets);
	histogram->edges[histogram->count++] = min;
	for (uint32_t i = 1; i < buckets; i++) {
		const int64_t edge = whole(low * pow(factor, i));
		if (edge > histogram->edges[histogram->count - 1] && edge <= max)
			histogram->edges[histogram->count++] = edge;
	}
	histogram->edges[histogram->count] = next(max);
}

uint32_t ky_histogram_bucket(const struct ky_histogram *histogram, int64_t value)
{
	return KY_ARRAY_SEARCH(1, histogram->count, at, histogram->edges[at] <= value) - 1;
}

int ky_histogram_make(struct ky_histogram *histogram, const int64_t *values, uint64_t count,
		      enum ky_histogram_scale scale, uint32_t buckets)
{
	int64_t min = values[0], max = values[0];
	buckets = buckets ? buckets : 1;
	for (uint64_t i = 1; i < count; i++) {
		min = values[i] < min ? values[i] : min;
		max = values[i] > max ? values[i] : max;
	}
	*histogram = (struct ky_histogram){
		.log = scale == KY_SCALE_LOG ||
		       (scale == KY_SCALE_AUTO &&
			(double)max > LOG_FROM_RATIO * (min > 0 ? (double)min : 1)),
		.edges = calloc((size_t)buckets + 1, sizeof(int64_t)),
		.counts = calloc((size_t)buckets + 1, sizeof(uint64_t)),
	};
	if (!histogram->edges || !histogram->counts) {
		ky_histogram_free(histogram);
		return -ENOMEM;
	}
	if (histogram->log)
		log_edges(histogram, min, max, buckets);
	else
		linear_edges(histogram, min, max, buckets);
	for (uint64_t i = 0; i < count; i++)
		histogram->counts[ky_histogram_bucket(histogram, values[i])]++;
	return 0;
}

void ky_histogram_free(struct ky_histogram *histogram)
{
	free(histogram->edges);
	free(histogram->counts);
	*histogram = (struct ky_histogram){0};
}
