/* SPDX-License-Identifier: MIT */
/* rank_test.c: see rank_test.h. */
#include "query/rank_test.h"
#include "base/compare.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* More than that does not make a decision any better. */
#define VALUES_MAX 50000
#define CORRELATION_MAX 0.98

struct value {
	int64_t value;
	uint32_t place; /* in ranks: first all of a, then all of b */
};

/* Both samples together. ranks are in the order of time, first those of a. */
struct pooled {
	struct value *values;
	double *ranks;
	uint64_t a_count, b_count;
	double ties; /* sum of t^3 - t over all groups of t equal values */
};

static uint64_t some(uint64_t count)
{
	return count < VALUES_MAX ? count : VALUES_MAX;
}

static void take(struct value *to, uint64_t first, const int64_t *from, uint64_t count,
		 uint64_t taken)
{
	for (uint64_t i = 0; i < taken; i++) {
		const uint64_t at =
			taken == count ? i : (uint64_t)((double)i * (double)count / (double)taken);
		to[first + i] = (struct value){from[at], (uint32_t)(first + i)};
	}
}

static int ascending(const void *a_, const void *b_)
{
	const struct value *const a = a_, *const b = b_;
	return KY_COMPARE(a->value, b->value);
}

/* Equal values share the mean of their ranks. */
static void rank(struct pooled *pooled)
{
	const uint64_t count = pooled->a_count + pooled->b_count;
	qsort(pooled->values, count, sizeof(*pooled->values), ascending);
	for (uint64_t i = 0; i < count;) {
		uint64_t end = i + 1;
		while (end < count && pooled->values[end].value == pooled->values[i].value)
			end++;
		const double shared = (double)(i + end + 1) / 2, ties = (double)(end - i);
		pooled->ties += ties * ties * ties - ties;
		for (; i < end; i++)
			pooled->ranks[pooled->values[i].place] = shared;
	}
}

/* Return the correlation of ranks with their predecessors, from 0 to below 1. */
static double correlation(const double *ranks, uint64_t count)
{
	double mean = 0, together = 0, alone = 0;
	for (uint64_t i = 0; i < count; i++)
		mean += ranks[i];
	mean /= (double)count;
	for (uint64_t i = 0; i < count; i++) {
		const double off = ranks[i] - mean;
		alone += off * off;
		if (i)
			together += off * (ranks[i - 1] - mean);
	}
	if (alone <= 0)
		return 0;
	/* A correlation that independent values show by chance counts as none. */
	const double found = together / alone, chance = 2 / sqrt((double)count);
	if (found <= chance)
		return 0;
	return found < CORRELATION_MAX ? found : CORRELATION_MAX;
}

static double widening(const struct pooled *pooled)
{
	const double a = correlation(pooled->ranks, pooled->a_count);
	const double b = correlation(pooled->ranks + pooled->a_count, pooled->b_count);
	const double most = a > b ? a : b;
	return sqrt((1 + most) / (1 - most));
}

static struct ky_rank_test judge(const struct pooled *pooled)
{
	const double a = (double)pooled->a_count, b = (double)pooled->b_count, all = a + b;
	double b_ranks = 0;
	for (uint64_t i = 0; i < pooled->b_count; i++)
		b_ranks += pooled->ranks[pooled->a_count + i];
	const double u = b_ranks - b * (b + 1) / 2, middle = a * b / 2;
	const double variance = a * b / 12 * (all + 1 - pooled->ties / (all * (all - 1)));
	struct ky_rank_test result = {.p = 1, .effect = u / middle - 1};
	if (!(variance > 0))
		return result;
	/* Continuity correction: ranks are integers, the normal distribution is continuous. */
	double off = fabs(u - middle) - 0.5;
	off = off > 0 ? off : 0;
	result.p = erfc(off / (sqrt(variance) * widening(pooled)) / sqrt(2));
	return result;
}

int ky_rank_test(struct ky_rank_test *result, const int64_t *a, uint64_t a_count, const int64_t *b,
		 uint64_t b_count)
{
	struct pooled pooled = {.a_count = some(a_count), .b_count = some(b_count)};
	*result = (struct ky_rank_test){.p = 1};
	if (!a_count || !b_count)
		return 0;
	const uint64_t count = pooled.a_count + pooled.b_count;
	pooled.values = malloc(count * sizeof(*pooled.values));
	pooled.ranks = malloc(count * sizeof(*pooled.ranks));
	const bool whole = pooled.values && pooled.ranks;
	if (whole) {
		take(pooled.values, 0, a, a_count, pooled.a_count);
		take(pooled.values, pooled.a_count, b, b_count, pooled.b_count);
		rank(&pooled);
		*result = judge(&pooled);
	}
	free(pooled.values);
	free(pooled.ranks);
	return whole ? 0 : -ENOMEM;
}
