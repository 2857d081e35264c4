/* SPDX-License-Identifier: MIT */
/*
 * test_writers.c: the writers of src/format, fed with made-up events (feed.h), their output checked
 * for form (walk.h). What the output means to the programs it is for is the matter of
 * tests/formats/emit_oracle.mjs, which takes its files from here:
 *
 *   test_writers                runs the tests
 *   test_writers --write DIR    writes DIR/all.* and DIR/names.*, and notes of what was recorded
 *   test_writers --bench        time and size of each writer's events
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "feed.h"
#include "formats/json/json_value.h"
#include "formats/utf8.h"
#include "walk.h"

#define NAMES 40000u
#define THREADS 300u

/* For programs that are built without that writer. */
__attribute__((weak))
const struct ky_format ky_format_kymo = {.name = "kymo", .id = KYMO_FORMAT_KYMO, .suffix = ".kymo"};

static void start(struct feed *feed, const struct ky_format *format)
{
	feed_init(feed);
	feed_add(feed, format);
	feed_open(feed);
}

static const struct ky_out *output(const struct feed *feed)
{
	return &feed->targets[0].out;
}

/* ---- formats and the buffer ---- */

static void formats_are_found_by_suffix(void **state)
{
	(void)state;
	assert_int_equal(ky_format_by_name("a.json"), KYMO_FORMAT_JSON);
	assert_int_equal(ky_format_by_name("/x/a.json.gz"), KYMO_FORMAT_JSON_GZ);
	assert_int_equal(ky_format_by_name("a.b.pftrace"), KYMO_FORMAT_PFTRACE);
	assert_int_equal(ky_format_by_name("a.fxt"), KYMO_FORMAT_FXT);
	assert_int_equal(ky_format_by_name("a.fxt.gz"), KYMO_FORMAT_FXT_GZ);
	assert_int_equal(ky_format_by_name("a.kymo"), KYMO_FORMAT_KYMO);
	assert_int_equal(ky_format_by_name(".json"), 0);
	assert_int_equal(ky_format_by_name("json"), 0);
	assert_int_equal(ky_format_by_name("a.gz"), 0);
	assert_int_equal(ky_format_by_name(""), 0);
}

static void compressed_formats_have_the_plain_writer(void **state)
{
	(void)state;
	assert_ptr_equal(ky_format_by_id(KYMO_FORMAT_JSON_GZ), &ky_format_json);
	assert_ptr_equal(ky_format_by_id(KYMO_FORMAT_FXT_GZ), &ky_format_fxt);
	assert_ptr_equal(ky_format_by_id(KYMO_FORMAT_PFTRACE), &ky_format_pftrace);
	assert_ptr_equal(ky_format_by_id(KYMO_FORMAT_KYMO), &ky_format_kymo);
	assert_null(ky_format_by_id(KYMO_FORMAT_AUTO));
	assert_null(ky_format_by_id(KYMO_FORMAT_NONE));
}

static int refuse(struct ky_out *out, const void *data, size_t bytes)
{
	(void)out;
	(void)data;
	(void)bytes;
	return -ENOSPC;
}

static void the_first_error_of_a_buffer_stays_and_the_rest_is_dropped(void **state)
{
	(void)state;
	struct ky_out out;
	assert_int_equal(ky_out_init(&out, 0), 0);
	out.push = refuse;
	ky_out_append(&out, "abc", 3);
	assert_int_equal(ky_out_push(&out), -ENOSPC);
	assert_int_equal(out.used, 0);
	for (int i = 0; i < 100; i++) {
		uint8_t *room = ky_out_room(&out, KY_OUT_ROOM_MAX);
		memset(room, i, KY_OUT_ROOM_MAX);
		ky_out_done(&out, room + KY_OUT_ROOM_MAX);
	}
	assert_true(out.size <= 2 * KY_OUT_ROOM_MAX);
	assert_int_equal(ky_out_push(&out), -ENOSPC);
	assert_int_equal(out.pushed_bytes, 0);
	ky_out_free(&out);
}

static void a_buffer_takes_more_than_its_size_at_once(void **state)
{
	(void)state;
	struct ky_out out;
	const size_t bytes = 5 * KY_OUT_ROOM_MAX + 3;
	uint8_t *data = malloc(bytes);
	assert_non_null(data);
	for (size_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(i * 7);
	assert_int_equal(ky_out_init(&out, 1), 0);
	ky_out_append(&out, data, bytes);
	assert_int_equal(out.used, bytes);
	assert_memory_equal(out.data, data, bytes);
	ky_out_free(&out);
	free(data);
}

/* ---- text and numbers ---- */

static void text_becomes_valid_utf8(void **state)
{
	(void)state;
	static const struct {
		const char *in;
		bool cut;
		const char *out;
	} cases[] = {
		{"", false, ""},
		{"plain", false, "plain"},
		{"\xe2\x82\xac", false, "\xe2\x82\xac"},
		{"a\xff", false, "a\xef\xbf\xbd"},
		{"\xe2\x82", false, "\xef\xbf\xbd"},
		{"\xc0\xaf", false, "\xef\xbf\xbd\xef\xbf\xbd"},
		{"plain", true, "plain\xe2\x80\xa6"},
		{"", true, "\xe2\x80\xa6"},
		{"a\xe2\x82", true, "a\xe2\x80\xa6"},
		{"a\xf0\x9f\x98", true, "a\xe2\x80\xa6"},
		{"a\xe2\x82\xac", true, "a\xe2\x82\xac\xe2\x80\xa6"},
		{"\x80\x80\x80\x80", true,
		 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xe2\x80\xa6"},
	};
	struct ky_out scratch;
	assert_int_equal(ky_out_init(&scratch, 0), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ky_text in = {cases[i].in, (uint32_t)strlen(cases[i].in)};
		const struct ky_text out = ky_utf8_text(&scratch, in, cases[i].cut);
		assert_int_equal(out.bytes, strlen(cases[i].out));
		assert_memory_equal(out.data, cases[i].out, out.bytes);
	}
	ky_out_free(&scratch);
}

static uint64_t random_bits(uint64_t *seed)
{
	*seed += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = *seed;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static void assert_reads_back(double value)
{
	uint8_t text[KY_JSON_NUMBER_BYTES + 1];
	uint8_t *end = ky_json_put_double(text, value);
	assert_true(end <= text + KY_JSON_NUMBER_BYTES);
	*end = '\0';
	assert_true(walk_json(text, (size_t)(end - text)));
	assert_non_null(strpbrk((char *)text, ".e")); /* so that it stays a double */
	const double back = strtod((char *)text, NULL);
	assert_memory_equal(&back, &value, sizeof(value));
}

static void doubles_read_back_as_they_were(void **state)
{
	(void)state;
	static const double values[] = {0.0,     -0.0,         1.0,          0.1,  1e6,
					1e21,    -2.5,         5e-7,         1e-7, DBL_MAX,
					DBL_MIN, DBL_TRUE_MIN, 0.3333333333, 1e15};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		assert_reads_back(values[i]);
	uint64_t seed = 1;
	for (int i = 0; i < 100000; i++) {
		const uint64_t bits = random_bits(&seed);
		double value;
		memcpy(&value, &bits, sizeof(value));
		if (isfinite(value))
			assert_reads_back(value);
		assert_reads_back((double)(int64_t)(bits % 2000000000) / 1000.0 - 1e6);
	}
}

static void doubles_do_not_follow_the_locale(void **state)
{
	(void)state;
	static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF"};
	for (size_t i = 0; i < sizeof(locales) / sizeof(locales[0]); i++) {
		if (!setlocale(LC_NUMERIC, locales[i]))
			continue;
		uint8_t text[KY_JSON_NUMBER_BYTES];
		const size_t bytes = (size_t)(ky_json_put_double(text, 1.0 / 3) - text);
		setlocale(LC_NUMERIC, "C");
		assert_int_equal(bytes, strlen("0.3333333333333333"));
		assert_memory_equal(text, "0.3333333333333333", bytes);
	}
}

/* ---- JSON ---- */

static void json_is_valid_for_a_strict_parser(void **state)
{
	(void)state;
	struct feed feed;
	start(&feed, &ky_format_json);
	feed_everything(&feed);
	feed_threads(&feed, THREADS);
	feed_finish(&feed);
	assert_true(walk_json(output(&feed)->data, output(&feed)->used));
	assert_int_equal(output(&feed)->error, 0);
	feed_free(&feed);
}

static void json_without_events_is_valid(void **state)
{
	(void)state;
	struct feed feed;
	start(&feed, &ky_format_json);
	feed_finish(&feed);
	assert_true(walk_json(output(&feed)->data, output(&feed)->used));
	feed_free(&feed);
}

/* Between two calls only the closing bracket is missing. */
static void json_lines_are_whole_events(void **state)
{
	(void)state;
	struct feed feed;
	start(&feed, &ky_format_json);
	feed_everything(&feed);
	const uint8_t *at = output(&feed)->data;
	const uint8_t *end = at + output(&feed)->used;
	assert_memory_equal(at, "[\n", 2);
	for (at += 2; at < end;) {
		const uint8_t *line = memchr(at, '\n', (size_t)(end - at));
		const uint8_t *stop = line ? line - 1 : end;
		assert_true(!line || *stop == ',');
		assert_true(walk_json(at, (size_t)(stop - at)));
		at = line ? line + 1 : end;
	}
	feed_free(&feed);
}

static void json_times_are_microseconds_with_three_decimals(void **state)
{
	(void)state;
	static const struct {
		uint64_t time_ns;
		const char *text;
	} cases[] = {
		{0, "0.000"},
		{1, "0.001"},
		{999, "0.999"},
		{1000, "1.000"},
		{999999999, "999999.999"},
		{1000000000, "1000000.000"},
		{1000000001, "1000000.001"},
		{60000000010, "60000000.010"},
		{UINT64_MAX, "18446744073709551.615"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct feed feed;
		char expected[64];
		start(&feed, &ky_format_json);
		struct ky_thread *thread = feed_thread(&feed, 1, "");
		const struct ky_site *site = feed_site(&feed, KYMO_KIND_INSTANT, 0, "c", "n", NULL);
		feed.now_ns = cases[i].time_ns;
		feed_now(&feed, site, thread, 0, NULL);
		ky_out_append(&feed.targets[0].out, "", 1);
		snprintf(expected, sizeof(expected), "\"ts\":%s,", cases[i].text);
		assert_non_null(strstr((char *)output(&feed)->data, expected));
		feed_free(&feed);
	}
}

/* ---- Perfetto and Fuchsia ---- */

struct expectation {
	const struct feed *feed;
	uint64_t events;
	uint64_t first_ns;
	uint64_t wrong;
};

static void count_event(const struct walk_event *event, void *context)
{
	struct expectation *expected = context;
	expected->events++;
	(void)event;
}

static void pftrace_is_well_formed(void **state)
{
	(void)state;
	struct feed feed;
	struct expectation expected = {0};
	start(&feed, &ky_format_pftrace);
	feed_everything(&feed);
	feed_threads(&feed, THREADS);
	feed_finish(&feed);
	const char *wrong =
		walk_pftrace(output(&feed)->data, output(&feed)->used, count_event, &expected);
	assert_null(wrong);
	assert_true(expected.events > THREADS * 4);
	feed_free(&feed);
}

static void expect_next_time(const struct walk_event *event, void *context)
{
	static const int64_t steps[] = {0, 1, 1000, 999, 5, 2000000000, -7, 2000000001};
	struct expectation *expected = context;
	const uint64_t time_ns = expected->first_ns + (uint64_t)steps[expected->events++ % 8];
	expected->wrong += event->time_ns != time_ns;
}

static void pftrace_keeps_times_that_go_back(void **state)
{
	(void)state;
	static const int64_t steps[] = {0, 1, 1000, 999, 5, 2000000000, -7, 2000000001};
	struct feed feed;
	struct expectation expected = {.first_ns = FEED_START_NS};
	start(&feed, &ky_format_pftrace);
	const struct ky_site *site = feed_site(&feed, KYMO_KIND_INSTANT, 0, "c", "n", NULL);
	for (int32_t t = 0; t < 3; t++) {
		struct ky_thread *thread = feed_thread(&feed, t + 1, "t");
		for (size_t i = 0; i < 8; i++) {
			feed.now_ns = FEED_START_NS + (uint64_t)steps[i];
			feed_now(&feed, site, thread, 0, NULL);
		}
	}
	feed_finish(&feed);
	assert_null(walk_pftrace(output(&feed)->data, output(&feed)->used, expect_next_time,
				 &expected));
	assert_int_equal(expected.events, 24);
	assert_int_equal(expected.wrong, 0);
	feed_free(&feed);
}

static void pftrace_packets_of_plain_spans_are_small(void **state)
{
	(void)state;
	struct feed feed;
	start(&feed, &ky_format_pftrace);
	struct ky_thread *thread = feed_thread(&feed, FEED_PID, "main");
	const struct ky_site *site =
		feed_site(&feed, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "c", "n", NULL);
	feed_now(&feed, site, thread, 0, NULL);
	feed_end(&feed, site, thread);
	const size_t before = output(&feed)->used;
	feed_now(&feed, site, thread, 0, NULL);
	feed_end(&feed, site, thread);
	assert_true(output(&feed)->used - before <= 34);
	feed_free(&feed);
}

static void fxt_is_well_formed(void **state)
{
	(void)state;
	struct feed feed;
	struct expectation expected = {0};
	start(&feed, &ky_format_fxt);
	feed_everything(&feed);
	feed_finish(&feed);
	const char *wrong =
		walk_fxt(output(&feed)->data, output(&feed)->used, count_event, &expected);
	assert_null(wrong);
	assert_true(expected.events > 100);
	feed_free(&feed);
}

static void expect_name(const struct walk_event *event, void *context)
{
	struct expectation *expected = context;
	const uint64_t number = expected->events++ / 2 % NAMES;
	expected->wrong += strcmp(event->name, expected->feed->names[number]) != 0;
	expected->wrong += strcmp(event->category, "names") != 0;
}

static void fxt_keeps_more_names_than_its_table_holds(void **state)
{
	(void)state;
	struct feed feed;
	struct expectation expected = {.feed = &feed};
	start(&feed, &ky_format_fxt);
	feed_names(&feed, NAMES);
	feed_finish(&feed);
	assert_null(walk_fxt(output(&feed)->data, output(&feed)->used, expect_name, &expected));
	assert_int_equal(expected.events, NAMES * 4);
	assert_int_equal(expected.wrong, 0);
	feed_free(&feed);
}

static void expect_thread(const struct walk_event *event, void *context)
{
	struct expectation *expected = context;
	expected->wrong += event->thread != 10000 + expected->events++ / 2 % THREADS;
}

static void fxt_keeps_more_threads_than_its_table_holds(void **state)
{
	(void)state;
	struct feed feed;
	struct expectation expected = {0};
	start(&feed, &ky_format_fxt);
	feed_threads(&feed, THREADS);
	feed_finish(&feed);
	assert_null(walk_fxt(output(&feed)->data, output(&feed)->used, expect_thread, &expected));
	assert_int_equal(expected.events, THREADS * 4);
	assert_int_equal(expected.wrong, 0);
	feed_free(&feed);
}

/* ---- all of them ---- */

static const struct ky_format *const writers[] = {&ky_format_json, &ky_format_pftrace,
						  &ky_format_fxt};
#define WRITERS (sizeof(writers) / sizeof(writers[0]))

/* Longer than any buffer: only the program's own literals can be, but they can. */
static void writers_take_text_of_any_length(void **state)
{
	(void)state;
	const size_t bytes = 3 * KY_OUT_ROOM_MAX;
	char *name = malloc(bytes + 1);
	assert_non_null(name);
	memset(name, '\x80', bytes);
	name[bytes] = '\0';
	const char *const keys[] = {name, NULL};
	for (size_t i = 0; i < WRITERS; i++) {
		struct feed feed;
		struct expectation expected = {0};
		start(&feed, writers[i]);
		struct ky_thread *thread = feed_thread(&feed, FEED_PID, name);
		const struct ky_site *site =
			feed_site(&feed, KYMO_KIND_INSTANT, 0, name, name, keys);
		const struct kymo_arg arg = feed_string(name);
		feed_now(&feed, site, thread, 0, &arg);
		feed_finish(&feed);
		const struct ky_out *out = output(&feed);
		assert_int_equal(out->error, 0);
		if (writers[i] == &ky_format_json)
			assert_true(walk_json(out->data, out->used));
		else if (writers[i] == &ky_format_fxt)
			assert_null(walk_fxt(out->data, out->used, count_event, &expected));
		else
			assert_null(walk_pftrace(out->data, out->used, count_event, &expected));
		feed_free(&feed);
	}
	free(name);
}

static void writers_go_on_after_the_disk_is_full(void **state)
{
	(void)state;
	for (size_t i = 0; i < WRITERS; i++) {
		struct feed feed;
		start(&feed, writers[i]);
		feed.targets[0].out.push = refuse;
		ky_out_push(&feed.targets[0].out);
		feed_everything(&feed);
		feed_finish(&feed);
		assert_int_equal(ky_out_push(&feed.targets[0].out), -ENOSPC);
		feed_free(&feed);
	}
}

/* ---- the other modes ---- */

static int save(const struct feed *feed, const char *directory, const char *stem)
{
	for (size_t i = 0; i < feed->targets_count; i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s%s", directory, stem,
			 feed->targets[i].format->suffix);
		FILE *file = fopen(path, "wb");
		if (!file || fwrite(feed->targets[i].out.data, 1, feed->targets[i].out.used,
				    file) != feed->targets[i].out.used) {
			perror(path);
			return 1;
		}
		fclose(file);
	}
	return 0;
}

static int write_stream(const char *directory, const char *stem, bool names)
{
	char path[4096];
	struct feed feed;
	feed_init(&feed);
	for (size_t i = 0; i < WRITERS; i++)
		feed_add(&feed, writers[i]);
	snprintf(path, sizeof(path), "%s/%s.notes", directory, stem);
	feed.notes = fopen(path, "w");
	if (!feed.notes) {
		perror(path);
		return 1;
	}
	feed_open(&feed);
	if (names) {
		feed_names(&feed, NAMES);
	} else {
		feed_everything(&feed);
		feed_threads(&feed, THREADS);
	}
	feed_finish(&feed);
	fclose(feed.notes);
	const int failed = save(&feed, directory, stem);
	feed_free(&feed);
	return failed;
}

static int count_bytes(struct ky_out *out, const void *data, size_t bytes)
{
	(void)data;
	*(uint64_t *)out->context += bytes;
	return 0;
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#define BENCH_SPANS 10000000u

static void bench(const struct ky_format *format, bool with_args)
{
	static const char *const keys[] = {"bytes", "offset", "peer", NULL};
	struct feed feed;
	uint64_t bytes = 0;
	start(&feed, format);
	struct ky_out *out = &feed.targets[0].out;
	out->push = count_bytes;
	out->context = &bytes;
	struct ky_thread *thread = feed_thread(&feed, FEED_PID, "main");
	const struct ky_site *site = feed_site(&feed, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "bench",
					       "some_function", with_args ? keys : NULL);
	struct kymo_arg args[] = {feed_int(123), feed_int(456789), feed_string("hello world")};
	for (size_t i = 0; with_args && i < 3; i++)
		args[i].key = site->keys[i].data;
	struct ky_event event = {.site = site, .thread = thread, .args = args, .name = site->name};
	const double begun = seconds();
	for (uint64_t i = 0; i < BENCH_SPANS; i++) {
		event.kind = KYMO_KIND_BEGIN;
		event.args_count = with_args ? 3 : 0;
		event.time_ns = FEED_START_NS + i * 70;
		format->event(feed.targets[0].writer, &event);
		event.kind = KYMO_KIND_END;
		event.args_count = 0;
		event.time_ns += 33;
		format->event(feed.targets[0].writer, &event);
		if (out->used > KY_OUT_ROOM_MAX - 1024)
			ky_out_push(out);
	}
	ky_out_push(out);
	printf("%-8s %-16s %5.1f ns an event, %5.1f bytes a span\n", format->name,
	       with_args ? "three arguments" : "no arguments",
	       (seconds() - begun) * 1e9 / (2.0 * BENCH_SPANS), (double)bytes / BENCH_SPANS);
	feed_free(&feed);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--write") == 0)
		return write_stream(argv[2], "all", false) || write_stream(argv[2], "names", true);
	if (argc == 2 && strcmp(argv[1], "--bench") == 0) {
		for (size_t i = 0; i < WRITERS * 2; i++)
			bench(writers[i / 2], i % 2);
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_are_found_by_suffix),
		cmocka_unit_test(compressed_formats_have_the_plain_writer),
		cmocka_unit_test(the_first_error_of_a_buffer_stays_and_the_rest_is_dropped),
		cmocka_unit_test(a_buffer_takes_more_than_its_size_at_once),
		cmocka_unit_test(text_becomes_valid_utf8),
		cmocka_unit_test(doubles_read_back_as_they_were),
		cmocka_unit_test(doubles_do_not_follow_the_locale),
		cmocka_unit_test(json_is_valid_for_a_strict_parser),
		cmocka_unit_test(json_without_events_is_valid),
		cmocka_unit_test(json_lines_are_whole_events),
		cmocka_unit_test(json_times_are_microseconds_with_three_decimals),
		cmocka_unit_test(pftrace_is_well_formed),
		cmocka_unit_test(pftrace_keeps_times_that_go_back),
		cmocka_unit_test(pftrace_packets_of_plain_spans_are_small),
		cmocka_unit_test(fxt_is_well_formed),
		cmocka_unit_test(fxt_keeps_more_names_than_its_table_holds),
		cmocka_unit_test(fxt_keeps_more_threads_than_its_table_holds),
		cmocka_unit_test(writers_take_text_of_any_length),
		cmocka_unit_test(writers_go_on_after_the_disk_is_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
