/* SPDX-License-Identifier: MIT */
/*
 * test_kernel.c: scheduling, tasks and markers become the rows that Perfetto's trackers make of them.
 */
#include "model/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct ky_trace *open_trace(void)
{
	struct ky_trace *trace;
	assert_int_equal(ky_trace_open(&trace), 0);
	return trace;
}

static void finish(struct ky_trace *trace)
{
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
}

static void put_switch(struct ky_trace *trace, int64_t ts, uint32_t cpu, int32_t prev,
		       const char *state, int32_t next, const char *comm)
{
	const struct ky_switch event = {
		.cpu = cpu,
		.prev_tid = prev,
		.prev_priority = 120,
		.prev_state = ky_string_z(trace, state),
		.next_tid = next,
		.next_priority = 100,
		.next_comm = ky_string_z(trace, comm),
	};
	ky_put_switch(trace, ts, &event);
}

static void put_marker(struct ky_trace *trace, int64_t ts, int32_t tid, const char *text)
{
	ky_put_marker_text(trace, ts, tid, text, strlen(text));
}

static const char *text(const struct ky_trace *trace, uint32_t string)
{
	return string ? ky_text_of(trace, string) : "";
}

static uint64_t problems(const struct ky_trace *trace, const char *name)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		if (strcmp(text(trace, trace->problems.name[i]), name) == 0)
			return trace->problems.number[i];
	return 0;
}

static void a_cpu_has_a_slice_from_switch_to_switch(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	put_switch(trace, 10, 1, 0, "R", 7, "seven");
	put_switch(trace, 25, 1, 7, "D", 0, "swapper/1");
	finish(trace);
	assert_int_equal(trace->sched.rows.count, 2);
	assert_int_equal(trace->sched.dur[0], 15);
	assert_string_equal(text(trace, trace->sched.end_state[0]), "D");
	assert_int_equal(trace->sched.priority[0], 100);
	assert_int_equal(trace->sched.dur[1], -1);
	uint32_t idle = trace->sched.thread[1];
	assert_true(trace->threads.is_idle[idle]);
	assert_string_equal(text(trace, trace->threads.name[idle]), "swapper");
	ky_trace_close(&trace);
}

static void a_switch_from_another_thread_leaves_the_slice_open(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	put_switch(trace, 10, 0, 0, "R", 7, "seven");
	put_switch(trace, 25, 0, 8, "S", 9, "nine");
	finish(trace);
	assert_int_equal(trace->sched.dur[0], -1);
	assert_int_equal(problems(trace, "mismatched_sched_switch_tids"), 1);
	ky_trace_close(&trace);
}

/* Return how many states of a thread have no end and are not its last. */
static uint32_t open_states_in_between(const struct ky_trace *trace)
{
	const struct ky_thread_states *const states = &trace->thread_states;
	uint32_t count = 0;
	for (uint32_t i = 0; i < states->rows.count; i++)
		for (uint32_t later = i + 1; later < states->rows.count; later++)
			if (states->dur[i] == -1 && states->thread[later] == states->thread[i]) {
				count++;
				break;
			}
	return count;
}

static void states_end_where_events_are_missing(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	put_switch(trace, 10, 0, 7, "S", 8, "eight");
	/* It was not switched to. */
	put_switch(trace, 20, 1, 7, "D", 9, "nine");
	/* On CPU 0 another one runs than was switched to, and 8 is never seen again. */
	put_switch(trace, 30, 0, 5, "S", 6, "six");
	finish(trace);
	assert_int_equal(open_states_in_between(trace), 0);
	const struct ky_thread_states *const states = &trace->thread_states;
	for (uint32_t i = 0; i < states->rows.count; i++) {
		if (states->ts[i] == 10 && strcmp(text(trace, states->state[i]), "S") == 0)
			assert_int_equal(states->dur[i], 10);
		if (states->ts[i] == 10 && strcmp(text(trace, states->state[i]), "Running") == 0)
			assert_int_equal(states->dur[i], 20);
	}
	ky_trace_close(&trace);
}

static void a_thread_sleeps_is_woken_and_runs(void **unused)
{
	(void)unused;
	static const char *const states[] = {"S", "R", "Running"};
	static const int64_t times[] = {10, 30, 45};
	struct ky_trace *trace = open_trace();
	put_switch(trace, 10, 0, 7, "S", 0, "swapper/0");
	ky_put_blocked(trace, 12, 7, true, ky_string_z(trace, "io_schedule"));
	ky_put_waking(trace, 30, 7, 0, 3);
	ky_put_waking(trace, 31, 7, 0, 4);
	put_switch(trace, 45, 0, 0, "R", 7, "seven");
	finish(trace);
	const struct ky_thread_states *rows = &trace->thread_states;
	assert_int_equal(rows->rows.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_string_equal(text(trace, rows->state[i]), states[i]);
		assert_int_equal(rows->ts[i], times[i]);
	}
	assert_int_equal(rows->dur[0], 20);
	assert_int_equal(rows->io_wait[0], 1);
	assert_string_equal(text(trace, rows->blocked_function[0]), "io_schedule");
	assert_int_equal(trace->threads.tid[rows->waker[1]], 3);
	assert_int_equal(rows->cpu[2], 0);
	ky_trace_close(&trace);
}

static void a_tid_that_is_used_again_is_another_thread(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	put_marker(trace, 10, 50, "B|50|first");
	put_marker(trace, 20, 50, "E|50");
	ky_put_task_exit(trace, 30, 50);
	ky_put_task_new(trace, 40, 1, 50, ky_string_z(trace, "again"), false);
	put_marker(trace, 50, 50, "B|50|second");
	finish(trace);
	assert_int_equal(trace->slices.rows.count, 2);
	uint32_t first = ky_track_thread(trace, trace->slices.track[0]);
	uint32_t second = ky_track_thread(trace, trace->slices.track[1]);
	assert_int_not_equal(first, second);
	assert_int_equal(trace->threads.tid[first], trace->threads.tid[second]);
	assert_int_equal(trace->threads.end_ts[first], 30);
	assert_int_equal(trace->threads.start_ts[second], 40);
	assert_string_equal(text(trace, trace->threads.name[second]), "again");
	assert_int_not_equal(trace->threads.process[first], trace->threads.process[second]);
	ky_trace_close(&trace);
}

static void what_is_open_ends_with_its_thread(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	put_marker(trace, 10, 50, "B|50|open");
	put_marker(trace, 20, 60, "B|60|running");
	ky_put_task_exit(trace, 30, 50);
	put_marker(trace, 90, 60, "I|60|last");
	finish(trace);
	assert_int_equal(trace->slices.dur[0], 20);
	assert_int_equal(trace->slices.dur[1], -1);
	ky_trace_close(&trace);
}

static void threads_belong_to_the_process_of_their_maker_once_it_is_known(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	ky_put_task_new(trace, 10, 60, 61, 0, true);
	ky_put_task_new(trace, 20, 61, 62, 0, true);
	put_marker(trace, 30, 62, "I|60|here");
	finish(trace);
	uint32_t seen = 0;
	for (uint32_t i = 0; i < trace->threads.rows.count; i++) {
		assert_int_not_equal(trace->threads.process[i], KY_NONE);
		assert_int_equal(trace->processes.pid[trace->threads.process[i]], 60);
		seen++;
	}
	assert_int_equal(seen, 3);
	ky_trace_close(&trace);
}

static void spans_nest_by_marker_and_belong_to_the_thread(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	put_marker(trace, 10, 71, "B|70|outer|with|bars\n");
	put_marker(trace, 20, 71, "B|70|");
	put_marker(trace, 30, 71, "E");
	put_marker(trace, 40, 71, "E|70");
	finish(trace);
	assert_int_equal(trace->slices.rows.count, 2);
	assert_string_equal(text(trace, trace->slices.name[0]), "outer|with|bars");
	assert_string_equal(text(trace, trace->slices.name[1]), "[empty slice name]");
	assert_int_equal(trace->slices.dur[0], 30);
	assert_int_equal(trace->slices.dur[1], 10);
	uint32_t process = ky_track_process(trace, trace->slices.track[0]);
	assert_int_equal(trace->processes.pid[process], 70);
	ky_trace_close(&trace);
}

static void async_markers_overlap_on_tracks_of_their_own_and_share_free_ones(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	put_marker(trace, 10, 80, "S|80|load|1");
	put_marker(trace, 20, 80, "S|80|load|2");
	put_marker(trace, 25, 80, "S|80|load|2"); /* does not nest */
	put_marker(trace, 30, 80, "F|80|load|1");
	put_marker(trace, 40, 80, "S|80|load|3");
	put_marker(trace, 50, 80, "F|80|load|2");
	put_marker(trace, 60, 80, "F|80|load|3");
	put_marker(trace, 70, 80, "F|80|load|9");
	finish(trace);
	const struct ky_slices *slices = &trace->slices;
	assert_int_equal(slices->rows.count, 3);
	assert_int_equal(slices->dur[0], 20);
	assert_int_equal(slices->dur[1], 30);
	assert_int_equal(slices->dur[2], 20);
	assert_int_not_equal(slices->track[0], slices->track[1]);
	assert_int_equal(slices->track[0], slices->track[2]);
	assert_int_equal(problems(trace, "misplaced_end_event"), 1);
	ky_trace_close(&trace);
}

static void tracks_counters_and_instants_of_a_process(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	put_marker(trace, 10, 80, "G|80|lane|job|5");
	put_marker(trace, 15, 80, "N|80|lane|tick");
	put_marker(trace, 20, 80, "H|80|lane|5");
	put_marker(trace, 30, 80, "C|80|queue|-7|category");
	finish(trace);
	assert_int_equal(trace->slices.rows.count, 2);
	assert_string_equal(text(trace, trace->slices.name[0]), "job");
	assert_int_equal(trace->slices.dur[0], 10);
	assert_int_equal(trace->slices.kind[1], KY_SLICE_INSTANT);
	assert_string_equal(text(trace, trace->tracks.name[trace->slices.track[0]]), "lane");
	assert_int_equal(trace->counters.rows.count, 1);
	assert_true(trace->counters.value[0] == -7);
	ky_trace_close(&trace);
}

static void other_texts_are_messages_and_broken_markers_too(void **unused)
{
	static const char *const texts[] = {"hello world", "S|80|no cookie", "C|x|y|1", "B|abc|z"};
	(void)unused;
	struct ky_trace *trace = open_trace();
	for (int i = 0; i < 4; i++)
		put_marker(trace, i, 5, texts[i]);
	put_marker(trace, 9, 5, "trace_event_clock_sync: parent_ts=1");
	put_marker(trace, 9, 5, "");
	finish(trace);
	assert_int_equal(trace->slices.rows.count, 0);
	assert_int_equal(trace->logs.rows.count, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_string_equal(text(trace, trace->logs.message[i]), texts[i]);
	ky_trace_close(&trace);
}

static void letters_of_a_state_depend_on_the_kernel(void **unused)
{
	static const struct {
		uint64_t mask;
		uint32_t release;
		const char *letters;
	} cases[] = {
		{0, 0, "R"},           {0x800, 0, "R+"},         {0x1000, 4 << 8 | 9, "R+"},
		{0x100, 6 << 8, "R+"}, {0x80, 6 << 8, "I"},      {0x402, 0, "I"},
		{0x82, 0, "DK"},       {0x40, 4 << 8 | 14, "P"}, {0x40, 0, "x"},
		{0x1, 0, "S"},
	};
	(void)unused;
	struct ky_trace *trace = open_trace();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(
			text(trace, ky_task_state(trace, cases[i].mask, cases[i].release)),
			cases[i].letters);
	assert_int_equal(ky_task_state(trace, 0x200, 6 << 8), 0);
	ky_trace_close(&trace);
}

static void a_binder_call_is_a_slice_at_both_ends_and_a_flow(void **unused)
{
	const struct ky_binder_call call = {.id = 1, .dest_tgid = 90, .code = 0};
	const struct ky_binder_call reply = {.id = 2, .dest_tid = 80, .reply = true};
	const struct ky_binder_call fails = {.id = 3, .dest_tgid = 90};
	(void)unused;
	struct ky_trace *trace = open_trace();
	ky_put_binder_transaction(trace, 10, 80, &call);
	ky_put_binder_received(trace, 20, 91, 1);
	ky_put_binder_transaction(trace, 30, 91, &reply);
	ky_put_binder_received(trace, 40, 80, 2);
	ky_put_binder_command(trace, 50, 80, 0x40406300); /* BC_TRANSACTION */
	ky_put_binder_transaction(trace, 51, 80, &fails);
	ky_put_binder_command(trace, 60, 80, 0x7211); /* BR_FAILED_REPLY */
	finish(trace);
	assert_int_equal(trace->slices.rows.count, 3);
	assert_string_equal(text(trace, trace->slices.name[0]), "binder transaction");
	assert_int_equal(trace->slices.dur[0], 30);
	assert_string_equal(text(trace, trace->slices.name[1]), "binder reply");
	assert_int_equal(trace->slices.dur[1], 10);
	assert_int_equal(trace->slices.dur[2], 9);
	assert_int_equal(trace->flows.rows.count, 1);
	assert_int_equal(trace->flows.out[0], 0);
	assert_int_equal(trace->flows.in[0], 1);
	ky_trace_close(&trace);
}

static void events_are_applied_in_the_order_of_time(void **unused)
{
	(void)unused;
	struct ky_trace *trace = open_trace();
	put_marker(trace, 40, 71, "E|70");
	put_marker(trace, 10, 71, "B|70|late to come");
	finish(trace);
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.dur[0], 30);
	ky_trace_close(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpu_has_a_slice_from_switch_to_switch),
		cmocka_unit_test(a_switch_from_another_thread_leaves_the_slice_open),
		cmocka_unit_test(states_end_where_events_are_missing),
		cmocka_unit_test(a_thread_sleeps_is_woken_and_runs),
		cmocka_unit_test(a_tid_that_is_used_again_is_another_thread),
		cmocka_unit_test(what_is_open_ends_with_its_thread),
		cmocka_unit_test(threads_belong_to_the_process_of_their_maker_once_it_is_known),
		cmocka_unit_test(spans_nest_by_marker_and_belong_to_the_thread),
		cmocka_unit_test(async_markers_overlap_on_tracks_of_their_own_and_share_free_ones),
		cmocka_unit_test(tracks_counters_and_instants_of_a_process),
		cmocka_unit_test(other_texts_are_messages_and_broken_markers_too),
		cmocka_unit_test(letters_of_a_state_depend_on_the_kernel),
		cmocka_unit_test(a_binder_call_is_a_slice_at_both_ends_and_a_flow),
		cmocka_unit_test(events_are_applied_in_the_order_of_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
