/* SPDX-License-Identifier: MIT */
/* test_profiles.c: speedscope, collapsed stacks and spall: the smaller formats of other tools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "load_text.h"

static const char *frame_name(const struct ky_trace *trace, uint32_t callsite)
{
	assert_true(callsite < trace->callsites.rows.count);
	return text_of(trace, trace->frames.name[trace->callsites.frame[callsite]]);
}

static void test_speedscope_events_are_slices_in_any_order_of_members(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"{\"$schema\":\"https://www.speedscope.app/"
		"file-format-schema.json\",\"profiles\":[{"
		"\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":1},{\"type\":\"O\",\"frame\":1,"
		"\"at\":2},"
		"{\"type\":\"C\",\"frame\":1,\"at\":2.5},{\"type\":\"C\",\"frame\":0,\"at\":4}],"
		"\"name\":\"p\",\"type\":\"evented\",\"unit\":\"milliseconds\"}],"
		"\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\",\"file\":\"f.c\","
		"\"line\":7}]}}");
	assert_string_equal(trace->format, "speedscope");
	assert_int_equal(trace->slices.rows.count, 2);
	assert_int_equal(trace->slices.ts[1], 2000000);
	assert_int_equal(trace->slices.dur[1], 500000);
	assert_int_equal(trace->slices.depth[1], 1);
	assert_int_not_equal(arg_of(trace, trace->slices.args[1], "line"), KY_NONE);
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

static void test_speedscope_samples_lie_behind_each_other(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text("{\"exporter\":\"x\",\"shared\":{\"frames\":[{\"name\":"
					   "\"a\"},{\"name\":\"b\"}]},\"profiles\":"
					   "[{\"type\":\"sampled\",\"unit\":\"seconds\","
					   "\"startValue\":1,\"samples\":[[0],[0,1]],"
					   "\"weights\":[2,3]}]}");
	assert_string_equal(trace->format, "speedscope");
	assert_int_equal(trace->samples.rows.count, 2);
	assert_int_equal(trace->samples.ts[0], 1000000000);
	assert_int_equal(trace->samples.ts[1], 3000000000);
	assert_true(trace->samples.weight[1] == 3e9);
	assert_string_equal(frame_name(trace, trace->samples.callsite[1]), "b");
	ky_trace_close(&trace);
}

static void test_chrome_json_is_not_taken_for_speedscope(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"{\"traceEvents\":[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":"
		"\"https://www.speedscope.app\"}],\"otherData\":{\"profiles\":\"sampled\"}}");
	assert_string_equal(trace->format, "json");
	assert_int_equal(trace->slices.rows.count, 1);
	ky_trace_close(&trace);
}

static void assert_two_stacks(struct ky_trace *trace)
{
	assert_string_equal(trace->format, "collapsed");
	assert_int_equal(trace->samples.rows.count, 2);
	assert_true(trace->samples.weight[0] == 3);
	assert_true(trace->samples.weight[1] == 5);
	assert_int_equal(trace->samples.ts[1], 3);
	const uint32_t callsite = trace->samples.callsite[0];
	assert_string_equal(frame_name(trace, callsite), "\xc3\xa9 x");
	assert_string_equal(frame_name(trace, trace->callsites.parent[callsite]), "main");
	ky_trace_close(&trace);
}

static void test_collapsed_stacks_in_every_encoding(void **state)
{
	static const char text[] = "main;\xc3\xa9 x 3\r\nmain 5";
	static const uint16_t units[] = {0xfeff, 'm', 'a',  'i', 'n', ';', 0xe9, ' ', 'x',
					 ' ',    '3', '\n', 'm', 'a', 'i', 'n',  ' ', '5'};
	uint8_t little[sizeof(units)], big[sizeof(units)];
	(void)state;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		little[2 * i] = big[2 * i + 1] = (uint8_t)units[i];
		little[2 * i + 1] = big[2 * i] = (uint8_t)(units[i] >> 8);
	}
	assert_two_stacks(load_text(text));
	assert_two_stacks(load_bytes(little, sizeof(little)));
	assert_two_stacks(load_bytes(big, sizeof(big)));
}

static void test_collapsed_lines_that_begin_with_a_bracket(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text("[unknown];main 2\n# comment\n\n[a];b 4\n");
	assert_string_equal(trace->format, "collapsed");
	assert_int_equal(trace->samples.rows.count, 2);
	ky_trace_close(&trace);
}

static void test_collapsed_lines_of_every_kind(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text("# perf\nmain;run 3\nbar 2\nnot a stack\nsingle 5\n");
	assert_string_equal(trace->format, "collapsed");
	assert_int_equal(trace->samples.rows.count, 3);
	assert_int_equal(trace->problems.rows.count, 1);
	ky_trace_close(&trace);
	trace = load_text("main 3\nrun 5\n");
	assert_string_equal(trace->format, "collapsed");
	assert_int_equal(trace->samples.rows.count, 2);
	ky_trace_close(&trace);
}

static void test_a_v8_profile_of_its_own(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"},"
		"\"children\":[2]},{\"id\":2,\"callFrame\":{\"functionName\":\"main\","
		"\"url\":\"a.js\",\"lineNumber\":3}}],\"startTime\":1000,\"endTime\":1010,"
		"\"samples\":[1,2,2],\"timeDeltas\":[1,2,3]}");
	assert_int_equal(trace->samples.rows.count, 3);
	assert_int_equal(trace->samples.ts[0], 1001000);
	assert_int_equal(trace->samples.ts[2], 1006000);
	const uint32_t callsite = trace->samples.callsite[2];
	assert_string_equal(frame_name(trace, callsite), "main");
	assert_string_equal(frame_name(trace, trace->callsites.parent[callsite]), "(root)");
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

/* Packed values, as spall writes them. */
static size_t put(uint8_t *to, size_t at, const void *value, size_t bytes)
{
	memcpy(to + at, value, bytes);
	return at + bytes;
}

static size_t put_header(uint8_t *to, uint64_t version, double unit)
{
	const uint64_t magic = 0x0BADF00D, zero = 0;
	size_t at = put(to, 0, &magic, 8);
	at = put(to, at, &version, 8);
	at = put(to, at, &unit, 8);
	return put(to, at, &zero, 8);
}

static void test_spall_1_has_its_thread_in_each_record(void **state)
{
	uint8_t data[256];
	const uint32_t pid = 5, tid = 6;
	double when = 1000;
	(void)state;
	size_t at = put_header(data, 1, 0.002);
	at = put(data, at, "\3\0", 2);
	at = put(data, at, &pid, 4);
	at = put(data, at, &tid, 4);
	at = put(data, at, &when, 8);
	at = put(data, at, "\1\2fxy", 5);
	at = put(data, at, "\4", 1);
	at = put(data, at, &pid, 4);
	at = put(data, at, &tid, 4);
	when = 1500;
	at = put(data, at, &when, 8);
	struct ky_trace *trace = load_bytes(data, at);
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.ts[0], 2000);
	assert_int_equal(trace->slices.dur[0], 1000);
	assert_int_not_equal(arg_of(trace, trace->slices.args[0], "args"), KY_NONE);
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
	trace = load_bytes(data, at - 3);
	assert_int_equal(trace->slices.dur[0], -1);
	assert_int_equal(problems_of(trace, "spall_truncated"), 1);
	ky_trace_close(&trace);
}

static void test_spall_3_has_buffers_of_threads(void **state)
{
	uint8_t data[256];
	const uint32_t bytes = 11 + 1 + 9 + 6, tid = 6, pid = 5;
	uint64_t when = 100;
	(void)state;
	size_t at = put_header(data, 3, 0.5);
	at = put(data, at, &bytes, 4);
	at = put(data, at, &tid, 4);
	at = put(data, at, &pid, 4);
	at = put(data, at, &when, 8);
	at = put(data, at, "\x09\4main", 6);
	at = put(data, at, "\3", 1);
	at = put(data, at, &when, 8);
	at = put(data, at, "\1\0f", 3);
	at = put(data, at, "\4", 1);
	when = 120;
	at = put(data, at, &when, 8);
	struct ky_trace *trace = load_bytes(data, at);
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.ts[0], 50);
	assert_int_equal(trace->slices.dur[0], 10);
	const uint32_t thread = ky_track_thread(trace, trace->slices.track[0]);
	assert_int_equal(trace->threads.tid[thread], 6);
	assert_string_equal(text_of(trace, trace->threads.name[thread]), "main");
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_speedscope_events_are_slices_in_any_order_of_members),
		cmocka_unit_test(test_speedscope_samples_lie_behind_each_other),
		cmocka_unit_test(test_chrome_json_is_not_taken_for_speedscope),
		cmocka_unit_test(test_collapsed_stacks_in_every_encoding),
		cmocka_unit_test(test_collapsed_lines_that_begin_with_a_bracket),
		cmocka_unit_test(test_collapsed_lines_of_every_kind),
		cmocka_unit_test(test_a_v8_profile_of_its_own),
		cmocka_unit_test(test_spall_1_has_its_thread_in_each_record),
		cmocka_unit_test(test_spall_3_has_buffers_of_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
