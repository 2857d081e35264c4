/* SPDX-License-Identifier: MIT */
/*
 * test_api_range.c: api/range gives what `kymo report` gives, to the nanosecond; tracks restrict it; api/flame has the same
 * totals.
 */
#include "asking.h"
#include "formats/load.h"
#include "model/intake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t random_state = 5;

static uint64_t random_below(uint64_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (random_state >> 33) % limit;
}

/* Nested calls on three threads, a few of which never end. */
static void write_trace(struct ky_buffer *to)
{
	unsigned depth[3] = {0};
	ky_buffer_text(to, "{\"traceEvents\": [");
	for (unsigned i = 0; i < 4000; i++) {
		const unsigned tid = (unsigned)random_below(3);
		const unsigned what = (unsigned)random_below(9);
		const char *const phase = what == 0                    ? "i"
					  : what < 5 && depth[tid] < 8 ? "B"
					  : depth[tid]                 ? "E"
								       : "i";
		depth[tid] += *phase == 'B';
		depth[tid] -= *phase == 'E';
		ky_buffer_format(
			to,
			"%s{\"ph\": \"%s\", \"s\": \"t\", \"pid\": 1, \"tid\": %u, \"ts\": %u.%03u",
			i ? ",\n" : "", phase, tid + 1, 1000 + i * 7, (unsigned)random_below(1000));
		ky_buffer_format(to, *phase == 'E' ? "}" : ", \"name\": \"n%u\"}",
				 (unsigned)random_below(6));
	}
	ky_buffer_text(to, "]}");
	ky_buffer_add(to, "", 1);
	assert_false(to->failed);
}

static struct ky_buffer run_report(const char *path, int64_t from, int64_t to)
{
	const char *const tool = getenv("KYMO");
	char command[1024];
	struct ky_buffer out = {0};
	assert_non_null(tool);
	snprintf(command, sizeof(command), "'%s' report --json --from @%lld --to @%lld '%s'", tool,
		 (long long)from, (long long)to, path);
	FILE *const pipe = popen(command, "r");
	assert_non_null(pipe);
	for (size_t bytes = 1; bytes;) {
		char chunk[4096];
		bytes = fread(chunk, 1, sizeof(chunk), pipe);
		ky_buffer_add(&out, chunk, bytes);
	}
	assert_int_equal(pclose(pipe), 0);
	ky_buffer_add(&out, "", 1);
	return out;
}

static struct reply parse(struct ky_buffer body)
{
	struct reply reply = {.body = body};
	const uint8_t *const json = (const uint8_t *)body.data;
	assert_int_equal(ky_json_tree_parse(&reply.tree, json, json + body.bytes - 1), 0);
	return reply;
}

static void same_rows(const struct reply *range, const struct reply *report)
{
	static const char *const members[][2] = {
		{"count", "count"},  {"instants", "instants"}, {"total", "total_ns"},
		{"self", "self_ns"}, {"min", "min_ns"},        {"p50", "p50_ns"},
		{"p95", "p95_ns"},   {"p99", "p99_ns"},        {"max", "max_ns"},
		{"mean", "mean_ns"},
	};
	const uint32_t count = reply_length(range, "rows");
	assert_int_equal(count, reply_length(report, "rows"));
	for (uint32_t i = 0; i < count; i++) {
		struct ky_json_text name;
		char place[64], text[32] = "";
		snprintf(place, sizeof(place), "rows.%u.name", i);
		assert_true(ky_json_tree_text(&range->tree, reply_node(range, place), &name));
		assert_true(name.bytes < sizeof(text));
		memcpy(text, name.at, name.bytes);
		const uint32_t other = reply_find(report, "rows", "name", text);
		for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++) {
			snprintf(place, sizeof(place), "rows.%u.%s", i, members[m][0]);
			const double here = reply_real(range, place);
			snprintf(place, sizeof(place), "rows.%u.%s", other, members[m][1]);
			assert_true(here == reply_real(report, place));
		}
	}
}

static void a_range_is_what_the_report_says(void **state)
{
	(void)state;
	char path[] = "/tmp/kymo-test-range-XXXXXX";
	struct ky_buffer json = {0};
	struct asking asking;
	write_trace(&json);
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, json.data, json.bytes - 1), (ssize_t)json.bytes - 1);
	close(fd);
	asking_open(&asking, json.data);
	const int64_t base = asking.view->base_ns;
	static const int64_t ranges[][2] = {{-1000, 100000000},
					    {0, 1},
					    {5000000, 5100000},
					    {12345678, 12345679},
					    {27000000, 28000000}};
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		char query[64];
		struct reply range;
		struct reply report =
			parse(run_report(path, base + ranges[i][0], base + ranges[i][1]));
		snprintf(query, sizeof(query), "from=%lld&to=%lld", (long long)ranges[i][0],
			 (long long)ranges[i][1]);
		ask(&asking, "api/range", query, NULL, &range);
		assert_int_equal(range.status, 200);
		same_rows(&range, &report);
		reply_free(&range);
		reply_free(&report);
	}
	asking_close(&asking);
	ky_buffer_free(&json);
	unlink(path);
}

static int64_t sum(const struct reply *reply, const char *array, const char *member)
{
	int64_t all = 0;
	for (uint32_t i = 0; i < reply_length(reply, array); i++) {
		char place[64];
		snprintf(place, sizeof(place), "%s.%u.%s", array, i, member);
		all += reply_int(reply, place);
	}
	return all;
}

/* The sums of single tracks add up to that of all. */
static void tracks_share_out_the_range(void **state)
{
	(void)state;
	struct ky_buffer json = {0};
	struct asking asking;
	struct reply reply;
	int64_t total = 0, self = 0;
	write_trace(&json);
	asking_open(&asking, json.data);
	for (uint32_t i = 0; i < asking.view->tracks_count; i++) {
		char query[64];
		snprintf(query, sizeof(query), "from=5000000&to=6000000&tracks=%u", i);
		ask(&asking, "api/range", query, NULL, &reply);
		total += sum(&reply, "rows", "total");
		self += sum(&reply, "rows", "self");
		if (asking.view->tracks[i].kind == KY_VIEW_GROUP)
			assert_int_equal(reply_length(&reply, "rows"), 0);
		reply_free(&reply);
	}
	ask(&asking, "api/range", "from=5000000&to=6000000", NULL, &reply);
	assert_true(total > 0);
	assert_int_equal(sum(&reply, "rows", "total"), total);
	assert_int_equal(sum(&reply, "rows", "self"), self);
	reply_free(&reply);
	/* The table counts what recurs within itself once; the graph has a node for each. */
	ask(&asking, "api/flame", "from=5000000&to=6000000&of=slices", NULL, &reply);
	assert_true(sum(&reply, "nodes", "total") >= total);
	assert_int_equal(sum(&reply, "nodes", "self"), self);
	reply_text_is(&reply, "unit", "ns");
	for (uint32_t i = 0; i < reply_length(&reply, "nodes"); i++) {
		char place[64];
		snprintf(place, sizeof(place), "nodes.%u.parent", i);
		assert_true(reply_int(&reply, place) < (int64_t)i);
	}
	reply_free(&reply);
	asking_close(&asking);
	ky_buffer_free(&json);
}

static void odd_ranges_are_empty_or_all(void **state)
{
	(void)state;
	struct ky_buffer json = {0};
	struct asking asking;
	struct reply reply;
	static const char *const empty[] = {"from=5000&to=5000", "from=5000&to=4000",
					    "from=1e18&to=1e19", "from=-1e30&to=-1e29",
					    "from=0&to=1e9&tracks="};
	write_trace(&json);
	asking_open(&asking, json.data);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		ask(&asking, "api/range", empty[i], NULL, &reply);
		assert_int_equal(reply.status, 200);
		assert_int_equal(reply_length(&reply, "rows"), 0);
		reply_free(&reply);
	}
	ask(&asking, "api/range", "from=-1e30&to=1e30", NULL, &reply);
	assert_int_equal(sum(&reply, "rows", "count") + sum(&reply, "rows", "instants"),
			 asking.view->trace->slices.rows.count);
	reply_free(&reply);
	asking_close(&asking);
	ky_buffer_free(&json);
}

#define NAMES 12
#define LONG 4096

/* Each name nested in each other: a few long names on thousands of paths. */
static void put_below(struct ky_trace *trace, uint32_t track, const uint32_t *names, int64_t begin,
		      int64_t width)
{
	for (unsigned i = 0; width && i < NAMES; i++, begin += width) {
		ky_put_complete(trace, begin, width, track, 0, names[i], 0);
		put_below(trace, track, names, begin, width / NAMES);
	}
}

static void a_few_long_names_make_no_huge_answer(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	struct ky_trace *trace;
	uint32_t names[NAMES];
	char text[LONG];
	assert_int_equal(ky_trace_open(&trace), 0);
	memset(text, 1, sizeof(text)); /* six bytes in JSON */
	for (unsigned i = 0; i < NAMES; i++) {
		text[0] = (char)('a' + i);
		names[i] = ky_string(trace, text, sizeof(text));
	}
	put_below(trace, ky_track_of_thread(trace, ky_thread(trace, 1, 1)), names, 0,
		  NAMES * NAMES * NAMES);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	asking_open_trace(&asking, trace);
	ask(&asking, "api/flame", "from=0&to=1e9&of=slices", NULL, &reply);
	assert_int_equal(reply.status, 200);
	assert_true(reply.body.bytes > 30 << 20 && reply.body.bytes < 34 << 20);
	assert_int_equal(reply_int(&reply, "nodes.1.parent"), 0);
	reply_free(&reply);
	asking_close(&asking);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_what_the_report_says),
		cmocka_unit_test(tracks_share_out_the_range),
		cmocka_unit_test(odd_ranges_are_empty_or_all),
		cmocka_unit_test(a_few_long_names_make_no_huge_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
