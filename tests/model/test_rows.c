/* SPDX-License-Identifier: MIT */
/*
 * test_rows.c: the tables beside slices: columns that grow, tracks, arguments, flows with one end, counters of series,
 * states, samples, windows, losses and problems.
 */
#include "model/index.h"
#include "model/intake.h"
#include "model/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct ky_trace *trace;

static int open_trace(void **state)
{
	(void)state;
	return ky_trace_open(&trace);
}

static int close_trace(void **state)
{
	(void)state;
	ky_trace_close(&trace);
	return 0;
}

static void finish(void)
{
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
}

static uint32_t text(const char *s)
{
	return ky_string_z(trace, s);
}

static void assert_text(uint32_t string, const char *want)
{
	assert_non_null(ky_text_of(trace, string));
	assert_string_equal(ky_text_of(trace, string), want);
}

/* ---- columns ---- */

struct table {
	struct ky_rows rows;
	uint64_t *key;
	uint8_t *flag;
};

static void columns_grow_together(void **state)
{
	(void)state;
	static const struct ky_column columns[] = {KY_COLUMN(table, key), KY_COLUMN(table, flag)};
	struct table table = {0};
	for (uint32_t i = 0; i < 300000; i++) {
		assert_true(ky_rows_grow(&table, columns, 2));
		assert_true(table.rows.room > table.rows.count);
		table.key[table.rows.count] = i * UINT64_C(3);
		table.flag[table.rows.count++] = (uint8_t)i;
	}
	for (uint32_t i = 0; i < 300000; i++) {
		assert_int_equal(table.key[i], i * UINT64_C(3));
		assert_int_equal(table.flag[i], (uint8_t)i);
	}
	assert_int_equal(ky_rows_bytes(&table, columns, 2), 300000 * 9);
	ky_rows_free(&table, columns, 2);
	assert_null(table.key);
	assert_null(table.flag);
	assert_int_equal(table.rows.count, 0);
	assert_int_equal(table.rows.room, 0);
}

static void a_table_has_no_more_rows_than_ids(void **state)
{
	(void)state;
	struct table table = {.rows = {UINT32_MAX - 1, UINT32_MAX - 1}};
	assert_false(ky_rows_grow(&table, NULL, 0));
}

/* ---- tracks ---- */

static void tables_do_not_grow_after_a_failure(void **state)
{
	(void)state;
	const uint32_t room = trace->losses.rows.room;
	trace->error = -12;
	for (uint32_t i = 0; i <= room; i++)
		ky_put_lost(trace, 5, KY_NONE, KY_NONE, 1, KY_LOSS_RING);
	assert_int_equal(trace->losses.rows.count, room);
	assert_int_equal(trace->losses.rows.room, room);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), -12);
}

static void equal_specs_are_one_track(void **state)
{
	(void)state;
	const struct ky_track_spec spec = {.kind = KY_TRACK_PROCESS,
					   .flags = KY_TRACK_ASYNC,
					   .owner = ky_process(trace, 5),
					   .name = text("load"),
					   .category = text("io"),
					   .id = 9};
	const uint32_t track = ky_track(trace, &spec);
	assert_int_equal(ky_track(trace, &spec), track);
	struct ky_track_spec other = spec;
	other.id++;
	assert_int_not_equal(ky_track(trace, &other), track);
	other = spec;
	other.category = text("net");
	assert_int_not_equal(ky_track(trace, &other), track);
	other = spec;
	other.flags = 0;
	assert_int_not_equal(ky_track(trace, &other), track);
	assert_int_not_equal(ky_track_new(trace, &spec), track);
	assert_int_equal(trace->tracks.rows.count, 5);
	assert_text(trace->tracks.type[track], "process_track");
	assert_int_equal(trace->tracks.id[track], 9);
	assert_int_equal(trace->tracks.parent[track], KY_NONE);
}

static void tracks_know_their_owners(void **state)
{
	(void)state;
	const uint32_t thread = ky_thread(trace, 10, 11);
	const uint32_t process = ky_process(trace, 10);
	const uint32_t of_thread = ky_track_of_thread(trace, thread);
	const uint32_t of_process = ky_track_of_process(trace, process);
	const uint32_t counter =
		ky_track_counter(trace, KY_TRACK_THREAD_COUNTER, thread, text("depth"));
	const uint32_t global = ky_track_global(trace, text("world"));
	assert_int_equal(ky_track_of_thread(trace, thread), of_thread);
	assert_int_equal(ky_track_thread(trace, of_thread), thread);
	assert_int_equal(ky_track_process(trace, of_thread), process);
	assert_int_equal(ky_track_thread(trace, of_process), KY_NONE);
	assert_int_equal(ky_track_process(trace, of_process), process);
	assert_int_equal(ky_track_process(trace, counter), process);
	assert_true(ky_track_is_counter(trace->tracks.kind[counter]));
	assert_int_equal(ky_track_process(trace, global), KY_NONE);
	/* A thread that does not exist is no reason to fail. */
	assert_int_equal(ky_track_of_thread(trace, 1000), ky_track_global(trace, 0));
}

/* ---- arguments ---- */

static void arguments_keep_types_and_order(void **state)
{
	(void)state;
	ky_args_begin(trace);
	ky_arg_int(trace, text("int"), -5);
	ky_arg_uint(trace, text("uint"), UINT64_MAX);
	ky_arg_real(trace, text("real"), 0.5);
	ky_arg_bool(trace, text("bool"), true);
	ky_arg_pointer(trace, text("pointer"), 0xdead);
	ky_arg_string(trace, text("string"), text("value"));
	ky_arg_json(trace, text("json"), text("[1]"));
	ky_arg_null(trace, text("null"));
	const uint32_t set = ky_args_end(trace);
	const uint32_t first = ky_arg_set_first(trace, set);
	assert_int_equal(ky_arg_set_end(trace, set) - first, 8);
	static const uint8_t types[] = {KY_ARG_INT,     KY_ARG_UINT,   KY_ARG_REAL, KY_ARG_BOOL,
					KY_ARG_POINTER, KY_ARG_STRING, KY_ARG_JSON, KY_ARG_NULL};
	assert_memory_equal(trace->args.type + first, types, 8);
	assert_text(trace->args.key[first + 3], "bool");
	assert_int_equal((int64_t)trace->args.value[first], -5);
	assert_int_equal(trace->args.value[first + 1], UINT64_MAX);
	double real;
	memcpy(&real, &trace->args.value[first + 2], sizeof(real));
	assert_true(real == 0.5);
	assert_text((uint32_t)trace->args.value[first + 5], "value");
	const uint32_t keys[] = {text("a"), text("b")};
	const uint8_t two[] = {KY_ARG_INT, KY_ARG_UINT};
	const uint64_t values[] = {1, 2};
	const uint32_t next = ky_args_set(trace, 2, keys, two, values);
	assert_int_equal(next, set + 1);
	assert_int_equal(ky_arg_set_first(trace, next), first + 8);
	assert_int_equal(ky_arg_set_end(trace, next), first + 10);
	assert_int_equal(ky_arg_set_first(trace, 0), ky_arg_set_end(trace, 0));
}

/* ---- flows ---- */

static void flows_with_one_end_are_kept(void **state)
{
	(void)state;
	const uint32_t track = ky_track_of_thread(trace, ky_thread(trace, 1, 1));
	const uint64_t leaves = ky_flow_key(trace, 77, text("cat"), text("leaves"), 0);
	const uint64_t arrives = ky_flow_key(trace, 78, text("cat"), text("arrives"), 0);
	assert_int_equal(ky_flow_key(trace, 77, text("cat"), text("leaves"), 0), leaves);
	assert_true(ky_flow_key(trace, 77, text("cat"), text("leaves"), 1) != leaves);
	ky_put_complete(trace, 10, 10, track, 0, text("a"), 0);
	ky_put_flow(trace, 12, track, KY_FLOW_BEGIN, KY_BIND_ENCLOSING, leaves);
	ky_put_complete(trace, 30, 10, track, 0, text("b"), 0);
	ky_put_flow(trace, 32, track, KY_FLOW_END, KY_BIND_ENCLOSING, arrives);
	finish();
	assert_int_equal(trace->flows.rows.count, 0);
	assert_int_equal(trace->flow_ends.rows.count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const bool in = trace->flow_ends.arrives[i];
		assert_int_equal(trace->flow_ends.id[i], in ? 78 : 77);
		assert_int_equal(trace->flow_ends.slice[i], in ? 1 : 0);
		assert_text(trace->flow_ends.name[i], in ? "arrives" : "leaves");
		assert_text(trace->flow_ends.category[i], "cat");
	}
}

static void an_id_may_be_used_again_after_its_end(void **state)
{
	(void)state;
	const uint32_t track = ky_track_of_thread(trace, ky_thread(trace, 1, 1));
	for (int64_t i = 0; i < 4; i++) {
		ky_put_complete(trace, i * 10, 5, track, 0, text("s"), 0);
		ky_put_flow(trace, i * 10 + 1, track, i & 1 ? KY_FLOW_ANY_END : KY_FLOW_ANY,
			    KY_BIND_ENCLOSING, 4);
	}
	finish();
	assert_int_equal(trace->flows.rows.count, 2);
	assert_int_equal(trace->flows.out[0], 0);
	assert_int_equal(trace->flows.in[0], 1);
	assert_int_equal(trace->flows.out[1], 2);
	assert_int_equal(trace->flows.in[1], 3);
	assert_int_equal(trace->flow_ends.rows.count, 0);
}

/* ---- series ---- */

static void sums_are_shown_in_whole_units(void **state)
{
	(void)state;
	const uint32_t track = ky_track_counter(trace, KY_TRACK_COUNTER, KY_NONE, text("bytes"));
	ky_put_sum(trace, 20, track, 1500, 1024, 0);
	ky_put_sum(trace, 10, track, 1000, 1024, 0);
	ky_put_sum(trace, 30, track, 700, 1024, 0);
	finish();
	assert_int_equal(trace->counters.rows.count, 3);
	assert_true(trace->counters.value[0] == 0);
	assert_true(trace->counters.value[1] == 2);
	assert_true(trace->counters.value[2] == 3);
}

static void a_value_since_the_last_one_is_shown_from_there(void **state)
{
	(void)state;
	const uint32_t track = ky_track_counter(trace, KY_TRACK_COUNTER, KY_NONE, text("power"));
	ky_put_counter_since(trace, 10, track, 7);
	ky_put_counter_since(trace, 20, track, 8);
	ky_put_counter_since(trace, 30, track, 9);
	finish();
	assert_int_equal(trace->counters.rows.count, 3);
	assert_true(trace->counters.value[0] == 8);
	assert_true(trace->counters.value[1] == 9);
	assert_true(trace->counters.value[2] == 0);
}

static void a_counter_of_a_tid_is_its_processes_once_known(void **state)
{
	(void)state;
	const uint32_t name = text("rss");
	ky_put_tid_counter(trace, 10, 7, KY_TRACK_PROCESS_COUNTER, name, 1, 0);
	ky_put_task_group(trace, 20, 7, 6);
	ky_put_tid_counter(trace, 30, 7, KY_TRACK_PROCESS_COUNTER, name, 2, 0);
	ky_put_tid_counter(trace, 40, 7, KY_TRACK_THREAD_COUNTER, name, 3, 0);
	finish();
	assert_int_equal(trace->counters.rows.count, 3);
	const uint32_t *track = trace->counters.track;
	assert_int_equal(trace->tracks.kind[track[0]], KY_TRACK_THREAD_COUNTER);
	assert_int_equal(trace->tracks.kind[track[1]], KY_TRACK_PROCESS_COUNTER);
	assert_int_equal(trace->processes.pid[trace->tracks.owner[track[1]]], 6);
	assert_int_equal(track[2], track[0]);
}

static void spans_of_devices_take_free_tracks(void **state)
{
	(void)state;
	struct ky_lane_span span = {
		.type = text("buffers"), .track = text("Buffers"), .name = text("use")};
	const int64_t starts[] = {10, 20, 50}, ends[] = {30, 40, 60};
	for (int i = 0; i < 3; i++) {
		span.cookie = i;
		ky_put_lane(trace, starts[i], true, &span);
		ky_put_lane(trace, ends[i], false, &span);
	}
	span.cookie = 99;
	ky_put_lane(trace, 70, false, &span);
	finish();
	assert_int_equal(trace->slices.rows.count, 3);
	assert_int_equal(trace->slices.dur[0], 20);
	assert_int_equal(trace->slices.dur[1], 20);
	assert_int_not_equal(trace->slices.track[0], trace->slices.track[1]);
	assert_int_equal(trace->tracks.rows.count, 2);
	assert_int_equal(trace->problems.rows.count, 1);
	assert_text(trace->problems.name[0], "misplaced_end_event");
	assert_int_equal(trace->problems.number[0], 1);
}

/* ---- states ---- */

static void running_states_are_sched_rows_too(void **state)
{
	(void)state;
	const uint32_t thread = ky_thread(trace, 1, 2);
	struct ky_state_span span = {.ts = 10,
				     .dur = 5,
				     .thread = thread,
				     .state = text("Running"),
				     .cpu = 3,
				     .io_wait = -1};
	ky_put_state_span(trace, &span);
	span.ts = 15;
	span.state = text("D");
	span.blocked_function = text("wait");
	span.io_wait = 1;
	ky_put_state_span(trace, &span);
	finish();
	assert_int_equal(trace->thread_states.rows.count, 2);
	assert_int_equal(trace->thread_states.cpu[0], 3);
	assert_int_equal(trace->thread_states.cpu[1], KY_NONE);
	assert_int_equal(trace->thread_states.io_wait[1], 1);
	assert_text(trace->thread_states.blocked_function[1], "wait");
	assert_int_equal(trace->sched.rows.count, 1);
	assert_int_equal(trace->sched.ts[0], 10);
	assert_int_equal(trace->sched.dur[0], 5);
	assert_int_equal(trace->sched.thread[0], thread);
}

static void bits_of_a_state_depend_on_the_kernel(void **state)
{
	(void)state;
	const uint32_t modern = 5u << 8 | 10, old = 4u << 8 | 4;
	assert_text(ky_task_state(trace, 0, modern), "R");
	assert_text(ky_task_state(trace, 0x100, modern), "R+");
	assert_text(ky_task_state(trace, 0x01, modern), "S");
	assert_text(ky_task_state(trace, 0x82, modern), "DI");
	assert_text(ky_task_state(trace, 0x800, old), "R+");
	assert_text(ky_task_state(trace, 0x402, old), "I");
	assert_text(ky_task_state(trace, 0x42, old), "Dx");
	assert_int_equal(ky_task_state(trace, 0x8000, modern), 0);
}

/* ---- samples ---- */

static void stacks_share_their_parts(void **state)
{
	(void)state;
	const struct ky_mapping_spec spec = {
		.name = text("/bin/x"), .start = 0x1000, .end = 0x2000};
	const uint32_t mapping = ky_mapping(trace, &spec);
	assert_int_equal(ky_mapping(trace, &spec), mapping);
	const uint32_t outer = ky_frame(trace, mapping, 1, text("main"), 0, 0);
	const uint32_t inner = ky_frame(trace, mapping, 2, text("work"), 0, 0);
	assert_int_equal(ky_frame(trace, mapping, 1, text("main"), 0, 0), outer);
	const uint32_t root = ky_callsite(trace, KY_NONE, outer);
	const uint32_t leaf = ky_callsite(trace, root, inner);
	assert_int_equal(ky_callsite(trace, KY_NONE, outer), root);
	assert_int_not_equal(ky_callsite(trace, leaf, inner), leaf);
	assert_int_equal(trace->callsites.depth[leaf], trace->callsites.depth[root] + 1);
	const uint32_t thread = ky_thread(trace, 1, 1);
	ky_put_sample(trace, 20, thread, leaf, 0, KY_CPU_MODE_USER, 2.5, text("cycles"));
	ky_put_sample(trace, 10, thread, root, KY_NONE, KY_CPU_MODE_KERNEL, 1, 0);
	finish();
	assert_int_equal(trace->samples.rows.count, 2);
	assert_int_equal(trace->samples.callsite[0], root);
	assert_int_equal(trace->samples.callsite[1], leaf);
	assert_true(trace->samples.weight[1] == 2.5);
	const struct ky_index_rows rows = ky_index_get(trace, KY_INDEX_SAMPLE_THREAD, thread);
	assert_int_equal(rows.count, 2);
	assert_int_equal(rows.rows[1], 1);
	assert_int_equal(ky_index_get(trace, KY_INDEX_SAMPLE_THREAD, KY_NONE).count, 0);
}

/* ---- windows, losses, problems ---- */

static void kernel_events_outside_of_windows_are_dropped(void **state)
{
	(void)state;
	const struct ky_window windows[] = {{100, 200}, {300, 400}};
	ky_trace_windows(trace, windows, 2);
	assert_ptr_equal(ky_window_of(windows, 2, 150), &windows[0]);
	assert_ptr_equal(ky_window_of(windows, 2, 250), &windows[1]);
	assert_null(ky_window_of(windows, 2, 401));
	const int64_t times[] = {50, 150, 250, 350};
	for (int i = 0; i < 4; i++)
		ky_put_raw(trace, times[i], 0, 5, text("event"), 0);
	ky_put_tid_begin(trace, 160, 5, 0, text("open"), 0);
	finish();
	assert_int_equal(trace->raw_events.rows.count, 2);
	assert_int_equal(trace->raw_events.ts[0], 150);
	assert_int_equal(trace->raw_events.ts[1], 350);
	/* What is open ends with its window. */
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.dur[0], 40);
}

static void losses_and_problems_are_counted(void **state)
{
	(void)state;
	ky_put_lost(trace, 10, KY_NONE, 1, 5, KY_LOSS_RING);
	ky_put_lost(trace, KY_TIME_NONE, KY_NONE, KY_NONE, 7, KY_LOSS_RING);
	ky_problem(trace, "odd", KY_ERROR, 12, "at %d", 12);
	ky_problem(trace, "odd", KY_ERROR, 99, "at %d", 99);
	ky_problems(trace, "odd", KY_ERROR, 99, 3);
	finish();
	assert_int_equal(trace->lost, 12);
	assert_int_equal(trace->problems.rows.count, 1);
	assert_int_equal(trace->problems.number[0], 5);
	assert_int_equal(trace->problems.first_at[0], 12);
	assert_text(trace->problems.first[0], "at 12");
	assert_true(trace->finished);
	assert_true(ky_trace_memory(trace) > 0);
}

static void bounds_are_those_of_all_events(void **state)
{
	(void)state;
	const uint32_t track = ky_track_of_thread(trace, ky_thread(trace, 1, 1));
	ky_put_complete(trace, 100, 400, track, 0, text("a"), 0);
	ky_put_counter(trace, 50, ky_track_counter(trace, KY_TRACK_COUNTER, KY_NONE, text("n")), 1);
	ky_put_log(trace, 300, KY_NONE, 4, 0, text("message"));
	finish();
	assert_int_equal(trace->begin_ns, 50);
	assert_int_equal(trace->end_ns, 500);
	assert_int_equal(ky_index_time(trace->slices.ts, 1, 100), 0);
	assert_int_equal(ky_index_time(trace->slices.ts, 1, 101), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_trace, close_trace)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_grow_together),
		cmocka_unit_test(a_table_has_no_more_rows_than_ids),
		TEST(tables_do_not_grow_after_a_failure),
		TEST(equal_specs_are_one_track),
		TEST(tracks_know_their_owners),
		TEST(arguments_keep_types_and_order),
		TEST(flows_with_one_end_are_kept),
		TEST(an_id_may_be_used_again_after_its_end),
		TEST(sums_are_shown_in_whole_units),
		TEST(a_value_since_the_last_one_is_shown_from_there),
		TEST(a_counter_of_a_tid_is_its_processes_once_known),
		TEST(spans_of_devices_take_free_tracks),
		TEST(running_states_are_sched_rows_too),
		TEST(bits_of_a_state_depend_on_the_kernel),
		TEST(stacks_share_their_parts),
		TEST(kernel_events_outside_of_windows_are_dropped),
		TEST(losses_and_problems_are_counted),
		TEST(bounds_are_those_of_all_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
