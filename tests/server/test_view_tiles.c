/* SPDX-License-Identifier: MIT */
/*
 * test_view_tiles.c: tiles of random pyramids against a walk over every event: each event in the tile is counted once, those at
 * least a pixel wide are items of their own, merged items describe their events, at all levels.
 */
#include "model/intake.h"
#include "server/api.h"
#include "server/tile.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ITEMS_A_PIXEL_MAX 9u

static struct ky_trace *trace;
static struct ky_view *view;
static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return n ? (seed >> 17) % n : 0;
}

static int open_trace(void **state)
{
	(void)state;
	seed = 42;
	view = NULL;
	assert_int_equal(ky_trace_open(&trace), 0);
	return 0;
}

static int close_view(void **state)
{
	(void)state;
	ky_view_close(&view);
	return 0;
}

static uint32_t name(uint64_t number)
{
	char text[32];
	snprintf(text, sizeof(text), "name %llu", (unsigned long long)number);
	return ky_string_z(trace, text);
}

static uint32_t thread_track(int64_t tid)
{
	return ky_track_of_thread(trace, ky_thread(trace, 1, tid));
}

static void open_view(int64_t base_ns)
{
	const struct ky_view_options options = {
		.name = "test", .generation = 7, .base_ns = base_ns};
	if (!trace->finished)
		assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	assert_int_equal(ky_view_open(&view, trace, &options), 0);
}

/* ---- reading a response ---- */

struct answer {
	struct ky_buffer bytes;
	struct ky_wire_header header;
	size_t at;
};

static void ask(struct answer *answer, uint32_t level, int64_t first, uint32_t count,
		const uint32_t *tracks, uint32_t tracks_count)
{
	const struct ky_tile_range tiles = {level, first, count, tracks, tracks_count};
	*answer = (struct answer){.at = sizeof(answer->header)};
	assert_int_equal(ky_tile_append(view, &tiles, &answer->bytes), 0);
	assert_false(answer->bytes.failed);
	memcpy(&answer->header, answer->bytes.data, sizeof(answer->header));
	assert_int_equal(answer->header.magic, KY_WIRE_MAGIC);
	assert_int_equal(answer->header.generation, 7);
	assert_int_equal(answer->header.sections, count * tracks_count);
	assert_int_equal(answer->header.level, level);
	assert_int_equal(answer->bytes.bytes % 8, 0);
}

static void take(struct answer *answer, void *to, size_t bytes)
{
	assert_true(answer->at + bytes <= answer->bytes.bytes);
	memcpy(to, answer->bytes.data + answer->at, bytes);
	answer->at += bytes;
}

/* Every name is there once, with its text. */
static void check_strings(struct answer *answer, const uint8_t *needed)
{
	uint32_t head[2];
	uint8_t *const seen = calloc(trace->strings.count + 1, 1);
	assert_int_equal(answer->at, answer->header.strings_at);
	for (uint32_t i = 0; i < answer->header.strings; i++) {
		take(answer, head, sizeof(head));
		assert_true(head[0] <= trace->strings.count);
		assert_false(seen[head[0]]);
		seen[head[0]] = 1;
		assert_int_equal(head[1], ky_strings_bytes(&trace->strings, head[0]));
		if (head[1])
			assert_memory_equal(answer->bytes.data + answer->at,
					    ky_text_of(trace, head[0]), head[1]);
		answer->at += (head[1] + 7) / 8 * 8;
	}
	assert_int_equal(answer->at, answer->bytes.bytes);
	for (uint32_t i = 0; i <= trace->strings.count; i++)
		assert_int_equal(needed[i], seen[i]);
	free(seen);
}

/* ---- the walk over every event ---- */

static int64_t end_of(uint32_t slice)
{
	const int64_t ts = trace->slices.ts[slice], dur = trace->slices.dur[slice];
	int64_t end;
	if (dur < 0)
		return trace->end_ns > ts ? trace->end_ns : ts;
	return __builtin_add_overflow(ts, dur, &end) ? INT64_MAX : end;
}

struct window {
	long double first, end; /* of the view's time */
	long double pixel;
	uint32_t track;
};

static struct window window_of(uint32_t level, int64_t tile, uint32_t track)
{
	const long double pixel = (long double)(1ull << level), width = pixel * KY_TILE_PIXELS;
	return (struct window){(long double)tile * width, ((long double)tile + 1) * width, pixel,
			       track};
}

static long double time_of(int64_t ts)
{
	return (long double)ts - (long double)view->base_ns;
}

/* Find the next slice of a row, from *at on, that reaches into the tile. */
static bool next_slice(const struct window *window, uint16_t row, uint32_t *at)
{
	struct ky_view_place place;
	for (; *at < trace->slices.rows.count; ++*at) {
		const long double begin = time_of(trace->slices.ts[*at]),
				  end = time_of(end_of(*at));
		if (begin >= window->end || !(begin >= window->first || end > window->first))
			continue;
		assert_true(ky_view_place(view, KY_VIEW_SLICES, *at, &place));
		if (place.track == window->track && place.row == row)
			return true;
	}
	return false;
}

struct sum {
	long double begin, end, busy, longest;
	uint32_t count;
};

/* Add up as many slices as the item claims. */
static struct sum sum_of(const struct window *window, const struct ky_wire_item *item, uint32_t *at,
			 bool overlap)
{
	struct sum sum = {0};
	for (; sum.count < item->count; ++*at, sum.count++) {
		assert_true(next_slice(window, item->row, at));
		const long double begin = time_of(trace->slices.ts[*at]),
				  end = time_of(end_of(*at));
		if (!sum.count) {
			sum.begin = begin;
			sum.end = end;
		}
		sum.end = end > sum.end ? end : sum.end;
		sum.busy += end - begin;
		sum.longest = end - begin > sum.longest ? end - begin : sum.longest;
		if (item->count > 1 && !overlap)
			assert_true(end - begin < window->pixel);
	}
	return sum;
}

static void check_item(const struct window *window, const struct ky_wire_item *item,
		       const struct sum *sum)
{
	const uint32_t event = item->event;
	const long double dur = time_of(end_of(event)) - time_of(trace->slices.ts[event]);
	const long double width = sum->end - sum->begin;
	(void)window;
	assert_true(item->begin_ns == (double)sum->begin);
	assert_true(item->dur_ns == (double)width);
	assert_true((float)dur == (float)sum->longest);
	assert_int_equal(item->name, trace->slices.name[event]);
	assert_int_equal(!!(item->flags & KY_ITEM_MERGED), item->count > 1);
	assert_int_equal(!!(item->flags & KY_ITEM_INSTANT), sum->longest <= 0);
	if (item->count == 1)
		assert_int_equal(!!(item->flags & KY_ITEM_OPEN), trace->slices.dur[event] < 0);
	const long double fill = width > 0 ? fminl(255, 255 * sum->busy / width) : 255;
	assert_true(fabsl(fill - item->fill) <= 1.01L);
}

/* Check a section of slices; in a pyramid with overlaps some rules do not hold. */
static void check_section(struct answer *answer, uint32_t level, uint32_t track, int64_t tile,
			  bool overlap, uint8_t *needed)
{
	const struct window window = window_of(level, tile, track);
	const uint16_t rows = view->tracks[track].rows;
	struct ky_wire_section section;
	struct ky_wire_item item = {0};
	uint32_t row_items = 0, at = 0, row = 0;
	long double end = -INFINITY, merged_pixel = -INFINITY;
	take(answer, &section, sizeof(section));
	assert_int_equal(section.track, track);
	assert_int_equal(section.tile, tile);
	for (uint32_t i = 0; i < section.items; i++) {
		take(answer, &item, sizeof(item));
		assert_true(item.row >= row && item.row < rows);
		for (; row < item.row; row++, at = 0, row_items = 0, end = merged_pixel = -INFINITY)
			assert_false(next_slice(&window, (uint16_t)row, &at));
		const struct sum sum = sum_of(&window, &item, &at, overlap);
		check_item(&window, &item, &sum);
		const long double pixel = floorl(sum.begin / window.pixel);
		if (item.count > 1 && !overlap && sum.begin >= window.first) {
			assert_true(pixel > merged_pixel);
			merged_pixel = pixel;
		}
		if (!overlap)
			assert_true(sum.begin >= end);
		end = sum.end;
		needed[item.name] = 1;
		row_items++;
		assert_true(row_items <= (overlap ? ITEMS_A_PIXEL_MAX : 2u) * (KY_TILE_PIXELS + 1));
	}
	for (; row < rows; row++, at = 0)
		assert_false(next_slice(&window, (uint16_t)row, &at));
}

static void check_tiles(uint32_t level, int64_t first, uint32_t count, bool overlap)
{
	uint32_t tracks[64] = {0}, tracks_count = 0;
	struct answer answer;
	for (uint32_t i = 0; i < view->tracks_count && tracks_count < 64; i++)
		if (view->tracks[i].kind == KY_VIEW_SLICES)
			tracks[tracks_count++] = i;
	uint8_t *const needed = calloc(trace->strings.count + 1, 1);
	ask(&answer, level, first, count, tracks, tracks_count);
	for (uint32_t t = 0; t < tracks_count; t++)
		for (uint32_t i = 0; i < count; i++)
			check_section(&answer, level, tracks[t], first + i, overlap, needed);
	check_strings(&answer, needed);
	ky_buffer_free(&answer.bytes);
	free(needed);
}

/* Check some tiles of all levels, with events and without. */
static void check_levels(bool overlap)
{
	for (uint32_t level = 0; level <= KY_TILE_LEVEL_MAX; level++) {
		for (int turn = 0; turn < 3; turn++) {
			const uint32_t slice = (uint32_t)random_below(trace->slices.rows.count);
			const int64_t time = trace->slices.ts[slice] - view->base_ns;
			const int64_t tile = time >> (level + 9);
			check_tiles(level, tile - (int64_t)random_below(2), 2, overlap);
		}
		check_tiles(level, -2, 3, overlap);
	}
}

/* ---- tests ---- */

/* Nested spans of a thread, from a few ns to a few ms. */
static void put_spans(uint32_t track, int64_t from, int64_t to, uint32_t depth, uint32_t *left)
{
	while (from < to && *left) {
		const int64_t dur =
			(int64_t)random_below(1ull << random_below(23)) % (to - from + 1);
		--*left;
		if (random_below(9) == 0)
			ky_put_instant(trace, from, track, 0, name(random_below(20)), 0);
		else
			ky_put_complete(trace, from, dur, track, 0, name(random_below(20)), 0);
		if (depth < 6 && dur > 10 && random_below(3))
			put_spans(track, from + 1, from + dur - 1, depth + 1, left);
		from += dur + (int64_t)random_below(1ull << random_below(20)) + 1;
	}
}

static void what_reaches_into_a_tile_is_counted_once_at_every_level(void **state)
{
	(void)state;
	for (int64_t tid = 1; tid <= 3; tid++) {
		uint32_t left = 700;
		put_spans(thread_track(tid), 1000000007 + 13 * tid, INT64_C(900000000000), 0,
			  &left);
	}
	ky_put_begin(trace, 1000500000, thread_track(4), 0, name(1), 0);
	open_view(KY_TIME_NONE);
	assert_int_equal(view->base_ns, trace->begin_ns);
	assert_true(trace->slices.rows.count > 2000);
	check_levels(false);
}

/* Many in a pixel, on the edges of tiles too: items before and after an edge are not merged. */
static void dense_pyramids_are_cut_exactly_at_the_edges_of_tiles(void **state)
{
	(void)state;
	const uint32_t track = thread_track(1);
	for (int64_t ts = 64; ts < 600000; ts += 8 + (int64_t)random_below(60)) {
		const int64_t edge = (ts + 511) / 512 * 512;
		if (edge - ts < 60) {
			ky_put_complete(trace, ts, edge - ts, track, 0, name(random_below(3)), 0);
			ky_put_instant(trace, ts = edge, track, 0, name(4), 0);
		} else {
			ky_put_complete(trace, ts, 6, track, 0, name(random_below(3)), 0);
		}
	}
	open_view(0);
	for (uint32_t level = 0; level < 12; level++)
		for (int turn = 0; turn < 12; turn++) {
			const int64_t time = (int64_t)random_below(600000);
			check_tiles(level, time >> (level + 9), 2, false);
		}
}

static void async_spans_that_overlap_lie_in_rows_where_they_do_not(void **state)
{
	(void)state;
	int64_t ts = 5000;
	for (uint64_t i = 0; i < 1200; i++, ts += (int64_t)random_below(3000)) {
		const struct ky_track_spec spec = {.kind = KY_TRACK_PROCESS,
						   .flags = KY_TRACK_ASYNC,
						   .owner = ky_process(trace, 1),
						   .name = name(i % 2),
						   .id = i + 1};
		const uint32_t track = ky_track(trace, &spec);
		const int64_t dur = (int64_t)random_below(40000) + 4;
		ky_put_complete(trace, ts, dur, track, 0, name(3), 0);
		if (random_below(2))
			ky_put_complete(trace, ts + 1, dur / 2, track, 0, name(4), 0);
	}
	open_view(4000);
	assert_non_null(view->row_of);
	assert_int_equal(view->tracks_count, 3);
	check_levels(false);
}

static void what_overlaps_in_a_thread_lies_below_it(void **state)
{
	(void)state;
	for (int64_t i = 0; i < 600; i++)
		ky_put_complete(trace, 1000 + 100 * i, (int64_t)random_below(900), thread_track(1),
				0, name((uint64_t)i % 5), 0);
	open_view(0);
	assert_true(view->tracks[1].rows > 2);
	check_levels(false);
}

/* Rows that no reader makes: overlapping ones in one pyramid, in time order. */
static int compare_times(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return left < right ? -1 : left > right;
}

static void make_overlapping(uint32_t count, uint64_t distance, uint64_t longest)
{
	const uint32_t track = thread_track(1);
	for (uint32_t i = 0; i < count; i++)
		ky_put_instant(trace, i, track, 0, name(random_below(5)), 0);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	for (uint32_t i = 0; i < count; i++) {
		trace->slices.ts[i] = (int64_t)random_below(distance);
		trace->slices.dur[i] = (int64_t)random_below(longest) - 1;
		trace->slices.depth[i] = 0;
		trace->slices.parent[i] = KY_NONE;
	}
	qsort(trace->slices.ts, count, sizeof(int64_t), compare_times);
	trace->begin_ns = trace->slices.ts[0];
	trace->end_ns = (int64_t)(distance + longest);
}

static void pyramids_that_overlap_are_counted_and_bounded(void **state)
{
	(void)state;
	make_overlapping(6000, 100000, 200000);
	open_view(17);
	check_levels(true);
}

static void everything_at_one_moment_is_bounded(void **state)
{
	(void)state;
	make_overlapping(6000, 1, 1000000);
	open_view(KY_TIME_NONE);
	check_levels(true);
}

static void serve_from(int64_t base_ns)
{
	static const int64_t times[] = {INT64_MIN, INT64_MIN + 1, -5,       0,
					7,         INT64_MAX - 1, INT64_MAX};
	static const int64_t firsts[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 2};
	const uint32_t count = sizeof(times) / sizeof(times[0]);
	make_overlapping(count, 10, 10);
	for (uint32_t i = 0; i < count; i++) {
		trace->slices.ts[i] = times[i];
		trace->slices.dur[i] = i == 3 ? INT64_MAX : i == 1 ? -1 : (int64_t)i;
	}
	trace->begin_ns = INT64_MIN;
	trace->end_ns = INT64_MAX;
	open_view(base_ns);
	const uint32_t track = view->tracks_count - 1;
	for (uint32_t level = 0; level <= KY_TILE_LEVEL_MAX; level++)
		for (uint32_t i = 0; i < 64; i++) {
			struct answer answer;
			const int64_t first =
				i < 6 ? firsts[i] : (int64_t)(random_below(UINT64_MAX) << 20);
			ask(&answer, level, first, 2, &track, 1);
			ky_buffer_free(&answer.bytes);
		}
	ky_view_close(&view);
}

static void times_at_the_ends_of_the_clock_are_served(void **state)
{
	static const int64_t bases[] = {INT64_MIN + 1, -1, 0, INT64_MAX};
	(void)state;
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		if (i)
			assert_int_equal(ky_trace_open(&trace), 0);
		serve_from(bases[i]);
	}
}

/* At the widest level 2^9 tiles cover every clock: together they have each event at least once. */
static void all_of_the_clock_can_be_seen(void **state)
{
	(void)state;
	make_overlapping(3, 10, 10);
	trace->slices.ts[0] = INT64_MIN;
	trace->slices.ts[1] = 0;
	trace->slices.ts[2] = INT64_MAX;
	memset(trace->slices.dur, 0, 3 * sizeof(int64_t));
	trace->begin_ns = INT64_MIN;
	trace->end_ns = INT64_MAX;
	open_view(0);
	const uint32_t track = view->tracks_count - 1;
	struct answer answer;
	uint32_t found = 0;
	ask(&answer, KY_TILE_LEVEL_MAX, -256, 512, &track, 1);
	for (uint32_t i = 0; i < 512; i++) {
		struct ky_wire_section section;
		take(&answer, &section, sizeof(section));
		found += section.items;
		answer.at += section.items * sizeof(struct ky_wire_item);
	}
	assert_int_equal(found, 3);
	ky_buffer_free(&answer.bytes);
}

/* ---- counters ---- */

static void check_points(uint32_t level, int64_t tile, uint32_t track)
{
	const struct window window = window_of(level, tile, track);
	const struct ky_counters *const counters = &trace->counters;
	struct answer answer;
	struct ky_wire_section section;
	struct ky_wire_point point;
	uint32_t at = 0;
	long double last_pixel = -INFINITY;
	ask(&answer, level, tile, 1, &track, 1);
	take(&answer, &section, sizeof(section));
	while (at < counters->rows.count && time_of(counters->ts[at]) < window.first)
		at++;
	for (uint32_t i = 0; i < section.items; i++) {
		take(&answer, &point, sizeof(point));
		if (i == 0 && at > 0) {
			assert_true(point.at_ns == (double)time_of(counters->ts[at - 1]));
			assert_true(point.last == counters->value[at - 1]);
			assert_true(point.min == point.last && point.max == point.last);
			continue;
		}
		/* All up to its last one. */
		assert_true(point.at_ns == (double)time_of(counters->ts[at]));
		const long double pixel = floorl((long double)point.at_ns / window.pixel);
		double min = counters->value[at], max = min;
		while (counters->value[at] != point.last) {
			at++;
			assert_true(at < counters->rows.count);
			min = fmin(min, counters->value[at]);
			max = fmax(max, counters->value[at]);
		}
		assert_true(point.min == min && point.max == max);
		assert_true(time_of(counters->ts[at]) < window.end);
		assert_true((double)time_of(counters->ts[at]) - point.at_ns < 2 * window.pixel);
		assert_true(pixel > last_pixel);
		last_pixel = pixel;
		at++;
	}
	assert_true(at == counters->rows.count || time_of(counters->ts[at]) >= window.end);
	assert_true(section.items <= KY_TILE_PIXELS + 1);
	ky_buffer_free(&answer.bytes);
}

static void counters_say_what_happened_in_each_pixel(void **state)
{
	(void)state;
	const uint32_t track =
		ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER, ky_process(trace, 1), name(1));
	int64_t ts = 100;
	/* No value twice, so that the test can distinguish them. */
	for (uint32_t i = 0; i < 4000;
	     i++, ts += 1 + (int64_t)random_below(1ull << random_below(18)))
		ky_put_counter(trace, ts, track, (double)random_below(1000000) + i * 1e-6);
	open_view(50);
	assert_int_equal(view->tracks[1].kind, KY_VIEW_COUNTER);
	for (uint32_t level = 0; level <= KY_TILE_LEVEL_MAX; level++)
		for (int turn = 0; turn < 8; turn++) {
			const uint32_t row = (uint32_t)random_below(4000);
			check_points(level, (trace->counters.ts[row] - 50) >> (level + 9), 1);
		}
	check_points(0, -1, 1);
	check_points(3, INT64_C(1) << 40, 1);
}

static void values_that_are_no_numbers_hide_no_others(void **state)
{
	(void)state;
	const uint32_t track = ky_track_counter(trace, KY_TRACK_COUNTER, KY_NONE, name(1));
	for (int64_t i = 0; i < 100; i++)
		ky_put_counter(trace, i, track, i % 3 == 0 ? NAN : (double)i);
	open_view(0);
	struct answer answer;
	struct ky_wire_section section;
	struct ky_wire_point point;
	const uint32_t number = view->track_of[track];
	ask(&answer, 20, 0, 1, &number, 1);
	take(&answer, &section, sizeof(section));
	assert_int_equal(section.items, 1);
	take(&answer, &point, sizeof(point));
	assert_true(point.min == 1 && point.max == 98);
	assert_true(isnan(point.last));
	ky_buffer_free(&answer.bytes);
}

/* ---- bad requests ---- */

static void what_cannot_be_asked_is_refused(void **state)
{
	(void)state;
	ky_put_instant(trace, 5, thread_track(1), 0, name(1), 0);
	open_view(0);
	struct ky_buffer out = {0};
	uint32_t track = 1;
	const uint32_t group = 0, beyond = view->tracks_count;
	const struct ky_tile_range wrong[] = {
		{KY_TILE_LEVEL_MAX + 1, 0, 1, &track, 1},
		{UINT32_MAX, 0, 1, &track, 1},
		{0, 0, KY_TILE_SECTIONS_MAX + 1, &track, 1},
		{0, 0, UINT32_MAX, &track, 1},
		{0, INT64_MAX, 2, &track, 1},
		{0, 0, 1, &group, 1},
		{0, 0, 1, &beyond, 1},
	};
	assert_int_equal(view->tracks[group].kind, KY_VIEW_GROUP);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ky_tile_append(view, &wrong[i], &out), -EINVAL);
	assert_int_equal(out.bytes, 0);
	const struct ky_tile_range most = {0, 0, KY_TILE_SECTIONS_MAX, &track, 1};
	assert_int_equal(ky_tile_append(view, &most, &out), 0);
	ky_buffer_free(&out);
}

static void a_name_of_any_length_is_cut_between_characters(void **state)
{
	(void)state;
	char text[3001];
	for (size_t i = 0; i < 3000; i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	ky_put_instant(trace, 5, thread_track(1), 0, ky_string(trace, text, 3000), 0);
	open_view(0);
	struct answer answer;
	const uint32_t track = 1;
	uint32_t head[2];
	ask(&answer, 0, 0, 1, &track, 1);
	assert_int_equal(answer.header.strings, 1);
	answer.at = answer.header.strings_at;
	take(&answer, head, sizeof(head));
	assert_true(head[1] > 900 && head[1] <= 1024 && head[1] % 3 == 0);
	ky_buffer_free(&answer.bytes);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_trace, close_view)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_reaches_into_a_tile_is_counted_once_at_every_level),
		TEST(dense_pyramids_are_cut_exactly_at_the_edges_of_tiles),
		TEST(async_spans_that_overlap_lie_in_rows_where_they_do_not),
		TEST(what_overlaps_in_a_thread_lies_below_it),
		TEST(pyramids_that_overlap_are_counted_and_bounded),
		TEST(everything_at_one_moment_is_bounded),
		TEST(times_at_the_ends_of_the_clock_are_served),
		TEST(all_of_the_clock_can_be_seen),
		TEST(counters_say_what_happened_in_each_pixel),
		TEST(values_that_are_no_numbers_hide_no_others),
		TEST(what_cannot_be_asked_is_refused),
		TEST(a_name_of_any_length_is_cut_between_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
