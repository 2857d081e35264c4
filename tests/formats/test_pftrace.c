/* SPDX-License-Identifier: MIT */
/*
 * test_pftrace.c: Perfetto protobuf: sequences and what they intern, clocks, tracks, track events in both
 * forms. Each test puts packets together and looks at the rows that come of them.
 */
#include "formats/load.h"
#include "proto_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CLEARED = 1, NEEDS = 2 };
enum { BEGIN = 1, END = 2, INSTANT = 3, COUNTER = 4 };

static struct proto file;
static struct proto packet;
static struct proto event;
static struct proto part;
static struct ky_trace *trace;

static void start_packet(uint64_t sequence, uint64_t flags)
{
	packet.used = 0;
	proto_number(&packet, 10, sequence);
	if (flags)
		proto_number(&packet, 13, flags);
}

static void end_packet(void)
{
	proto_message(&file, 1, &packet);
}

static void start_event(uint64_t type, uint64_t uuid)
{
	event.used = 0;
	proto_number(&event, 9, type);
	if (uuid)
		proto_number(&event, 11, uuid);
}

/* The event in a packet of that sequence at that time. */
static void put_event(uint64_t sequence, uint64_t flags, uint64_t ts)
{
	start_packet(sequence, flags);
	proto_number(&packet, 8, ts);
	proto_message(&packet, 11, &event);
	end_packet();
}

static void put_simple(uint64_t type, uint64_t uuid, uint64_t ts, const char *name)
{
	start_event(type, uuid);
	if (name)
		proto_text(&event, 23, name);
	put_event(1, 0, ts);
}

/* What is in part is the track's descriptor, behind its uuid. */
static void start_track(uint64_t uuid)
{
	part.used = 0;
	proto_number(&part, 1, uuid);
}

static void put_track(void)
{
	start_packet(1, 0);
	proto_message(&packet, 60, &part);
	end_packet();
}

static void put_thread_track(uint64_t uuid, uint64_t pid, uint64_t tid, const char *name)
{
	static struct proto thread;
	thread.used = 0;
	proto_number(&thread, 1, pid);
	proto_number(&thread, 2, tid);
	proto_text(&thread, 5, name);
	start_track(uuid);
	proto_message(&part, 4, &thread);
	put_track();
}

static void read_bytes(const void *data, size_t bytes)
{
	char message[KY_MESSAGE_BYTES];
	const int error = ky_load_memory(&trace, data, bytes, &ky_reader_pftrace, message);
	if (error)
		fail_msg("%s", message);
}

static void read_file(void)
{
	read_bytes(file.data, file.used);
}

static int begin_file(void **state)
{
	(void)state;
	file.used = 0;
	trace = NULL;
	return 0;
}

static int end_file(void **state)
{
	(void)state;
	ky_trace_close(&trace);
	return 0;
}

static const char *slice_name(uint32_t slice)
{
	return ky_text_of(trace, trace->slices.name[slice]);
}

static uint64_t problems(const char *name)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		if (strcmp(ky_text_of(trace, trace->problems.name[i]), name) == 0)
			return trace->problems.number[i];
	return 0;
}

/* The argument of that key in a set, or KY_NONE. */
static uint32_t find_arg(uint32_t set, const char *key)
{
	for (uint32_t i = ky_arg_set_first(trace, set); i < ky_arg_set_end(trace, set); i++)
		if (strcmp(ky_text_of(trace, trace->args.key[i]), key) == 0)
			return i;
	return KY_NONE;
}

static uint64_t arg(uint32_t set, const char *key)
{
	const uint32_t row = find_arg(set, key);
	if (row == KY_NONE)
		fail_msg("no argument %s", key);
	return trace->args.value[row];
}

/* ---- sequences ---- */

static void interned_names_nest_on_the_threads_track(void **state)
{
	(void)state;
	put_thread_track(7, 100, 101, "worker");
	start_packet(1, CLEARED);
	part.used = 0;
	proto_interned(&part, 1, 1, "cat");
	proto_interned(&part, 2, 1, "outer");
	proto_interned(&part, 2, 2, "inner");
	proto_message(&packet, 12, &part);
	end_packet();
	for (uint64_t i = 1; i <= 2; i++) {
		start_event(BEGIN, 7);
		proto_number(&event, 10, i);
		proto_number(&event, 3, 1);
		put_event(1, NEEDS, 1000 * i);
	}
	put_simple(END, 7, 3000, NULL);
	put_simple(END, 7, 5000, NULL);
	read_file();
	assert_int_equal(trace->slices.rows.count, 2);
	assert_string_equal(slice_name(0), "outer");
	assert_string_equal(slice_name(1), "inner");
	assert_int_equal(trace->slices.dur[0], 4000);
	assert_int_equal(trace->slices.dur[1], 1000);
	assert_int_equal(trace->slices.parent[1], 0);
	assert_string_equal(ky_text_of(trace, trace->slices.category[0]), "cat");
	const uint32_t thread = ky_track_thread(trace, trace->slices.track[0]);
	assert_int_equal(trace->threads.tid[thread], 101);
	assert_string_equal(ky_text_of(trace, trace->threads.name[thread]), "worker");
	assert_int_equal(trace->processes.pid[trace->threads.process[thread]], 100);
}

static void clearing_forgets_interned_names(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		start_packet(1, CLEARED);
		part.used = 0;
		if (i == 0)
			proto_interned(&part, 2, 5, "once");
		proto_message(&packet, 12, &part);
		end_packet();
		start_event(INSTANT, 0);
		proto_number(&event, 10, 5);
		put_event(1, 0, (uint64_t)i);
	}
	read_file();
	assert_int_equal(trace->slices.rows.count, 2);
	assert_string_equal(slice_name(0), "once");
	assert_null(slice_name(1));
}

static void what_needs_lost_state_is_left_out(void **state)
{
	(void)state;
	start_event(INSTANT, 0);
	proto_text(&event, 23, "x");
	put_event(1, NEEDS, 10);
	put_event(1, CLEARED | NEEDS, 20);
	start_packet(1, NEEDS);
	proto_number(&packet, 42, 1);
	proto_number(&packet, 8, 30);
	proto_message(&packet, 11, &event);
	end_packet();
	put_event(1, 0, 40);
	read_file();
	assert_int_equal(trace->slices.rows.count, 2);
	assert_int_equal(trace->slices.ts[0], 20);
	assert_int_equal(trace->slices.ts[1], 40);
	assert_int_equal(problems("packet_skipped_seq_needs_incremental_state_invalid"), 2);
	assert_int_equal(trace->losses.rows.count, 1);
}

static void events_without_a_sequence_are_counted(void **state)
{
	(void)state;
	start_event(INSTANT, 0);
	packet.used = 0;
	proto_number(&packet, 8, 1);
	proto_message(&packet, 11, &event);
	end_packet();
	read_file();
	assert_int_equal(trace->slices.rows.count, 0);
	assert_int_equal(problems("track_event_missing_sequence_id"), 1);
}

static void huge_interned_ids_work_as_small_ones(void **state)
{
	(void)state;
	start_packet(1, CLEARED);
	part.used = 0;
	for (uint64_t i = 0; i < 64; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%u", (unsigned)i);
		proto_interned(&part, 2, i * 0x100000000u + 3, name);
	}
	proto_message(&packet, 12, &part);
	end_packet();
	for (uint64_t i = 0; i < 64; i += 21) {
		start_event(INSTANT, 0);
		proto_number(&event, 10, i * 0x100000000u + 3);
		put_event(1, 0, i);
	}
	read_file();
	assert_string_equal(slice_name(0), "n0");
	assert_string_equal(slice_name(1), "n21");
	assert_string_equal(slice_name(3), "n63");
}

/* ---- clocks ---- */

static void add_clock(struct proto *snapshot, uint64_t id, uint64_t value, bool incremental,
		      uint64_t unit)
{
	static struct proto clock;
	clock.used = 0;
	proto_number(&clock, 1, id);
	proto_number(&clock, 2, value);
	if (incremental)
		proto_number(&clock, 3, 1);
	if (unit)
		proto_number(&clock, 4, unit);
	proto_message(snapshot, 1, &clock);
}

static void incremental_clocks_count_on_in_their_unit(void **state)
{
	(void)state;
	static struct proto defaults;
	defaults.used = 0;
	proto_number(&defaults, 58, 64);
	part.used = 0;
	add_clock(&part, 6, 1000000, false, 0);
	add_clock(&part, 64, 500, true, 1000);
	start_packet(1, CLEARED);
	proto_message(&packet, 59, &defaults);
	proto_message(&packet, 6, &part);
	end_packet();
	start_event(INSTANT, 0);
	put_event(1, 0, 2);
	put_event(1, 0, 3);
	/* Another clock for one packet leaves the first one where it is. */
	start_packet(1, 0);
	proto_number(&packet, 8, 7);
	proto_number(&packet, 58, 6);
	proto_message(&packet, 11, &event);
	end_packet();
	put_event(1, 0, 1);
	read_file();
	assert_int_equal(trace->slices.rows.count, 4);
	assert_int_equal(trace->slices.ts[0], 7);
	assert_int_equal(trace->slices.ts[1], 1002000);
	assert_int_equal(trace->slices.ts[2], 1005000);
	assert_int_equal(trace->slices.ts[3], 1006000);
}

static void snapshots_behind_an_event_count_for_it(void **state)
{
	(void)state;
	start_packet(1, 0);
	proto_number(&packet, 8, 100);
	proto_number(&packet, 58, 3);
	start_event(INSTANT, 0);
	proto_message(&packet, 11, &event);
	end_packet();
	part.used = 0;
	add_clock(&part, 6, 5000, false, 0);
	add_clock(&part, 3, 1000, false, 0);
	start_packet(2, 0);
	proto_message(&packet, 6, &part);
	end_packet();
	start_packet(1, 0);
	proto_number(&packet, 8, 100);
	proto_number(&packet, 58, 200);
	proto_message(&packet, 11, &event);
	end_packet();
	read_file();
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.ts[0], 4100);
	assert_int_equal(problems("clock_sync_failure"), 1);
}

/* ---- tracks ---- */

static void sandboxed_threads_have_tids_of_their_own(void **state)
{
	(void)state;
	static struct proto thread;
	start_track(7);
	thread.used = 0;
	proto_number(&thread, 1, 100);
	proto_number(&thread, 2, 5);
	proto_message(&part, 4, &thread);
	thread.used = 0;
	proto_number(&thread, 3, 1); /* ChromeThreadDescriptor.is_sandboxed_tid */
	proto_message(&part, 7, &thread);
	put_track();
	put_simple(INSTANT, 7, 1, "x");
	read_file();
	const uint32_t row = ky_track_thread(trace, trace->slices.track[0]);
	assert_true(trace->threads.tid[row] > UINT32_MAX);
	assert_int_equal((uint32_t)trace->threads.tid[row], 5);
}

static void a_second_uuid_of_a_tid_is_another_thread(void **state)
{
	(void)state;
	put_thread_track(7, 100, 101, "first");
	put_simple(INSTANT, 7, 1, "a");
	put_thread_track(8, 100, 101, "second");
	put_simple(INSTANT, 8, 2, "b");
	read_file();
	const uint32_t a = ky_track_thread(trace, trace->slices.track[0]);
	const uint32_t b = ky_track_thread(trace, trace->slices.track[1]);
	assert_int_not_equal(a, b);
	assert_string_equal(ky_text_of(trace, trace->threads.name[a]), "first");
	assert_string_equal(ky_text_of(trace, trace->threads.name[b]), "second");
}

static void children_belong_to_what_their_parents_belong_to(void **state)
{
	(void)state;
	static struct proto process;
	process.used = 0;
	proto_number(&process, 1, 100);
	proto_text(&process, 6, "program");
	start_track(1);
	proto_message(&part, 3, &process);
	put_track();
	start_track(2);
	proto_number(&part, 5, 1);
	proto_text(&part, 2, "requests");
	put_track();
	start_track(3);
	proto_number(&part, 5, 2);
	put_track();
	put_simple(INSTANT, 3, 5, "x");
	read_file();
	const uint32_t track = trace->slices.track[0];
	assert_int_equal(trace->tracks.id[track], 3);
	assert_string_equal(ky_text_of(trace, trace->tracks.name[track]), "x");
	const uint32_t parent = trace->tracks.parent[track];
	assert_string_equal(ky_text_of(trace, trace->tracks.name[parent]), "requests");
	assert_int_equal(trace->tracks.parent[parent], KY_NONE);
	const uint32_t owner = ky_track_process(trace, track);
	assert_string_equal(ky_text_of(trace, trace->processes.name[owner]), "program");
}

static void loops_of_parents_end(void **state)
{
	(void)state;
	for (uint64_t uuid = 1; uuid <= 2; uuid++) {
		start_track(uuid);
		proto_number(&part, 5, 3 - uuid);
		put_track();
	}
	put_simple(INSTANT, 1, 5, "x");
	read_file();
	assert_int_equal(trace->slices.rows.count, 0);
	assert_true(problems("track_event_track_hierarchy_loop") > 0);
}

/* ---- counters ---- */

static void describe_counter(uint64_t uuid, const char *name, uint64_t multiplier, bool incremental)
{
	static struct proto counter;
	counter.used = 0;
	proto_number(&counter, 3, 3);
	proto_number(&counter, 4, multiplier);
	proto_number(&counter, 5, incremental);
	start_track(uuid);
	proto_text(&part, 2, name);
	proto_message(&part, 8, &counter);
	put_track();
}

static void counters_are_scaled_and_summed(void **state)
{
	(void)state;
	describe_counter(9, "memory", 1024, true);
	start_packet(1, CLEARED);
	end_packet();
	for (uint64_t i = 1; i <= 2; i++) {
		start_event(COUNTER, 9);
		proto_number(&event, 30, i);
		put_event(1, 0, i);
	}
	start_event(COUNTER, 9);
	proto_real(&event, 44, 0.5);
	put_event(1, CLEARED, 3);
	put_simple(COUNTER, 55, 4, NULL);
	read_file();
	assert_int_equal(trace->counters.rows.count, 3);
	assert_true(trace->counters.value[0] == 1024);
	assert_true(trace->counters.value[1] == 3072);
	assert_true(trace->counters.value[2] == 512);
	const uint32_t track = trace->counters.track[0];
	assert_string_equal(ky_text_of(trace, trace->tracks.name[track]), "memory");
	assert_string_equal(ky_text_of(trace, trace->tracks.unit[track]), "bytes");
	assert_int_equal(problems("track_event_counter_missing_value"), 1);
}

static void extra_counters_take_their_tracks_from_defaults(void **state)
{
	(void)state;
	static struct proto defaults;
	part.used = 0;
	proto_number(&part, 31, 8);
	proto_number(&part, 31, 9);
	defaults.used = 0;
	proto_message(&defaults, 11, &part);
	start_packet(1, CLEARED);
	proto_message(&packet, 59, &defaults);
	end_packet();
	describe_counter(8, "a", 0, false);
	describe_counter(9, "b", 0, false);
	start_event(INSTANT, 0);
	proto_packed(&event, 12, (const uint64_t[]){4, 5}, 2);
	put_event(1, 0, 10);
	start_event(INSTANT, 0);
	proto_packed(&event, 12, (const uint64_t[]){1, 2, 3}, 3);
	put_event(1, 0, 20);
	read_file();
	assert_int_equal(trace->counters.rows.count, 2);
	assert_true(trace->counters.value[0] + trace->counters.value[1] == 9);
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(problems("track_event_extra_counter_track_uuid_mismatch"), 1);
}

/* ---- arguments ---- */

static void annotations_have_perfettos_keys(void **state)
{
	(void)state;
	static struct proto annotation, child;
	start_event(INSTANT, 0);
	annotation.used = 0;
	proto_text(&annotation, 10, "a.b");
	proto_number(&annotation, 4, (uint64_t)-5);
	proto_message(&event, 4, &annotation);
	annotation.used = child.used = 0;
	proto_text(&annotation, 10, "dict");
	proto_text(&child, 10, "k");
	proto_number(&child, 2, 1);
	proto_message(&annotation, 11, &child);
	proto_message(&event, 4, &annotation);
	annotation.used = 0;
	proto_text(&annotation, 10, "list");
	for (uint64_t i = 0; i < 2; i++) {
		child.used = 0;
		proto_number(&child, 3, 10 + i);
		proto_message(&annotation, 12, &child);
	}
	proto_message(&event, 4, &annotation);
	annotation.used = 0;
	proto_text(&annotation, 10, "json");
	proto_text(&annotation, 9, "{\"x\": [1, \"two\"]}");
	proto_message(&event, 4, &annotation);
	put_event(1, 0, 1);
	read_file();
	const uint32_t set = trace->slices.args[0];
	assert_int_equal((int64_t)arg(set, "debug.a_b"), -5);
	assert_int_equal(arg(set, "debug.dict.k"), 1);
	assert_int_equal(arg(set, "debug.list[1]"), 11);
	assert_int_equal(arg(set, "debug.json.x[0]"), 1);
	const uint64_t two = arg(set, "debug.json.x[1]");
	assert_string_equal(ky_text_of(trace, (uint32_t)two), "two");
}

static void source_locations_are_arguments(void **state)
{
	(void)state;
	static struct proto location;
	location.used = part.used = 0;
	proto_number(&location, 1, 4);
	proto_text(&location, 2, "src\\main.c");
	proto_text(&location, 3, "main");
	proto_number(&location, 4, 12);
	proto_message(&part, 4, &location);
	start_packet(1, CLEARED);
	proto_message(&packet, 12, &part);
	end_packet();
	start_event(INSTANT, 0);
	proto_number(&event, 34, 4);
	put_event(1, 0, 1);
	read_file();
	const uint32_t set = trace->slices.args[0];
	assert_string_equal(ky_text_of(trace, (uint32_t)arg(set, "source.file_name")),
			    "src/main.c");
	assert_int_equal(arg(set, "source.line_number"), 12);
}

static void annotations_nested_without_end_are_cut(void **state)
{
	(void)state;
	static struct proto inner, outer;
	inner.used = 0;
	proto_number(&inner, 4, 1);
	for (int i = 0; i < 500; i++) {
		outer.used = 0;
		proto_message(&outer, 12, &inner);
		inner = outer;
	}
	proto_text(&inner, 10, "deep");
	start_event(INSTANT, 0);
	proto_message(&event, 4, &inner);
	put_event(1, 0, 1);
	read_file();
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(problems("debug_annotation_too_deep"), 1);
}

/* ---- flows ---- */

static void flows_go_from_the_first_event_to_the_next(void **state)
{
	(void)state;
	put_thread_track(7, 100, 101, "t");
	for (uint64_t i = 1; i <= 2; i++) {
		start_event(INSTANT, 7);
		proto_text(&event, 23, i == 1 ? "from" : "to");
		proto_fixed64(&event, i == 1 ? 47 : 48, 77);
		put_event(1, 0, i);
	}
	read_file();
	assert_int_equal(trace->flows.rows.count, 1);
	assert_string_equal(slice_name(trace->flows.out[0]), "from");
	assert_string_equal(slice_name(trace->flows.in[0]), "to");
}

/* ---- the form of old ---- */

static void put_thread_descriptor(uint64_t pid, uint64_t tid, uint64_t us)
{
	part.used = 0;
	proto_number(&part, 1, pid);
	proto_number(&part, 2, tid);
	proto_number(&part, 6, us);
	start_packet(1, CLEARED);
	proto_message(&packet, 44, &part);
	end_packet();
}

static void put_legacy(char phase, uint64_t delta_us, uint64_t id, const char *name)
{
	part.used = event.used = 0;
	proto_number(&part, 2, (uint64_t)phase);
	if (id)
		proto_number(&part, 6, id);
	if (phase == 'X')
		proto_number(&part, 3, 5);
	if (phase == 'f')
		proto_number(&part, 12, 1);
	proto_number(&event, 1, delta_us);
	proto_text(&event, 23, name);
	proto_message(&event, 6, &part);
	start_packet(1, NEEDS);
	proto_message(&packet, 11, &event);
	end_packet();
}

static void legacy_events_count_on_from_the_thread_descriptor(void **state)
{
	(void)state;
	put_thread_descriptor(100, 101, 1000);
	put_legacy('X', 10, 0, "whole");
	put_legacy('s', 1, 5, "flow");
	put_legacy('X', 100, 0, "later");
	put_legacy('f', 1, 5, "flow");
	read_file();
	assert_int_equal(trace->slices.rows.count, 2);
	assert_int_equal(trace->slices.ts[0], 1010000);
	assert_int_equal(trace->slices.dur[0], 5000);
	assert_int_equal(trace->slices.ts[1], 1111000);
	assert_int_equal(trace->threads.tid[ky_track_thread(trace, trace->slices.track[0])], 101);
	assert_int_equal(trace->flows.rows.count, 1);
}

static void legacy_async_events_are_told_apart_by_id(void **state)
{
	(void)state;
	put_thread_descriptor(100, 101, 0);
	put_legacy('b', 1, 1, "a");
	put_legacy('b', 1, 2, "b");
	put_legacy('e', 1, 1, "a");
	put_legacy('e', 1, 2, "b");
	read_file();
	assert_int_equal(trace->slices.rows.count, 2);
	assert_int_equal(trace->slices.dur[0], 2000);
	assert_int_equal(trace->slices.dur[1], 2000);
	assert_int_not_equal(trace->slices.track[0], trace->slices.track[1]);
	assert_int_equal(trace->slices.depth[1], 0);
}

/* ---- damage ---- */

static void all_before_a_cut_is_read(void **state)
{
	(void)state;
	put_simple(INSTANT, 0, 1, "whole");
	put_simple(INSTANT, 0, 2, "cut");
	read_bytes(file.data, file.used - 3);
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(problems("last_packet_cut"), 1);
}

static void what_is_no_packet_ends_the_reading(void **state)
{
	(void)state;
	put_simple(INSTANT, 0, 1, "whole");
	memset(file.data + file.used, 0xff, 64);
	file.used += 64;
	read_file();
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(problems("packet_expected"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_file, end_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(interned_names_nest_on_the_threads_track),
		TEST(clearing_forgets_interned_names),
		TEST(what_needs_lost_state_is_left_out),
		TEST(events_without_a_sequence_are_counted),
		TEST(huge_interned_ids_work_as_small_ones),
		TEST(incremental_clocks_count_on_in_their_unit),
		TEST(snapshots_behind_an_event_count_for_it),
		TEST(sandboxed_threads_have_tids_of_their_own),
		TEST(a_second_uuid_of_a_tid_is_another_thread),
		TEST(children_belong_to_what_their_parents_belong_to),
		TEST(loops_of_parents_end),
		TEST(counters_are_scaled_and_summed),
		TEST(extra_counters_take_their_tracks_from_defaults),
		TEST(annotations_have_perfettos_keys),
		TEST(source_locations_are_arguments),
		TEST(annotations_nested_without_end_are_cut),
		TEST(flows_go_from_the_first_event_to_the_next),
		TEST(legacy_events_count_on_from_the_thread_descriptor),
		TEST(legacy_async_events_are_told_apart_by_id),
		TEST(all_before_a_cut_is_read),
		TEST(what_is_no_packet_ends_the_reading),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
