/* SPDX-License-Identifier: MIT */
/*
 * test_diff.c: a difference is found where there is one, and hardly ever where there is none.
 * Trials are random with a fixed seed: the numbers are the same each time.
 */
#include "model/intake.h"
#include "query/diff.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

static uint64_t state = 42;

static double uniform(void)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return ((double)(state >> 11) + 0.5) * 0x1p-53;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* Durations as they are: never below some, with a long tail. */
static int64_t duration(double median)
{
	return (int64_t)(median * exp(0.15 * normal()));
}

#define NAMES 20

/* Slices of some names, count of each; those of one name last longer by a factor. */
static struct ky_trace *trace_of(unsigned names, unsigned count, unsigned slower, double factor)
{
	struct ky_trace *trace = NULL;
	int64_t ts = 0;
	assert_int_equal(ky_trace_open(&trace), 0);
	const uint32_t track = ky_track_of_thread(trace, ky_thread(trace, 1, 1));
	for (unsigned i = 0; i < count; i++) {
		for (unsigned n = 0; n < names; n++) {
			char text[16];
			snprintf(text, sizeof(text), "name%u", n);
			const int64_t ns = duration(1e5 * (n + 1) * (n == slower ? factor : 1));
			ky_put_complete(trace, ts, ns, track, 0, ky_string_z(trace, text), 0);
			ts += ns + 10;
		}
	}
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	return trace;
}

static const struct ky_diff_options usual = {.min_count = 20, .alpha = 0.01, .min_change = 0.02};

static struct ky_diff diff_of(struct ky_trace **a, struct ky_trace **b,
			      const struct ky_diff_options *options)
{
	struct ky_diff diff;
	assert_int_equal(ky_diff_make(&diff, *a, *b, options), 0);
	return diff;
}

static void the_same_twice_hardly_ever_differs(void **unused)
{
	/* Each trial may call anything different with a chance of alpha. */
	struct ky_diff_options options = usual;
	unsigned found = 0;
	(void)unused;
	options.min_change = 0;
	options.alpha = 0.05;
	for (unsigned trial = 0; trial < 200; trial++) {
		struct ky_trace *a = trace_of(NAMES, 60, NAMES, 1),
				*b = trace_of(NAMES, 60, NAMES, 1);
		struct ky_diff diff = diff_of(&a, &b, &options);
		assert_int_equal(diff.judged, NAMES);
		found += diff.slower + diff.faster > 0;
		ky_diff_free(&diff);
		ky_trace_close(&a);
		ky_trace_close(&b);
	}
	/* 10 expected at 0.05; more than 20 has a chance of one in a thousand. */
	assert_true(found <= 20);
}

static void values_that_follow_each_other_do_not_cry_wolf(void **unused)
{
	unsigned found = 0;
	(void)unused;
	for (unsigned trial = 0; trial < 200; trial++) {
		int64_t values[2][300];
		struct ky_rank_test test;
		for (unsigned side = 0; side < 2; side++) {
			double drift = normal();
			for (unsigned i = 0; i < 300; i++) {
				drift = 0.8 * drift + 0.6 * normal();
				values[side][i] = (int64_t)(1e6 + 1e5 * drift);
			}
		}
		assert_int_equal(ky_diff_rank_test(&test, values[0], 300, values[1], 300), 0);
		found += test.p < 0.01;
	}
	assert_true(found <= 8);
}

static void a_tenth_slower_is_found_with_200_of_each(void **unused)
{
	unsigned found = 0, wrong = 0;
	(void)unused;
	for (unsigned trial = 0; trial < 40; trial++) {
		struct ky_trace *a = trace_of(NAMES, 200, NAMES, 1),
				*b = trace_of(NAMES, 200, 7, 1.1);
		struct ky_diff diff = diff_of(&a, &b, &usual);
		found += diff.slower == 1 &&
			 strcmp(ky_text_of(b, diff.rows[0].b_name), "name7") == 0 &&
			 diff.rows[0].verdict == KY_DIFF_SLOWER && diff.rows[0].change > 0.04 &&
			 diff.rows[0].cost_ns > 0;
		wrong += diff.faster + (diff.slower > 1);
		ky_diff_free(&diff);
		ky_trace_close(&a);
		ky_trace_close(&b);
	}
	assert_true(found >= 38);
	assert_int_equal(wrong, 0);
}

static void what_is_new_gone_or_too_rare_is_not_judged(void **unused)
{
	struct ky_trace *a = trace_of(3, 30, 3, 1), *b = trace_of(2, 30, 1, 0.5),
			*few = trace_of(2, 5, 0, 9);
	(void)unused;
	struct ky_diff diff = diff_of(&a, &b, &usual);
	assert_int_equal(diff.count, 3);
	assert_int_equal(diff.judged, 2);
	assert_int_equal(diff.rows[0].verdict, KY_DIFF_FASTER);
	assert_true(fabs(diff.rows[0].change + 0.5) < 0.15);
	assert_int_equal(diff.rows[1].verdict, KY_DIFF_SAME);
	assert_int_equal(diff.rows[2].verdict, KY_DIFF_GONE);
	ky_diff_free(&diff);
	diff = diff_of(&b, &a, &usual);
	assert_int_equal(diff.rows[0].verdict, KY_DIFF_SLOWER);
	assert_int_equal(diff.rows[2].verdict, KY_DIFF_NEW);
	ky_diff_free(&diff);
	diff = diff_of(&a, &few, &usual);
	assert_int_equal(diff.judged, 0);
	assert_int_equal(diff.rows[0].verdict, KY_DIFF_TOO_FEW);
	ky_diff_free(&diff);
	ky_trace_close(&a);
	ky_trace_close(&b);
	ky_trace_close(&few);
}

static void ties_and_extremes_have_a_p_value(void **unused)
{
	const int64_t same[4] = {5, 5, 5, 5};
	const int64_t low[30] = {0};
	int64_t high[30];
	struct ky_rank_test test;
	(void)unused;
	assert_int_equal(ky_diff_rank_test(&test, same, 4, same, 4), 0);
	assert_true(test.p == 1 && test.effect == 0);
	for (unsigned i = 0; i < 30; i++)
		high[i] = INT64_MAX - i * 7 % 30;
	assert_int_equal(ky_diff_rank_test(&test, low, 30, high, 30), 0);
	assert_true(test.p < 1e-6 && test.effect == 1);
	assert_int_equal(ky_diff_rank_test(&test, low, 0, high, 30), 0);
	assert_true(test.p == 1);
}

static void u_is_what_pairs_counted_one_by_one_give(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 50; round++) {
		int64_t a[40], b[30];
		double larger = 0;
		struct ky_rank_test test;
		for (unsigned i = 0; i < 40; i++)
			a[i] = (int64_t)(uniform() * 20);
		for (unsigned i = 0; i < 30; i++)
			b[i] = (int64_t)(uniform() * 25);
		for (unsigned i = 0; i < 40; i++) {
			for (unsigned j = 0; j < 30; j++)
				larger += b[j] > a[i] ? 1 : b[j] < a[i] ? -1 : 0;
		}
		assert_int_equal(ky_diff_rank_test(&test, a, 40, b, 30), 0);
		assert_true(fabs(test.effect - larger / (40 * 30)) < 1e-9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_twice_hardly_ever_differs),
		cmocka_unit_test(values_that_follow_each_other_do_not_cry_wolf),
		cmocka_unit_test(a_tenth_slower_is_found_with_200_of_each),
		cmocka_unit_test(what_is_new_gone_or_too_rare_is_not_judged),
		cmocka_unit_test(ties_and_extremes_have_a_p_value),
		cmocka_unit_test(u_is_what_pairs_counted_one_by_one_give),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
