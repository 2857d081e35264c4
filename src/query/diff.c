/* SPDX-License-Identifier: MIT */
/* diff.c: see diff.h. */
#include "query/diff.h"

#include "base/array.h"
#include "query/filter.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- the rank test ---- */

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

KY_ORDER(ascending, struct value, KY_COMPARE(a->value, b->value))

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

int ky_diff_rank_test(struct ky_rank_test *result, const int64_t *a, uint64_t a_count,
		      const int64_t *b, uint64_t b_count)
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

/* ---- comparing ---- */

/* One trace: its rows by name, and their durations in the order of time. */
struct side {
	struct ky_trace *trace;
	struct ky_stats stats;
	uint32_t *row_of; /* by string: row or KY_NONE */
	uint64_t *begins; /* by row: its first duration */
	int64_t *durations;
};

static void close_side(struct side *side)
{
	ky_stats_free(&side->stats);
	free(side->row_of);
	free(side->begins);
	free(side->durations);
}

static void gather(struct side *side, const struct ky_filter *filter)
{
	const struct ky_slices *const slices = &side->trace->slices;
	uint64_t at = 0;
	for (uint32_t i = 0; i < side->stats.count; i++) {
		side->row_of[side->stats.rows[i].key] = i;
		side->begins[i] = at;
		at += side->stats.rows[i].count;
	}
	for (uint32_t i = 0; i < filter->end; i++) {
		if (slices->kind[i] == KY_SLICE_INSTANT || !ky_filter_slice(filter, i))
			continue;
		const struct ky_interval span = ky_filter_interval(filter, i);
		side->durations[side->begins[side->row_of[slices->name[i]]]++] =
			ky_sub_clamped(span.end, span.begin);
	}
	for (uint32_t i = 0; i < side->stats.count; i++)
		side->begins[i] -= side->stats.rows[i].count;
}

static int open_side(struct side *side, struct ky_trace *trace, const struct ky_stats_filter *spec)
{
	struct ky_filter filter;
	uint64_t all = 0;
	*side = (struct side){.trace = trace};
	int result = ky_stats_make(&side->stats, trace, KY_BY_NAME, spec);
	if (result)
		return result;
	const size_t strings = (size_t)trace->strings.count + 1;
	for (uint32_t i = 0; i < side->stats.count; i++)
		all += side->stats.rows[i].count;
	side->row_of = malloc(strings * sizeof(*side->row_of));
	side->begins = malloc(((size_t)side->stats.count + 1) * sizeof(*side->begins));
	side->durations = malloc((all + 1) * sizeof(*side->durations));
	if (!side->row_of || !side->begins || !side->durations)
		return -ENOMEM;
	for (size_t i = 0; i < strings; i++)
		side->row_of[i] = KY_NONE;
	result = ky_filter_open(&filter, trace, spec);
	if (result)
		return result;
	gather(side, &filter);
	ky_filter_close(&filter);
	return 0;
}

/* Return the row of the same name on the other side, or KY_NONE. */
static uint32_t counterpart(const struct side *other, const struct ky_trace *trace, uint32_t name)
{
	const struct ky_strings *const strings = &trace->strings;
	if (!name)
		return other->row_of[0];
	const uint32_t found =
		ky_strings_find(&other->trace->strings, ky_strings_text(strings, name),
				ky_strings_bytes(strings, name));
	return found ? other->row_of[found] : KY_NONE;
}

double ky_diff_measure(const struct ky_stats_row *row, enum ky_diff_measure measure)
{
	switch (measure) {
	case KY_MEASURE_MEAN:
		return row->mean_ns;
	case KY_MEASURE_P95:
		return (double)row->p95_ns;
	case KY_MEASURE_P99:
		return (double)row->p99_ns;
	default:
		return (double)row->p50_ns;
	}
}

/* From 0 to 0 is no change. */
static double relative(double from, double to)
{
	return to == from ? 0 : to / from - 1;
}

static int compare(struct ky_diff_row *row, const struct side *a, uint32_t a_row,
		   const struct side *b, uint32_t b_row, const struct ky_diff_options *options)
{
	struct ky_rank_test test;
	row->a = a->stats.rows[a_row];
	row->b = b->stats.rows[b_row];
	row->change = relative(ky_diff_measure(&row->a, options->measure),
			       ky_diff_measure(&row->b, options->measure));
	row->cost_ns = (row->b.mean_ns - row->a.mean_ns) * (double)row->b.count;
	row->verdict = KY_DIFF_TOO_FEW;
	row->p = 1;
	if (row->a.count < options->min_count || row->b.count < options->min_count)
		return 0;
	row->verdict = KY_DIFF_SAME;
	const int result = ky_diff_rank_test(&test, a->durations + a->begins[a_row], row->a.count,
					     b->durations + b->begins[b_row], row->b.count);
	row->p = test.p;
	row->effect = test.effect;
	return result;
}

static int pair(struct ky_diff *diff, const struct side *a, const struct side *b,
		const struct ky_diff_options *options)
{
	for (uint32_t i = 0; i < a->stats.count; i++) {
		struct ky_diff_row *const row = &diff->rows[diff->count++];
		const uint32_t name = a->stats.rows[i].key;
		const uint32_t other = counterpart(b, a->trace, name);
		*row = (struct ky_diff_row){.a_name = name, .p = 1, .verdict = KY_DIFF_GONE};
		row->a = a->stats.rows[i];
		if (other == KY_NONE)
			continue;
		row->b_name = b->stats.rows[other].key;
		const int result = compare(row, a, i, b, other, options);
		if (result)
			return result;
	}
	for (uint32_t i = 0; i < b->stats.count; i++) {
		const uint32_t name = b->stats.rows[i].key;
		if (counterpart(a, b->trace, name) != KY_NONE)
			continue;
		diff->rows[diff->count++] = (struct ky_diff_row){
			.b_name = name, .b = b->stats.rows[i], .p = 1, .verdict = KY_DIFF_NEW};
	}
	return 0;
}

static int by_p(const void *a_, const void *b_)
{
	const struct ky_diff_row *const a = *(struct ky_diff_row *const *)a_;
	const struct ky_diff_row *const b = *(struct ky_diff_row *const *)b_;
	return KY_COMPARE(a->p, b->p);
}

/*
 * Apply Holm's correction: the smallest p times the number of names, the next times one less, never
 * less than the one before.
 */
static int correct(struct ky_diff *diff)
{
	struct ky_diff_row **const order = malloc(((size_t)diff->count + 1) * sizeof(*order));
	double least = 0;
	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < diff->count; i++) {
		if (diff->rows[i].verdict == KY_DIFF_SAME)
			order[diff->judged++] = &diff->rows[i];
	}
	qsort(order, diff->judged, sizeof(struct ky_diff_row *), by_p);
	for (uint32_t i = 0; i < diff->judged; i++) {
		const double p = order[i]->p * (diff->judged - i);
		least = p > least ? p : least;
		order[i]->p = least < 1 ? least : 1;
	}
	free(order);
	return 0;
}

static void decide(struct ky_diff *diff, const struct ky_diff_options *options)
{
	for (uint32_t i = 0; i < diff->count; i++) {
		struct ky_diff_row *const row = &diff->rows[i];
		if (row->verdict != KY_DIFF_SAME || row->p >= options->alpha ||
		    fabs(row->effect) < KY_DIFF_DELTA_MIN ||
		    !(fabs(row->change) >= options->min_change) ||
		    (row->effect > 0) != (row->change > 0))
			continue;
		row->verdict = row->change > 0 ? KY_DIFF_SLOWER : KY_DIFF_FASTER;
		diff->slower += row->verdict == KY_DIFF_SLOWER;
		diff->faster += row->verdict == KY_DIFF_FASTER;
	}
}

static double weight(const struct ky_diff_row *row)
{
	if (row->verdict == KY_DIFF_NEW || row->verdict == KY_DIFF_GONE)
		return (double)(row->a.total_ns + row->b.total_ns);
	return fabs(row->cost_ns);
}

static int by_verdict(const void *a_, const void *b_)
{
	const struct ky_diff_row *const a = a_, *const b = b_;
	const double a_weight = weight(a), b_weight = weight(b);
	return KY_COMPARE_THEN(a->verdict, b->verdict,
			       KY_COMPARE_THEN(b_weight, a_weight,
					       KY_COMPARE_THEN(a->a_name, b->a_name,
							       KY_COMPARE(a->b_name, b->b_name))));
}

static int compare_sides(struct ky_diff *diff, const struct side *a, const struct side *b,
			 const struct ky_diff_options *options)
{
	diff->rows = malloc(((size_t)a->stats.count + b->stats.count + 1) * sizeof(*diff->rows));
	if (!diff->rows)
		return -ENOMEM;
	int result = pair(diff, a, b, options);
	if (result == 0)
		result = correct(diff);
	if (result == 0) {
		decide(diff, options);
		qsort(diff->rows, diff->count, sizeof(*diff->rows), by_verdict);
	}
	return result;
}

int ky_diff_make(struct ky_diff *diff, struct ky_trace *a, struct ky_trace *b,
		 const struct ky_diff_options *options)
{
	struct side a_side, b_side = {0};
	*diff = (struct ky_diff){0};
	int result = open_side(&a_side, a, options->a);
	if (result == 0)
		result = open_side(&b_side, b, options->b);
	if (result == 0)
		result = compare_sides(diff, &a_side, &b_side, options);
	close_side(&a_side);
	close_side(&b_side);
	if (result)
		ky_diff_free(diff);
	return result;
}

void ky_diff_free(struct ky_diff *diff)
{
	free(diff->rows);
	*diff = (struct ky_diff){0};
}
