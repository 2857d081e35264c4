/* SPDX-License-Identifier: MIT */
/*
 * test_ftrace_stream.c: the kernel's events of a capture, as records. The files are the fuzzer's seeds, which
 * make_ftrace_seeds.py makes; tests/capture/test_kernel_trace.c has real ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/ftrace/ftrace_format.h"
#include "formats/kymo/kymo_layout.h"
#include "load_text.h"

static uint8_t seed[1 << 16];
static size_t seed_bytes;

static int read_seed(void **unused)
{
	char path[512];
	(void)unused;
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/ftrace_stream/capture.bin",
		 getenv("KYMO_SOURCE_ROOT"));
	FILE *file = fopen(path, "rb");
	if (!file)
		return 1;
	seed_bytes = fread(seed, 1, sizeof(seed), file);
	fclose(file);
	return seed_bytes ? 0 : 1;
}

/* Of a copy that ends where the bytes do, so that a sanitizer sees what is read behind them. */
static struct ky_trace *load_stream(const uint8_t *data, size_t bytes)
{
	struct ky_load load = {.path = "stream"};
	uint8_t *copy = malloc(bytes ? bytes : 1);
	assert_non_null(copy);
	memcpy(copy, data, bytes);
	assert_int_equal(ky_trace_open(&load.trace), 0);
	assert_int_equal(ky_input_open_memory(&load.input, copy, bytes, "stream"), 0);
	assert_int_equal(ky_ftrace_stream_read(&load), 0);
	ky_input_close(&load.input);
	free(copy);
	assert_int_equal(ky_trace_finish(load.trace, NULL, NULL), 0);
	return load.trace;
}

static uint32_t thread_of(const struct ky_trace *trace, int64_t tid)
{
	for (uint32_t i = 0; i < trace->threads.rows.count; i++)
		if (trace->threads.tid[i] == tid)
			return i;
	return KY_NONE;
}

static void events_are_read_as_from_a_directory(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_stream(seed, seed_bytes);
	assert_int_equal(trace->raw_events.rows.count, 5);
	assert_int_equal(trace->raw_events.ts[0], 1010);
	assert_int_equal(trace->raw_events.cpu[0], 0);
	assert_int_equal(trace->raw_events.cpu[3], 1);
	assert_string_equal(text_of(trace, trace->logs.message[0]), "0x0: hi 1");
	assert_int_equal(problems_of(trace, "ftrace_stream_record"), 0);
	assert_int_equal(problems_of(trace, "ftrace_stream_cut"), 0);
	ky_trace_close(&trace);
}

static void tasks_tell_whose_threads_they_are(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_stream(seed, seed_bytes);
	const uint32_t thread = thread_of(trace, 7);
	assert_int_not_equal(thread, KY_NONE);
	const uint32_t process = trace->threads.process[thread];
	assert_int_not_equal(process, KY_NONE);
	assert_int_equal(trace->processes.pid[process], 6);
	assert_string_equal(text_of(trace, trace->processes.name[process]), "main");
	ky_trace_close(&trace);
}

/* The pages report 12; stats grew by 40. */
static void losses_that_no_page_tells_are_counted_too(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_stream(seed, seed_bytes);
	assert_int_equal(trace->lost, 40);
	ky_trace_close(&trace);
}

static void what_is_before_the_cut_is_read(void **unused)
{
	(void)unused;
	uint32_t most = 0;
	for (size_t bytes = 0; bytes < seed_bytes; bytes++) {
		struct ky_trace *trace = load_stream(seed, bytes);
		assert_true(trace->raw_events.rows.count >= most);
		most = trace->raw_events.rows.count;
		ky_trace_close(&trace);
	}
	assert_int_equal(most, 5);
}

static void assert_one_problem(const struct ky_kymo_ftrace *record)
{
	uint8_t data[64] = {0};
	memcpy(data, record, sizeof(*record));
	struct ky_trace *trace = load_stream(data, sizeof(data));
	assert_int_equal(problems_of(trace, "ftrace_stream_record") +
				 problems_of(trace, "ftrace_stream_cut"),
			 1);
	ky_trace_close(&trace);
}

static void records_that_cannot_be_are_problems(void **unused)
{
	(void)unused;
	const struct ky_kymo_ftrace records[] = {
		{.bytes = 0, .kind = KY_KYMO_FTRACE_FILE},
		{.bytes = 15, .kind = KY_KYMO_FTRACE_PAGE},
		{.bytes = UINT32_MAX, .kind = KY_KYMO_FTRACE_PAGE},
		{.bytes = 4096, .kind = KY_KYMO_FTRACE_PAGE},
		{.bytes = 64, .kind = KY_KYMO_FTRACE_FILE, .path_bytes = 49},
		{.bytes = 64, .kind = KY_KYMO_FTRACE_PAGE, .cpu = UINT32_MAX},
	};
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		assert_one_problem(&records[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_read_as_from_a_directory),
		cmocka_unit_test(tasks_tell_whose_threads_they_are),
		cmocka_unit_test(losses_that_no_page_tells_are_counted_too),
		cmocka_unit_test(what_is_before_the_cut_is_read),
		cmocka_unit_test(records_that_cannot_be_are_problems),
	};
	return cmocka_run_group_tests(tests, read_seed, NULL);
}
