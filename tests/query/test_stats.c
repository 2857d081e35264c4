/* SPDX-License-Identifier: MIT */
/*
 * test_stats.c: sums, percentiles, trees and samples of random traces are what the definition,
 * followed word by word and slowly, makes of the same columns.
 */
#include "model/intake.h"
#include "query/filter.h"
#include "query/histogram.h"
#include "query/sample_stats.h"
#include "query/stats.h"
#include "query/tree.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

static uint64_t state = 1;

static uint64_t random_below(uint64_t limit)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (state >> 33) % limit;
}

static uint32_t name_of(struct ky_trace *trace, const char *prefix, uint64_t number)
{
	char text[32];
	snprintf(text, sizeof(text), "%s%u", prefix, (unsigned)number);
	return ky_string_z(trace, text);
}

/* Calls within calls on some threads; some never end. */
static struct ky_trace *random_trace(unsigned events)
{
	struct ky_trace *trace = NULL;
	unsigned depths[4] = {0};
	int64_t ts = 1000;
	assert_int_equal(ky_trace_open(&trace), 0);
	for (unsigned i = 0; i < events; i++) {
		const unsigned which = (unsigned)random_below(4);
		const uint32_t thread = ky_thread(trace, 10 + which / 2, 100 + which);
		const uint32_t track = ky_track_of_thread(trace, thread);
		const uint64_t what = random_below(10);
		ts += (int64_t)random_below(1000);
		if (what == 0) {
			ky_put_instant(trace, ts, track, 0, name_of(trace, "i", random_below(3)),
				       0);
		} else if (what < 5 && depths[which] < 12) {
			depths[which]++;
			ky_put_begin(trace, ts, track, name_of(trace, "c", random_below(3)),
				     name_of(trace, "n", random_below(8)), 0);
		} else if (depths[which]) {
			depths[which]--;
			ky_put_end(trace, ts, track, 0, 0, 0);
		}
	}
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	return trace;
}

static int64_t end_of(const struct ky_trace *trace, uint32_t slice)
{
	const int64_t dur = trace->slices.dur[slice];
	return dur < 0 ? trace->end_ns : trace->slices.ts[slice] + dur;
}

static int64_t cut_ns(const struct ky_trace *trace, uint32_t slice, int64_t from, int64_t to)
{
	const int64_t begin = trace->slices.ts[slice] > from ? trace->slices.ts[slice] : from;
	const int64_t end = end_of(trace, slice) < to ? end_of(trace, slice) : to;
	return end > begin ? end - begin : 0;
}

static bool within(const struct ky_trace *trace, uint32_t slice, int64_t from, int64_t to)
{
	const int64_t ts = trace->slices.ts[slice];
	return ts < to && (ts >= from || end_of(trace, slice) > from);
}

static int ascending(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return (left > right) - (left < right);
}

static int64_t percentile(const int64_t *sorted, uint64_t count, unsigned percent)
{
	return sorted[(count * percent + 99) / 100 - 1];
}

static uint32_t key_of(const struct ky_trace *trace, enum ky_stats_by by, uint32_t slice)
{
	const uint32_t track = trace->slices.track[slice];
	return by == KY_BY_NAME       ? trace->slices.name[slice]
	       : by == KY_BY_CATEGORY ? trace->slices.category[slice]
	       : by == KY_BY_THREAD   ? ky_track_thread(trace, track)
				      : ky_track_process(trace, track);
}

static int64_t self_of(const struct ky_trace *trace, uint32_t slice, int64_t from, int64_t to)
{
	int64_t self = cut_ns(trace, slice, from, to);
	for (uint32_t i = 0; i < trace->slices.rows.count; i++) {
		if (trace->slices.parent[i] == slice && trace->slices.kind[i] == KY_SLICE_SPAN &&
		    within(trace, i, from, to))
			self -= cut_ns(trace, i, from, to);
	}
	return self;
}

/* Report whether a slice is in one of the same name. */
static bool recurs(const struct ky_trace *trace, uint32_t slice, int64_t from, int64_t to)
{
	for (uint32_t at = trace->slices.parent[slice]; at != KY_NONE;
	     at = trace->slices.parent[at])
		if (trace->slices.name[at] == trace->slices.name[slice] &&
		    trace->slices.kind[at] == KY_SLICE_SPAN && within(trace, at, from, to))
			return true;
	return false;
}

static void check_row(const struct ky_trace *trace, enum ky_stats_by by,
		      const struct ky_stats_row *row, int64_t from, int64_t to)
{
	int64_t *const all = calloc(trace->slices.rows.count + 1, sizeof(*all));
	uint64_t count = 0, instants = 0, unfinished = 0;
	int64_t total = 0, self = 0, sum = 0;
	for (uint32_t i = 0; i < trace->slices.rows.count; i++) {
		if (key_of(trace, by, i) != row->key || !within(trace, i, from, to))
			continue;
		if (trace->slices.kind[i] == KY_SLICE_INSTANT) {
			instants++;
			continue;
		}
		unfinished += trace->slices.dur[i] < 0;
		all[count++] = cut_ns(trace, i, from, to);
		sum += cut_ns(trace, i, from, to);
		if (by != KY_BY_NAME || !recurs(trace, i, from, to))
			total += cut_ns(trace, i, from, to);
		self += self_of(trace, i, from, to);
	}
	assert_int_equal(row->count, count);
	assert_int_equal(row->instants, instants);
	assert_int_equal(row->unfinished, unfinished);
	assert_int_equal(row->total_ns, total);
	assert_int_equal(row->self_ns, self);
	if (count) {
		qsort(all, count, sizeof(*all), ascending);
		assert_int_equal(row->min_ns, all[0]);
		assert_int_equal(row->max_ns, all[count - 1]);
		assert_int_equal(row->p50_ns, percentile(all, count, 50));
		assert_int_equal(row->p95_ns, percentile(all, count, 95));
		assert_int_equal(row->p99_ns, percentile(all, count, 99));
		assert_true(fabs(row->mean_ns - (double)sum / (double)count) < 1e-3);
	}
	free(all);
}

static void check_all(struct ky_trace *trace, enum ky_stats_by by, int64_t from, int64_t to)
{
	const struct ky_stats_filter filter = {.from_ns = from, .to_ns = to};
	struct ky_stats stats;
	uint64_t rows = 0;
	assert_int_equal(ky_stats_make(&stats, trace, by, &filter), 0);
	for (uint32_t i = 0; i < stats.count; i++) {
		check_row(trace, by, &stats.rows[i], from == KY_TIME_NONE ? INT64_MIN : from,
			  to == KY_TIME_NONE ? INT64_MAX : to);
		rows += stats.rows[i].count + stats.rows[i].instants;
		if (i)
			assert_true(stats.rows[i].total_ns <= stats.rows[i - 1].total_ns);
	}
	if (from == KY_TIME_NONE && to == KY_TIME_NONE)
		assert_int_equal(rows, trace->slices.rows.count);
	ky_stats_free(&stats);
}

static void groups_are_what_brute_force_finds(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 8; round++) {
		struct ky_trace *trace = random_trace(200 + round * 100);
		for (enum ky_stats_by by = KY_BY_NAME; by <= KY_BY_PROCESS; by++) {
			const int64_t middle =
				trace->begin_ns + (trace->end_ns - trace->begin_ns) / 2;
			check_all(trace, by, KY_TIME_NONE, KY_TIME_NONE);
			check_all(trace, by, middle, KY_TIME_NONE);
			check_all(trace, by, trace->begin_ns + 5000, middle);
		}
		ky_trace_close(&trace);
	}
}

static void an_empty_trace_has_no_rows(void **unused)
{
	struct ky_trace *trace = NULL;
	struct ky_stats stats;
	struct ky_tree tree;
	struct ky_function_stats functions;
	(void)unused;
	assert_int_equal(ky_trace_open(&trace), 0);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	for (enum ky_stats_by by = KY_BY_NAME; by <= KY_BY_PROCESS; by++) {
		assert_int_equal(ky_stats_make(&stats, trace, by, NULL), 0);
		assert_int_equal(stats.count, 0);
		ky_stats_free(&stats);
	}
	assert_int_equal(ky_tree_make(&tree, trace, KY_BY_THREAD, NULL), 0);
	assert_int_equal(tree.count, 0);
	ky_tree_free(&tree);
	assert_int_equal(ky_function_stats_make(&functions, trace, NULL, 0), 0);
	assert_int_equal(functions.count, 0);
	ky_function_stats_free(&functions);
	ky_trace_close(&trace);
}

static uint64_t count_with(struct ky_trace *trace, const struct ky_stats_filter *filter)
{
	int64_t *durations;
	uint64_t count;
	assert_int_equal(ky_stats_durations(trace, filter, &durations, &count), 0);
	free(durations);
	return count;
}

static void filters_choose_by_name_category_thread_and_process(void **unused)
{
	struct ky_trace *trace = NULL;
	(void)unused;
	assert_int_equal(ky_trace_open(&trace), 0);
	const uint32_t first = ky_thread(trace, 1, 1), second = ky_thread(trace, 2, 22);
	ky_thread_name(trace, second, ky_string_z(trace, "worker"), KY_NAME_TRACE);
	ky_process_name(trace, ky_process(trace, 2), ky_string_z(trace, "server"), KY_NAME_TRACE);
	for (int i = 0; i < 3; i++)
		ky_put_complete(trace, i * 100, 10, ky_track_of_thread(trace, first),
				ky_string_z(trace, "net,slow"), ky_string_z(trace, "read"), 0);
	for (int i = 0; i < 5; i++)
		ky_put_complete(trace, i * 100, 10, ky_track_of_thread(trace, second),
				ky_string_z(trace, "db"), ky_string_z(trace, "ready"), 0);
	ky_put_complete(trace, 1000, 10, ky_track_of_thread(trace, second), 0, 0, 0);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
#define COUNT(...)                                                                                 \
	count_with(trace, &(const struct ky_stats_filter){                                         \
				  .from_ns = KY_TIME_NONE, .to_ns = KY_TIME_NONE, __VA_ARGS__})
	assert_int_equal(COUNT(.name = NULL), 9);
	assert_int_equal(COUNT(.name = "read"), 3);
	assert_int_equal(COUNT(.name = "read*"), 8);
	assert_int_equal(COUNT(.name = "*"), 9);
	assert_int_equal(COUNT(.category = "slow"), 3);
	assert_int_equal(COUNT(.category = "d?"), 5);
	assert_int_equal(COUNT(.thread = "22"), 6);
	assert_int_equal(COUNT(.thread = "work*"), 6);
	assert_int_equal(COUNT(.process = "server", .name = "ready"), 5);
	assert_int_equal(COUNT(.process = "1"), 3);
	assert_int_equal(COUNT(.process = "none"), 0);
	ky_trace_close(&trace);
}

static void same_tree(struct ky_trace *trace, const struct ky_stats_filter *filter,
		      const struct ky_stats_filter *quick)
{
	struct ky_tree tree, other;
	assert_int_equal(ky_tree_make(&tree, trace, KY_BY_NAME, filter), 0);
	assert_int_equal(ky_tree_make(&other, trace, KY_BY_NAME, quick), 0);
	assert_int_equal(tree.count, other.count);
	if (tree.count)
		assert_memory_equal(tree.nodes, other.nodes, tree.count * sizeof(*tree.nodes));
	ky_tree_free(&tree);
	ky_tree_free(&other);
}

static void same_stats(struct ky_trace *trace, const struct ky_stats_filter *filter,
		       const struct ky_stats_filter *quick)
{
	struct ky_stats stats, other;
	assert_int_equal(ky_stats_make(&stats, trace, KY_BY_NAME, filter), 0);
	assert_int_equal(ky_stats_make(&other, trace, KY_BY_NAME, quick), 0);
	assert_int_equal(stats.count, other.count);
	if (stats.count)
		assert_memory_equal(stats.rows, other.rows, stats.count * sizeof(*stats.rows));
	ky_stats_free(&stats);
	ky_stats_free(&other);
}

/* Many blocks of rows, of which some are passed over, and some ends in what never ends. */
static void what_is_passed_over_is_not_missed(void **unused)
{
	(void)unused;
	struct ky_trace *trace = random_trace(100000);
	struct ky_filter_ends ends = {0};
	assert_true(trace->slices.rows.count > 8 * KY_FILTER_ENDS_ROWS);
	assert_int_equal(ky_filter_ends_make(&ends, trace), 0);
	const uint64_t span = (uint64_t)(trace->end_ns - trace->begin_ns);
	for (unsigned round = 0; round < 60; round++) {
		const int64_t from = trace->begin_ns + (int64_t)(random_below(1000) * span / 1000);
		const int64_t to = from + (int64_t)(random_below(1 + span / (1 + round)));
		const char *const name = round % 3 ? NULL : "n[0-3]";
		const struct ky_stats_filter filter = {.from_ns = from, .to_ns = to, .name = name};
		struct ky_stats_filter quick = filter;
		quick.ends = &ends;
		same_stats(trace, &filter, &quick);
		same_tree(trace, &filter, &quick);
	}
	ky_filter_ends_free(&ends);
	ky_trace_close(&trace);
}

static void tracks_choose_slices(void **unused)
{
	(void)unused;
	struct ky_trace *trace = random_trace(1000);
	uint8_t *const tracks = calloc(trace->tracks.rows.count, 1);
	uint64_t expected = 0;
	const struct ky_stats_filter filter = {
		.from_ns = KY_TIME_NONE, .to_ns = KY_TIME_NONE, .tracks = tracks};
	assert_int_equal(count_with(trace, &filter), 0);
	tracks[0] = 1;
	for (uint32_t i = 0; i < trace->slices.rows.count; i++)
		expected +=
			trace->slices.track[i] == 0 && trace->slices.kind[i] != KY_SLICE_INSTANT;
	assert_true(expected);
	assert_int_equal(count_with(trace, &filter), expected);
	free(tracks);
	ky_trace_close(&trace);
}

static void selection_is_exact_whatever_the_values(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 200; round++) {
		const uint64_t count = 1 + random_below(round < 100 ? 40 : 3000);
		const unsigned bits = (unsigned)random_below(64);
		int64_t *const values = calloc(count, sizeof(*values));
		int64_t *const sorted = calloc(count, sizeof(*sorted));
		for (uint64_t i = 0; i < count; i++)
			sorted[i] = values[i] = (int64_t)((random_below(UINT32_MAX) << 32 ^
							   random_below(UINT32_MAX) << 1) >>
							  bits);
		if (round % 7 == 0)
			sorted[0] = values[0] = INT64_MIN;
		if (round % 5 == 0 && count > 1)
			sorted[1] = values[1] = INT64_MAX;
		qsort(sorted, count, sizeof(*sorted), ascending);
		for (unsigned i = 0; i < 5; i++) {
			const uint64_t rank = random_below(count);
			assert_int_equal(ky_stats_select(values, count, rank), sorted[rank]);
		}
		free(values);
		free(sorted);
	}
	assert_int_equal(ky_stats_rank(1, 0.5), 0);
	assert_int_equal(ky_stats_rank(100, 0.99), 98);
	assert_int_equal(ky_stats_rank(100, 1), 99);
	assert_int_equal(ky_stats_rank(10, 0), 0);
}

static void check_histogram(const int64_t *values, uint64_t count, enum ky_histogram_scale scale,
			    uint32_t buckets)
{
	struct ky_histogram histogram;
	uint64_t sum = 0;
	assert_int_equal(ky_histogram_make(&histogram, values, count, scale, buckets), 0);
	assert_in_range(histogram.count, 1, buckets ? buckets : 1);
	for (uint32_t i = 0; i < histogram.count; i++) {
		assert_true(histogram.edges[i] <= histogram.edges[i + 1]);
		sum += histogram.counts[i];
	}
	assert_int_equal(sum, count);
	for (uint64_t i = 0; i < count; i++) {
		const uint32_t bucket = ky_histogram_bucket(&histogram, values[i]);
		assert_true(values[i] >= histogram.edges[bucket]);
		assert_true(values[i] <= histogram.edges[bucket + 1]);
	}
	ky_histogram_free(&histogram);
}

static void every_duration_is_in_its_bucket(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 300; round++) {
		int64_t values[50];
		const uint64_t count = 1 + random_below(50);
		const unsigned bits = (unsigned)random_below(63);
		for (uint64_t i = 0; i < count; i++)
			values[i] = (int64_t)(random_below(UINT32_MAX) << 31 >> bits);
		if (round % 5 == 0)
			values[0] = 0;
		if (round % 7 == 0)
			values[count - 1] = INT64_MAX;
		for (enum ky_histogram_scale scale = KY_SCALE_AUTO; scale <= KY_SCALE_LOG; scale++)
			check_histogram(values, count, scale, (uint32_t)random_below(40));
	}
}

/* a { b {} b {} } a { b {} } on one thread, b { c {} } on another. */
static struct ky_trace *calls(void)
{
	struct ky_trace *trace = NULL;
	assert_int_equal(ky_trace_open(&trace), 0);
	const uint32_t one = ky_track_of_thread(trace, ky_thread(trace, 1, 1));
	const uint32_t two = ky_track_of_thread(trace, ky_thread(trace, 1, 2));
	const uint32_t a = ky_string_z(trace, "a"), b = ky_string_z(trace, "b"),
		       c = ky_string_z(trace, "c");
	ky_put_complete(trace, 0, 100, one, 0, a, 0);
	ky_put_complete(trace, 10, 20, one, 0, b, 0);
	ky_put_complete(trace, 50, 30, one, 0, b, 0);
	ky_put_complete(trace, 200, 50, one, 0, a, 0);
	ky_put_complete(trace, 210, 5, one, 0, b, 0);
	ky_put_complete(trace, 0, 1000, two, 0, b, 0);
	ky_put_complete(trace, 1, 998, two, 0, c, 0);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	return trace;
}

static char *shown(const struct ky_trace *trace, const struct ky_tree *tree, char *text,
		   size_t bytes)
{
	size_t used = 0;
	text[0] = 0;
	for (uint32_t i = tree->first; i != KY_NONE; i = ky_tree_after(tree, i, true)) {
		const struct ky_tree_node *const node = &tree->nodes[i];
		used += (size_t)snprintf(text + used, bytes - used, "%u%s %u/%lld/%lld ",
					 node->depth, ky_text_of(trace, node->key),
					 (unsigned)node->count, (long long)node->total_ns,
					 (long long)node->self_ns);
	}
	return text;
}

static void a_tree_joins_what_is_called_from_the_same_place(void **unused)
{
	struct ky_trace *trace = calls();
	struct ky_tree tree;
	char text[256];
	(void)unused;
	assert_int_equal(ky_tree_make(&tree, trace, KY_BY_NAME, NULL), 0);
	assert_string_equal(shown(trace, &tree, text, sizeof(text)),
			    "0b 1/1000/2 1c 1/998/998 0a 2/150/95 1b 3/55/55 ");
	ky_tree_free(&tree);
	const struct ky_stats_filter below = {
		.from_ns = KY_TIME_NONE, .to_ns = KY_TIME_NONE, .name = "b"};
	assert_int_equal(ky_tree_make(&tree, trace, KY_BY_NAME, &below), 0);
	assert_string_equal(shown(trace, &tree, text, sizeof(text)), "0b 4/1055/57 1c 1/998/998 ");
	ky_tree_free(&tree);
	assert_int_equal(ky_tree_make(&tree, trace, KY_BY_THREAD, NULL), 0);
	assert_int_equal(tree.nodes[tree.first].total_ns, 1000);
	assert_int_equal(trace->threads.tid[tree.nodes[tree.first].key], 2);
	ky_tree_free(&tree);
	ky_trace_close(&trace);
}

static void a_function_on_a_stack_twice_counts_once(void **unused)
{
	struct ky_trace *trace = NULL;
	struct ky_function_stats stats;
	struct ky_tree tree;
	char text[256];
	(void)unused;
	assert_int_equal(ky_trace_open(&trace), 0);
	const uint32_t thread = ky_thread(trace, 1, 1), event = ky_string_z(trace, "cycles");
	const uint32_t f = ky_frame(trace, KY_NONE, 1, ky_string_z(trace, "f"), 0, 0);
	const uint32_t g = ky_frame(trace, KY_NONE, 2, ky_string_z(trace, "g"), 0, 0);
	const uint32_t outer = ky_callsite(trace, KY_NONE, f),
		       middle = ky_callsite(trace, outer, g);
	const uint32_t inner = ky_callsite(trace, middle, f),
		       other = ky_callsite(trace, KY_NONE, g);
	ky_put_sample(trace, 1, thread, inner, KY_NONE, KY_CPU_MODE_USER, 10, event);
	ky_put_sample(trace, 2, thread, inner, KY_NONE, KY_CPU_MODE_USER, 10, event);
	ky_put_sample(trace, 3, thread, middle, KY_NONE, KY_CPU_MODE_USER, 5, event);
	ky_put_sample(trace, 4, thread, other, KY_NONE, KY_CPU_MODE_USER, 1, event);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	assert_int_equal(ky_function_stats_make(&stats, trace, NULL, 0), 0);
	assert_int_equal(stats.count, 2);
	assert_int_equal(stats.samples, 4);
	assert_string_equal(ky_text_of(trace, stats.rows[0].name), "f");
	assert_int_equal(stats.rows[0].self_samples, 2);
	assert_int_equal(stats.rows[0].total_samples, 3);
	assert_true(stats.rows[0].total_weight == 25);
	assert_int_equal(stats.rows[1].self_samples, 2);
	assert_int_equal(stats.rows[1].total_samples, 4);
	assert_true(stats.rows[1].self_weight == 6 && stats.rows[1].total_weight == 26);
	ky_function_stats_free(&stats);
	assert_int_equal(ky_tree_make_samples(&tree, trace, NULL, event), 0);
	assert_string_equal(shown(trace, &tree, text, sizeof(text)),
			    "0f 3/25/0 1g 3/25/5 2f 2/20/20 0g 1/1/1 ");
	ky_tree_free(&tree);
	ky_trace_close(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_what_brute_force_finds),
		cmocka_unit_test(an_empty_trace_has_no_rows),
		cmocka_unit_test(filters_choose_by_name_category_thread_and_process),
		cmocka_unit_test(what_is_passed_over_is_not_missed),
		cmocka_unit_test(tracks_choose_slices),
		cmocka_unit_test(selection_is_exact_whatever_the_values),
		cmocka_unit_test(every_duration_is_in_its_bucket),
		cmocka_unit_test(a_tree_joins_what_is_called_from_the_same_place),
		cmocka_unit_test(a_function_on_a_stack_twice_counts_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
