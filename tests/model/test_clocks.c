/* SPDX-License-Identifier: MIT */
/* test_clocks.c: times of one clock become times of another, by the snapshots that join them. */
#include "model/clocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct ky_clocks *clocks;

static int open_clocks(void **state)
{
	(void)state;
	return ky_clocks_open(&clocks);
}

static int close_clocks(void **state)
{
	(void)state;
	ky_clocks_close(&clocks);
	assert_null(clocks);
	ky_clocks_close(&clocks);
	return 0;
}

static void snapshot(uint64_t a, int64_t a_ns, uint64_t b, int64_t b_ns)
{
	const struct ky_clock_reading readings[] = {{a, a_ns}, {b, b_ns}};
	assert_int_equal(ky_clocks_add(clocks, readings, 2), 0);
}

static int64_t convert(uint64_t from, uint64_t to, int64_t ns)
{
	int64_t converted;
	assert_true(ky_clocks_convert(clocks, from, to, ns, &converted));
	return converted;
}

static void the_last_snapshot_before_a_time_converts_it(void **state)
{
	(void)state;
	snapshot(KY_CLOCK_MONOTONIC, 100, KY_CLOCK_BOOTTIME, 1100);
	snapshot(KY_CLOCK_MONOTONIC, 200, KY_CLOCK_BOOTTIME, 1250);
	assert_int_equal(convert(KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 150), 1150);
	assert_int_equal(convert(KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 199), 1199);
	assert_int_equal(convert(KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 200), 1250);
	assert_int_equal(convert(KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 300), 1350);
	assert_int_equal(convert(KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 50), 1050);
	assert_int_equal(convert(KY_CLOCK_BOOTTIME, KY_CLOCK_MONOTONIC, 1260), 210);
}

static void snapshots_may_come_in_any_order(void **state)
{
	(void)state;
	snapshot(KY_CLOCK_MONOTONIC, 200, KY_CLOCK_BOOTTIME, 1250);
	snapshot(KY_CLOCK_MONOTONIC, 100, KY_CLOCK_BOOTTIME, 1100);
	assert_int_equal(convert(KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 150), 1150);
	assert_int_equal(convert(KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 250), 1300);
}

static void clocks_convert_over_a_chain(void **state)
{
	(void)state;
	const uint64_t own = ky_clock_of_sequence(7, 64);
	snapshot(own, 0, KY_CLOCK_TSC, 1000);
	snapshot(KY_CLOCK_TSC, 500, KY_CLOCK_MONOTONIC, 5);
	snapshot(KY_CLOCK_MONOTONIC, 0, KY_CLOCK_REALTIME, 1000000);
	assert_int_equal(convert(own, KY_CLOCK_REALTIME, 10), 1000515);
	assert_int_equal(convert(KY_CLOCK_REALTIME, own, 1000515), 10);
}

static void unjoined_clocks_do_not_convert(void **state)
{
	(void)state;
	int64_t converted;
	assert_false(ky_clocks_convert(clocks, KY_CLOCK_TSC, KY_CLOCK_BOOTTIME, 5, &converted));
	assert_int_equal(convert(KY_CLOCK_TSC, KY_CLOCK_TSC, 5), 5);
	assert_false(ky_clocks_known(clocks, KY_CLOCK_TSC));
	snapshot(KY_CLOCK_TSC, 0, KY_CLOCK_PERF, 0);
	assert_true(ky_clocks_known(clocks, KY_CLOCK_TSC));
	assert_false(ky_clocks_convert(clocks, KY_CLOCK_TSC, KY_CLOCK_BOOTTIME, 5, &converted));
	/* A later snapshot joins them. */
	snapshot(KY_CLOCK_PERF, 0, KY_CLOCK_BOOTTIME, 100);
	assert_int_equal(convert(KY_CLOCK_TSC, KY_CLOCK_BOOTTIME, 5), 105);
}

static void a_range_converts_by_one_offset(void **state)
{
	(void)state;
	snapshot(KY_CLOCK_MONOTONIC, 100, KY_CLOCK_BOOTTIME, 1100);
	snapshot(KY_CLOCK_MONOTONIC, 200, KY_CLOCK_BOOTTIME, 1250);
	snapshot(KY_CLOCK_MONOTONIC, 300, KY_CLOCK_BOOTTIME, 1400);
	int64_t offset, first, last;
	for (int64_t ns = 0; ns < 400; ns += 7) {
		assert_true(ky_clocks_convert_range(clocks, KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME,
						    ns, &offset, &first, &last));
		assert_true(first <= ns && ns <= last);
		assert_int_equal(ns + offset, convert(KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, ns));
	}
	assert_true(ky_clocks_convert_range(clocks, KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 250,
					    &offset, &first, &last));
	assert_int_equal(first, 200);
	assert_int_equal(last, 299);
	assert_int_equal(offset, 1050);
}

static void clocks_of_sequences_are_distinct(void **state)
{
	(void)state;
	assert_true(ky_clock_of_sequence(1, 64) != ky_clock_of_sequence(2, 64));
	assert_true(ky_clock_of_sequence(1, 64) != ky_clock_of_sequence(1, 65));
	assert_string_equal(ky_clock_name(KY_CLOCK_BOOTTIME), "BOOTTIME");
	assert_null(ky_clock_name(ky_clock_of_sequence(1, 64)));
	assert_null(ky_clock_name(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_last_snapshot_before_a_time_converts_it,
						open_clocks, close_clocks),
		cmocka_unit_test_setup_teardown(snapshots_may_come_in_any_order, open_clocks,
						close_clocks),
		cmocka_unit_test_setup_teardown(clocks_convert_over_a_chain, open_clocks,
						close_clocks),
		cmocka_unit_test_setup_teardown(unjoined_clocks_do_not_convert, open_clocks,
						close_clocks),
		cmocka_unit_test_setup_teardown(a_range_converts_by_one_offset, open_clocks,
						close_clocks),
		cmocka_unit_test(clocks_of_sequences_are_distinct),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
