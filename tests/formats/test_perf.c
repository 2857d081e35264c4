/* SPDX-License-Identifier: MIT */
/* test_perf.c: perf.data, perf script, jitdumps and perf maps mean what they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/ranges.h"
#include "formats/load.h"
#include "formats/perf/perf_script.h"
#include "perf_maker.h"

#define FIELDS                                                                                     \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |                   \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)
#define SAMPLE_ID_ALL (1ull << 18)

static struct perf_maker maker;

static struct ky_trace *load(const void *data, size_t bytes, const struct ky_reader *reader)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	if (ky_load_memory(&trace, data, bytes, reader, message) != 0)
		fail_msg("%s", message);
	return trace;
}

static struct ky_trace *load_text(const char *text)
{
	return load(text, strlen(text), NULL);
}

static void sample(uint32_t pid, uint32_t tid, uint64_t time, uint64_t ip, const uint64_t *chain,
		   uint64_t words)
{
	perf_record(&maker, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	perf_u64(&maker, ip);
	perf_trailer(&maker, pid, tid, time, 1);
	perf_u64(&maker, 500);
	perf_u64(&maker, words);
	for (uint64_t i = 0; i < words; i++)
		perf_u64(&maker, chain[i]);
	perf_record_end(&maker);
}

static uint32_t leaf(const struct ky_trace *trace, uint32_t i)
{
	assert_true(i < trace->samples.rows.count);
	assert_int_not_equal(trace->samples.callsite[i], KY_NONE);
	return trace->callsites.frame[trace->samples.callsite[i]];
}

static const char *mapping_name(const struct ky_trace *trace, uint32_t frame)
{
	const uint32_t mapping = trace->frames.mapping[frame];
	return mapping == KY_NONE ? "" : ky_text_of(trace, trace->mappings.name[mapping]);
}

static void make_usual(bool big, bool pipe)
{
	const uint64_t chain[] = {(uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000010,
				  (uint64_t)PERF_CONTEXT_USER, 0x401020, 0x402030};
	perf_start(&maker, big, pipe, FIELDS, SAMPLE_ID_ALL);
	perf_mmap(&maker, UINT32_MAX, 0xffffffff81000000, 0x1000000, 0xffffffff81000000,
		  "[kernel.kallsyms]_text", 0);
	perf_comm(&maker, 10, 10, "my prog", 100, true);
	perf_mmap(&maker, 10, 0x401000, 0x10000, 0x1000, "/bin/prog", 110);
	sample(10, 11, 200, 0xffffffff81000010, chain, 5);
	perf_finish(&maker);
}

static void check_usual(const struct ky_trace *trace)
{
	assert_int_equal(trace->samples.rows.count, 1);
	assert_int_equal(trace->samples.ts[0], 200);
	assert_int_equal(trace->samples.cpu[0], 1);
	assert_true(trace->samples.weight[0] == 500);
	assert_string_equal(ky_text_of(trace, trace->samples.event[0]), "cpu-clock");
	const uint32_t thread = trace->samples.thread[0];
	assert_int_equal(trace->threads.tid[thread], 11);
	assert_int_equal(trace->processes.pid[trace->threads.process[thread]], 10);
	uint32_t site = trace->samples.callsite[0];
	assert_int_equal(trace->callsites.depth[site], 2);
	assert_string_equal(mapping_name(trace, trace->callsites.frame[site]),
			    "[kernel.kallsyms]_text");
	site = trace->callsites.parent[site];
	assert_int_equal(trace->frames.rel_pc[trace->callsites.frame[site]], 0x1020);
	site = trace->callsites.parent[site];
	assert_int_equal(trace->frames.rel_pc[trace->callsites.frame[site]], 0x2030);
	assert_string_equal(mapping_name(trace, trace->callsites.frame[site]), "/bin/prog");
	assert_int_equal(trace->callsites.parent[site], KY_NONE);
}

static void a_sample_has_its_thread_and_stack_in_both_byte_orders_and_forms(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		make_usual(i & 1, i & 2);
		struct ky_trace *trace = load(maker.data, maker.bytes, NULL);
		assert_string_equal(trace->format, "perf.data");
		check_usual(trace);
		ky_trace_close(&trace);
	}
}

static void records_are_used_in_the_order_of_their_times(void **state)
{
	(void)state;
	perf_start(&maker, false, false, FIELDS, SAMPLE_ID_ALL);
	sample(10, 10, 300, 0x1010, NULL, 0);
	sample(10, 10, 150, 0x1010, NULL, 0);
	perf_mmap(&maker, 10, 0x1000, 0x1000, 0, "/second", 200);
	perf_mmap(&maker, 10, 0x1000, 0x1000, 0, "/first", 100);
	perf_finish(&maker);
	struct ky_trace *trace = load(maker.data, maker.bytes, NULL);
	assert_int_equal(trace->samples.rows.count, 2);
	assert_string_equal(mapping_name(trace, leaf(trace, 0)), "/first");
	assert_string_equal(mapping_name(trace, leaf(trace, 1)), "/second");
	ky_trace_close(&trace);
}

static void a_child_has_its_parents_mappings_until_it_runs_another_program(void **state)
{
	(void)state;
	perf_start(&maker, false, false, FIELDS, SAMPLE_ID_ALL);
	perf_comm(&maker, 10, 10, "sh", 90, false);
	perf_mmap(&maker, 10, 0x1000, 0x1000, 0, "/bin/sh", 100);
	perf_task(&maker, true, 20, 10, 20, 10, 110);
	perf_mmap(&maker, 10, 0x1000, 0x1000, 0, "/bin/other", 120);
	sample(20, 20, 130, 0x1010, NULL, 0);
	perf_comm(&maker, 20, 20, "ls", 140, true);
	sample(20, 20, 150, 0x1010, NULL, 0);
	perf_finish(&maker);
	struct ky_trace *trace = load(maker.data, maker.bytes, NULL);
	assert_string_equal(mapping_name(trace, leaf(trace, 0)), "/bin/sh");
	assert_string_equal(mapping_name(trace, leaf(trace, 1)), "");
	const uint32_t process = trace->threads.process[trace->samples.thread[0]];
	assert_int_equal(trace->processes.pid[process], 20);
	assert_int_equal(trace->processes.start_ts[process], 110);
	assert_int_equal(trace->processes.pid[trace->processes.parent[process]], 10);
	assert_string_equal(ky_text_of(trace, trace->threads.name[trace->samples.thread[0]]), "ls");
	ky_trace_close(&trace);
}

static void a_thread_that_ends_keeps_its_last_samples_and_a_reused_tid_is_another(void **state)
{
	(void)state;
	perf_start(&maker, false, false, FIELDS, SAMPLE_ID_ALL);
	perf_comm(&maker, 10, 10, "one", 90, false);
	sample(10, 10, 100, 0x1010, NULL, 0);
	perf_task(&maker, false, 10, 1, 10, 1, 110);
	sample(10, 10, 120, 0x1010, NULL, 0);
	perf_task(&maker, true, 10, 1, 10, 1, 200);
	sample(10, 10, 210, 0x1010, NULL, 0);
	perf_finish(&maker);
	struct ky_trace *trace = load(maker.data, maker.bytes, NULL);
	assert_int_equal(trace->samples.thread[0], trace->samples.thread[1]);
	assert_int_not_equal(trace->samples.thread[1], trace->samples.thread[2]);
	assert_int_equal(trace->threads.end_ts[trace->samples.thread[0]], 120);
	ky_trace_close(&trace);
}

static void an_events_periods_add_up_to_a_counter_of_each_cpu(void **state)
{
	(void)state;
	perf_start(&maker, false, false, FIELDS, SAMPLE_ID_ALL);
	sample(10, 10, 100, 0x1010, NULL, 0);
	sample(10, 10, 200, 0x1010, NULL, 0);
	perf_finish(&maker);
	struct ky_trace *trace = load(maker.data, maker.bytes, NULL);
	assert_int_equal(trace->counters.rows.count, 2);
	assert_true(trace->counters.value[1] == 1000);
	const uint32_t track = trace->counters.track[0];
	assert_int_equal(trace->tracks.kind[track], KY_TRACK_CPU_COUNTER);
	assert_int_equal(trace->tracks.owner[track], 1);
	ky_trace_close(&trace);
}

static void lost_records_are_counted(void **state)
{
	(void)state;
	perf_start(&maker, false, false, FIELDS, SAMPLE_ID_ALL);
	perf_record(&maker, PERF_RECORD_LOST, 0);
	perf_u64(&maker, 1);
	perf_u64(&maker, 77);
	perf_trailer(&maker, 1, 1, 50, 3);
	perf_record_end(&maker);
	perf_finish(&maker);
	struct ky_trace *trace = load(maker.data, maker.bytes, NULL);
	assert_int_equal(trace->lost, 77);
	assert_int_equal(trace->losses.cpu[0], 3);
	ky_trace_close(&trace);
}

static void switch_cpu_wide(uint32_t tid, bool out, uint32_t other, uint64_t time)
{
	perf_record(&maker, PERF_RECORD_SWITCH_CPU_WIDE, out ? PERF_RECORD_MISC_SWITCH_OUT : 0);
	perf_u32(&maker, other);
	perf_u32(&maker, other);
	perf_trailer(&maker, tid, tid, time, 2);
	perf_record_end(&maker);
}

static void switches_of_a_cpu_are_scheduling(void **state)
{
	(void)state;
	perf_start(&maker, false, false, FIELDS, SAMPLE_ID_ALL);
	switch_cpu_wide(10, true, 20, 100);
	switch_cpu_wide(20, false, 10, 101);
	switch_cpu_wide(20, true, 0, 200);
	switch_cpu_wide(0, false, 20, 201);
	perf_finish(&maker);
	struct ky_trace *trace = load(maker.data, maker.bytes, NULL);
	assert_int_equal(trace->sched.rows.count, 2);
	assert_int_equal(trace->sched.ts[0], 100);
	assert_int_equal(trace->sched.dur[0], 100);
	assert_int_equal(trace->sched.cpu[0], 2);
	assert_int_equal(trace->threads.tid[trace->sched.thread[0]], 20);
	ky_trace_close(&trace);
}

/* The records so far, as a compressed one in two pieces that cut a record. */
static void compress_records(uint32_t type)
{
	static uint8_t packed[1 << 16];
	ZSTD_CStream *stream = ZSTD_createCStream();
	const size_t bytes = maker.bytes - maker.records;
	static uint8_t plain[1 << 16];
	memcpy(plain, maker.data + maker.records, bytes);
	maker.bytes = maker.records;
	ZSTD_initCStream(stream, 1);
	for (unsigned half = 0; half < 2; half++) {
		ZSTD_inBuffer in = {plain, half ? bytes : bytes / 2 + 3, half ? bytes / 2 + 3 : 0};
		ZSTD_outBuffer out = {packed, sizeof(packed), 0};
		assert_false(ZSTD_isError(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush)));
		perf_record(&maker, type, 0);
		if (type == 83)
			perf_u64(&maker, out.pos);
		perf_bytes(&maker, packed, out.pos);
		if (type == 83)
			perf_bytes(&maker, "\0\0\0\0\0\0\0", (8 - out.pos % 8) % 8);
		perf_record_end(&maker);
	}
	ZSTD_freeCStream(stream);
	perf_finish(&maker);
}

static void compressed_records_are_unpacked(void **state)
{
	(void)state;
	for (uint32_t type = 81; type <= 83; type += 2) {
		make_usual(false, false);
		compress_records(type);
		struct ky_trace *trace = load(maker.data, maker.bytes, NULL);
		check_usual(trace);
		assert_int_equal(trace->problems.rows.count, 0);
		ky_trace_close(&trace);
	}
}

static void a_file_that_is_cut_is_read_up_to_there(void **state)
{
	(void)state;
	make_usual(false, false);
	struct ky_trace *trace = load(maker.data, maker.bytes - 8, NULL);
	assert_int_equal(trace->samples.rows.count, 0);
	assert_int_equal(trace->problems.rows.count, 1);
	assert_string_equal(ky_text_of(trace, trace->problems.name[0]), "perf_truncated");
	ky_trace_close(&trace);
}

static void a_recording_that_was_not_ended_is_read_to_its_end(void **state)
{
	(void)state;
	make_usual(false, false);
	memset(maker.data + 48, 0, 8);
	struct ky_trace *trace = load(maker.data, maker.bytes, NULL);
	check_usual(trace);
	ky_trace_close(&trace);
}

static void every_cut_is_survived(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES];
	make_usual(true, true);
	for (size_t bytes = 0; bytes < maker.bytes; bytes++) {
		struct ky_trace *trace;
		if (ky_load_memory(&trace, maker.data, bytes, &ky_reader_perf_data, message) == 0)
			ky_trace_close(&trace);
		else
			assert_non_null(strstr(message, "expected"));
	}
}

/* ---- perf script ---- */

static void a_line_may_have_blanks_in_its_comm_and_six_or_nine_decimals(void **state)
{
	(void)state;
	struct ky_perf_script_head head;
	static const char line[] = "my own  prog  12/34  [003] 5.000001:   250 sched:x: a=b c";
	assert_true(ky_perf_script_head(line, strlen(line), &head));
	assert_int_equal(head.comm.bytes, strlen("my own  prog"));
	assert_int_equal(head.pid, 12);
	assert_int_equal(head.tid, 34);
	assert_int_equal(head.cpu, 3);
	assert_int_equal(head.time_ns, 5000001000);
	assert_int_equal(head.period, 250);
	assert_int_equal(head.rest.bytes, strlen("a=b c"));
	static const char exact[] = "x 7 1.123456789: cycles:";
	assert_true(ky_perf_script_head(exact, strlen(exact), &head));
	assert_int_equal(head.time_ns, 1123456789);
	assert_int_equal(head.pid, -1);
	assert_int_equal(head.cpu, -1);
	assert_false(ky_perf_script_head("no time here", 12, &head));
}

static void a_frame_may_have_parentheses_in_its_names(void **state)
{
	(void)state;
	struct ky_perf_script_frame frame;
	static const char line[] = "\t  7f01 operator()(int) const+0x1f (/tmp/a b.so (deleted))";
	assert_true(ky_perf_script_frame(line, strlen(line), &frame));
	assert_int_equal(frame.address, 0x7f01);
	assert_int_equal(frame.offset, 0x1f);
	assert_memory_equal(frame.symbol.text, "operator()(int) const", frame.symbol.bytes);
	assert_int_equal(frame.symbol.bytes, strlen("operator()(int) const"));
	assert_int_equal(frame.file.bytes, strlen("/tmp/a b.so (deleted)"));
}

static void text_samples_have_their_stacks_and_the_last_needs_no_empty_line(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text("# a comment\n"
					   "a b 1/2 [000] 1.000000: 10 cycles:\n"
					   "\t10 inner+0x1 (/x)\n\t20 outer+0x1 (/x)\n\n"
					   "c 3 2.000000: cycles: 30 alone (/y)\n"
					   "c 3 3.000000: cycles:\n\t30 alone (/y)");
	assert_string_equal(trace->format, "perf-script");
	assert_int_equal(trace->samples.rows.count, 3);
	assert_string_equal(ky_text_of(trace, trace->frames.name[leaf(trace, 0)]), "inner");
	assert_string_equal(ky_text_of(trace, trace->frames.name[leaf(trace, 1)]), "alone");
	assert_int_equal(leaf(trace, 1), leaf(trace, 2));
	assert_string_equal(ky_text_of(trace, trace->threads.name[trace->samples.thread[0]]),
			    "a b");
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

static void a_comm_of_hexadecimal_digits_makes_no_perf_map(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text("dd 1234 1.000000: cycles:\n\t10 f (/x)\n\n");
	assert_string_equal(trace->format, "perf-script");
	assert_int_equal(trace->samples.rows.count, 1);
	ky_trace_close(&trace);
}

static void branches_are_slices(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"1/2 1.000000100: 1 branches:uH:   tr strt   0 [unknown] ([unknown]) => 10 "
		"main+0x0 (/x)\n"
		"1/2 1.000000200: 1 branches:uH:   call   14 main+0x4 (/x) => 20 f+0x0 (/x)\n"
		"1/2 1.000000300: 1 branches:uH:   jmp    24 f+0x4 (/x) => 30 g+0x0 (/x)\n"
		"1/2 1.000000400: 1 branches:uH:   jcc    34 g+0x4 (/x) => 38 g+0x8 (/x)\n"
		"1/2 1.000000500: 1 branches:uH:   return 3c g+0xc (/x) => 15 main+0x5 (/x)\n"
		"1/2 1.000000600: 1 branches:uH:   return 19 main+0x9 (/x) => 90 start+0x9 (/x)\n");
	assert_int_equal(trace->samples.rows.count, 0);
	assert_int_equal(trace->slices.rows.count, 3);
	static const char *const names[] = {"main", "f", "g"};
	static const int64_t durations[] = {500, 100, 200};
	for (unsigned i = 0; i < 3; i++) {
		assert_string_equal(ky_text_of(trace, trace->slices.name[i]), names[i]);
		assert_int_equal(trace->slices.dur[i], durations[i]);
	}
	assert_int_equal(trace->slices.depth[2], 1);
	ky_trace_close(&trace);
}

/* ---- code that was made at run time ---- */

static size_t make_jitdump(uint8_t *data)
{
	static const uint32_t head[] = {0x4a695444, 1, 40, 62, 0, 42, 5, 0, 0, 0};
	static const uint32_t load_head[] = {0, 16 + 40 + 4 + 4, 7, 0, 42, 43};
	static const uint64_t places[] = {0x1000, 0x1000, 0x20, 1};
	memcpy(data, head, sizeof(head));
	memcpy(data + 40, load_head, sizeof(load_head));
	memcpy(data + 64, places, sizeof(places));
	memcpy(data + 96, "fun\0code", 8);
	return 104;
}

static void a_jitdump_is_a_track_of_its_process(void **state)
{
	(void)state;
	uint8_t data[128];
	const size_t bytes = make_jitdump(data);
	struct ky_trace *trace = load(data, bytes, NULL);
	assert_string_equal(trace->format, "jitdump");
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.kind[0], KY_SLICE_INSTANT);
	assert_int_equal(trace->slices.ts[0], 7);
	const uint32_t process = ky_track_process(trace, trace->slices.track[0]);
	assert_int_equal(trace->processes.pid[process], 42);
	assert_int_equal(trace->frames.rows.count, 1);
	assert_string_equal(ky_text_of(trace, trace->frames.name[0]), "fun");
	ky_trace_close(&trace);
}

static void a_perf_map_lists_its_functions(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text("1000 20 one two\n0x1020 0x10 three\n");
	assert_string_equal(trace->format, "perf-map");
	assert_int_equal(trace->frames.rows.count, 2);
	assert_string_equal(ky_text_of(trace, trace->frames.name[0]), "one two");
	assert_int_equal(trace->frames.rel_pc[1], 0x1020);
	ky_trace_close(&trace);
}

static void write_file(const char *path, const void *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static void a_map_beside_the_recording_names_code_that_was_made(void **state)
{
	(void)state;
	char folder[] = "/tmp/kymo-test-perf-XXXXXX";
	char map[64], data[64], message[KY_MESSAGE_BYTES];
	static const char lines[] = "1000 100 old\n1010 20 fresh\n";
	assert_non_null(mkdtemp(folder));
	snprintf(map, sizeof(map), "%s/perf-1999999.map", folder);
	snprintf(data, sizeof(data), "%s/perf.data", folder);
	perf_start(&maker, false, false, FIELDS, SAMPLE_ID_ALL);
	perf_mmap(&maker, 1999999, 0x1000, 0x1000, 0, "//anon", 10);
	sample(1999999, 1999999, 20, 0x1018, NULL, 0);
	sample(1999999, 1999999, 30, 0x1050, NULL, 0);
	perf_finish(&maker);
	write_file(map, lines, strlen(lines));
	write_file(data, maker.data, maker.bytes);
	struct ky_trace *trace;
	assert_int_equal(ky_load(&trace, data, NULL, message), 0);
	assert_string_equal(ky_text_of(trace, trace->frames.name[leaf(trace, 0)]), "fresh");
	assert_string_equal(ky_text_of(trace, trace->frames.name[leaf(trace, 1)]), "old");
	ky_trace_close(&trace);
	unlink(map);
	unlink(data);
	rmdir(folder);
}

static void a_new_range_takes_its_place_from_those_before(void **state)
{
	(void)state;
	struct ky_ranges ranges = {0};
	struct ky_space space = {0};
	struct ky_space copy;
	uint32_t value;
	assert_false(ky_ranges_put(&ranges, &space, 100, 200, 1));
	ky_ranges_copy(&ranges, &space, &copy);
	assert_true(ky_ranges_put(&ranges, &space, 120, 140, 2));
	static const struct {
		uint64_t at;
		uint32_t value;
	} places[] = {{100, 1}, {119, 1}, {120, 2}, {139, 2}, {140, 1}, {199, 1}};
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		assert_true(ky_ranges_find(&ranges, &space, places[i].at, &value));
		assert_int_equal(value, places[i].value);
		assert_true(ky_ranges_find(&ranges, &copy, places[i].at, &value));
		assert_int_equal(value, 1);
	}
	assert_false(ky_ranges_find(&ranges, &space, 99, &value));
	assert_false(ky_ranges_find(&ranges, &space, 200, &value));
	assert_true(ky_ranges_put(&ranges, &space, 0, UINT64_MAX, 3));
	assert_true(ky_ranges_find(&ranges, &space, 150, &value));
	assert_int_equal(value, 3);
	ky_ranges_free(&ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_has_its_thread_and_stack_in_both_byte_orders_and_forms),
		cmocka_unit_test(records_are_used_in_the_order_of_their_times),
		cmocka_unit_test(a_child_has_its_parents_mappings_until_it_runs_another_program),
		cmocka_unit_test(
			a_thread_that_ends_keeps_its_last_samples_and_a_reused_tid_is_another),
		cmocka_unit_test(an_events_periods_add_up_to_a_counter_of_each_cpu),
		cmocka_unit_test(lost_records_are_counted),
		cmocka_unit_test(switches_of_a_cpu_are_scheduling),
		cmocka_unit_test(compressed_records_are_unpacked),
		cmocka_unit_test(a_file_that_is_cut_is_read_up_to_there),
		cmocka_unit_test(a_recording_that_was_not_ended_is_read_to_its_end),
		cmocka_unit_test(every_cut_is_survived),
		cmocka_unit_test(a_line_may_have_blanks_in_its_comm_and_six_or_nine_decimals),
		cmocka_unit_test(a_frame_may_have_parentheses_in_its_names),
		cmocka_unit_test(text_samples_have_their_stacks_and_the_last_needs_no_empty_line),
		cmocka_unit_test(a_comm_of_hexadecimal_digits_makes_no_perf_map),
		cmocka_unit_test(branches_are_slices),
		cmocka_unit_test(a_jitdump_is_a_track_of_its_process),
		cmocka_unit_test(a_perf_map_lists_its_functions),
		cmocka_unit_test(a_map_beside_the_recording_names_code_that_was_made),
		cmocka_unit_test(a_new_range_takes_its_place_from_those_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
