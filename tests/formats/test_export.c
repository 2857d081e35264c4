/* SPDX-License-Identifier: MIT */
/*
 * test_export.c: a trace with one of everything, written in each format and read back, is the same as far as the
 * format can carry it; files appear whole or not at all; traces are merged and cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "formats/export.h"
#include "formats/format.h"
#include "formats/load.h"
#include "formats/merge.h"
#include "formats/out.h"
#include "model/intake.h"
#include "model/kernel.h"
#include "model_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define T INT64_C(1000000000)

static char directory[] = "/tmp/kymo-export-XXXXXX";

static const char *path_of(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

/* ---- the trace ---- */

static uint32_t str(struct ky_trace *t, const char *text)
{
	return ky_string_z(t, text);
}

static uint32_t many_args(struct ky_trace *t, uint32_t count)
{
	char key[32];
	ky_args_begin(t);
	for (uint32_t i = 0; i < count; i++) {
		snprintf(key, sizeof(key), "args.k%02u", i);
		ky_arg_int(t, str(t, key), i);
	}
	return ky_args_end(t);
}

static uint32_t typed_args(struct ky_trace *t)
{
	ky_args_begin(t);
	ky_arg_int(t, str(t, "args.int"), -5);
	ky_arg_uint(t, str(t, "args.uint"), 7);
	ky_arg_real(t, str(t, "args.real"), 0.1);
	ky_arg_bool(t, str(t, "args.bool"), true);
	ky_arg_pointer(t, str(t, "args.pointer"), 0x7f00dead);
	ky_arg_string(t, str(t, "args.text"), str(t, "a \"quoted\" ümlaut\n"));
	return ky_args_end(t);
}

static uint32_t nested_args(struct ky_trace *t)
{
	ky_args_begin(t);
	ky_arg_int(t, str(t, "debug.a.b"), 1);
	ky_arg_string(t, str(t, "debug.a.c[0]"), str(t, "x"));
	ky_arg_string(t, str(t, "debug.a.c[1]"), str(t, "y"));
	ky_arg_int(t, str(t, "debug.list[0].n"), 3);
	ky_arg_int(t, str(t, "debug.list[1].n"), 4);
	ky_arg_int(t, str(t, "debug.z"), 5);
	return ky_args_end(t);
}

static void put_spans(struct ky_trace *t, uint32_t track)
{
	const uint32_t cat = str(t, "net");
	ky_put_begin(t, T + 100, track, cat, str(t, "outer"), typed_args(t));
	ky_put_begin(t, T + 200, track, cat, str(t, "inner"), nested_args(t));
	ky_put_end(t, T + 301, track, 0, 0, 0);
	ky_put_instant(t, T + 400, track, cat, str(t, "point"), 0);
	/* Begins where its parent ends, and has no length. */
	ky_put_begin(t, T + 500, track, cat, str(t, "edge"), 0);
	ky_put_end(t, T + 500, track, 0, 0, 0);
	ky_put_end(t, T + 500, track, 0, 0, 0);
	/* Begins right there as a sibling. */
	ky_put_begin(t, T + 500, track, cat, str(t, "next"), 0);
	ky_put_end(t, T + 2500000123, track, 0, 0, 0);
	ky_put_begin(t, T + 2600000000, track, cat, str(t, "unfinished"), 0);
}

static void put_flow(struct ky_trace *t, int64_t ts, uint32_t track, enum ky_flow_step step,
		     uint64_t id)
{
	const uint64_t key = ky_flow_key(t, id, str(t, "net"), str(t, "message"), 0);
	ky_put_flow(t, ts, track, step, KY_BIND_LAST, key);
}

static void put_pair(struct ky_trace *t, uint32_t from, uint32_t to)
{
	const uint32_t cat = str(t, "ipc");
	ky_put_begin(t, T + 1000, from, cat, str(t, "send"), 0);
	put_flow(t, T + 1000, from, KY_FLOW_BEGIN, 42);
	ky_put_end(t, T + 1100, from, 0, 0, 0);
	ky_put_begin(t, T + 1200, to, cat, str(t, "forward"), 0);
	put_flow(t, T + 1200, to, KY_FLOW_STEP, 42);
	ky_put_end(t, T + 1300, to, 0, 0, 0);
	ky_put_begin(t, T + 1400, to, cat, str(t, "receive"), 0);
	put_flow(t, T + 1400, to, KY_FLOW_END, 42);
	ky_put_end(t, T + 1500, to, 0, 0, 0);
}

static void put_async(struct ky_trace *t, uint32_t process)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_PROCESS,
					   .flags = KY_TRACK_ASYNC,
					   .owner = process,
					   .name = str(t, "request"),
					   .category = str(t, "rpc"),
					   .id = 77};
	const uint32_t track = ky_track(t, &spec);
	ky_put_begin(t, T + 700, track, str(t, "rpc"), str(t, "request"), 0);
	ky_put_begin(t, T + 800, track, str(t, "rpc"), str(t, "phase"), many_args(t, 3));
	ky_put_end(t, T + 900, track, 0, 0, 0);
	ky_put_end(t, T + 5000, track, 0, 0, 0);
}

static struct ky_trace *make_trace(void)
{
	struct ky_trace *t;
	assert_int_equal(ky_trace_open(&t), 0);
	t->clock = KY_CLOCK_BOOTTIME;
	t->format = "test";
	const uint32_t first = ky_process(t, 10), second = ky_process(t, 20);
	ky_process_name(t, first, str(t, "client"), KY_NAME_TRACE);
	ky_process_name(t, second, str(t, "server"), KY_NAME_TRACE);
	/* The same tid in both. */
	const uint32_t a = ky_thread(t, 10, 7), b = ky_thread(t, 20, 7), c = ky_thread(t, 10, 11);
	ky_thread_name(t, a, str(t, "main"), KY_NAME_TRACE);
	ky_thread_name(t, b, str(t, "loop"), KY_NAME_TRACE);
	ky_thread_name(t, c, str(t, "worker"), KY_NAME_TRACE);
	put_spans(t, ky_track_of_thread(t, c));
	put_pair(t, ky_track_of_thread(t, a), ky_track_of_thread(t, b));
	put_async(t, first);
	ky_put_instant(t, T + 50, ky_track_of_process(t, second), str(t, "net"), str(t, "reload"),
		       0);
	const uint32_t counter =
		ky_track_counter(t, KY_TRACK_PROCESS_COUNTER, first, str(t, "memory"));
	for (int i = 0; i < 5; i++)
		ky_put_counter(t, T + 100 * i, counter, 0.5 + i);
	assert_int_equal(ky_trace_finish(t, NULL, NULL), 0);
	return t;
}

/* ---- writing and reading ---- */

static struct ky_trace *through(const struct ky_trace *trace, const char *name,
				struct ky_export_left *left)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *back;
	const char *path = path_of(name);
	const struct ky_load_options options = {.size = sizeof(options)};
	const int error = ky_export(trace, NULL, path, NULL, left, NULL, NULL, message);
	if (error)
		fail_msg("%s", message);
	if (ky_load(&back, path, &options, message) != 0)
		fail_msg("%s", message);
	unlink(path);
	return back;
}

static void expect_same(const struct ky_trace *a, const struct ky_trace *b,
			char *(*text)(const struct ky_trace *))
{
	char *left = text(a), *right = text(b);
	assert_string_equal(left, right);
	free(left);
	free(right);
}

static void expect_round_trip(const char *name)
{
	struct ky_export_left left;
	struct ky_trace *trace = make_trace();
	struct ky_trace *back = through(trace, name, &left);
	expect_same(trace, back, model_slices);
	expect_same(trace, back, model_flows);
	expect_same(trace, back, model_counters);
	assert_int_equal(left.slices + left.instants + left.flows + left.args + left.cut, 0);
	ky_trace_close(&trace);
	ky_trace_close(&back);
}

static void test_json_reads_back_the_same(void **state)
{
	(void)state;
	expect_round_trip("a.json");
}

static void test_pftrace_reads_back_the_same(void **state)
{
	(void)state;
	expect_round_trip("a.pftrace");
}

static void test_fxt_reads_back_the_same(void **state)
{
	(void)state;
	expect_round_trip("a.fxt");
}

static void test_kymo_reads_back_the_same(void **state)
{
	(void)state;
	expect_round_trip("a.kymo");
}

static void test_compressed_files_read_back_the_same(void **state)
{
	(void)state;
	expect_round_trip("a.json.gz");
	expect_round_trip("a.fxt.zst");
}

static void test_a_chain_of_formats_keeps_everything(void **state)
{
	(void)state;
	struct ky_export_left left;
	struct ky_trace *trace = make_trace();
	struct ky_trace *json = through(trace, "a.json", &left);
	struct ky_trace *pftrace = through(json, "a.pftrace", &left);
	struct ky_trace *fxt = through(pftrace, "a.fxt", &left);
	struct ky_trace *last = through(fxt, "a.json", &left);
	expect_same(trace, last, model_slices);
	expect_same(trace, last, model_flows);
	expect_same(trace, last, model_counters);
	ky_trace_close(&trace);
	ky_trace_close(&json);
	ky_trace_close(&pftrace);
	ky_trace_close(&fxt);
	ky_trace_close(&last);
}

/* ---- kernel events ---- */

static void put_waking(struct ky_trace *t, int64_t ts, int32_t tid, int32_t woken, const char *name)
{
	ky_args_begin(t);
	ky_arg_string(t, str(t, "comm"), str(t, "woken"));
	ky_arg_int(t, str(t, "pid"), woken);
	ky_arg_int(t, str(t, "prio"), 120);
	ky_arg_int(t, str(t, "target_cpu"), 1);
	ky_put_raw(t, ts, 0, tid, str(t, name), ky_args_end(t));
	ky_put_waking(t, ts, woken, 0, tid);
}

static void test_wake_ups_are_read_back(void **state)
{
	(void)state;
	struct ky_export_left left;
	struct ky_trace *t;
	assert_int_equal(ky_trace_open(&t), 0);
	const struct ky_switch events[] = {
		{.cpu = 0, .next_tid = 10, .next_comm = str(t, "waker")},
		{.cpu = 1, .next_tid = 11, .next_comm = str(t, "woken")},
		{.cpu = 1, .prev_tid = 11, .prev_state = str(t, "S")},
		{.cpu = 1, .next_tid = 11, .next_comm = str(t, "woken")},
	};
	ky_put_switch(t, T + 1, &events[0]);
	ky_put_switch(t, T + 2, &events[1]);
	ky_put_switch(t, T + 10, &events[2]);
	put_waking(t, T + 20, 10, 11, "sched_waking");
	ky_put_switch(t, T + 30, &events[3]);
	assert_int_equal(ky_trace_finish(t, NULL, NULL), 0);
	struct ky_trace *back = through(t, "a.pftrace", &left);
	const struct ky_thread_states *states = &back->thread_states;
	assert_int_equal(states->rows.count, t->thread_states.rows.count);
	uint32_t woken = 0;
	for (uint32_t i = 0; i < states->rows.count; i++)
		if (states->waker[i] != KY_NONE) {
			woken++;
			assert_int_equal(states->ts[i], T + 20);
			assert_int_equal(states->dur[i], 10);
			assert_int_equal(back->threads.tid[states->waker[i]], 10);
		}
	assert_int_equal(woken, 1);
	assert_int_equal(left.args, 0);
	ky_trace_close(&back);
	ky_trace_close(&t);
}

/* ---- losses ---- */

static void expect_loss(const struct ky_trace *t, uint32_t row, int64_t ts, uint32_t tid,
			uint32_t cpu, uint64_t events, const char *what)
{
	const struct ky_losses *l = &t->losses;
	assert_int_equal(l->ts[row], ts);
	assert_int_equal(l->events[row], events);
	assert_int_equal(l->cpu[row], cpu);
	assert_string_equal(ky_text_of(t, l->what[row]), what);
	if (tid)
		assert_int_equal(t->threads.tid[l->thread[row]], tid);
	else
		assert_int_equal(l->thread[row], KY_NONE);
}

static void expect_losses_of_export(const char *name)
{
	struct ky_export_left left;
	struct ky_trace *t;
	assert_int_equal(ky_trace_open(&t), 0);
	const uint32_t thread = ky_thread(t, 10, 11);
	ky_put_instant(t, T + 1, ky_track_of_thread(t, thread), str(t, "net"), str(t, "point"), 0);
	ky_put_lost(t, T + 5, thread, KY_NONE, 17, KY_LOSS_RING);
	ky_put_lost(t, KY_TIME_NONE, KY_NONE, KY_NONE, 3, KY_LOSS_NESTED);
	ky_put_lost(t, T + 6, KY_NONE, 2, 0, KY_LOSS_FTRACE_OVERRUN);
	assert_int_equal(ky_trace_finish(t, NULL, NULL), 0);
	struct ky_trace *back = through(t, name, &left);
	assert_int_equal(back->slices.rows.count, 1);
	assert_int_equal(back->lost, 20);
	assert_int_equal(back->losses.rows.count, 3);
	expect_loss(back, 0, T + 5, 11, KY_NONE, 17, "ring overwritten");
	expect_loss(back, 1, KY_TIME_NONE, 0, KY_NONE, 3, "in signal handlers, too deep");
	expect_loss(back, 2, T + 6, 0, 2, 0, "ftrace buffer overrun");
	ky_trace_close(&back);
	ky_trace_close(&t);
}

static void test_losses_of_an_export_are_read_back(void **state)
{
	(void)state;
	expect_losses_of_export("a.json");
	expect_losses_of_export("a.fxt");
	expect_losses_of_export("a.pftrace");
}

static int keep_all(struct ky_out *out, const void *data, size_t bytes)
{
	return fwrite(data, 1, bytes, out->context) == bytes ? 0 : -EIO;
}

/* Write what a session writes that lost 17 events of a thread, and 3 that never got into a ring. */
static void expect_losses_of_session(const struct ky_format *format)
{
	char message[KY_MESSAGE_BYTES];
	const struct ky_thread thread = {.pid = 10, .tid = 11, .name = {"worker", 6}};
	const struct ky_trace_info info = {.pid = 10,
					   .process = {"client", 6},
					   .command = {"client", 6},
					   .ticks_per_s = (uint64_t)T,
					   .clock = {(uint64_t)T, (uint64_t)T, 7, 7}};
	const struct ky_event event = {.kind = KYMO_KIND_LOST,
				       .time_ns = (uint64_t)T + 5,
				       .id = 17,
				       .name = {"events lost", 11},
				       .thread = &thread};
	char *data;
	size_t bytes;
	struct ky_out out;
	struct ky_trace *back;
	void *writer;
	assert_int_equal(ky_out_init(&out, 0), 0);
	out.push = keep_all;
	out.context = open_memstream(&data, &bytes);
	assert_int_equal(format->open(&writer, &out, &info), 0);
	format->thread(writer, &thread);
	format->event(writer, &event);
	format->finish(writer, 20);
	format->close(writer);
	assert_int_equal(ky_out_push(&out), 0);
	fclose(out.context);
	ky_out_free(&out);
	if (ky_load_memory(&back, data, bytes, NULL, message) != 0)
		fail_msg("%s", message);
	assert_int_equal(back->slices.rows.count, 0);
	assert_int_equal(back->lost, 20);
	assert_int_equal(back->losses.rows.count, 2);
	expect_loss(back, 0, T + 5, 11, KY_NONE, 17, "ring overwritten");
	expect_loss(back, 1, KY_TIME_NONE, 0, KY_NONE, 3, "no buffer for their thread");
	ky_trace_close(&back);
	free(data);
}

static void test_losses_of_a_session_are_read_back(void **state)
{
	(void)state;
	expect_losses_of_session(&ky_format_json);
	expect_losses_of_session(&ky_format_fxt);
	expect_losses_of_session(&ky_format_pftrace);
}

static void test_what_does_not_fit_is_counted(void **state)
{
	(void)state;
	struct ky_export_left left;
	struct ky_trace *t, *back;
	assert_int_equal(ky_trace_open(&t), 0);
	const uint32_t track = ky_track_of_thread(t, ky_thread(t, 1, 1));
	ky_put_complete(t, T, 5, track, 0, str(t, "x"), many_args(t, 20));
	assert_int_equal(ky_trace_finish(t, NULL, NULL), 0);
	back = through(t, "a.fxt", &left);
	assert_int_equal(left.args, 5);
	ky_trace_close(&back);
	back = through(t, "a.kymo", &left);
	assert_int_equal(left.args, 0);
	ky_trace_close(&back);
	back = through(t, "a.json", &left);
	assert_int_equal(left.args, 0);
	ky_trace_close(&back);
	ky_trace_close(&t);
}

/* ---- files ---- */

static void test_an_unknown_suffix_is_refused(void **state)
{
	(void)state;
	struct ky_export_left left;
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace = make_trace();
	assert_int_equal(ky_export(trace, NULL, path_of("a.txt"), NULL, &left, NULL, NULL, message),
			 -EINVAL);
	assert_non_null(strstr(message, "--format"));
	assert_int_equal(access(path_of("a.txt"), F_OK), -1);
	ky_trace_close(&trace);
}

static int give_up(void *context, uint64_t done, uint64_t all)
{
	(void)context, (void)done, (void)all;
	return -EINTR;
}

static void test_an_interrupted_export_leaves_what_was_there(void **state)
{
	(void)state;
	struct ky_export_left left;
	char message[KY_MESSAGE_BYTES], text[8] = "";
	struct ky_trace *trace = make_trace();
	const char *path = path_of("kept.json");
	FILE *file = fopen(path, "w");
	fputs("good", file);
	fclose(file);
	assert_int_equal(ky_export(trace, NULL, path, NULL, &left, give_up, NULL, message), -EINTR);
	file = fopen(path, "r");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "good");
	unlink(path);
	/* Nothing else is in the directory. */
	assert_int_equal(rmdir(directory), 0);
	assert_int_equal(mkdir(directory, 0700), 0);
	ky_trace_close(&trace);
}

static void test_a_full_device_is_an_error(void **state)
{
	(void)state;
	struct ky_export_left left;
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace = make_trace();
	assert_int_equal(ky_export(trace, NULL, "/dev/full", "json", &left, NULL, NULL, message),
			 -ENOSPC);
	ky_trace_close(&trace);
}

/* ---- parts ---- */

static void test_a_part_is_cut_at_its_edges(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES];
	struct ky_export_left left;
	const struct ky_export_selection selection = {
		.from_ns = T + 250, .to_ns = T + 450, .cut = true};
	const struct ky_load_options options = {.size = sizeof(options)};
	struct ky_trace *trace = make_trace(), *part;
	const char *path = path_of("part.json");
	assert_int_equal(ky_export(trace, &selection, path, NULL, &left, NULL, NULL, message), 0);
	assert_int_equal(ky_load(&part, path, &options, message), 0);
	unlink(path);
	assert_int_equal(part->slices.rows.count, 3);
	assert_int_equal(part->slices.ts[0], T + 250);
	assert_int_equal(part->slices.dur[0], 200);
	assert_int_equal(part->slices.dur[1], 51);
	assert_int_equal(part->slices.depth[1], 1);
	assert_int_equal(part->slices.ts[2], T + 400);
	/* The counter's value before, and those inside. */
	assert_int_equal(part->counters.rows.count, 3);
	assert_int_equal(part->counters.ts[0], T + 250);
	ky_trace_close(&part);
	ky_trace_close(&trace);
}

/* ---- merging ---- */

/* A trace that sends at one time and receives at another. */
static struct ky_trace *make_peer(int64_t send, uint64_t send_id, int64_t receive,
				  uint64_t receive_id)
{
	struct ky_trace *t;
	assert_int_equal(ky_trace_open(&t), 0);
	const uint32_t track = ky_track_of_thread(t, ky_thread(t, 5, 5));
	ky_put_begin(t, send, track, 0, str(t, "send"), 0);
	put_flow(t, send, track, KY_FLOW_BEGIN, send_id);
	ky_put_end(t, send + 10, track, 0, 0, 0);
	ky_put_begin(t, receive, track, 0, str(t, "receive"), 0);
	put_flow(t, receive, track, KY_FLOW_END, receive_id);
	ky_put_end(t, receive + 10, track, 0, 0, 0);
	assert_int_equal(ky_trace_finish(t, NULL, NULL), 0);
	return t;
}

static void test_hosts_are_aligned_by_their_messages(void **state)
{
	(void)state;
	/* The second clock is 1000000 behind; messages take 100 there and 300 back. */
	struct ky_trace *a = make_peer(2000000, 1, 2001400, 2);
	struct ky_trace *b = make_peer(1001100, 2, 1000100, 1);
	struct ky_trace *merged;
	const struct ky_alignment found = ky_align_by_flows(a, b);
	assert_int_equal(found.by, KY_ALIGN_FLOWS);
	assert_int_equal(found.forth, 1);
	assert_int_equal(found.back, 1);
	assert_int_equal(found.offset_ns, 1000100);
	assert_int_equal(found.uncertain_ns, 200);
	assert_false(found.contradicts);
	assert_int_equal(ky_trace_open(&merged), 0);
	assert_int_equal(ky_merge_add(merged, a, 0, 0, true), 0);
	assert_int_equal(ky_merge_add(merged, b, found.offset_ns, 1, false), 0);
	assert_int_equal(ky_trace_finish(merged, NULL, NULL), 0);
	assert_int_equal(merged->slices.rows.count, 4);
	assert_int_equal(merged->flows.rows.count, 2);
	assert_int_equal(merged->processes.rows.count, 2);
	ky_trace_close(&merged);
	ky_trace_close(&a);
	ky_trace_close(&b);
}

static void test_merging_one_trace_changes_nothing(void **state)
{
	(void)state;
	struct ky_trace *trace = make_trace(), *merged;
	assert_int_equal(ky_trace_open(&merged), 0);
	assert_int_equal(ky_merge_add(merged, trace, 0, 0, true), 0);
	assert_int_equal(ky_trace_finish(merged, NULL, NULL), 0);
	expect_same(trace, merged, model_slices);
	expect_same(trace, merged, model_flows);
	expect_same(trace, merged, model_counters);
	ky_trace_close(&merged);
	ky_trace_close(&trace);
}

static void test_merging_keeps_the_problems_of_the_inputs(void **state)
{
	(void)state;
	struct ky_trace *trace, *merged;
	assert_int_equal(ky_trace_open(&trace), 0);
	ky_problem(trace, "odd", KY_DATA_LOSS, 7, "the first");
	ky_problem(trace, "odd", KY_DATA_LOSS, 9, "the second");
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	assert_int_equal(ky_trace_open(&merged), 0);
	assert_int_equal(ky_merge_add(merged, trace, 0, 0, true), 0);
	assert_int_equal(ky_trace_finish(merged, NULL, NULL), 0);
	assert_int_equal(merged->problems.rows.count, 1);
	assert_int_equal(merged->problems.number[0], 2);
	assert_int_equal(merged->problems.severity[0], KY_DATA_LOSS);
	assert_int_equal(merged->problems.first_at[0], 7);
	assert_string_equal(ky_text_of(merged, merged->problems.first[0]), "the first");
	ky_trace_close(&merged);
	ky_trace_close(&trace);
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_reads_back_the_same),
		cmocka_unit_test(test_pftrace_reads_back_the_same),
		cmocka_unit_test(test_fxt_reads_back_the_same),
		cmocka_unit_test(test_kymo_reads_back_the_same),
		cmocka_unit_test(test_compressed_files_read_back_the_same),
		cmocka_unit_test(test_a_chain_of_formats_keeps_everything),
		cmocka_unit_test(test_wake_ups_are_read_back),
		cmocka_unit_test(test_losses_of_an_export_are_read_back),
		cmocka_unit_test(test_losses_of_a_session_are_read_back),
		cmocka_unit_test(test_what_does_not_fit_is_counted),
		cmocka_unit_test(test_an_unknown_suffix_is_refused),
		cmocka_unit_test(test_an_interrupted_export_leaves_what_was_there),
		cmocka_unit_test(test_a_full_device_is_an_error),
		cmocka_unit_test(test_a_part_is_cut_at_its_edges),
		cmocka_unit_test(test_hosts_are_aligned_by_their_messages),
		cmocka_unit_test(test_merging_one_trace_changes_nothing),
		cmocka_unit_test(test_merging_keeps_the_problems_of_the_inputs),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
