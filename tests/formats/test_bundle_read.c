/* SPDX-License-Identifier: MIT */
/*
 * test_bundle_read.c: .kymo files of several sources into the model.
 *
 *	test_bundle_read --write FILE	writes one that has something of all, for the tests of the command line
 */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "bundle_maker.h"
#include "formats/kymo/kymo_file.h"
#include "formats/out.h"
#include "formats/xxh64.h"
#include "load_text.h"
#include "model/kernel.h"
#include "perf_maker.h"

#define T MADE_START_NS
#define US UINT64_C(1000)

static struct made_bundle made;
static struct made_drum drums[4];
static struct perf_maker perf;

/* ---- looking at a trace ---- */

/* The slice of that name; the n-th of them. */
static uint32_t slice_of(const struct ky_trace *trace, const char *name, uint32_t n)
{
	for (uint32_t i = 0; i < trace->slices.rows.count; i++)
		if (strcmp(text_of(trace, trace->slices.name[i]), name) == 0 && n-- == 0)
			return i;
	fail_msg("no slice %s", name);
	return 0;
}

static uint32_t count_slices(const struct ky_trace *trace, const char *name)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < trace->slices.rows.count; i++)
		count += strcmp(text_of(trace, trace->slices.name[i]), name) == 0;
	return count;
}

static uint32_t process_of(const struct ky_trace *trace, uint32_t slice)
{
	return ky_track_process(trace, trace->slices.track[slice]);
}

static const char *metadata_of(const struct ky_trace *trace, const char *key)
{
	for (uint32_t i = 0; i < trace->metadata.rows.count; i++)
		if (strcmp(text_of(trace, trace->metadata.key[i]), key) == 0)
			return text_of(trace, trace->metadata.text[i]);
	return "";
}

static void check_span(const struct ky_trace *trace, const char *name, uint32_t n, uint64_t from,
		       uint64_t to)
{
	const uint32_t slice = slice_of(trace, name, n);
	assert_int_equal(trace->slices.ts[slice], from);
	assert_int_equal(trace->slices.dur[slice], to - from);
}

static void span(struct made_drum *drum, uint64_t from, uint64_t to)
{
	made_event(drum, MADE_SCOPE, false, from);
	made_event(drum, MADE_SCOPE, true, to);
}

static struct ky_trace *finish(uint32_t drums_count)
{
	for (uint32_t i = 0; i < drums_count; i++)
		made_drum_end(&made, &drums[i], 0);
	made_close(&made);
	for (uint32_t i = 0; i < drums_count; i++)
		made_drum_free(&drums[i]);
	struct ky_trace *trace = load_bytes(made.data, made.bytes);
	made_free(&made);
	return trace;
}

/* ---- drums ---- */

static void drums_are_one_trace_in_the_order_of_time(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 11, "server");
	made_drum(&made, &drums[1], 20, 21, "client");
	span(&drums[0], T + 100, T + 200);
	span(&drums[1], T + 150, T + 250);
	made_flush(&made, &drums[0], 0);
	made_flush(&made, &drums[1], 0);
	span(&drums[0], T + 300, T + 400);
	struct ky_trace *trace = finish(2);
	check_span(trace, "server", 0, T + 100, T + 200);
	check_span(trace, "client", 0, T + 150, T + 250);
	check_span(trace, "server", 1, T + 300, T + 400);
	for (uint32_t i = 1; i < trace->slices.rows.count; i++)
		assert_true(trace->slices.ts[i - 1] <= trace->slices.ts[i]);
	const uint32_t process = process_of(trace, slice_of(trace, "client", 0));
	assert_int_equal(trace->processes.pid[process], 20);
	assert_string_equal(text_of(trace, trace->processes.name[process]), "client");
	assert_int_equal(trace->clock, KY_CLOCK_BOOTTIME);
	assert_int_equal(trace->problems.rows.count, 0);
	assert_string_equal(metadata_of(trace, "capture_source"),
			    "1: drum of server, pid 10: 4 events");
	ky_trace_close(&trace);
}

/* depth and parent of the slice of that name. */
static void check_nesting(const struct ky_trace *trace, const char *name, uint32_t depth,
			  const char *parent)
{
	const uint32_t slice = slice_of(trace, name, 0);
	assert_int_equal(trace->slices.depth[slice], depth);
	if (parent)
		assert_int_equal(trace->slices.parent[slice], slice_of(trace, parent, 0));
}

/*
 * The clocks of two drums are brought together with some nanoseconds of error: "off" seems to end after "call", and only what
 * ends of its own drum.
 */
static void drums_beside_a_programs_own_nest_in_its_threads(void **state)
{
	(void)state;
	made_open(&made);
	made_drum_beside(&made, &drums[2], 10, 11, "off", KY_DRUM_SWITCHES);
	made_drum_beside(&made, &drums[1], 10, 11, "call", KY_DRUM_FUNCTIONS);
	made_drum(&made, &drums[0], 10, 11, "own");
	span(&drums[0], T + 100, T + 500);
	span(&drums[1], T + 200, T + 400);
	span(&drums[2], T + 250, T + 350);
	span(&drums[1], T + 600, T + 700);
	span(&drums[2], T + 650, T + 701);
	span(&drums[1], T + 800, T + 900);
	struct ky_trace *trace = finish(3);
	const uint32_t own = slice_of(trace, "own", 0);
	for (uint32_t i = 0; i < trace->slices.rows.count; i++)
		assert_int_equal(trace->slices.track[i], trace->slices.track[own]);
	check_nesting(trace, "own", 0, NULL);
	check_nesting(trace, "call", 1, "own");
	check_nesting(trace, "off", 2, "call");
	check_span(trace, "call", 0, T + 200, T + 400);
	check_span(trace, "off", 0, T + 250, T + 350);
	check_span(trace, "call", 1, T + 600, T + 700);
	check_span(trace, "call", 2, T + 800, T + 900);
	/* Names are those that the program gave. */
	const uint32_t process = process_of(trace, own);
	assert_string_equal(text_of(trace, trace->processes.name[process]), "own");
	assert_int_equal(trace->processes.rows.count, 1);
	ky_trace_close(&trace);
}

/* exec: what was open in the program before it is not open in the one after it. */
static void calls_of_a_program_end_where_the_next_begins(void **state)
{
	(void)state;
	made_open(&made);
	made_drum_beside(&made, &drums[0], 10, 11, "shell", KY_DRUM_FUNCTIONS);
	made_drum_beside(&made, &drums[1], 10, 11, "program", KY_DRUM_FUNCTIONS);
	made_event(&drums[0], MADE_SCOPE, false, T + 100);
	made_event(&drums[0], MADE_SCOPE, false, T + 200);
	made_event(&drums[0], MADE_SCOPE, true, T + 300);
	span(&drums[1], T + 500, T + 600);
	struct ky_trace *trace = finish(2);
	check_span(trace, "shell", 0, T + 100, T + 300);
	check_nesting(trace, "program", 0, NULL);
	assert_int_equal(trace->processes.rows.count, 1);
	ky_trace_close(&trace);
}

/* A thread of a forked child: its number is one that a thread of its parent once had. */
static void children_in_their_parents_drum_are_processes(void **state)
{
	(void)state;
	made_open(&made);
	made_drum_beside(&made, &drums[0], 10, 11, "call", KY_DRUM_FUNCTIONS);
	span(&drums[0], T + 100, T + 200);
	made_flush(&made, &drums[0], 0);
	drums[0].thread.index = 1;
	drums[0].thread.pid = 20;
	drums[0].thread.alias = 1 << 30;
	span(&drums[0], T + 300, T + 400);
	struct ky_trace *trace = finish(1);
	const uint32_t parent = process_of(trace, slice_of(trace, "call", 0));
	const uint32_t child = process_of(trace, slice_of(trace, "call", 1));
	assert_int_equal(trace->processes.pid[parent], 10);
	assert_int_equal(trace->processes.pid[child], 20);
	assert_string_equal(text_of(trace, trace->processes.name[child]), "call");
	check_span(trace, "call", 0, T + 100, T + 200);
	check_span(trace, "call", 1, T + 300, T + 400);
	for (uint32_t i = 0; i < trace->threads.rows.count; i++)
		assert_true(trace->threads.tid[i] != 1 << 30);
	ky_trace_close(&trace);
}

/* A function that never returns: its thread ends in it. A later thread of that number is another. */
static void what_is_open_lasts_until_its_thread_ends(void **state)
{
	(void)state;
	made_open(&made);
	made_drum_beside(&made, &drums[0], 10, 11, "call", KY_DRUM_FUNCTIONS);
	made_drum_beside(&made, &drums[1], 10, 11, "off", KY_DRUM_SWITCHES);
	made_drum_beside(&made, &drums[2], 20, 21, "still", KY_DRUM_FUNCTIONS);
	made_event(&drums[1], MADE_TICK, false, T + 50 * US);
	made_event(&drums[0], MADE_SCOPE, false, T + 100 * US);
	made_event(&drums[0], MADE_SCOPE, false, T + 200 * US);
	span(&drums[1], T + 250 * US, T + 300 * US);
	made_event(&drums[1], MADE_TICK, false, T + 400 * US);
	made_event(&drums[0], MADE_SCOPE, false, T + 600 * US);
	made_event(&drums[1], MADE_TICK, false, T + 900 * US);
	made_event(&drums[2], MADE_SCOPE, false, T + 500 * US);
	struct ky_trace *trace = finish(3);
	check_span(trace, "call", 0, T + 100 * US, T + 400 * US);
	check_span(trace, "call", 1, T + 200 * US, T + 400 * US);
	check_span(trace, "call", 2, T + 600 * US, T + 900 * US);
	assert_int_equal(trace->slices.depth[slice_of(trace, "call", 2)], 0);
	check_nesting(trace, "off", 2, NULL);
	assert_int_equal(trace->slices.dur[slice_of(trace, "still", 0)], -1);
	assert_int_equal(trace->slices.rows.count, 5);
	ky_trace_close(&trace);
}

/* The process goes on with another program, which is still running. */
static void what_is_open_lasts_until_its_program_ends(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 10, "first");
	made_drum(&made, &drums[1], 10, 10, "second");
	made_event(&drums[0], MADE_SCOPE, false, T + 100 * US);
	made_event(&drums[0], MADE_ASYNC_BEGIN, false, T + 150 * US);
	ky_bundle_program_end(made.bundle, drums[0].source, T + 200 * US);
	made_event(&drums[1], MADE_SCOPE, false, T + 300 * US);
	made_event(&drums[1], MADE_TICK, false, T + 900 * US);
	struct ky_trace *trace = finish(2);
	check_span(trace, "first", 0, T + 100 * US, T + 200 * US);
	assert_int_equal(trace->slices.dur[slice_of(trace, "first", 0) + 1], 50 * US);
	assert_int_equal(trace->slices.dur[slice_of(trace, "second", 0)], -1);
	ky_trace_close(&trace);
}

/* The process goes on, and another of its threads gets the number. */
static void what_is_open_lasts_until_its_thread_gives_its_ring_back(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 11, "server");
	made_event(&drums[0], MADE_SCOPE, false, T + 100 * US);
	ky_bundle_thread_end(made.bundle, drums[0].source, 11, T + 200 * US);
	made_event(&drums[0], MADE_SCOPE, false, T + 300 * US);
	made_event(&drums[0], MADE_TICK, false, T + 900 * US);
	struct ky_trace *trace = finish(1);
	check_span(trace, "server", 0, T + 100 * US, T + 200 * US);
	assert_int_equal(trace->slices.dur[slice_of(trace, "server", 1)], -1);
	assert_int_equal(trace->slices.depth[slice_of(trace, "server", 1)], 0);
	ky_trace_close(&trace);
}

static void one_drum_is_read_as_a_single_file_is(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 10, "server");
	span(&drums[0], T + 100, T + 200);
	struct ky_trace *trace = finish(1);
	check_span(trace, "server", 0, T + 100, T + 200);
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

static void equal_pids_at_the_same_time_are_two_processes(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 1, 1, "first");
	made_drum(&made, &drums[1], 1, 1, "second");
	span(&drums[0], T + 100, T + 300);
	span(&drums[1], T + 200, T + 400);
	struct ky_trace *trace = finish(2);
	const uint32_t first = slice_of(trace, "first", 0), second = slice_of(trace, "second", 0);
	check_span(trace, "first", 0, T + 100, T + 300);
	check_span(trace, "second", 0, T + 200, T + 400);
	assert_int_not_equal(process_of(trace, first), process_of(trace, second));
	assert_int_not_equal(trace->slices.track[first], trace->slices.track[second]);
	assert_string_equal(text_of(trace, trace->processes.name[process_of(trace, first)]),
			    "first");
	assert_int_equal(trace->slices.depth[second], 0);
	ky_trace_close(&trace);
}

static void a_drum_after_another_of_its_pid_is_the_same_process(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 7, 7, "before exec");
	span(&drums[0], T + 100, T + 300);
	made_flush(&made, &drums[0], 0);
	made_drum(&made, &drums[1], 7, 7, "after exec");
	span(&drums[1], T + 400, T + 500);
	struct ky_trace *trace = finish(2);
	assert_int_equal(process_of(trace, slice_of(trace, "before exec", 0)),
			 process_of(trace, slice_of(trace, "after exec", 0)));
	assert_int_equal(trace->processes.rows.count, 1);
	ky_trace_close(&trace);
}

static void threads_are_of_the_drums_process_whatever_its_namespace_calls_it(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 4711, 1, "jailed");
	drums[0].thread.pid = 1;
	ky_bundle_thread(made.bundle, drums[0].source, &drums[0].thread);
	span(&drums[0], T + 100, T + 300);
	struct ky_trace *trace = finish(1);
	assert_int_equal(trace->processes.pid[process_of(trace, slice_of(trace, "jailed", 0))],
			 4711);
	assert_int_equal(trace->processes.rows.count, 1);
	ky_trace_close(&trace);
}

static void what_never_got_into_a_ring_is_told_by_the_drums_index(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 10, "server");
	made_drum(&made, &drums[1], 20, 20, "client");
	span(&drums[0], T + 100, T + 200);
	made_flush(&made, &drums[0], 0);
	span(&drums[0], T + 300, T + 400);
	made_flush(&made, &drums[0], 5);
	made_drum_end(&made, &drums[0], 12);
	struct ky_trace *trace = finish(2);
	assert_int_equal(trace->lost, 12);
	ky_trace_close(&trace);
}

static void thousands_of_drums_are_read(void **state)
{
	(void)state;
	made_open(&made);
	for (int32_t i = 0; i < 2000; i++) {
		const uint64_t at = T + 1000 * (uint64_t)i;
		made_drum(&made, &drums[0], 100 + i, 100 + i, "child");
		span(&drums[0], at, at + 500);
		made_drum_end(&made, &drums[0], 0);
		made_drum_free(&drums[0]);
	}
	struct ky_trace *trace = finish(0);
	assert_int_equal(count_slices(trace, "child"), 2000);
	assert_int_equal(trace->processes.rows.count, 2000);
	ky_trace_close(&trace);
}

/* ---- streams ---- */

#define PERF_FIELDS                                                                                \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |                   \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)
#define PERF_FLAGS (1ull << 18 | 1ull << 25) /* sample_id_all, use_clockid */
#define PERF_CLOCKID_AT (16u + 8u + 92u)     /* in the attribute, behind the two heads */

static void start_perf(void)
{
	perf_start(&perf, false, true, PERF_FIELDS, PERF_FLAGS);
	perf.data[PERF_CLOCKID_AT] = 1; /* CLOCK_MONOTONIC */
}

/* At a time of CLOCK_BOOTTIME, recorded in MONOTONIC. */
static void add_sample(uint32_t pid, uint32_t tid, uint64_t boottime_ns)
{
	perf_record(&perf, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	perf_u64(&perf, 0x401020);
	perf_trailer(&perf, pid, tid, boottime_ns - MADE_MONOTONIC_BEHIND, 1);
	perf_u64(&perf, 500);
	perf_u64(&perf, 1);
	perf_u64(&perf, 0x401020);
	perf_record_end(&perf);
}

static void write_stream(enum ky_kymo_stream_kind kind, const void *data, size_t bytes)
{
	const uint32_t source = ky_bundle_stream(made.bundle, kind, NULL, NULL);
	assert_int_not_equal(source, 0);
	ky_bundle_stream_write(made.bundle, source, data, bytes);
}

static void samples_are_brought_to_the_drums_clock(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 11, "server");
	span(&drums[0], T + 100, T + 200);
	start_perf();
	add_sample(10, 11, T + 150);
	write_stream(KY_KYMO_STREAM_PERF, perf.data, perf.bytes);
	struct ky_trace *trace = finish(1);
	assert_int_equal(trace->clock, KY_CLOCK_BOOTTIME);
	assert_int_equal(trace->samples.rows.count, 1);
	assert_int_equal(trace->samples.ts[0], T + 150);
	const uint32_t slice = slice_of(trace, "server", 0);
	assert_int_equal(trace->samples.thread[0],
			 ky_track_thread(trace, trace->slices.track[slice]));
	check_span(trace, "server", 0, T + 100, T + 200);
	ky_trace_close(&trace);
}

static void a_process_that_perf_saw_begin_is_that_of_its_drum(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 10, "server");
	span(&drums[0], T + 1000, T + 2000);
	start_perf();
	perf_task(&perf, true, 10, 1, 10, 1, T + 500 - MADE_MONOTONIC_BEHIND);
	add_sample(10, 10, T + 1500);
	perf_task(&perf, false, 10, 1, 10, 1, T + 3000 - MADE_MONOTONIC_BEHIND);
	/* Its pid is given to another later. */
	perf_task(&perf, true, 10, 1, 10, 1, T + 4000 - MADE_MONOTONIC_BEHIND);
	add_sample(10, 10, T + 5000);
	write_stream(KY_KYMO_STREAM_PERF, perf.data, perf.bytes);
	struct ky_trace *trace = finish(1);
	const uint32_t thread =
		ky_track_thread(trace, trace->slices.track[slice_of(trace, "server", 0)]);
	assert_int_equal(trace->samples.rows.count, 2);
	assert_int_equal(trace->samples.thread[0], thread);
	assert_int_not_equal(trace->samples.thread[1], thread);
	assert_int_equal(trace->threads.start_ts[thread], T + 500);
	ky_trace_close(&trace);
}

static void a_task_that_ftrace_and_perf_tell_of_is_one(void **state)
{
	struct ky_trace *trace;
	(void)state;
	assert_int_equal(ky_trace_open(&trace), 0);
	ky_trace_kernel_twice(trace);
	ky_put_task_new(trace, 1000, 1, 50, ky_string_z(trace, "child"), false);
	ky_put_task_new(trace, 1700, 1, 50, ky_string_z(trace, "child"), false);
	ky_put_task_exit(trace, 5000, 50);
	ky_put_task_new(trace, 6000, 1, 50, ky_string_z(trace, "another"), false);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	uint32_t lives = 0;
	for (uint32_t i = 0; i < trace->processes.rows.count; i++)
		lives += trace->processes.pid[i] == 50;
	assert_int_equal(lives, 2);
	ky_trace_close(&trace);
}

static void a_stream_that_is_no_such_thing_is_a_problem_and_the_rest_is_read(void **state)
{
	static const char garbage[] = "this is neither perf.data nor a copy of tracefs";
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 11, "server");
	span(&drums[0], T + 100, T + 200);
	write_stream(KY_KYMO_STREAM_PERF, garbage, sizeof(garbage));
	write_stream(KY_KYMO_STREAM_FTRACE, garbage, sizeof(garbage));
	write_stream(KY_KYMO_STREAM_SYMBOLS, garbage, sizeof(garbage));
	write_stream((enum ky_kymo_stream_kind)77, garbage, sizeof(garbage));
	struct ky_trace *trace = finish(1);
	check_span(trace, "server", 0, T + 100, T + 200);
	assert_int_equal(problems_of(trace, "kymo_stream_damaged"), 1);
	assert_int_equal(problems_of(trace, "kymo_stream_unknown"), 1);
	assert_true(trace->problems.rows.count >= 3);
	ky_trace_close(&trace);
}

/* ---- snapshots ---- */

static void add_snapshot(uint64_t at, uint64_t from, uint64_t to, const char *trigger,
			 const char *reason)
{
	const struct ky_bundle_snapshot snapshot = {.time_ns = at,
						    .from_ns = from,
						    .to_ns = to,
						    .pid = 10,
						    .tid = 11,
						    .args_count = 1,
						    .args = {42, 0},
						    .trigger = trigger,
						    .reason = reason,
						    .stack = "inner\nouter"};
	ky_bundle_snapshot(made.bundle, &snapshot);
}

static void snapshots_have_a_track_with_all_that_is_known(void **state)
{
	(void)state;
	made_open(&made);
	ky_bundle_note(made.bundle, "kernel: not recorded: no permission");
	made_drum(&made, &drums[0], 10, 11, "server");
	span(&drums[0], T + 100, T + 200);
	add_snapshot(T + 150, T, T + 1000, "span:net/recv>5ms", "net/recv took 7.1 ms");
	struct ky_trace *trace = finish(1);
	const uint32_t slice = slice_of(trace, "net/recv took 7.1 ms", 0);
	const uint32_t set = trace->slices.args[slice], track = trace->slices.track[slice];
	assert_int_equal(trace->slices.ts[slice], T + 150);
	assert_string_equal(text_of(trace, trace->tracks.name[track]), "snapshots");
	assert_int_equal(trace->tracks.kind[track], KY_TRACK_GLOBAL);
	assert_int_equal(trace->args.value[arg_of(trace, set, "debug.pid")], 10);
	assert_int_equal(trace->args.value[arg_of(trace, set, "debug.tid")], 11);
	assert_int_equal(trace->args.value[arg_of(trace, set, "debug.arg1")], 42);
	assert_int_equal(arg_of(trace, set, "debug.arg2"), KY_NONE);
	assert_int_equal(trace->args.value[arg_of(trace, set, "debug.from")], T);
	assert_int_equal(trace->args.value[arg_of(trace, set, "debug.to")], T + 1000);
	const uint32_t stack = arg_of(trace, set, "debug.stack");
	assert_string_equal(text_of(trace, (uint32_t)trace->args.value[stack]), "inner\nouter");
	assert_int_equal(count_slices(trace, "net/recv took 7.1 ms"), 1);
	assert_string_equal(metadata_of(trace, "capture_note"),
			    "kernel: not recorded: no permission");
	ky_trace_close(&trace);
}

static void an_event_that_asked_for_a_snapshot_is_not_shown_beside_its_record(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 11, "server");
	made_event(&drums[0], MADE_SNAPSHOT, false, T + 5000000);
	made_event(&drums[0], MADE_SNAPSHOT, false, T + 90000000);
	add_snapshot(T + 5000700, T, T + 100000000, "api", "too slow");
	struct ky_trace *trace = finish(1);
	assert_int_equal(count_slices(trace, "too slow"), 2);
	const uint32_t record = slice_of(trace, "too slow", 0);
	const uint32_t event = slice_of(trace, "too slow", 1);
	assert_int_equal(trace->slices.ts[record], T + 5000700);
	assert_int_equal(trace->slices.ts[event], T + 90000000);
	assert_int_equal(trace->slices.track[record], trace->slices.track[event]);
	ky_trace_close(&trace);
}

static void spans_are_not_carried_from_window_to_window(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 11, "server");
	span(&drums[0], T + 1100, T + 1200);
	made_event(&drums[0], MADE_SCOPE, false, T + 1800); /* ends when nobody looked */
	made_event(&drums[0], MADE_SCOPE, true, T + 8100);  /* began when nobody looked */
	span(&drums[0], T + 8200, T + 8300);
	made_event(&drums[0], MADE_SCOPE, false, T + 8900); /* lasts longer */
	add_snapshot(T + 2000, T + 1000, T + 2000, "api", "first");
	add_snapshot(T + 8500, T + 8000, T + 8600, "api", "second");
	add_snapshot(T + 9000, T + 8400, T + 9000, "api", "third, which touches it");
	struct ky_trace *trace = finish(1);
	assert_int_equal(count_slices(trace, "server"), 5);
	check_span(trace, "server", 0, T + 1100, T + 1200);
	check_span(trace, "server", 1, T + 1800, T + 2000);
	check_span(trace, "server", 2, T + 8000 - 1, T + 8100);
	check_span(trace, "server", 3, T + 8200, T + 8300);
	check_span(trace, "server", 4, T + 8900, T + 9000);
	assert_int_equal(trace->lost, 0);
	assert_int_equal(problems_of(trace, "end_without_begin"), 0);
	ky_trace_close(&trace);
}

static void asynchronous_spans_end_with_their_window_unless_their_end_is_in_another(void **state)
{
	(void)state;
	made_open(&made);
	made_drum(&made, &drums[0], 10, 11, "server");
	made_drum(&made, &drums[1], 20, 21, "client");
	made_event(&drums[0], MADE_ASYNC_END, false, T + 1500);   /* began before */
	made_event(&drums[0], MADE_ASYNC_BEGIN, false, T + 1600); /* ends in the other */
	made_event(&drums[0], MADE_ASYNC_END, false, T + 8200);
	made_event(&drums[1], MADE_ASYNC_BEGIN, false, T + 1700); /* ends when nobody looked */
	made_event(&drums[1], MADE_TICK, false, T + 8300);
	add_snapshot(T + 2000, T + 1000, T + 2000, "api", "first");
	add_snapshot(T + 8500, T + 8000, T + 8600, "api", "second");
	struct ky_trace *trace = finish(2);
	assert_int_equal(count_slices(trace, "request"), 3);
	check_span(trace, "request", 0, T + 1000, T + 1500);
	check_span(trace, "request", 1, T + 1600, T + 8200);
	check_span(trace, "request", 2, T + 1700, T + 2000);
	ky_trace_close(&trace);
}

static void put_switch(struct ky_trace *trace, int64_t ts, int32_t from, int32_t to)
{
	const struct ky_switch event = {
		.cpu = 0, .prev_tid = from, .prev_state = ky_string_z(trace, "S"), .next_tid = to};
	ky_put_switch(trace, ts, &event);
}

static void what_runs_at_the_end_of_a_window_ends_there(void **state)
{
	static const struct ky_window windows[] = {{1000, 2000}, {8000, 9000}};
	struct ky_trace *trace;
	(void)state;
	assert_int_equal(ky_trace_open(&trace), 0);
	ky_trace_windows(trace, windows, 2);
	put_switch(trace, 900, 1, 2); /* of a page that reaches back */
	put_switch(trace, 1500, 3, 4);
	put_switch(trace, 2000, 4, 5);
	put_switch(trace, 5000, 5, 6);
	put_switch(trace, 8500, 7, 8);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	assert_int_equal(trace->sched.rows.count, 3);
	assert_int_equal(trace->sched.ts[0], 1500);
	assert_int_equal(trace->sched.dur[0], 500);
	assert_int_equal(trace->sched.ts[1], 2000);
	assert_int_equal(trace->sched.dur[1], 0);
	assert_int_equal(trace->sched.ts[2], 8500);
	assert_int_equal(trace->sched.dur[2], 500);
	assert_int_equal(problems_of(trace, "mismatched_sched_switch_tids"), 0);
	ky_trace_close(&trace);
}

/* ---- damage ---- */

static void make_something_of_all(void)
{
	made_open(&made);
	ky_bundle_note(made.bundle, "kernel: not recorded: no permission");
	made_drum(&made, &drums[0], 10, 11, "server");
	made_drum(&made, &drums[1], 20, 21, "client");
	for (uint64_t i = 0; i < 10; i++) {
		span(&drums[0], T + 1000 * i, T + 1000 * i + 500);
		span(&drums[1], T + 1000 * i + 250, T + 1000 * i + 750);
		made_flush(&made, &drums[0], 0);
		made_flush(&made, &drums[1], 0);
	}
	start_perf();
	add_sample(10, 11, T + 1500);
	write_stream(KY_KYMO_STREAM_PERF, perf.data, perf.bytes);
	add_snapshot(T + 5000, T, T + 10000, "span:net/server>1us", "server took 2 us");
	made_drum_end(&made, &drums[0], 0);
	made_drum_end(&made, &drums[1], 0);
	made_close(&made);
	made_drum_free(&drums[0]);
	made_drum_free(&drums[1]);
}

static void a_file_that_is_cut_anywhere_is_read_to_there(void **state)
{
	(void)state;
	make_something_of_all();
	uint32_t events = 0;
	for (size_t bytes = 72; bytes <= made.bytes; bytes += bytes % 23 + 1) {
		struct ky_trace *trace = load_bytes(made.data, bytes);
		const uint32_t now = trace->slices.rows.count;
		assert_true(now >= events);
		events = now;
		if (bytes < made.bytes)
			assert_int_equal(problems_of(trace, "kymo_not_finished"), 1);
		ky_trace_close(&trace);
	}
	struct ky_trace *whole = load_bytes(made.data, made.bytes);
	assert_int_equal(whole->slices.rows.count, 21);
	assert_int_equal(whole->samples.rows.count, 1);
	assert_int_equal(whole->problems.rows.count, 0);
	ky_trace_close(&whole);
	made_free(&made);
}

/* Where the n-th chunk of that type and source is. */
static size_t find_chunk(uint16_t type, uint32_t source, uint32_t n)
{
	struct ky_kymo_chunk chunk;
	for (size_t at = 0; at + sizeof(chunk) <= made.bytes;
	     at += chunk.head_bytes + chunk.body_bytes) {
		memcpy(&chunk, made.data + at, sizeof(chunk));
		if (chunk.type == type && chunk.source == source && n-- == 0)
			return at;
	}
	fail_msg("no such chunk");
	return 0;
}

static void a_damaged_chunk_is_noted_with_its_place_and_the_others_are_read(void **state)
{
	(void)state;
	make_something_of_all();
	const size_t at = find_chunk(KY_KYMO_DATA, 1, 2);
	made.data[at + sizeof(struct ky_kymo_chunk) + 60] ^= 0x55;
	struct ky_trace *trace = load_bytes(made.data, made.bytes);
	assert_int_equal(problems_of(trace, "kymo_damaged"), 1);
	assert_int_equal(trace->problems.first_at[0], at);
	assert_int_equal(count_slices(trace, "server"), 9);
	assert_int_equal(count_slices(trace, "client"), 10);
	assert_int_equal(trace->lost, 2);
	ky_trace_close(&trace);
	made_free(&made);
}

/* What a copy of the file has that is whole. */
static struct ky_trace *load_copy(void)
{
	struct ky_kymo_bundle *bundle;
	struct ky_kymo_error why;
	struct ky_out out;
	const int fd = memfd_create("damaged", MFD_CLOEXEC);
	assert_int_equal(write(fd, made.data, made.bytes), made.bytes);
	assert_int_equal(ky_kymo_bundle_open_fd(&bundle, fd, &why), 0);
	assert_int_equal(ky_out_init(&out, 1u << 20), 0);
	assert_int_equal(ky_kymo_bundle_copy(bundle, &out, NULL, NULL), 0);
	struct ky_trace *trace = load_bytes(out.data, out.used);
	ky_out_free(&out);
	ky_kymo_bundle_close(&bundle);
	close(fd);
	return trace;
}

static void a_copy_has_all_that_is_whole_and_counts_the_rest(void **state)
{
	(void)state;
	make_something_of_all();
	made.data[find_chunk(KY_KYMO_DATA, 1, 2) + sizeof(struct ky_kymo_chunk) + 60] ^= 0x55;
	memset(made.data, 'x', 60); /* the FILE chunk of all */
	struct ky_trace *trace = load_copy();
	assert_int_equal(count_slices(trace, "server"), 9);
	assert_int_equal(count_slices(trace, "client"), 10);
	assert_int_equal(trace->samples.rows.count, 1);
	assert_int_equal(count_slices(trace, "server took 2 us"), 1);
	assert_int_equal(trace->lost, 2);
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
	made_free(&made);
}

static void a_file_whose_begin_is_damaged_is_still_one_of_several_sources(void **state)
{
	(void)state;
	make_something_of_all();
	memset(made.data, 'x', 60);
	memcpy(made.data, "\x89kymo\r\n\x1a", 8);
	struct ky_trace *trace = load_bytes(made.data, made.bytes);
	assert_int_equal(count_slices(trace, "server"), 10);
	assert_int_equal(count_slices(trace, "client"), 10);
	assert_true(problems_of(trace, "kymo_damaged") > 0);
	ky_trace_close(&trace);
	made_free(&made);
}

static void a_file_behind_another_is_left_out(void **state)
{
	(void)state;
	make_something_of_all();
	uint8_t *twice = malloc(2 * made.bytes);
	memcpy(twice, made.data, made.bytes);
	memcpy(twice + made.bytes, made.data, made.bytes);
	struct ky_trace *trace = load_bytes(twice, 2 * made.bytes);
	assert_int_equal(trace->slices.rows.count, 21);
	assert_int_equal(problems_of(trace, "kymo_damaged"), 1);
	ky_trace_close(&trace);
	free(twice);
	made_free(&made);
}

/* Heads alone, each of another source: what they take must be in proportion. */
static void a_file_of_nothing_but_sources_is_read(void **state)
{
	(void)state;
	const uint32_t count = 50000;
	const size_t first_bytes = sizeof(struct ky_kymo_chunk) + sizeof(struct ky_kymo_head);
	make_something_of_all();
	const size_t bytes = first_bytes + count * sizeof(struct ky_kymo_chunk);
	uint8_t *data = malloc(bytes);
	memcpy(data, made.data, first_bytes);
	for (uint32_t i = 0; i < count; i++) {
		struct ky_kymo_chunk chunk = {.magic = KY_KYMO_MAGIC,
					      .head_bytes = sizeof(chunk),
					      .type = (uint16_t)(1 + i % 7),
					      .source = 0xffffffffu - i,
					      .body_hash = ky_xxh64("", 0)};
		chunk.head_hash = ky_xxh64(&chunk, offsetof(struct ky_kymo_chunk, head_hash));
		memcpy(data + first_bytes + i * sizeof(chunk), &chunk, sizeof(chunk));
	}
	struct ky_trace *trace = load_bytes(data, bytes);
	assert_int_equal(trace->slices.rows.count, 0);
	ky_trace_close(&trace);
	free(data);
	made_free(&made);
}

static int write_file(const char *path)
{
	make_something_of_all();
	FILE *file = fopen(path, "wb");
	const bool written = file && fwrite(made.data, 1, made.bytes, file) == made.bytes;
	if (file)
		fclose(file);
	made_free(&made);
	return written ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--write") == 0)
		return write_file(argv[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drums_are_one_trace_in_the_order_of_time),
		cmocka_unit_test(drums_beside_a_programs_own_nest_in_its_threads),
		cmocka_unit_test(children_in_their_parents_drum_are_processes),
		cmocka_unit_test(what_is_open_lasts_until_its_thread_ends),
		cmocka_unit_test(calls_of_a_program_end_where_the_next_begins),
		cmocka_unit_test(what_is_open_lasts_until_its_program_ends),
		cmocka_unit_test(what_is_open_lasts_until_its_thread_gives_its_ring_back),
		cmocka_unit_test(one_drum_is_read_as_a_single_file_is),
		cmocka_unit_test(equal_pids_at_the_same_time_are_two_processes),
		cmocka_unit_test(a_drum_after_another_of_its_pid_is_the_same_process),
		cmocka_unit_test(threads_are_of_the_drums_process_whatever_its_namespace_calls_it),
		cmocka_unit_test(what_never_got_into_a_ring_is_told_by_the_drums_index),
		cmocka_unit_test(thousands_of_drums_are_read),
		cmocka_unit_test(samples_are_brought_to_the_drums_clock),
		cmocka_unit_test(a_process_that_perf_saw_begin_is_that_of_its_drum),
		cmocka_unit_test(a_task_that_ftrace_and_perf_tell_of_is_one),
		cmocka_unit_test(a_stream_that_is_no_such_thing_is_a_problem_and_the_rest_is_read),
		cmocka_unit_test(snapshots_have_a_track_with_all_that_is_known),
		cmocka_unit_test(an_event_that_asked_for_a_snapshot_is_not_shown_beside_its_record),
		cmocka_unit_test(spans_are_not_carried_from_window_to_window),
		cmocka_unit_test(
			asynchronous_spans_end_with_their_window_unless_their_end_is_in_another),
		cmocka_unit_test(what_runs_at_the_end_of_a_window_ends_there),
		cmocka_unit_test(a_file_that_is_cut_anywhere_is_read_to_there),
		cmocka_unit_test(a_damaged_chunk_is_noted_with_its_place_and_the_others_are_read),
		cmocka_unit_test(a_copy_has_all_that_is_whole_and_counts_the_rest),
		cmocka_unit_test(a_file_whose_begin_is_damaged_is_still_one_of_several_sources),
		cmocka_unit_test(a_file_behind_another_is_left_out),
		cmocka_unit_test(a_file_of_nothing_but_sources_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
