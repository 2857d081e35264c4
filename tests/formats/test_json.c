/* SPDX-License-Identifier: MIT */
/* test_json.c: Chrome's JSON is read as Perfetto reads it, and also where it is cut off or odd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load_text.h"

static void assert_slice(const struct ky_trace *trace, uint32_t row, int64_t ts, int64_t dur,
			 uint32_t depth, const char *name)
{
	assert_true(row < trace->slices.rows.count);
	assert_string_equal(text_of(trace, trace->slices.name[row]), name);
	assert_int_equal(trace->slices.ts[row], ts);
	assert_int_equal(trace->slices.dur[row], dur);
	assert_int_equal(trace->slices.depth[row], depth);
}

static void test_begins_ends_and_complete_events_nest(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"[{\"ph\":\"B\",\"pid\":1,\"tid\":2,\"ts\":1,\"name\":\"a\",\"cat\":\"c\"},\n"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":2,\"dur\":1.5,\"name\":\"b\"},\n"
		"{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":9}]");
	assert_int_equal(trace->slices.rows.count, 2);
	assert_slice(trace, 0, 1000, 8000, 0, "a");
	assert_string_equal(text_of(trace, trace->slices.category[0]), "c");
	assert_slice(trace, 1, 2000, 1500, 1, "b");
	assert_int_equal(trace->slices.category[1], 0);
	ky_trace_close(&trace);
}

static void test_times_are_exact_to_the_nanosecond(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} times[] = {
		{"170000000000000.123", 170000000000000123},
		{"0.001", 1},
		{"12.0005", 12001},
		{"12.00049", 12000},
		{"1e3", 1000000},
		{"\"200.5\"", 200500},
		{"1850244461563845.0", 1850244461563845000},
		{"1850244461563846.123", 1850244461563846123},
		{"1.850244461563847123e15", 1850244461563847123},
		{"1850244461563849000e-3", 1850244461563849000},
		{"9223372036854775.807", INT64_MAX},
		{"0.00049999999999999999999999", 0},
		{"0e99999999999", 0},
		{"1e-99999999999", 0},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		char text[256];
		snprintf(text, sizeof(text),
			 "[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%s,\"dur\":0,\"name\":\"n\"}]",
			 times[i].text);
		struct ky_trace *trace = load_text(text);
		assert_int_equal(trace->slices.rows.count, 1);
		assert_int_equal(trace->slices.ts[0], times[i].ns);
		ky_trace_close(&trace);
	}
}

static void test_arguments_are_flattened(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"n\",\"args\":"
		"{\"i\":-5,\"d\":1.5,\"b\":true,\"n\":null,\"s\":\"q\\\"\\u00e9\",\"o\":{\"l\":[1,"
		"{\"k\":\"v\"}]},\"e\":{}}}]");
	const uint32_t set = trace->slices.args[0];
	uint32_t arg = arg_of(trace, set, "args.i");
	assert_int_equal((int64_t)trace->args.value[arg], -5);
	assert_int_equal(trace->args.type[arg_of(trace, set, "args.d")], KY_ARG_REAL);
	assert_int_equal(trace->args.type[arg_of(trace, set, "args.b")], KY_ARG_BOOL);
	arg = arg_of(trace, set, "args.s");
	assert_string_equal(text_of(trace, (uint32_t)trace->args.value[arg]), "q\"\xc3\xa9");
	assert_int_not_equal(arg_of(trace, set, "args.o.l[0]"), KY_NONE);
	assert_int_not_equal(arg_of(trace, set, "args.o.l[1].k"), KY_NONE);
	assert_int_equal(ky_arg_set_end(trace, set) - ky_arg_set_first(trace, set), 6);
	ky_trace_close(&trace);
}

static void test_numbers_of_every_length_are_exact(void **state)
{
	(void)state;
	int64_t number = 0;
	for (int count = 1; count <= 18; count++) {
		char text[256];
		number = number * 10 + count % 10;
		snprintf(text, sizeof(text),
			 "[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":0,\"name\":\"n\","
			 "\"args\":{\"plus\":%lld,\"minus\":-%lld}}]",
			 (long long)number, (long long)number);
		struct ky_trace *trace = load_text(text);
		const uint32_t set = trace->slices.args[0];
		const uint32_t plus = arg_of(trace, set, "args.plus");
		const uint32_t minus = arg_of(trace, set, "args.minus");
		assert_int_equal((int64_t)trace->args.value[plus], number);
		assert_int_equal((int64_t)trace->args.value[minus], -number);
		ky_trace_close(&trace);
	}
}

static void test_ids_that_begin_alike_are_different(void **state)
{
	static const char *const texts[] = {"1",       "12",        "12",       "1",
					    "1234567", "12345678",  "123456",   "1234567",
					    "12345",   "\"12345\"", "12345678", "12"};
	static const int64_t tids[] = {1,      12,      12,    1,     1234567,  12345678,
				       123456, 1234567, 12345, 12345, 12345678, 12};
	(void)state;
	char text[2048] = "[";
	for (size_t i = 0; i < sizeof(tids) / sizeof(*tids); i++) {
		const size_t used = strlen(text);
		snprintf(text + used, sizeof(text) - used,
			 "{\"ph\":\"i\",\"s\":\"t\",\"ts\":%zu,\"pid\":7,\"tid\":%s},", i,
			 texts[i]);
	}
	struct ky_trace *trace = load_text(text);
	assert_int_equal(trace->slices.rows.count, sizeof(tids) / sizeof(*tids));
	for (uint32_t i = 0; i < trace->slices.rows.count; i++) {
		const uint32_t thread = ky_track_thread(trace, trace->slices.track[i]);
		assert_int_equal(trace->threads.tid[thread], tids[i]);
	}
	ky_trace_close(&trace);
}

static void test_complete_events_of_one_time_nest_by_length(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"in\"},"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":5,\"name\":\"out\"},"
		"{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":20,\"name\":\"b\"},"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":0,\"name\":\"none\"}]");
	assert_slice(trace, 0, 1000, 5000, 0, "out");
	assert_slice(trace, 1, 1000, 1000, 1, "in");
	assert_slice(trace, 2, 20000, -1, 0, "b");
	assert_slice(trace, 3, 20000, 0, 1, "none");
	ky_trace_close(&trace);
}

static void test_what_is_cut_off_is_read_up_to_there(void **state)
{
	static const char whole[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":["
				    "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":"
				    "\"a\",\"args\":{\"x\":1}},"
				    "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":3,\"dur\":1,\"name\":"
				    "\"b\",\"args\":{\"x\":[1,2]}}]}";
	const size_t first_end =
		(size_t)(strstr(whole, ",{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":3") - whole);
	(void)state;
	for (size_t bytes = 32; bytes < sizeof(whole) - 1; bytes++) {
		struct ky_trace *trace = load_bytes(whole, bytes);
		const uint32_t slices = trace->slices.rows.count;
		assert_true(bytes >= first_end ? slices >= 1 : slices == 0);
		assert_true(problems_of(trace, "json_truncated") > 0);
		ky_trace_close(&trace);
	}
}

static void test_an_array_needs_no_end(void **state)
{
	(void)state;
	struct ky_trace *trace =
		load_text("[\n{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"a\"},\n");
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.kind[0], KY_SLICE_INSTANT);
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

static void test_damage_in_the_middle_is_passed_by(void **state)
{
	(void)state;
	struct ky_trace *trace =
		load_text("[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"a\"},"
			  "{\"ph\":\"i\" \"pid\":1},17,\"text\",{},"
			  "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":2,\"name\":\"b\"}]");
	assert_int_equal(trace->slices.rows.count, 2);
	assert_int_equal(problems_of(trace, "json_tokenizer_failure"), 3);
	ky_trace_close(&trace);
}

static void test_empty_traces_are_traces(void **state)
{
	static const char *const texts[] = {"[]", "{}", " [ ] \n", "{\"traceEvents\":[]}", "["};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct ky_trace *trace = load_text(texts[i]);
		assert_string_equal(trace->format, "json");
		assert_int_equal(trace->slices.rows.count, 0);
		ky_trace_close(&trace);
	}
}

static void test_other_json_is_refused_with_a_reason(void **state)
{
	static const char *const texts[] = {"{\"name\":\"package\",\"version\":\"1\"}",
					    "[{\"a\":1},{\"b\":2}]"};
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_not_equal(
			ky_load_memory(&trace, texts[i], strlen(texts[i]), NULL, message), 0);
		assert_null(trace);
		assert_non_null(strstr(message, "no trace"));
	}
}

static void test_async_events_share_the_track_of_their_category_and_id(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"[{\"ph\":\"b\",\"cat\":\"c\",\"id\":\"0x1\",\"pid\":1,\"ts\":1,\"name\":\"first\"}"
		","
		"{\"ph\":\"b\",\"cat\":\"c\",\"id\":\"0x1\",\"pid\":2,\"ts\":2,\"name\":\"in\"},"
		"{\"ph\":\"n\",\"cat\":\"c\",\"id\":\"0x1\",\"pid\":2,\"ts\":3,\"name\":\"i\"},"
		"{\"ph\":\"e\",\"cat\":\"c\",\"id\":\"0x1\",\"pid\":1,\"ts\":4,\"name\":\"in\"},"
		"{\"ph\":\"b\",\"cat\":\"c\",\"id2\":{\"local\":\"0x1\"},\"pid\":2,\"ts\":5,"
		"\"name\":\"l\"}]");
	assert_int_equal(trace->slices.rows.count, 4);
	assert_slice(trace, 0, 1000, -1, 0, "first");
	assert_slice(trace, 1, 2000, 2000, 1, "in");
	assert_slice(trace, 2, 3000, 0, 2, "i");
	assert_slice(trace, 3, 5000, -1, 0, "l");
	const uint32_t track = trace->slices.track[0];
	assert_int_equal(trace->tracks.kind[track], KY_TRACK_GLOBAL);
	assert_string_equal(text_of(trace, trace->tracks.name[track]), "first");
	assert_int_equal(trace->tracks.kind[trace->slices.track[3]], KY_TRACK_PROCESS);
	ky_trace_close(&trace);
}

static void test_flows_of_both_kinds_are_arrows(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":5,\"name\":\"a\",\"bind_id\":"
		"\"0x7\","
		"\"flow_out\":true},"
		"{\"ph\":\"s\",\"pid\":1,\"tid\":1,\"ts\":2,\"id\":9,\"name\":\"f\",\"cat\":\"c\"},"
		"{\"ph\":\"f\",\"pid\":1,\"tid\":2,\"ts\":3,\"id\":9,\"name\":\"f\",\"cat\":\"c\"},"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":4,\"dur\":5,\"name\":\"b\",\"bind_id\":"
		"\"0x7\","
		"\"flow_in\":true}]");
	assert_int_equal(trace->flows.rows.count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(trace->flows.out[i], 0);
		assert_int_equal(trace->flows.in[i], 1);
	}
	ky_trace_close(&trace);
}

static void test_a_bound_flow_stays_with_its_event_among_others_of_the_time(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":9,\"name\":\"outer\","
		"\"bind_id\":\"0x1\",\"flow_out\":true},"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":5,\"name\":\"inner\"},"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":20,\"dur\":2,\"name\":\"to\","
		"\"bind_id\":\"0x1\",\"flow_in\":true}]");
	assert_int_equal(trace->flows.rows.count, 1);
	assert_slice(trace, trace->flows.out[0], 1000, 9000, 0, "outer");
	assert_slice(trace, trace->flows.in[0], 20000, 2000, 0, "to");
	ky_trace_close(&trace);
}

static void test_counters_and_names(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text(
		"[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":4,\"args\":{\"name\":\"P\"}},"
		"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":4,\"tid\":5,\"args\":{\"name\":"
		"\"T\"}},"
		"{\"ph\":\"C\",\"pid\":4,\"ts\":1,\"name\":\"m\",\"id\":\"x\",\"args\":{\"a\":1,"
		"\"b\":\"2.5\","
		"\"c\":[]}}]");
	assert_int_equal(trace->counters.rows.count, 2);
	assert_true(trace->counters.value[1] == 2.5);
	assert_string_equal(text_of(trace, trace->tracks.name[trace->counters.track[0]]),
			    "m id: x a");
	assert_int_equal(problems_of(trace, "json_parser_failure"), 1);
	bool process = false, thread = false;
	for (uint32_t i = 0; i < trace->processes.rows.count; i++)
		process |= trace->processes.pid[i] == 4 &&
			   strcmp(text_of(trace, trace->processes.name[i]), "P") == 0;
	for (uint32_t i = 0; i < trace->threads.rows.count; i++)
		thread |= trace->threads.tid[i] == 5 &&
			  strcmp(text_of(trace, trace->threads.name[i]), "T") == 0;
	assert_true(process && thread);
	ky_trace_close(&trace);
}

static void test_thread_states_become_sched(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text("[{\"ph\":\"T\",\"pid\":1,\"tid\":2,\"ts\":6,\"dur\":3,"
					   "\"name\":\"S\",\"args\":{\"io_wait\":1}},"
					   "{\"ph\":\"T\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":5,"
					   "\"name\":\"Running\",\"args\":{\"cpu\":3}}]");
	assert_int_equal(trace->thread_states.rows.count, 2);
	assert_int_equal(trace->thread_states.ts[0], 1000);
	assert_int_equal(trace->thread_states.io_wait[1], 1);
	assert_int_equal(trace->sched.rows.count, 1);
	assert_int_equal(trace->sched.cpu[0], 3);
	ky_trace_close(&trace);
}

static void test_cpu_profiles_become_samples(void **state)
{
	(void)state;
	struct ky_trace *trace = load_text("[{\"ph\":\"P\",\"id\":\"0x1\",\"pid\":1,\"tid\":4,"
					   "\"ts\":2,\"name\":\"ProfileChunk\",\"args\":"
					   "{\"data\":{\"cpuProfile\":{\"nodes\":[{\"id\":1,"
					   "\"callFrame\":{\"functionName\":\"root\"}},"
					   "{\"id\":2,\"parent\":1,\"callFrame\":{\"functionName\":"
					   "\"f\"}}],\"samples\":[2,1]},"
					   "\"timeDeltas\":[10,20]}}},"
					   "{\"ph\":\"P\",\"id\":\"0x1\",\"pid\":1,\"tid\":3,"
					   "\"ts\":1,\"name\":\"Profile\",\"args\":"
					   "{\"data\":{\"startTime\":900}}}]");
	assert_int_equal(trace->samples.rows.count, 2);
	assert_int_equal(trace->samples.ts[0], 910000);
	assert_int_equal(trace->samples.ts[1], 930000);
	const uint32_t callsite = trace->samples.callsite[0];
	assert_int_equal(trace->callsites.parent[callsite], trace->samples.callsite[1]);
	assert_string_equal(text_of(trace, trace->frames.name[trace->callsites.frame[callsite]]),
			    "f");
	ky_trace_close(&trace);
}

static void test_deep_and_long_arguments_are_bounded(void **state)
{
	enum { DEPTH = 20000 };
	char *text = malloc(DEPTH * 8);
	char *to = text;
	(void)state;
	to += sprintf(to, "[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"n\",\"args\":");
	for (int i = 0; i < DEPTH; i++)
		to += sprintf(to, "{\"a\":");
	*to++ = '1';
	for (int i = 0; i < DEPTH; i++)
		*to++ = '}';
	to += sprintf(to, "}]");
	struct ky_trace *trace = load_bytes(text, (size_t)(to - text));
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.args[0], 0);
	assert_int_equal(problems_of(trace, "json_args_too_deep"), 1);
	ky_trace_close(&trace);
	free(text);
}

/* Longer than any window, so that events lie across its border at every place. */
static void test_events_across_windows_are_whole(void **state)
{
	enum { EVENTS = 60000 };
	char path[] = "/tmp/kymo-test-json-XXXXXX";
	char message[KY_MESSAGE_BYTES];
	const int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	struct ky_trace *trace;
	(void)state;
	assert_non_null(file);
	fputs("{\"otherData\":{\"v\":1},\"traceEvents\":[", file);
	for (int i = 0; i < EVENTS; i++)
		fprintf(file,
			"%s{\"name\":\"name "
			"%d\",\"ph\":\"X\",\"ts\":%d.5,\"dur\":1,\"pid\":1,\"tid\":1,"
			"\"args\":{\"text\":\"%*d\"}}",
			i ? ",\n" : "", i % 100, i * 2, i % 97, i);
	fputs("]}", file);
	fclose(file);
	assert_int_equal(ky_load(&trace, path, NULL, message), 0);
	assert_int_equal(trace->slices.rows.count, EVENTS);
	assert_int_equal(trace->problems.rows.count, 0);
	for (uint32_t i = 0; i < EVENTS; i++)
		assert_int_equal(trace->slices.ts[i], (int64_t)i * 2000 + 500);
	ky_trace_close(&trace);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begins_ends_and_complete_events_nest),
		cmocka_unit_test(test_times_are_exact_to_the_nanosecond),
		cmocka_unit_test(test_arguments_are_flattened),
		cmocka_unit_test(test_numbers_of_every_length_are_exact),
		cmocka_unit_test(test_ids_that_begin_alike_are_different),
		cmocka_unit_test(test_complete_events_of_one_time_nest_by_length),
		cmocka_unit_test(test_what_is_cut_off_is_read_up_to_there),
		cmocka_unit_test(test_an_array_needs_no_end),
		cmocka_unit_test(test_damage_in_the_middle_is_passed_by),
		cmocka_unit_test(test_empty_traces_are_traces),
		cmocka_unit_test(test_other_json_is_refused_with_a_reason),
		cmocka_unit_test(test_async_events_share_the_track_of_their_category_and_id),
		cmocka_unit_test(test_flows_of_both_kinds_are_arrows),
		cmocka_unit_test(test_a_bound_flow_stays_with_its_event_among_others_of_the_time),
		cmocka_unit_test(test_counters_and_names),
		cmocka_unit_test(test_thread_states_become_sched),
		cmocka_unit_test(test_cpu_profiles_become_samples),
		cmocka_unit_test(test_deep_and_long_arguments_are_bounded),
		cmocka_unit_test(test_events_across_windows_are_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
