/* SPDX-License-Identifier: MIT */
/*
 * test_ftrace.c: ftrace in all its forms: text of several tools, systrace's page, trace.dat, raw pages. The small
 * files are the fuzzer's seeds, which make_ftrace_seeds.py makes; the real ones are ../shared/fixtures.
 */
#include "formats/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/ftrace/ftrace_format.h"

static struct ky_trace *load_text(const char *text)
{
	struct ky_trace *trace;
	char message[KY_MESSAGE_BYTES];
	assert_int_equal(
		ky_load_memory(&trace, text, strlen(text), &ky_reader_ftrace_text, message), 0);
	return trace;
}

static struct ky_trace *load_seed(const char *name)
{
	struct ky_trace *trace;
	char path[1024];
	char message[KY_MESSAGE_BYTES];
	const char *root = getenv("KYMO_SOURCE_ROOT");
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s", root ? root : ".", name);
	if (ky_load(&trace, path, NULL, message) != 0)
		fail_msg("%s", message);
	return trace;
}

/* NULL, and the test is skipped, where the fixtures are not. */
static struct ky_trace *load_fixture(const char *name)
{
	struct ky_trace *trace;
	char path[1024];
	char message[KY_MESSAGE_BYTES];
	const char *root = getenv("KYMO_SOURCE_ROOT");
	snprintf(path, sizeof(path), "%s/../shared/fixtures/%s", root ? root : ".", name);
	if (access(path, R_OK) != 0) {
		print_message("%s is not here\n", path);
		skip();
	}
	if (ky_load(&trace, path, NULL, message) != 0)
		fail_msg("%s", message);
	return trace;
}

static const char *text_of(const struct ky_trace *trace, uint32_t string)
{
	return string ? ky_text_of(trace, string) : "";
}

static const char *arg_text(const struct ky_trace *trace, uint32_t set, const char *key)
{
	for (uint32_t i = ky_arg_set_first(trace, set); i < ky_arg_set_end(trace, set); i++)
		if (strcmp(text_of(trace, trace->args.key[i]), key) == 0)
			return trace->args.type[i] == KY_ARG_STRING
				       ? text_of(trace, (uint32_t)trace->args.value[i])
				       : "a number";
	return NULL;
}

static int64_t arg_number(const struct ky_trace *trace, uint32_t set, const char *key)
{
	for (uint32_t i = ky_arg_set_first(trace, set); i < ky_arg_set_end(trace, set); i++)
		if (strcmp(text_of(trace, trace->args.key[i]), key) == 0 &&
		    trace->args.type[i] != KY_ARG_STRING)
			return (int64_t)trace->args.value[i];
	return -1;
}

static void columns_are_found_whatever_is_in_a_comm(void **unused)
{
	static const struct {
		const char *line;
		const char *comm;
		int64_t tid, tgid, ts;
		uint32_t cpu;
	} cases[] = {
		{" a-1 [000] .... 1.000001: e: x=1\n", "a", 1, -1, 1000001000, 0},
		{"a [3]-b-22 (    7) [012] d..2. 9.000000001: e: x=1\n", "a [3]-b", 22, 7,
		 9000000001, 12},
		{" k/u8:1 H-5  [001]  123456789.123456: e:  x=1\n", "k/u8:1 H", 5, -1,
		 123456789123456000, 1},
		{" a:b(c)-6 (-----) [001] .N.1 2.5: e: x=1\n", "a:b(c)", 6, -1, 2500000000, 1},
		{"net:    sh-8 [001] 2.5: e: x=1\n", "sh", 8, -1, 2500000000, 1},
		{"\t t-9 [001] 123456: e: x=1\n", "t", 9, -1, 123456, 1},
	};
	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ky_trace *trace = load_text(cases[i].line);
		assert_int_equal(trace->raw_events.rows.count, 1);
		assert_int_equal(trace->raw_events.ts[0], cases[i].ts);
		assert_int_equal(trace->raw_events.cpu[0], cases[i].cpu);
		uint32_t thread = trace->raw_events.thread[0];
		assert_int_equal(trace->threads.tid[thread], cases[i].tid);
		assert_string_equal(text_of(trace, trace->threads.name[thread]), cases[i].comm);
		uint32_t process = trace->threads.process[thread];
		assert_int_equal(process == KY_NONE ? -1 : trace->processes.pid[process],
				 cases[i].tgid);
		assert_int_equal(arg_number(trace, trace->raw_events.args[0], "x"), 1);
		ky_trace_close(&trace);
	}
}

static void a_comm_with_blanks_and_arrows_stays_whole(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_text(
		" a-1 [000] .... 1.0: sched_switch: prev_comm=a ==> b=c prev_pid=1 prev_prio=120 "
		"prev_state=D|K ==> next_comm=x prev_pid=9 y next_pid=2 next_prio=-1\n");
	uint32_t args = trace->raw_events.args[0];
	assert_string_equal(arg_text(trace, args, "prev_comm"), "a ==> b=c");
	assert_string_equal(arg_text(trace, args, "next_comm"), "x prev_pid=9 y");
	assert_int_equal(arg_number(trace, args, "next_prio"), -1);
	assert_int_equal(trace->sched.rows.count, 1);
	assert_int_equal(trace->thread_states.rows.count, 2);
	assert_string_equal(text_of(trace, trace->thread_states.state[0]), "DK");
	ky_trace_close(&trace);
}

static void losses_are_counted(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_text("# tracer: nop\n"
					   "# entries-in-buffer/entries-written: 10/25   #P:2\n"
					   "CPU:3 [LOST 42 EVENTS]\n"
					   "CPU:1 [EVENTS DROPPED]\n"
					   "##### CPU 1 buffer started ####\n"
					   " a-1 [000] .... 1.0: e: x=1\n");
	assert_int_equal(trace->losses.rows.count, 3);
	assert_int_equal(trace->lost, 57);
	assert_int_equal(trace->losses.cpu[1], 3);
	assert_int_equal(trace->losses.events[1], 42);
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

static void lines_that_are_none_are_counted_with_their_place(void **unused)
{
	(void)unused;
	struct ky_trace *trace =
		load_text(" a-1 [000] .... 1.0: e: x=1\nwhat is this\n\n a-1 [zz] 1: e\n");
	assert_int_equal(trace->raw_events.rows.count, 1);
	assert_int_equal(trace->problems.rows.count, 1);
	assert_int_equal(trace->problems.number[0], 2);
	assert_int_equal(trace->problems.first_at[0], 28);
	ky_trace_close(&trace);
}

static void trace_cmds_own_words_are_understood(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_seed("ftrace_text/report.txt");
	assert_string_equal(trace->format, "ftrace");
	assert_int_equal(trace->raw_events.ts[0], 34896920123);
	assert_int_equal(trace->sched.rows.count, 1);
	assert_int_equal(trace->threads.tid[trace->sched.thread[0]], 2450);
	assert_int_equal(trace->slices.rows.count, 2);
	assert_string_equal(text_of(trace, trace->slices.name[0]), "tick");
	assert_string_equal(text_of(trace, trace->slices.name[1]), "vfs_read");
	assert_int_equal(arg_number(trace, trace->raw_events.args[3], "freq"), 0x82208);
	ky_trace_close(&trace);
}

static void function_graph_without_times_keeps_durations_and_nesting(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_seed("ftrace_text/graph.txt");
	const struct ky_slices *slices = &trace->slices;
	assert_int_equal(slices->rows.count, 3);
	assert_int_equal(slices->dur[0], 12300);
	assert_int_equal(slices->dur[1], 541);
	assert_int_equal(slices->depth[1], 1);
	assert_int_equal(trace->threads.tid[ky_track_thread(trace, slices->track[2])], 12);
	ky_trace_close(&trace);
}

static void compressed_atrace_is_unpacked(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_seed("ftrace_text/atrace.z");
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

static void a_page_of_systrace_has_the_trace_and_names(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_seed("systrace_html/page.html");
	assert_string_equal(trace->format, "systrace-html");
	assert_true(trace->slices.rows.count >= 1);
	bool named = false;
	for (uint32_t i = 0; i < trace->threads.rows.count; i++)
		named |= strcmp(text_of(trace, trace->threads.name[i]), "worker one") == 0;
	assert_true(named);
	ky_trace_close(&trace);
}

static bool has_problem(const struct ky_trace *trace, const char *name)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		if (strcmp(text_of(trace, trace->problems.name[i]), name) == 0)
			return true;
	return false;
}

static struct ky_trace *load_page(const char *page)
{
	struct ky_trace *trace;
	char message[KY_MESSAGE_BYTES];
	assert_int_equal(
		ky_load_memory(&trace, page, strlen(page), &ky_reader_systrace_html, message), 0);
	return trace;
}

static void a_page_of_systrace_may_be_packed(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_seed("systrace_html/packed.html");
	assert_int_equal(trace->slices.rows.count, 2);
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

static void a_page_that_is_packed_and_damaged_says_so(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_page("<html><script id=\"viewer-data\">\nH4sIAA!A</script>");
	assert_true(has_problem(trace, "html_base64"));
	ky_trace_close(&trace);
	trace = load_page("<html><script id=\"viewer-data\">\nH4sIAAAAAAACA6tWKilKTE51</script>");
	assert_true(has_problem(trace, "input_truncated"));
	ky_trace_close(&trace);
}

static void check_dat(const char *seed)
{
	struct ky_trace *trace = load_seed(seed);
	assert_string_equal(trace->format, "trace.dat");
	assert_int_equal(trace->raw_events.rows.count, 5);
	assert_int_equal(trace->sched.rows.count, 1);
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.dur[0], 10);
	assert_int_equal(trace->lost, 16);
	assert_string_equal(arg_text(trace, trace->raw_events.args[4], "filename"), "/x");
	assert_int_equal(trace->logs.rows.count, 1);
	assert_non_null(strstr(text_of(trace, trace->logs.message[0]), "hi 1"));
	ky_trace_close(&trace);
}

static void trace_dat_of_both_versions_reads_the_same(void **unused)
{
	(void)unused;
	check_dat("trace_dat/six.dat");
	check_dat("trace_dat/seven.dat");
	check_dat("trace_dat/seven-zlib.dat");
}

static void a_cut_trace_dat_gives_what_is_whole(void **unused)
{
	(void)unused;
	char path[1024];
	char message[KY_MESSAGE_BYTES];
	static char data[65536];
	const char *root = getenv("KYMO_SOURCE_ROOT");
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/trace_dat/six.dat", root ? root : ".");
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size_t bytes = fread(data, 1, sizeof(data), file);
	fclose(file);
	for (size_t cut = 0; cut < bytes; cut += 7) {
		struct ky_trace *trace;
		int error = ky_load_memory(&trace, data, cut, &ky_reader_trace_dat, message);
		assert_true((error == 0) == (trace != NULL));
		assert_true(error == 0 || message[0]);
		ky_trace_close(&trace);
	}
}

static void pages_with_absolute_times_and_padding(void **unused)
{
	/* print with "E", after an absolute time and a discarded event. */
	static const char format_text[] =
		"name: print\nID: 5\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n\nprint fmt: \"\"\n";
	const uint32_t events[] = {
		31u | 7u << 5, 2,    /* absolute: 2 << 27 | 7 */
		29u | 3u << 5, 8, 0, /* discarded, 3 later */
		5u | 2u << 5,  5, 8, 0, 0, 'x' | '\n' << 8,
	};
	uint64_t page[16] = {100, sizeof(events)};
	(void)unused;
	memcpy(page + 2, events, sizeof(events));
	struct ky_trace *trace;
	struct ky_ftrace_format *format;
	assert_int_equal(ky_trace_open(&trace), 0);
	assert_int_equal(ky_ftrace_format_open(&format, trace, false, 8), 0);
	ky_ftrace_format_event(format, "ftrace", format_text, sizeof(format_text) - 1, 0);
	ky_ftrace_page(format, 3, (const uint8_t *)page, sizeof(page), 0);
	ky_ftrace_format_close(&format);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	assert_int_equal(trace->raw_events.rows.count, 1);
	assert_int_equal(trace->raw_events.ts[0], (2 << 27) + 7 + 3 + 2);
	assert_int_equal(trace->raw_events.cpu[0], 3);
	assert_string_equal(text_of(trace, trace->logs.message[0]), "x");
	ky_trace_close(&trace);
}

static void real_pages_are_read_whole(void **unused)
{
	(void)unused;
	struct ky_trace *trace = load_fixture("ftrace-raw/live/pages");
	assert_int_equal(trace->raw_events.rows.count, 1374);
	assert_int_equal(trace->lost, 340);
	ky_trace_close(&trace);
}

static void real_trace_dat_has_the_events_that_trace_cmd_reports(void **unused)
{
	static const struct {
		const char *path;
		uint32_t events;
	} files[] = {{"trace-dat/trappy/raw_trace.dat", 757},
		     {"trace-dat/trappy/trace.dat", 525},
		     {"trace-dat/trappy/trace_idle.dat", 43}};
	(void)unused;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct ky_trace *trace = load_fixture(files[i].path);
		assert_int_equal(trace->raw_events.rows.count, files[i].events);
		ky_trace_close(&trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_found_whatever_is_in_a_comm),
		cmocka_unit_test(a_comm_with_blanks_and_arrows_stays_whole),
		cmocka_unit_test(losses_are_counted),
		cmocka_unit_test(lines_that_are_none_are_counted_with_their_place),
		cmocka_unit_test(trace_cmds_own_words_are_understood),
		cmocka_unit_test(function_graph_without_times_keeps_durations_and_nesting),
		cmocka_unit_test(compressed_atrace_is_unpacked),
		cmocka_unit_test(a_page_of_systrace_has_the_trace_and_names),
		cmocka_unit_test(a_page_of_systrace_may_be_packed),
		cmocka_unit_test(a_page_that_is_packed_and_damaged_says_so),
		cmocka_unit_test(trace_dat_of_both_versions_reads_the_same),
		cmocka_unit_test(a_cut_trace_dat_gives_what_is_whole),
		cmocka_unit_test(pages_with_absolute_times_and_padding),
		cmocka_unit_test(real_pages_are_read_whole),
		cmocka_unit_test(real_trace_dat_has_the_events_that_trace_cmd_reports),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
