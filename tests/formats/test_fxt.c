/* SPDX-License-Identifier: MIT */
/* test_fxt.c: Fuchsia traces, record by record: what each becomes, and that one which is wrong harms no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "formats/load.h"

#define WORDS_MAX 4096u

/* A trace in the making. */
static uint64_t words[WORDS_MAX];
static uint32_t count;

static void put(uint64_t word)
{
	assert_true(count < WORDS_MAX);
	words[count++] = word;
}

static void put_text(const char *text)
{
	const size_t bytes = strlen(text);
	for (size_t at = 0; at < bytes; at += 8) {
		uint64_t word = 0;
		memcpy(&word, text + at, bytes - at < 8 ? bytes - at : 8);
		put(word);
	}
}

/* A record's head; end_record() puts in its size. */
static uint32_t begin_record(uint32_t type, uint64_t fields)
{
	put(type | fields);
	return count - 1;
}

static void end_record(uint32_t head)
{
	words[head] |= (uint64_t)(count - head) << 4;
}

static void put_provider(uint32_t id, const char *name)
{
	const uint32_t head =
		begin_record(0, 1u << 16 | (uint64_t)id << 20 | (uint64_t)strlen(name) << 52);
	put_text(name);
	end_record(head);
}

static void put_string(uint32_t index, const char *text)
{
	const uint32_t head = begin_record(2, (uint64_t)index << 16 | (uint64_t)strlen(text) << 32);
	put_text(text);
	end_record(head);
}

static void put_thread(uint32_t index, uint64_t pid, uint64_t tid)
{
	const uint32_t head = begin_record(3, (uint64_t)index << 16);
	put(pid);
	put(tid);
	end_record(head);
}

static void put_rate(uint64_t ticks_per_s)
{
	const uint32_t head = begin_record(1, 0);
	put(ticks_per_s);
	end_record(head);
}

enum { CATEGORY = 1, NAME = 2, KEY = 3 };

static void start(void)
{
	count = 0;
	put(0x0016547846040010);
	put_provider(1, "test");
	put_string(CATEGORY, "net");
	put_string(NAME, "recv");
	put_string(KEY, "key");
	put_thread(1, 10, 11);
}

static uint32_t begin_event(uint32_t type, uint32_t args, uint64_t ticks)
{
	const uint32_t head =
		begin_record(4, (uint64_t)type << 16 | (uint64_t)args << 20 | 1u << 24 |
					(uint64_t)CATEGORY << 32 | (uint64_t)NAME << 48);
	put(ticks);
	return head;
}

static void put_event(uint32_t type, uint64_t ticks)
{
	end_record(begin_event(type, 0, ticks));
}

static void put_event_with(uint32_t type, uint64_t ticks, uint64_t last)
{
	const uint32_t head = begin_event(type, 0, ticks);
	put(last);
	end_record(head);
}

static void put_arg(uint32_t type, uint32_t high, const uint64_t *value)
{
	put(type | (value ? 2u : 1u) << 4 | (uint64_t)KEY << 16 | (uint64_t)high << 32);
	if (value)
		put(*value);
}

static struct ky_trace *load(void)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	if (ky_load_memory(&trace, words, count * sizeof(words[0]), NULL, message) != 0)
		fail_msg("%s", message);
	assert_string_equal(trace->format, "fxt");
	return trace;
}

static uint64_t problems_named(const struct ky_trace *trace, const char *name)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		if (strcmp(ky_text_of(trace, trace->problems.name[i]), name) == 0)
			return trace->problems.number[i];
	return 0;
}

static void spans_nest_and_end_whatever_their_name(void **state)
{
	(void)state;
	start();
	put_event(2, 100);
	put_event(2, 150);
	put_event_with(4, 160, 180);
	put_event(3, 200);
	put_event(0, 250);
	put_event(3, 300);
	struct ky_trace *trace = load();
	static const int64_t expected[][3] = {
		{100, 200, 0}, {150, 50, 1}, {160, 20, 2}, {250, 0, 1}};
	assert_int_equal(trace->slices.rows.count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(trace->slices.ts[i], expected[i][0]);
		assert_int_equal(trace->slices.dur[i], expected[i][1]);
		assert_int_equal(trace->slices.depth[i], expected[i][2]);
	}
	assert_int_equal(trace->threads.tid[0], 11);
	assert_int_equal(trace->processes.pid[0], 10);
	ky_trace_close(&trace);
}

static void arguments_keep_their_types(void **state)
{
	(void)state;
	const uint64_t number = (uint64_t)-5;
	const double real = 1.5;
	uint64_t bits;
	memcpy(&bits, &real, sizeof(bits));
	start();
	const uint32_t head = begin_event(0, 6, 100);
	put_arg(1, (uint32_t)-7, NULL);
	put_arg(3, 0, &number);
	put_arg(5, 0, &bits);
	put_arg(6, NAME, NULL);
	put_arg(7, 0, &number);
	put_arg(9, 1, NULL);
	end_record(head);
	struct ky_trace *trace = load();
	static const uint8_t types[] = {KY_ARG_INT,    KY_ARG_INT,     KY_ARG_REAL,
					KY_ARG_STRING, KY_ARG_POINTER, KY_ARG_BOOL};
	assert_int_equal(trace->args.rows.count, 6);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(trace->args.type[i], types[i]);
		assert_string_equal(ky_text_of(trace, trace->args.key[i]), "key");
	}
	assert_int_equal((int64_t)trace->args.value[0], -7);
	assert_int_equal((int64_t)trace->args.value[1], -5);
	assert_int_equal(trace->args.value[2], bits);
	assert_string_equal(ky_text_of(trace, (uint32_t)trace->args.value[3]), "recv");
	ky_trace_close(&trace);
}

static void counters_have_the_names_that_perfetto_gives_them(void **state)
{
	(void)state;
	const uint64_t number = 42;
	start();
	const uint32_t head = begin_event(1, 2, 100);
	put_arg(4, 0, &number);
	put_arg(6, NAME, NULL);
	put(7);
	end_record(head);
	struct ky_trace *trace = load();
	assert_int_equal(trace->counters.rows.count, 1);
	assert_true(trace->counters.value[0] == 42);
	assert_string_equal(ky_text_of(trace, trace->tracks.name[trace->counters.track[0]]),
			    "recv:key:7");
	assert_int_equal(problems_named(trace, "fuchsia_non_numeric_counters"), 1);
	ky_trace_close(&trace);
}

static void asynchronous_spans_are_told_apart_by_their_id(void **state)
{
	(void)state;
	start();
	put_event_with(5, 100, 1);
	put_event_with(5, 110, 2);
	put_event_with(7, 120, 1);
	put_event_with(7, 150, 2);
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 2);
	assert_int_equal(trace->slices.dur[0], 20);
	assert_int_equal(trace->slices.dur[1], 40);
	assert_int_equal(trace->slices.depth[1], 0);
	ky_trace_close(&trace);
}

static void flows_join_spans_across_processes(void **state)
{
	(void)state;
	start();
	put_event(2, 100);
	put_event_with(8, 110, 9);
	put_event(3, 120);
	put_thread(1, 20, 21);
	put_event(2, 200);
	put_event_with(10, 210, 9);
	/* The same id, begun and ended here, is another. */
	put_event_with(8, 220, 9);
	put_event_with(10, 230, 9);
	put_event(3, 240);
	struct ky_trace *trace = load();
	assert_int_equal(trace->flows.rows.count, 2);
	assert_int_equal(trace->slices.ts[trace->flows.out[0]], 100);
	assert_int_equal(trace->slices.ts[trace->flows.in[0]], 200);
	ky_trace_close(&trace);
}

static void ticks_become_nanoseconds(void **state)
{
	(void)state;
	start();
	put_rate(24000000);
	put_event_with(4, 24000000, 48000000);
	/* More than a signed number holds. */
	put_event_with(4, UINT64_MAX, UINT64_MAX);
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.ts[0], 1000000000);
	assert_int_equal(trace->slices.dur[0], 1000000000);
	assert_int_equal(problems_named(trace, "fuchsia_invalid_event"), 1);
	ky_trace_close(&trace);
}

static void tables_belong_to_their_provider(void **state)
{
	(void)state;
	start();
	put_provider(2, "other");
	put_string(NAME, "send");
	put_string(CATEGORY, "net");
	put_thread(1, 30, 31);
	put_event_with(4, 100, 200);
	put(0x10 | 2u << 16 | 1u << 20); /* a section of provider 1 */
	put_event_with(4, 300, 400);
	struct ky_trace *trace = load();
	assert_string_equal(ky_text_of(trace, trace->slices.name[0]), "send");
	assert_string_equal(ky_text_of(trace, trace->slices.name[1]), "recv");
	ky_trace_close(&trace);
}

static void kernel_objects_name_processes_and_threads(void **state)
{
	(void)state;
	const uint64_t pid = 10;
	start();
	put_string(KEY, "process");
	uint32_t head = begin_record(7, 1u << 16 | (uint64_t)NAME << 24);
	put(pid);
	end_record(head);
	head = begin_record(7, 2u << 16 | (uint64_t)CATEGORY << 24 | UINT64_C(1) << 40);
	put(11);
	put_arg(8, 0, &pid);
	end_record(head);
	put_event(2, 1);
	struct ky_trace *trace = load();
	assert_int_equal(trace->processes.rows.count, 1);
	assert_int_equal(trace->threads.rows.count, 1);
	assert_string_equal(ky_text_of(trace, trace->processes.name[0]), "recv");
	assert_string_equal(ky_text_of(trace, trace->threads.name[0]), "net");
	ky_trace_close(&trace);
}

static void put_switch(uint64_t ticks, uint64_t out, uint64_t in)
{
	const uint32_t head = begin_record(8, UINT64_C(3) << 36 | UINT64_C(1) << 60);
	put(ticks);
	put(out);
	put(in);
	end_record(head);
}

static void switches_become_scheduling(void **state)
{
	(void)state;
	start();
	put_switch(100, 11, 12);
	put_switch(150, 12, 11);
	struct ky_trace *trace = load();
	assert_int_equal(trace->sched.rows.count, 2);
	assert_int_equal(trace->sched.ts[0], 100);
	assert_int_equal(trace->sched.dur[0], 50);
	assert_int_equal(trace->threads.tid[trace->sched.thread[0]], 12);
	assert_string_equal(ky_text_of(trace, trace->sched.end_state[0]), "S");
	ky_trace_close(&trace);
}

static void log_records_are_logs(void **state)
{
	(void)state;
	start();
	const uint32_t head = begin_record(9, 5u << 16 | UINT64_C(1) << 32);
	put(77);
	put_text("hello");
	end_record(head);
	struct ky_trace *trace = load();
	assert_int_equal(trace->logs.rows.count, 1);
	assert_int_equal(trace->logs.ts[0], 77);
	assert_string_equal(ky_text_of(trace, trace->logs.message[0]), "hello");
	ky_trace_close(&trace);
}

static void a_record_that_is_wrong_harms_no_other(void **state)
{
	(void)state;
	start();
	put_event(2, 100);
	put_event(7, 110);     /* its id is missing */
	put(0x24 | 15u << 20); /* arguments that are not there */
	put(0);
	put(15 | 3u << 4); /* a large record */
	put(0);
	put(0);
	put(12 | 1u << 4);           /* an unknown one */
	put_event_with(4, 300, 200); /* ends before it begins */
	put_event(3, 200);
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.dur[0], 100);
	assert_int_equal(problems_named(trace, "fuchsia_invalid_event"), 3);
	assert_int_equal(problems_named(trace, "fuchsia_record_skipped"), 2);
	ky_trace_close(&trace);
}

static void a_string_that_is_not_defined_drops_the_event(void **state)
{
	(void)state;
	start();
	const uint32_t head = begin_record(4, 2u << 16 | 1u << 24 | UINT64_C(99) << 48);
	put(100);
	end_record(head);
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 0);
	assert_int_equal(problems_named(trace, "fuchsia_invalid_string_ref"), 1);
	ky_trace_close(&trace);
}

static void a_record_of_no_words_is_the_end(void **state)
{
	(void)state;
	start();
	put_event_with(4, 100, 200);
	put(0);
	put_event_with(4, 300, 400);
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(problems_named(trace, "fuchsia_invalid_record"), 1);
	ky_trace_close(&trace);
}

static void a_trace_without_its_magic_is_known_by_its_provider(void **state)
{
	(void)state;
	start();
	put_event_with(4, 100, 200);
	memmove(words, words + 1, (count - 1) * sizeof(words[0]));
	count--;
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 1);
	ky_trace_close(&trace);
}

static void the_wall_clock_of_magic_trace_is_a_clock_snapshot(void **state)
{
	(void)state;
	start();
	const uint32_t head = begin_record(1, 0);
	put(1000000000);
	put(5000);
	put(UINT64_C(1600000000000000000));
	end_record(head);
	struct ky_trace *trace = load();
	assert_int_equal(trace->clock_rows.rows.count, 2);
	assert_int_equal(trace->clock_rows.ts[0], 5000);
	assert_int_equal(trace->clock_rows.clock[1], KY_CLOCK_REALTIME);
	ky_trace_close(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_nest_and_end_whatever_their_name),
		cmocka_unit_test(arguments_keep_their_types),
		cmocka_unit_test(counters_have_the_names_that_perfetto_gives_them),
		cmocka_unit_test(asynchronous_spans_are_told_apart_by_their_id),
		cmocka_unit_test(flows_join_spans_across_processes),
		cmocka_unit_test(ticks_become_nanoseconds),
		cmocka_unit_test(tables_belong_to_their_provider),
		cmocka_unit_test(kernel_objects_name_processes_and_threads),
		cmocka_unit_test(switches_become_scheduling),
		cmocka_unit_test(log_records_are_logs),
		cmocka_unit_test(a_record_that_is_wrong_harms_no_other),
		cmocka_unit_test(a_string_that_is_not_defined_drops_the_event),
		cmocka_unit_test(a_record_of_no_words_is_the_end),
		cmocka_unit_test(a_trace_without_its_magic_is_known_by_its_provider),
		cmocka_unit_test(the_wall_clock_of_magic_trace_is_a_clock_snapshot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
