/* SPDX-License-Identifier: MIT */
/*
 * test_html_export.c: the rows of a range that go into an exported page, the unchanged page around the data, the data itself,
 * and what is refused. tests/viewer/embedded.mjs reads the data as the page does.
 */
#include "model/intake.h"
#include "query/filter.h"
#include "server/html_export.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <setjmp.h>

#include <cmocka.h>

static const char page[] = "<!doctype html><head><title>kymo</title></head><body>"
			   "<!-- kymo-data --><script>go()</script></body>";

static uint64_t state = 1;

static uint64_t random_below(uint64_t limit)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (state >> 33) % limit;
}

static void put_event(struct ky_trace *trace, int64_t ts, unsigned *depth)
{
	static const char *const names[] = {"alpha", "beta", "gamma"};
	const uint32_t thread = ky_thread(trace, 10, 100);
	const uint32_t track = ky_track_of_thread(trace, thread);
	const uint32_t name = ky_string_z(trace, names[random_below(3)]);
	if (random_below(2) && *depth < 8) {
		ky_args_begin(trace);
		ky_arg_int(trace, ky_string_z(trace, "debug.size"), -(int64_t)random_below(1000));
		ky_put_begin(trace, ts, track, ky_string_z(trace, "net"), name, ky_args_end(trace));
		++*depth;
	} else if (*depth) {
		ky_put_end(trace, ts, track, 0, 0, 0);
		--*depth;
	}
}

static struct ky_view *random_view(unsigned events, const char *name)
{
	struct ky_trace *trace = NULL;
	struct ky_view *view = NULL;
	unsigned depth = 0;
	int64_t ts = 5000;
	assert_int_equal(ky_trace_open(&trace), 0);
	for (unsigned i = 0; i < events; i++) {
		ts += (int64_t)random_below(100);
		put_event(trace, ts, &depth);
	}
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	const struct ky_view_options options = {
		.name = name, .generation = 1, .base_ns = KY_TIME_NONE};
	assert_int_equal(ky_view_open(&view, trace, &options), 0);
	return view;
}

/* ---- rows ---- */

static void rows_are_those_that_reach_in(void **unused)
{
	(void)unused;
	enum { COUNT = 200 };
	int64_t ts[COUNT], dur[COUNT];
	for (int round = 0; round < 300; round++) {
		const bool ordered = round % 2;
		for (int i = 0; i < COUNT; i++) {
			ts[i] = ordered && i ? ts[i - 1] + (int64_t)random_below(5)
					     : (int64_t)random_below(500);
			dur[i] = (int64_t)random_below(40) - 1;
		}
		const int64_t from = (int64_t)random_below(600) - 50;
		const int64_t to = from + (int64_t)random_below(100);
		const struct ky_html_times times = {ts, dur, COUNT, 600};
		struct ky_html_rows rows;
		assert_int_equal(ky_html_rows_in(&rows, &times, ordered, from, to), 0);
		uint32_t number = 0;
		for (uint32_t i = 0; i < COUNT; i++) {
			const int64_t end = dur[i] < 0 ? 600 : ts[i] + dur[i];
			const bool in = ts[i] >= from ? ts[i] < to : end > from;
			assert_int_equal(ky_html_rows_find(&rows, i), in ? number : KY_NONE);
			if (in)
				assert_int_equal(ky_html_rows_at(&rows, number++), i);
		}
		assert_int_equal(ky_html_rows_count(&rows), number);
		free(rows.listed);
	}
}

static void counters_keep_the_value_that_holds(void **unused)
{
	(void)unused;
	struct ky_trace *trace = NULL;
	struct ky_view *view = NULL;
	assert_int_equal(ky_trace_open(&trace), 0);
	const uint32_t process = ky_process(trace, 10);
	const uint32_t a =
		ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER, process, ky_string_z(trace, "a"));
	const uint32_t b =
		ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER, process, ky_string_z(trace, "b"));
	for (int64_t i = 0; i < 10; i++)
		ky_put_counter(trace, 100 * i, i == 2 ? b : a, (double)i);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	assert_int_equal(ky_view_open(&view, trace, NULL), 0);
	struct ky_html_data data = {
		.view = view, .trace = view->trace, .from_ns = 450, .to_ns = 650};
	assert_int_equal(ky_html_data_choose(&data), 0);
	const struct ky_html_rows *const rows = &data.rows[KY_HTML_COUNTERS];
	static const uint32_t expected[] = {2, 4, 5, 6};
	assert_int_equal(ky_html_rows_count(rows), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(ky_html_rows_at(rows, i), expected[i]);
	ky_html_data_free(&data);
	ky_view_close(&view);
}

/* ---- the file ---- */

static char *read_all(int fd)
{
	struct stat status;
	assert_int_equal(fstat(fd, &status), 0);
	char *const text = malloc((size_t)status.st_size + 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)status.st_size, 0), status.st_size);
	text[status.st_size] = '\0';
	return text;
}

static char *export(const struct ky_view *view, int64_t from_ns, int64_t to_ns)
{
	char message[256];
	const struct ky_html_export what = {view, from_ns, to_ns};
	const int fd = memfd_create("page", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ky_html_export_page(fd, &what, page, strlen(page), message), 0);
	assert_string_equal(message, "");
	char *const html = read_all(fd);
	close(fd);
	return html;
}

static void the_page_stays_around_the_data(void **unused)
{
	(void)unused;
	struct ky_view *view = random_view(500, "</title><script>alert(1)</script>&amp;");
	char *const html = export(view, KY_TIME_NONE, KY_TIME_NONE);
	static const char head[] =
		"<!doctype html><head><title>&lt;/title>&lt;script>alert(1)&lt;/script>&amp;amp; "
		"\xc2\xb7 "
		"kymo</title></head><body><script type=\"application/x-kymo\" id=\"kymo-data\">";
	static const char tail[] = "</script><script>go()</script></body>";
	assert_memory_equal(html, head, strlen(head));
	const size_t bytes = strlen(html);
	assert_string_equal(html + bytes - strlen(tail), tail);
	const char *const data = html + strlen(head);
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
	assert_int_equal(strspn(data, digits), bytes - strlen(head) - strlen(tail));
	free(html);
	ky_view_close(&view);
}

/* ---- the data ---- */

static size_t from_base64(const char *text, uint8_t *to)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t bytes = 0;
	uint32_t bits = 0, held = 0;
	for (; *text != '<' && *text != '='; text++) {
		held = held << 6 | (uint32_t)(strchr(digits, *text) - digits);
		bits += 6;
		if (bits >= 8)
			to[bytes++] = (uint8_t)(held >> (bits -= 8));
	}
	return bytes;
}

static uint8_t *unpack(const char *html)
{
	static const char begin[] = "id=\"kymo-data\">";
	enum { ROOM = 1 << 22 };
	const char *const text = strstr(html, begin) + strlen(begin);
	uint8_t *const packed = malloc(strlen(text)), *const data = calloc(1, ROOM);
	assert_true(packed && data);
	z_stream gzip = {.next_in = packed, .next_out = data, .avail_out = ROOM};
	gzip.avail_in = (uInt)from_base64(text, packed);
	assert_int_equal(inflateInit2(&gzip, 15 + 16), Z_OK);
	assert_int_equal(inflate(&gzip, Z_FINISH), Z_STREAM_END);
	inflateEnd(&gzip);
	free(packed);
	return data;
}

static uint64_t take_number(const uint8_t **at)
{
	uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		value |= (uint64_t)(**at & 127) << shift;
		if (*(*at)++ < 128)
			return value;
	}
}

/* Find where a column begins, and how many values it has, from the list in the head. */
static const uint8_t *find_column(const uint8_t *data, const char *wanted, uint32_t *count)
{
	uint32_t json_bytes;
	memcpy(&json_bytes, data + 4, 4);
	assert_memory_equal(data, "KYH1", 4);
	const uint8_t *at = data + 8 + json_bytes;
	const char *json =
		strstr((const char *)data + 8, "\"columns\":[") + strlen("\"columns\":[");
	for (char name[64], packing;
	     sscanf(json, "[\"%63[^\"]\",\"%c\",%u]", name, &packing, count) == 3;
	     json += strcspn(json, "]") + 2) {
		if (strcmp(name, wanted) == 0)
			return at;
		for (uint32_t i = 0; i < *count; i++) {
			if (packing == 'b' || packing == 'f')
				at += packing == 'b' ? 1 : 8;
			else
				take_number(&at);
		}
	}
	fail_msg("no column %s", wanted);
	return NULL;
}

static int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void the_data_is_the_trace(void **unused)
{
	(void)unused;
	struct ky_view *view = random_view(5000, "trace");
	char *const html = export(view, KY_TIME_NONE, KY_TIME_NONE);
	uint8_t *const data = unpack(html);
	const struct ky_slices *const slices = &view->trace->slices;
	uint32_t count;
	const uint8_t *ts = find_column(data, "slices.ts", &count);
	assert_int_equal(count, slices->rows.count);
	const uint8_t *dur = find_column(data, "slices.dur", &count);
	const uint8_t *parent = find_column(data, "slices.parent", &count);
	int64_t before = view->base_ns;
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		before += unzigzag(take_number(&ts));
		assert_int_equal(before, slices->ts[i]);
		assert_int_equal(take_number(&dur), slices->dur[i] + 1);
		assert_int_equal(take_number(&parent), 0);
	}
	free(data);
	free(html);
	ky_view_close(&view);
}

static void a_range_has_what_reaches_into_it(void **unused)
{
	(void)unused;
	struct ky_view *view = random_view(5000, "trace");
	const struct ky_slices *const slices = &view->trace->slices;
	const int64_t from = slices->ts[slices->rows.count / 3];
	const int64_t to = slices->ts[slices->rows.count / 2];
	char *const html = export(view, from, to);
	uint8_t *const data = unpack(html);
	uint32_t count, expected = 0;
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		const int64_t end =
			slices->dur[i] < 0 ? view->trace->end_ns : slices->ts[i] + slices->dur[i];
		expected += slices->ts[i] >= from ? slices->ts[i] < to : end > from;
	}
	find_column(data, "slices.ts", &count);
	assert_int_equal(count, expected);
	assert_true(count > 0 && count < slices->rows.count);
	free(data);
	free(html);
	ky_view_close(&view);
}

static void nothing_is_a_page_too(void **unused)
{
	(void)unused;
	struct ky_view *view = random_view(0, "");
	char *const html = export(view, KY_TIME_NONE, KY_TIME_NONE);
	uint8_t *const data = unpack(html);
	uint32_t count;
	find_column(data, "slices.ts", &count);
	assert_int_equal(count, 0);
	free(data);
	free(html);
	ky_view_close(&view);
}

/* ---- refusals ---- */

static void a_page_without_a_place_is_refused(void **unused)
{
	(void)unused;
	char message[256];
	struct ky_view *view = random_view(10, "trace");
	const struct ky_html_export what = {view, KY_TIME_NONE, KY_TIME_NONE};
	assert_int_equal(ky_html_export_page(-1, &what, "<html>", 6, message), -ENOENT);
	assert_non_null(strstr(message, "make viewer"));
	ky_view_close(&view);
}

static void too_much_is_refused(void **unused)
{
	(void)unused;
	char message[256];
	struct ky_view *view = random_view(10, "trace");
	const struct ky_html_export what = {view, KY_TIME_NONE, KY_TIME_NONE};
	/* The number is known before any row is read. */
	const uint32_t rows = view->trace->sched.rows.count;
	view->trace->sched.rows.count = (uint32_t)KY_HTML_EVENTS_MAX + 1;
	assert_int_equal(ky_html_export_page(-1, &what, page, strlen(page), message), -EFBIG);
	assert_non_null(strstr(message, "--from"));
	view->trace->sched.rows.count = rows;
	ky_view_close(&view);
}

static void errors_of_writing_are_told(void **unused)
{
	(void)unused;
	char message[256];
	int ends[2];
	struct ky_view *view = random_view(5000, "trace");
	const struct ky_html_export what = {view, KY_TIME_NONE, KY_TIME_NONE};
	const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	if (full >= 0) {
		assert_int_equal(ky_html_export_page(full, &what, page, strlen(page), message),
				 -ENOSPC);
		assert_string_equal(message, strerror(ENOSPC));
		close(full);
	}
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(ky_html_export_page(ends[1], &what, page, strlen(page), message), -EPIPE);
	close(ends[1]);
	assert_int_equal(ky_html_export_page(-1, &what, page, strlen(page), message), -EBADF);
	ky_view_close(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_those_that_reach_in),
		cmocka_unit_test(counters_keep_the_value_that_holds),
		cmocka_unit_test(the_page_stays_around_the_data),
		cmocka_unit_test(the_data_is_the_trace),
		cmocka_unit_test(a_range_has_what_reaches_into_it),
		cmocka_unit_test(nothing_is_a_page_too),
		cmocka_unit_test(a_page_without_a_place_is_refused),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(errors_of_writing_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
