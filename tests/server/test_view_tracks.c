/* SPDX-License-Identifier: MIT */
/*
 * test_view_tracks.c: a view's tracks: order, names and unique keys, tracks of the trace that are combined, where an event is
 * drawn; samples joined into spans.
 */
#include "model/build.h"
#include "model/intake.h"
#include "server/api.h"
#include "server/tile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct ky_trace *trace;
static struct ky_view *view;

static int open_trace(void **state)
{
	(void)state;
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

static uint32_t text(const char *s)
{
	return ky_string_z(trace, s);
}

static uint32_t thread(int64_t pid, int64_t tid, const char *name)
{
	const uint32_t row = ky_thread(trace, pid, tid);
	ky_thread_name(trace, row, text(name), KY_NAME_TRACE);
	return row;
}

static uint32_t process(int64_t pid, const char *name)
{
	const uint32_t row = ky_process(trace, pid);
	ky_process_name(trace, row, text(name), KY_NAME_TRACE);
	return row;
}

static uint32_t async(uint32_t owner, const char *name, uint64_t id)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_PROCESS,
					   .flags = KY_TRACK_ASYNC,
					   .owner = owner,
					   .name = text(name),
					   .id = id};
	return ky_track(trace, &spec);
}

static void span(uint32_t track, int64_t ts, int64_t dur)
{
	ky_put_complete(trace, ts, dur, track, 0, text("span"), 0);
}

static void open_view(void)
{
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	assert_int_equal(ky_view_open(&view, trace, NULL), 0);
}

/* Write all tracks as lines, indented by depth: "name [key] kind rows". */
static void assert_tracks(const char *expected)
{
	static const char *const kinds[] = {"group", "slices",  "counter", "sched",
					    "state", "samples", "loss"};
	char lines[8192] = "";
	for (uint32_t i = 0; i < view->tracks_count; i++) {
		const struct ky_view_track *const track = &view->tracks[i];
		const size_t used = strlen(lines);
		int depth = 0;
		for (uint32_t at = track->parent; at != KY_NONE; at = view->tracks[at].parent) {
			assert_true(at < i);
			depth++;
		}
		snprintf(lines + used, sizeof(lines) - used, "%*s%s [%s] %s %u\n", 2 * depth, "",
			 track->name, track->key, kinds[track->kind], track->rows);
	}
	assert_string_equal(lines, expected);
}

static uint32_t find_track(const char *key)
{
	for (uint32_t i = 0; i < view->tracks_count; i++)
		if (strcmp(view->tracks[i].key, key) == 0)
			return i;
	fail_msg("there is no track %s", key);
	return KY_NONE;
}

/* ---- order and names ---- */

static void one_thread_is_one_track_below_its_process(void **state)
{
	(void)state;
	process(12, "server");
	span(ky_track_of_thread(trace, thread(12, 13, "worker")), 5, 10);
	open_view();
	assert_tracks("server 12 [p12] group 0\n"
		      "  worker 13 [p12/t13/slices] slices 1\n");
	assert_int_equal(view->tracks[0].events, 1);
	assert_int_equal(view->tracks[1].thread, 0);
	assert_int_equal(view->tracks[1].process, 0);
}

static void an_empty_trace_has_no_tracks(void **state)
{
	(void)state;
	thread(1, 2, "silent");
	ky_track_counter(trace, KY_TRACK_COUNTER, KY_NONE, text("never"));
	open_view();
	assert_int_equal(view->tracks_count, 0);
	assert_int_equal(view->pyramids_count, 0);
	struct ky_buffer out = {0};
	const struct ky_tile_range none = {.level = 3, .count = 2};
	assert_int_equal(ky_tile_append(view, &none, &out), 0);
	ky_buffer_free(&out);
	assert_true(ky_view_memory(view) > 0);
}

static void put_state(int64_t ts, uint32_t of, const char *name)
{
	const uint32_t row = ky_append(trace, &trace->thread_states);
	struct ky_thread_states *const states = &trace->thread_states;
	states->ts[row] = ts;
	states->dur[row] = 10;
	states->thread[row] = of;
	states->state[row] = text(name);
	states->cpu[row] = states->waker[row] = KY_NONE;
	states->io_wait[row] = -1;
	states->blocked_function[row] = 0;
}

static void put_sched(int64_t ts, uint32_t cpu, uint32_t of)
{
	const uint32_t row = ky_append(trace, &trace->sched);
	trace->sched.ts[row] = ts;
	trace->sched.dur[row] = 10;
	trace->sched.cpu[row] = cpu;
	trace->sched.thread[row] = of;
	trace->sched.end_state[row] = 0;
	trace->sched.priority[row] = 0;
}

/* One of everything. */
static void make_everything(void)
{
	const uint32_t seen = thread(5, 5, "bash"), kernel = thread(40, 40, "kworker/1"),
		       worker = thread(12, 13, "worker"), main_thread = thread(12, 12, "main"),
		       lone = ky_thread_by_tid(trace, 77);
	const uint32_t server = process(12, "server");
	trace->processes.parent[ky_process(trace, 40)] = ky_process(trace, 2);
	trace->threads.is_idle[ky_thread_by_tid(trace, 0)] = 1;
	put_state(10, seen, "S");
	put_state(10, kernel, "S");
	put_state(12, worker, "Running");
	put_state(11, lone, "S");
	put_sched(10, 1, worker);
	put_sched(20, 2, main_thread);
	put_sched(30, 0, ky_thread_by_tid(trace, 0));
	span(ky_track_of_thread(trace, worker), 5, 10);
	span(ky_track_of_thread(trace, main_thread), 5, 10);
	span(async(server, "request", 1), 5, 10);
	span(async(server, "request", 2), 7, 10);
	ky_put_counter(trace, 9,
		       ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER, server, text("queued")),
		       3);
	ky_put_counter(trace, 9, ky_track_counter(trace, KY_TRACK_CPU_COUNTER, 1, text("freq")), 3);
	ky_put_instant(trace, 20, ky_track_global(trace, text("snapshots")), 0, text("snapshot"),
		       0);
	ky_put_instant(trace, 20, ky_track_global(trace, text("vsync")), 0, text("vsync"), 0);
	ky_put_lost(trace, 25, worker, KY_NONE, 3, KY_LOSS_RING);
	ky_put_lost(trace, KY_TIME_NONE, worker, KY_NONE, 3, KY_LOSS_RING);
	ky_put_sample(trace, 8, worker,
		      ky_callsite(trace, KY_NONE, ky_frame(trace, KY_NONE, 0, text("main"), 0, 0)),
		      1, KY_CPU_MODE_USER, 1, text("cycles"));
}

static void tracks_come_in_the_order_of_reading(void **state)
{
	(void)state;
	make_everything();
	open_view();
	assert_tracks("Snapshots [snapshots] slices 1\n"
		      "Lost events [losses] loss 1\n"
		      "CPUs [cpus] group 0\n"
		      "  CPU 1 [cpus/cpu1/sched] sched 1\n"
		      "  CPU 2 [cpus/cpu2/sched] sched 1\n"
		      "  CPU 1 freq [cpus/cpu1/c:freq] counter 1\n"
		      "server 12 [p12] group 0\n"
		      "  main 12 [p12/t12/slices] slices 1\n"
		      "  worker 13 [p12/t13] group 0\n"
		      "    state [p12/t13/state] state 1\n"
		      "    slices [p12/t13/slices] slices 1\n"
		      "    samples [p12/t13/samples] samples 1\n"
		      "  request [p12/s:request] slices 2\n"
		      "  queued [p12/c:queued] counter 1\n"
		      "Process 5 [p5] group 0\n"
		      "  bash 5 [p5/t5/state] state 1\n"
		      "Threads [threads] group 0\n"
		      "  Thread 77 [threads/t77/state] state 1\n"
		      "Global tracks [global] group 0\n"
		      "  vsync [global/s:vsync] slices 1\n"
		      "Kernel threads [kernel] group 0\n"
		      "  kworker/1 40 [kernel/t40/state] state 1\n");
}

static void events_say_where_they_are_drawn(void **state)
{
	(void)state;
	struct ky_view_place place;
	make_everything();
	open_view();
	assert_true(ky_view_place(view, KY_VIEW_SCHED, 0, &place));
	assert_int_equal(place.track, find_track("cpus/cpu1/sched"));
	assert_false(ky_view_place(view, KY_VIEW_SCHED, 2, &place)); /* idle */
	assert_true(ky_view_place(view, KY_VIEW_STATE, 2, &place));
	assert_int_equal(place.track, find_track("p12/t13/state"));
	assert_true(ky_view_place(view, KY_VIEW_SAMPLES, 0, &place));
	assert_int_equal(place.track, find_track("p12/t13/samples"));
	assert_true(ky_view_place(view, KY_VIEW_COUNTER, 0, &place));
	assert_int_equal(place.track, find_track("p12/c:queued"));
	assert_true(ky_view_place(view, KY_VIEW_LOSS, 0, &place));
	assert_int_equal(place.track, find_track("losses"));
	assert_false(ky_view_place(view, KY_VIEW_LOSS, 1, &place)); /* time unknown */
	assert_false(ky_view_place(view, KY_VIEW_LOSS, 2, &place));
	assert_false(ky_view_place(view, KY_VIEW_GROUP, 0, &place));
	assert_false(ky_view_place(view, (enum ky_view_kind)99, 0, &place));
	assert_false(ky_view_place(view, KY_VIEW_SLICES, KY_NONE, &place));
	for (uint32_t i = 0; i < trace->slices.rows.count; i++) {
		assert_true(ky_view_place(view, KY_VIEW_SLICES, i, &place));
		assert_int_equal(place.track, view->track_of[trace->slices.track[i]]);
	}
}

/* Each track has one event that is drawn, and its tile has it. */
static void every_kind_of_track_has_tiles(void **state)
{
	(void)state;
	make_everything();
	open_view();
	for (uint32_t i = 0; i < view->tracks_count; i++) {
		const struct ky_tile_range tiles = {
			.level = 0, .count = 1, .tracks = &i, .tracks_count = 1};
		struct ky_buffer out = {0};
		if (view->tracks[i].kind == KY_VIEW_GROUP)
			continue;
		assert_int_equal(ky_tile_append(view, &tiles, &out), 0);
		uint32_t items;
		memcpy(&items, out.data + 28, sizeof(items));
		assert_int_equal(items, view->tracks[i].events);
		ky_buffer_free(&out);
	}
}

static void threads_are_ordered_by_hand_then_main_then_number(void **state)
{
	(void)state;
	static const int64_t tids[] = {30, 9, 20, 10, 11};
	for (size_t i = 0; i < 5; i++) {
		const uint32_t row = thread(10, tids[i], "t");
		trace->threads.sort_index[row] = tids[i] == 30 ? -1 : 0;
		span(ky_track_of_thread(trace, row), 5, 10);
	}
	open_view();
	assert_tracks("Process 10 [p10] group 0\n"
		      "  t 30 [p10/t30/slices] slices 1\n"
		      "  t 10 [p10/t10/slices] slices 1\n"
		      "  t 9 [p10/t9/slices] slices 1\n"
		      "  t 11 [p10/t11/slices] slices 1\n"
		      "  t 20 [p10/t20/slices] slices 1\n");
}

static void keys_of_lives_that_have_the_same_number_differ(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		const uint32_t life = ky_process_new(trace, 12);
		span(ky_track_of_thread(trace, ky_thread_new(trace, life, 12)), 5 + i, 10);
	}
	open_view();
	assert_tracks("Process 12 [p12] group 0\n"
		      "  Thread 12 [p12/t12/slices] slices 1\n"
		      "Process 12 [p12#2] group 0\n"
		      "  Thread 12 [p12/t12/slices#2] slices 1\n"
		      "Process 12 [p12#3] group 0\n"
		      "  Thread 12 [p12/t12/slices#3] slices 1\n");
}

static void names_of_any_bytes_and_length_make_keys(void **state)
{
	(void)state;
	char name[2048];
	memset(name, 'x', sizeof(name));
	for (uint32_t i = 0; i < 5; i++) {
		snprintf(name + 2000, sizeof(name) - 2000, "%u", i);
		name[2000 + 1] = 0;
		name[250] = (char)0xe2; /* cut within a character, or invalid */
		span(async(ky_process(trace, 1), name, i), 5, 10);
	}
	span(async(ky_process(trace, 1), "a/b#2\"<script>", 9), 5, 10);
	open_view();
	assert_int_equal(view->tracks_count, 7);
	for (uint32_t i = 0; i < 7; i++)
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(view->tracks[i].key, view->tracks[j].key);
}

/* ---- combined tracks ---- */

static void nested_tracks_are_groups_with_their_own_events_first(void **state)
{
	(void)state;
	const uint32_t owner = process(1, "p");
	const uint32_t outer = async(owner, "outer", 1), inner = async(owner, "inner", 2),
		       other = async(owner, "other", 3), round = async(owner, "round", 4);
	trace->tracks.parent[inner] = outer;
	trace->tracks.parent[other] = inner;
	trace->tracks.parent[round] = round; /* invalid */
	span(outer, 5, 10);
	span(other, 6, 10);
	span(round, 7, 10);
	open_view();
	assert_int_equal(view->tracks[0].events, 3);
	assert_int_equal(find_track("p1/g:outer/s:outer"), find_track("p1/g:outer") + 1);
	const uint32_t deepest = find_track("p1/g:outer/g:inner/s:other");
	assert_string_equal(view->tracks[view->tracks[deepest].parent].name, "inner");
}

static void async_tracks_of_a_name_are_one_that_is_as_high_as_needed(void **state)
{
	(void)state;
	const uint32_t owner = process(1, "p");
	/* The second overlaps the first and has a child: two rows. The third fits above them again. */
	span(async(owner, "request", 1), 0, 100);
	span(async(owner, "request", 2), 50, 100);
	span(async(owner, "request", 2), 60, 10);
	span(async(owner, "request", 3), 100, 10);
	span(async(owner, "reply", 4), 100, 10);
	open_view();
	assert_tracks("p 1 [p1] group 0\n"
		      "  request [p1/s:request] slices 3\n"
		      "  reply [p1/s:reply] slices 1\n");
	static const uint16_t rows[] = {0, 1, 2, 0, 0};
	for (uint32_t i = 0; i < 5; i++) {
		struct ky_view_place place;
		assert_true(ky_view_place(view, KY_VIEW_SLICES, i, &place));
		assert_int_equal(place.row, rows[i]);
		assert_int_equal(view->row_of[i], rows[i]);
	}
}

static void more_async_spans_than_rows_are_all_there(void **state)
{
	(void)state;
	const uint32_t owner = process(1, "p");
	for (uint64_t i = 0; i < 5000; i++)
		span(async(owner, "request", i), (int64_t)i, 1000000);
	open_view();
	assert_int_equal(view->tracks_count, 2);
	assert_int_equal(view->tracks[1].events, 5000);
	assert_int_equal(view->tracks[1].rows, 256);
}

static void thousands_of_threads_and_async_tracks_are_no_matter(void **state)
{
	(void)state;
	const uint32_t owner = process(1, "p");
	for (int64_t i = 0; i < 5000; i++)
		span(ky_track_of_thread(trace, ky_thread(trace, 1 + i % 50, 100 + i)), i, 10);
	for (uint64_t i = 0; i < 100000; i++)
		span(async(owner, i % 2 ? "odd" : "even", i), (int64_t)i * 10, 15);
	open_view();
	assert_int_equal(view->tracks_count, 50 + 5000 + 2);
	assert_int_equal(view->tracks[find_track("p1/s:odd")].events, 50000);
}

static void what_overlaps_in_a_thread_is_in_rows_below_it(void **state)
{
	(void)state;
	const uint32_t track = ky_track_of_thread(trace, thread(1, 1, "main"));
	struct ky_view_place first, second, child;
	span(track, 0, 100);
	span(track, 10, 20);
	span(track, 50, 100);
	open_view();
	assert_tracks("Process 1 [p1] group 0\n"
		      "  main 1 [p1/t1/slices] slices 3\n");
	assert_true(ky_view_place(view, KY_VIEW_SLICES, 0, &first));
	assert_true(ky_view_place(view, KY_VIEW_SLICES, 1, &child));
	assert_true(ky_view_place(view, KY_VIEW_SLICES, 2, &second));
	assert_int_equal(first.row, 0);
	assert_int_equal(child.row, 1);
	assert_int_equal(second.row, 2);
}

/* ---- samples ---- */

static uint32_t callsite(uint32_t parent, const char *name)
{
	return ky_callsite(trace, parent, ky_frame(trace, KY_NONE, 0, text(name), 0, 0));
}

static void sample(int64_t ts, uint32_t of, uint32_t at)
{
	ky_put_sample(trace, ts, of, at, 0, KY_CPU_MODE_USER, 1, text("cycles"));
}

static void assert_sample_spans(uint32_t row, const char *name, int64_t ts, int64_t dur,
				uint16_t depth, uint32_t samples)
{
	const struct ky_sample_spans *const spans = &view->sample_spans;
	assert_true(row < spans->count);
	assert_string_equal(ky_text_of(trace, trace->frames.name[spans->frame[row]]), name);
	assert_int_equal(spans->ts[row], ts);
	assert_int_equal(spans->dur[row], dur);
	assert_int_equal(spans->depth[row], depth);
	assert_int_equal(spans->samples[row], samples);
}

static void samples_that_share_a_frame_are_one_span(void **state)
{
	(void)state;
	const uint32_t one = thread(1, 1, "one"), two = thread(1, 2, "two");
	const uint32_t start = callsite(KY_NONE, "start"), read = callsite(start, "read"),
		       write = callsite(start, "write");
	sample(1000, one, read);
	sample(1050, two, write);
	sample(1100, one, read);
	sample(1200, one, write);
	sample(1300, one, KY_NONE);
	sample(1400, one, read);
	sample(9000, one, read); /* it did not run in between */
	ky_put_instant(trace, 9500, ky_track_of_thread(trace, one), 0, text("end"), 0);
	open_view();
	assert_int_equal(view->sample_spans.count, 9);
	assert_sample_spans(0, "start", 1000, 250, 0, 3);
	assert_sample_spans(1, "read", 1000, 150, 1, 2);
	assert_sample_spans(2, "start", 1050, 100, 0, 1);
	assert_sample_spans(4, "write", 1150, 100, 1, 1);
	assert_sample_spans(5, "start", 1350, 150, 0, 1);
	assert_sample_spans(7, "start", 9000, 100, 0, 1);
	assert_int_equal(view->sample_spans.thread[2], two);
	assert_int_equal(view->sample_spans.callsite[8], read);
	assert_int_equal(view->tracks[find_track("p1/t1/samples")].rows, 2);
}

static void stacks_that_share_nothing_take_memory_in_proportion(void **state)
{
	(void)state;
	const uint32_t one = thread(1, 1, "one");
	uint32_t at[2] = {KY_NONE, KY_NONE};
	char name[16];
	for (uint32_t depth = 0; depth < 1000; depth++)
		for (uint32_t i = 0; i < 2; i++) {
			snprintf(name, sizeof(name), "%u.%u", i, depth);
			at[i] = callsite(at[i], name);
		}
	for (int64_t i = 0; i < 20000; i++)
		sample(i * 1000, one, at[i % 2]);
	open_view();
	assert_true(view->sample_spans.count <= 65536 + 25 * 20000);
	assert_int_equal(view->tracks[find_track("p1/t1/samples")].rows, 128);
}

/* Walking up the whole stack for each sample would exceed the time limit. */
static void a_stack_without_end_that_many_samples_have_takes_no_time(void **state)
{
	(void)state;
	const uint32_t one = thread(1, 1, "one");
	uint32_t at = KY_NONE;
	for (uint32_t depth = 0; depth < 400000; depth++)
		at = callsite(at, "f");
	for (int64_t i = 0; i < 200000; i++)
		sample(i * 1000, one, at);
	open_view();
	assert_int_equal(view->sample_spans.count, 128);
	assert_int_equal(view->sample_spans.samples[127], 200000);
}

/* ---- cancelling ---- */

static int stop_at(void *context, const char *stage, uint64_t done, uint64_t all)
{
	int *const left = context;
	assert_non_null(stage);
	assert_true(done <= all);
	return --*left ? 0 : -ECANCELED;
}

static void whoever_waits_can_give_up_at_each_stage(void **state)
{
	(void)state;
	int stages = 1;
	for (int error = -1; error; stages++) {
		int left = stages;
		const struct ky_view_options options = {
			.base_ns = KY_TIME_NONE, .progress = stop_at, .context = &left};
		make_everything();
		assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
		error = ky_view_open(&view, trace, &options);
		assert_true(error == 0 || error == -ECANCELED);
		if (error) {
			assert_null(view);
			assert_int_equal(ky_trace_open(&trace), 0);
		}
	}
	assert_true(stages > 4);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_trace, close_view)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_thread_is_one_track_below_its_process),
		TEST(an_empty_trace_has_no_tracks),
		TEST(tracks_come_in_the_order_of_reading),
		TEST(events_say_where_they_are_drawn),
		TEST(every_kind_of_track_has_tiles),
		TEST(threads_are_ordered_by_hand_then_main_then_number),
		TEST(keys_of_lives_that_have_the_same_number_differ),
		TEST(names_of_any_bytes_and_length_make_keys),
		TEST(nested_tracks_are_groups_with_their_own_events_first),
		TEST(async_tracks_of_a_name_are_one_that_is_as_high_as_needed),
		TEST(more_async_spans_than_rows_are_all_there),
		TEST(thousands_of_threads_and_async_tracks_are_no_matter),
		TEST(what_overlaps_in_a_thread_is_in_rows_below_it),
		TEST(samples_that_share_a_frame_are_one_span),
		TEST(stacks_that_share_nothing_take_memory_in_proportion),
		TEST(a_stack_without_end_that_many_samples_have_takes_no_time),
		TEST(whoever_waits_can_give_up_at_each_stage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
