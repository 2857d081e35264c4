/* SPDX-License-Identifier: MIT */
/* test_slices.c: slices, arguments and flows built from events in any order. */
#include "model/index.h"
#include "model/intake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct ky_trace *trace;
static uint32_t track;

static int open_trace(void **state)
{
	(void)state;
	assert_int_equal(ky_trace_open(&trace), 0);
	track = ky_track_of_thread(trace, ky_thread(trace, 1, 2));
	return 0;
}

static int close_trace(void **state)
{
	(void)state;
	ky_trace_close(&trace);
	return 0;
}

static uint32_t text(const char *s)
{
	return ky_string_z(trace, s);
}

static void finish(void)
{
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
}

static void assert_slice(uint32_t row, int64_t ts, int64_t dur, uint16_t depth, const char *name)
{
	assert_true(row < trace->slices.rows.count);
	assert_int_equal(trace->slices.ts[row], ts);
	assert_int_equal(trace->slices.dur[row], dur);
	assert_int_equal(trace->slices.depth[row], depth);
	assert_string_equal(ky_text_of(trace, trace->slices.name[row]), name);
}

static uint64_t problem(const char *name)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		if (strcmp(ky_text_of(trace, trace->problems.name[i]), name) == 0)
			return trace->problems.number[i];
	return 0;
}

static void begins_and_ends_in_any_order_nest_by_time(void **state)
{
	(void)state;
	ky_put_end(trace, 100, track, 0, 0, 0);
	ky_put_begin(trace, 20, track, 0, text("inner"), 0);
	ky_put_begin(trace, 10, track, 0, text("outer"), 0);
	ky_put_end(trace, 30, track, 0, 0, 0);
	finish();
	assert_int_equal(trace->slices.rows.count, 2);
	assert_slice(0, 10, 90, 0, "outer");
	assert_slice(1, 20, 10, 1, "inner");
	assert_int_equal(trace->slices.parent[1], 0);
	assert_int_equal(trace->begin_ns, 10);
	assert_int_equal(trace->end_ns, 100);
}

static void complete_events_that_all_overlap_are_all_there(void **state)
{
	(void)state;
	const int64_t many = 20000;
	for (int64_t i = 0; i < many; i++)
		ky_put_complete(trace, i, 2 * many, track, 0, text("a"), 0);
	for (int64_t i = 0; i < many; i++) /* all free again: no further tracks */
		ky_put_complete(trace, 4 * many + i, 2 * many, track, 0, text("b"), 0);
	finish();
	assert_int_equal(trace->slices.rows.count, 2 * many);
	assert_int_equal(trace->tracks.rows.count, many);
	for (uint32_t i = 0; i < trace->slices.rows.count; i++)
		assert_int_equal(trace->slices.depth[i], 0);
	assert_int_equal(problem("slice_overlap"), 2 * many - 2);
}

static void flows_go_to_a_slice_that_overlaps_another(void **state)
{
	(void)state;
	ky_put_complete(trace, 0, 10, track, 0, text("first"), 0);
	ky_put_complete(trace, 5, 10, track, 0, text("beside"), 0);
	ky_put_flow(trace, 5, track, KY_FLOW_BEGIN, KY_BIND_LAST, 1);
	ky_put_complete(trace, 20, 10, track, 0, text("third"), 0);
	ky_put_flow(trace, 21, track, KY_FLOW_END, KY_BIND_NEXT, 1);
	ky_put_complete(trace, 25, 10, track, 0, text("fourth"), 0);
	finish();
	assert_int_equal(trace->flows.rows.count, 1);
	assert_slice(trace->flows.out[0], 5, 10, 0, "beside");
	assert_slice(trace->flows.in[0], 25, 10, 0, "fourth");
}

static void large_sets_of_arguments_are_joined(void **state)
{
	(void)state;
	const uint32_t many = 50000;
	uint32_t sets[2];
	char key[16];
	for (uint32_t set = 0; set < 2; set++) {
		ky_args_begin(trace);
		for (uint32_t i = 0; i < many; i++) {
			snprintf(key, sizeof(key), "k%u", i + set);
			ky_arg_int(trace, text(key), set);
		}
		sets[set] = ky_args_end(trace);
	}
	ky_put_begin(trace, 1, track, 0, text("a"), sets[0]);
	ky_put_end(trace, 2, track, 0, 0, sets[1]);
	finish();
	const uint32_t joined = trace->slices.args[0];
	const uint32_t first = ky_arg_set_first(trace, joined);
	assert_int_equal(ky_arg_set_end(trace, joined) - first, many + 1);
	assert_int_equal(trace->args.value[first], 0);
	assert_int_equal(trace->args.value[first + 1], 1);
}

static void complete_events_that_come_child_first_nest(void **state)
{
	(void)state;
	for (int64_t i = 0; i < 100; i++) {
		ky_put_complete(trace, i * 100 + 20, 10, track, 0, text("child"), 0);
		ky_put_complete(trace, i * 100 + 10, 50, track, 0, text("middle"), 0);
		ky_put_complete(trace, i * 100, 90, track, 0, text("parent"), 0);
	}
	finish();
	assert_int_equal(trace->slices.rows.count, 300);
	for (uint32_t i = 0; i < 100; i++) {
		assert_slice(3 * i, i * 100, 90, 0, "parent");
		assert_slice(3 * i + 1, i * 100 + 10, 50, 1, "middle");
		assert_slice(3 * i + 2, i * 100 + 20, 10, 2, "child");
	}
}

static void times_backwards_are_sorted(void **state)
{
	(void)state;
	const uint32_t name = text("n");
	for (int64_t i = 5000; i-- > 0;)
		ky_put_complete(trace, i * 10, 5, track, 0, name, 0);
	finish();
	assert_int_equal(trace->slices.rows.count, 5000);
	for (uint32_t i = 0; i < 5000; i++)
		assert_slice(i, i * 10, 5, 0, "n");
}

static void random_times_are_sorted_and_equal_ones_keep_their_order(void **state)
{
	(void)state;
	uint32_t seed = 1;
	for (uint32_t i = 0; i < 20000; i++) {
		seed = seed * 1103515245 + 12345;
		ky_put_counter(trace, seed >> 20, track, i);
	}
	finish();
	const struct ky_counters *counters = &trace->counters;
	assert_int_equal(counters->rows.count, 20000);
	for (uint32_t i = 1; i < 20000; i++) {
		assert_true(counters->ts[i - 1] <= counters->ts[i]);
		if (counters->ts[i - 1] == counters->ts[i])
			assert_true(counters->value[i - 1] < counters->value[i]);
	}
}

static void chromes_order_at_equal_times_is_ends_then_longest(void **state)
{
	(void)state;
	ky_put_begin(trace, 0, track, 0, text("first"), 0);
	ky_put_complete_longest(trace, 10, 5, track, 0, text("short"), 0);
	ky_put_complete_longest(trace, 10, 20, track, 0, text("long"), 0);
	ky_put_end_first(trace, 10, track, 0, 0, 0);
	finish();
	assert_slice(0, 0, 10, 0, "first");
	assert_slice(1, 10, 20, 0, "long");
	assert_slice(2, 10, 5, 1, "short");
}

static void what_never_ends_has_no_duration(void **state)
{
	(void)state;
	ky_put_begin(trace, 5, track, 0, text("open"), 0);
	ky_put_instant(trace, 9, track, 0, text("point"), 0);
	finish();
	assert_slice(0, 5, -1, 0, "open");
	assert_slice(1, 9, 0, 1, "point");
	assert_int_equal(trace->slices.kind[1], KY_SLICE_INSTANT);
}

static void an_end_with_a_name_ends_the_slice_of_that_name(void **state)
{
	(void)state;
	ky_put_begin(trace, 0, track, 0, text("a"), 0);
	ky_put_begin(trace, 10, track, 0, text("b"), 0);
	ky_put_end(trace, 20, track, 0, text("a"), 0);
	ky_put_begin(trace, 30, track, 0, text("c"), 0);
	ky_put_end(trace, 40, track, 0, text("c"), 0);
	ky_put_end(trace, 50, track, 0, text("none"), 0);
	finish();
	assert_slice(0, 0, 20, 0, "a");
	assert_slice(1, 10, 10, 1, "b");
	assert_slice(2, 30, 10, 0, "c");
	assert_int_equal(problem("misplaced_end_event"), 1);
	assert_int_equal(problem("end_without_begin"), 1);
}

static void slices_that_overlap_go_to_a_track_of_their_own(void **state)
{
	(void)state;
	ky_put_complete(trace, 0, 100, track, 0, text("a"), 0);
	ky_put_complete(trace, 50, 100, track, 0, text("b"), 0);
	ky_put_complete(trace, 60, 200, track, 0, text("c"), 0);
	finish();
	assert_int_equal(trace->slices.rows.count, 3);
	assert_int_equal(trace->slices.track[0], track);
	assert_int_not_equal(trace->slices.track[1], track);
	assert_int_equal(trace->tracks.parent[trace->slices.track[1]], track);
	assert_int_not_equal(trace->slices.track[2], trace->slices.track[1]);
	assert_slice(2, 60, 200, 0, "c");
}

static void depth_is_bounded_and_says_so(void **state)
{
	(void)state;
	for (int i = 0; i < 32768 + 88; i++)
		ky_put_begin(trace, i, track, 0, text("deep"), 0);
	finish();
	assert_int_equal(trace->slices.rows.count, 32768);
	assert_int_equal(trace->slices.depth[32767], 32767);
	assert_int_equal(problem("slice_too_deep"), 88);
}

static void depth_of_slices_with_known_ends_is_that_of_perfetto(void **state)
{
	(void)state;
	for (int i = 0; i < 600; i++)
		ky_put_complete(trace, i, 10000 - 2 * i, track, 0, text("deep"), 0);
	finish();
	assert_int_equal(trace->slices.rows.count, 512);
	assert_int_equal(problem("slice_too_deep"), 88);
}

static uint32_t one_arg(const char *key, int64_t value)
{
	ky_args_begin(trace);
	ky_arg_int(trace, text(key), value);
	return ky_args_end(trace);
}

static void arguments_of_begin_and_end_are_joined(void **state)
{
	(void)state;
	ky_args_begin(trace);
	ky_arg_int(trace, text("a"), 1);
	ky_arg_int(trace, text("b"), 2);
	const uint32_t begin = ky_args_end(trace);
	ky_put_begin(trace, 0, track, 0, text("s"), begin);
	ky_put_end(trace, 1, track, 0, 0, one_arg("b", 3));
	finish();
	const uint32_t set = trace->slices.args[0];
	const uint32_t first = ky_arg_set_first(trace, set);
	assert_int_equal(ky_arg_set_end(trace, set) - first, 2);
	assert_int_equal(trace->args.value[first], 1);
	assert_int_equal(trace->args.value[first + 1], 3);
}

static void an_empty_set_is_none(void **state)
{
	(void)state;
	ky_args_begin(trace);
	assert_int_equal(ky_args_end(trace), 0);
	finish();
}

static void flows_bind_to_the_enclosing_or_the_next_slice(void **state)
{
	(void)state;
	const uint32_t other = ky_track_of_thread(trace, ky_thread(trace, 1, 3));
	const uint64_t id = ky_flow_key(trace, 7, text("cat"), text("flow"), 0);
	ky_put_begin(trace, 0, track, 0, text("producer"), 0);
	ky_put_flow(trace, 5, track, KY_FLOW_BEGIN, KY_BIND_ENCLOSING, id);
	ky_put_end(trace, 10, track, 0, 0, 0);
	ky_put_flow(trace, 15, other, KY_FLOW_END, KY_BIND_NEXT, id);
	ky_put_begin(trace, 20, other, 0, text("consumer"), 0);
	ky_put_end(trace, 30, other, 0, 0, 0);
	ky_put_flow(trace, 40, other, KY_FLOW_STEP, KY_BIND_ENCLOSING, id);
	finish();
	assert_int_equal(trace->flows.rows.count, 1);
	assert_int_equal(trace->flows.out[0], 0);
	assert_int_equal(trace->flows.in[0], 1);
	assert_int_equal(trace->flows.id[0], 7);
	assert_string_equal(ky_text_of(trace, trace->flows.name[0]), "flow");
	assert_int_equal(problem("flow_no_enclosing_slice"), 1);
}

static void flows_of_any_direction_begin_with_the_first_in_time(void **state)
{
	(void)state;
	ky_put_instant(trace, 20, track, 0, text("second"), 0);
	ky_put_flow(trace, 20, track, KY_FLOW_ANY_END, KY_BIND_LAST, 9);
	ky_put_instant(trace, 10, track, 0, text("first"), 0);
	ky_put_flow(trace, 10, track, KY_FLOW_ANY, KY_BIND_LAST, 9);
	finish();
	assert_int_equal(trace->flows.rows.count, 1);
	assert_slice(trace->flows.out[0], 10, 0, 0, "first");
	assert_slice(trace->flows.in[0], 20, 0, 0, "second");
}

static void a_tid_in_two_processes_is_two_threads(void **state)
{
	(void)state;
	assert_int_equal(ky_thread(trace, 1, 2), ky_thread(trace, 1, 2));
	assert_int_not_equal(ky_thread(trace, 1, 2), ky_thread(trace, 9, 2));
	const uint32_t unknown = ky_thread_by_tid(trace, 77);
	assert_int_equal(ky_thread(trace, 9, 77), unknown);
	const uint32_t again = ky_thread_new(trace, KY_NONE, 77);
	assert_int_not_equal(again, unknown);
	assert_int_equal(ky_thread_by_tid(trace, 77), again);
	finish();
}

static void names_of_a_higher_rank_stay(void **state)
{
	(void)state;
	const uint32_t thread = ky_thread(trace, 1, 2);
	ky_thread_name(trace, thread, text("worker"), KY_NAME_TRACE);
	ky_thread_name(trace, thread, text("comm"), KY_NAME_KERNEL);
	assert_string_equal(ky_text_of(trace, trace->threads.name[thread]), "worker");
	finish();
}

static void clocks_convert_over_others(void **state)
{
	(void)state;
	const struct ky_clock_reading first[] = {{KY_CLOCK_BOOTTIME, 1000},
						 {KY_CLOCK_MONOTONIC, 900}};
	const struct ky_clock_reading second[] = {{KY_CLOCK_MONOTONIC, 950}, {KY_CLOCK_TSC, 10}};
	const struct ky_clock_reading third[] = {{KY_CLOCK_BOOTTIME, 2000},
						 {KY_CLOCK_MONOTONIC, 1800}};
	ky_put_clocks(trace, 1000, first, 2);
	ky_put_clocks(trace, 1050, second, 2);
	ky_put_clocks(trace, 2000, third, 2);
	int64_t ns;
	assert_true(ky_clocks_convert(trace->clocks, KY_CLOCK_TSC, KY_CLOCK_BOOTTIME, 20, &ns));
	assert_int_equal(ns, 1060);
	assert_true(
		ky_clocks_convert(trace->clocks, KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 1801, &ns));
	assert_int_equal(ns, 2001);
	assert_true(
		ky_clocks_convert(trace->clocks, KY_CLOCK_MONOTONIC, KY_CLOCK_BOOTTIME, 1, &ns));
	assert_int_equal(ns, 101);
	assert_false(ky_clocks_convert(trace->clocks, KY_CLOCK_PERF, KY_CLOCK_BOOTTIME, 1, &ns));
	assert_int_equal(trace->clock_rows.rows.count, 6);
	finish();
}

static void rows_are_found_by_what_they_share(void **state)
{
	(void)state;
	const uint32_t other = ky_track_global(trace, text("other"));
	for (int64_t i = 0; i < 1000; i++)
		ky_put_complete(trace, i * 10, 5, i % 3 ? track : other, 0,
				text(i % 2 ? "odd" : "even"), 0);
	finish();
	const struct ky_index_rows rows = ky_index_get(trace, KY_INDEX_SLICE_TRACK, other);
	assert_int_equal(rows.count, 334);
	for (uint32_t i = 0; i < rows.count; i++)
		assert_int_equal(rows.rows[i], 3 * i);
	assert_int_equal(ky_index_get(trace, KY_INDEX_SLICE_NAME, text("odd")).count, 500);
	assert_int_equal(ky_index_get(trace, KY_INDEX_SLICE_NAME, KY_NONE).count, 0);
	assert_int_equal(ky_index_time(trace->slices.ts, 1000, 95), 10);
}

static void texts_are_kept_once_and_made_valid(void **state)
{
	(void)state;
	assert_int_equal(text("same"), text("same"));
	assert_int_not_equal(text("same"), text("other"));
	assert_string_equal(ky_text_of(trace, ky_string(trace,
							"a\xff"
							"b",
							3)),
			    "a\xef\xbf\xbd"
			    "b");
	assert_int_not_equal(text(""), 0);
	for (int i = 0; i < 5000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "name %d", i);
		assert_string_equal(ky_text_of(trace, text(name)), name);
	}
	assert_int_equal(ky_strings_find(&trace->strings, "absent", 6), 0);
	finish();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_trace, close_trace)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(begins_and_ends_in_any_order_nest_by_time),
		TEST(complete_events_that_come_child_first_nest),
		TEST(complete_events_that_all_overlap_are_all_there),
		TEST(flows_go_to_a_slice_that_overlaps_another),
		TEST(large_sets_of_arguments_are_joined),
		TEST(times_backwards_are_sorted),
		TEST(random_times_are_sorted_and_equal_ones_keep_their_order),
		TEST(chromes_order_at_equal_times_is_ends_then_longest),
		TEST(what_never_ends_has_no_duration),
		TEST(an_end_with_a_name_ends_the_slice_of_that_name),
		TEST(slices_that_overlap_go_to_a_track_of_their_own),
		TEST(depth_is_bounded_and_says_so),
		TEST(depth_of_slices_with_known_ends_is_that_of_perfetto),
		TEST(arguments_of_begin_and_end_are_joined),
		TEST(an_empty_set_is_none),
		TEST(flows_bind_to_the_enclosing_or_the_next_slice),
		TEST(flows_of_any_direction_begin_with_the_first_in_time),
		TEST(a_tid_in_two_processes_is_two_threads),
		TEST(names_of_a_higher_rank_stay),
		TEST(clocks_convert_over_others),
		TEST(rows_are_found_by_what_they_share),
		TEST(texts_are_kept_once_and_made_valid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
