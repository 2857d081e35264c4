/* SPDX-License-Identifier: MIT */
/* test_api_search.c: which events are found, where, in which order, against a naive search; and the set of matches. */
#include "asking.h"
#include "model/intake.h"
#include "server/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char small[] = "{\"traceEvents\": ["
			    "{\"ph\": \"X\", \"name\": \"Load Texture\", \"cat\": \"gfx,slow\", "
			    "\"pid\": 1, \"tid\": 1, \"ts\": 10, \"dur\": 5,"
			    " \"args\": {\"file\": \"Bricks.PNG\", \"size\": 4096}},"
			    "{\"ph\": \"X\", \"name\": \"draw\", \"cat\": \"gfx\", \"pid\": 1, "
			    "\"tid\": 2, \"ts\": 20, \"dur\": 5,"
			    " \"args\": {\"texture\": \"bricks.png\", \"at\": 0.25, \"ok\": true}},"
			    "{\"ph\": \"X\", \"name\": \"\\u00c4RGER\", \"pid\": 1, \"tid\": 1, "
			    "\"ts\": 30, \"dur\": 5},"
			    "{\"ph\": \"X\", \"name\": \"texture upload\", \"pid\": 1, \"tid\": 2, "
			    "\"ts\": 40, \"dur\": 5,"
			    " \"args\": {\"size\": 4097}}"
			    "]}";

static int64_t count_of(struct asking *asking, const char *text)
{
	char query[256];
	struct reply reply;
	snprintf(query, sizeof(query), "q=%s", text);
	ask(asking, "api/search", query, NULL, &reply);
	assert_int_equal(reply.status, 200);
	const int64_t count = reply_int(&reply, "count");
	assert_int_equal(reply_int(&reply, "at"), -1);
	assert_true(reply_is_null(&reply, "event"));
	reply_free(&reply);
	return count;
}

static void texts_are_found_where_they_are_looked_for(void **state)
{
	(void)state;
	struct asking asking;
	static const struct {
		const char *text;
		int64_t count;
	} searches[] = {
		{"texture", 2},
		{"TEXTURE", 2},
		{"name:texture", 2},
		{"name:bricks", 0},
		{"bricks.png", 2},
		{"arg:BRICKS", 2},
		{"arg:texture", 0},
		{"arg.file:bricks", 1},
		{"arg.args.file:bricks", 1},
		{"arg.fil:bricks", 0},
		{"arg.size:409", 2},
		{"4097", 1},
		{"arg.at:.25", 1},
		{"arg.ok:true", 1},
		{"arg.ok:false", 0},
		{"category:gfx", 2},
		{"category:SLOW", 1},
		{"gfx", 0},
		{"\xc3\xa4rger", 1},
		{"\xc3\x84rg", 1},
		{"rger", 1},
		{"", 0},
		{"name:", 0},
		{"nothing like that", 0},
		{"\xff\xfe", 0},
		{"arg.:x", 0},
	};
	asking_open(&asking, small);
	for (unsigned again = 0; again < 2; again++) {
		for (size_t i = 0; i < sizeof(searches) / sizeof(searches[0]); i++) {
			if (count_of(&asking, searches[i].text) != searches[i].count)
				fail_msg("%s: not %d", searches[i].text, (int)searches[i].count);
		}
	}
	asking_close(&asking);
}

static void matches_are_numbered_in_the_order_of_time(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	static const struct {
		const char *query;
		int64_t at, ts; /* -1: none */
	} places[] = {
		{"q=texture&at=0", 0, 0},
		{"q=texture&at=1", 1, 30000},
		{"q=texture&at=2", -1, -1},
		{"q=texture&near=0&forward=1", 0, 0},
		{"q=texture&near=1&forward=1", 1, 30000},
		{"q=texture&near=30000", 1, 30000},
		{"q=texture&near=30001&forward=1", -1, -1},
		{"q=texture&near=30000&forward=0", 0, 0},
		{"q=texture&near=0&forward=0", -1, -1},
		{"q=texture&near=1e18&forward=0", 1, 30000},
	};
	asking_open(&asking, small);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		ask(&asking, "api/search", places[i].query, NULL, &reply);
		assert_int_equal(reply_int(&reply, "at"), places[i].at);
		if (places[i].at >= 0)
			assert_int_equal(reply_int(&reply, "event.ts"), places[i].ts);
		else
			assert_true(reply_is_null(&reply, "event"));
		reply_free(&reply);
	}
	ask(&asking, "api/search", "q=texture", NULL, &reply);
	assert_int_equal(reply_length(&reply, "names"), 2);
	assert_int_equal(reply_length(&reply, "tracks"), 2);
	assert_int_equal(reply_int(&reply, "tracks.0.count"), 1);
	assert_int_equal(reply_int(&reply, "tracks.0.first"), 0);
	assert_int_equal(reply_int(&reply, "tracks.1.first"), 1);
	reply_free(&reply);
	asking_close(&asking);
}

static uint64_t random_state = 9;

static uint64_t random_below(uint64_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (random_state >> 33) % limit;
}

/* Slices and samples whose names come from the same few, often at the same time. */
static struct ky_trace *mixed_trace(void)
{
	static const char *const names[] = {"alpha", "beta", "gamma", "alphabet"};
	struct ky_trace *trace = NULL;
	assert_int_equal(ky_trace_open(&trace), 0);
	for (unsigned i = 0; i < 500; i++) {
		const int64_t ts = (int64_t)random_below(300) * 10;
		const uint32_t thread = ky_thread(trace, 1, 1 + (int64_t)random_below(3));
		const uint32_t name = ky_string_z(trace, names[random_below(4)]);
		if (random_below(2)) {
			ky_put_complete(trace, ts, 1, ky_track_of_thread(trace, thread), 0, name,
					0);
			continue;
		}
		const uint32_t frame = ky_frame(trace, KY_NONE, random_below(9), name, 0, 0);
		ky_put_sample(trace, ts, thread, ky_callsite(trace, KY_NONE, frame), 0,
			      KY_CPU_MODE_USER, 1, ky_string_z(trace, "cycles"));
	}
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	return trace;
}

static int64_t count_by_hand(const struct ky_view *view, const char *text)
{
	const struct ky_trace *const trace = view->trace;
	int64_t count = 0;
	for (uint32_t i = 0; i < trace->slices.rows.count; i++)
		count += strstr(ky_text_of(trace, trace->slices.name[i]), text) != NULL;
	for (uint32_t i = 0; i < view->sample_spans.count; i++)
		count += strstr(ky_text_of(trace, trace->frames.name[view->sample_spans.frame[i]]),
				text) != NULL;
	return count;
}

/* Each number is another event, in time order. */
static void slices_and_samples_are_numbered_together(void **state)
{
	(void)state;
	struct asking asking;
	int64_t last = INT64_MIN;
	bool *const seen[2] = {calloc(1000, sizeof(bool)), calloc(1000, sizeof(bool))};
	asking_open_trace(&asking, mixed_trace());
	const int64_t count = count_by_hand(asking.view, "alpha");
	assert_true(count > 100);
	for (int64_t i = 0; i < count; i++) {
		char query[64];
		struct reply reply;
		snprintf(query, sizeof(query), "q=alpha&at=%lld", (long long)i);
		ask(&asking, "api/search", query, NULL, &reply);
		assert_int_equal(reply_int(&reply, "count"), count);
		assert_int_equal(reply_int(&reply, "at"), i);
		const int64_t ts = reply_int(&reply, "event.ts"),
			      id = reply_int(&reply, "event.id");
		struct ky_json_text kind;
		ky_json_tree_text(&reply.tree, reply_node(&reply, "event.kind"), &kind);
		const bool samples = ky_json_is(&kind, "samples");
		assert_true(ts >= last);
		assert_true(id < 1000 && !seen[samples][id]);
		seen[samples][id] = true;
		last = ts;
		reply_free(&reply);
	}
	free(seen[0]);
	free(seen[1]);
	asking_close(&asking);
}

static void a_tracks_first_match_is_in_it(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	asking_open_trace(&asking, mixed_trace());
	ask(&asking, "api/search", "q=beta", NULL, &reply);
	int64_t all = 0;
	for (uint32_t i = 0; i < reply_length(&reply, "tracks"); i++) {
		char place[64];
		struct reply first;
		snprintf(place, sizeof(place), "tracks.%u.first", i);
		const int64_t number = reply_int(&reply, place);
		snprintf(place, sizeof(place), "tracks.%u.track", i);
		const int64_t track = reply_int(&reply, place);
		snprintf(place, sizeof(place), "tracks.%u.count", i);
		all += reply_int(&reply, place);
		snprintf(place, sizeof(place), "q=beta&at=%lld", (long long)number);
		ask(&asking, "api/search", place, NULL, &first);
		assert_int_equal(reply_int(&first, "event.track"), track);
		reply_free(&first);
	}
	assert_int_equal(all, reply_int(&reply, "count"));
	reply_free(&reply);
	asking_close(&asking);
}

static void a_set_of_rows_knows_places_and_numbers(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		struct ky_search_hits hits;
		const uint32_t rows = (uint32_t)random_below(3000);
		uint32_t count = 0;
		assert_int_equal(ky_search_hits_open(&hits, rows), 0);
		for (uint32_t i = 0; i < rows; i++) {
			if (random_below(round + 1) == 0)
				ky_search_hits_add(&hits, i);
		}
		ky_search_hits_seal(&hits);
		for (uint32_t i = 0; i < rows; i++) {
			assert_int_equal(ky_search_hits_before(&hits, i), count);
			if (!ky_search_hits_has(&hits, i))
				continue;
			assert_int_equal(ky_search_hits_get(&hits, count), i);
			count++;
		}
		assert_int_equal(ky_search_hits_before(&hits, rows), count);
		assert_int_equal(hits.count, count);
		ky_search_hits_free(&hits);
	}
}

static void what_is_interrupted_says_so(void **state)
{
	(void)state;
	struct asking asking;
	asking_open(&asking, small);
	ky_api_interrupt(asking.answers);
	refuses(&asking, "api/search", "q=texture", NULL, 503);
	refuses(&asking, "api/range", "from=0&to=1e9", NULL, 503);
	refuses(&asking, "api/flame", "from=0&to=1e9&of=slices", NULL, 503);
	asking_close(&asking);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_found_where_they_are_looked_for),
		cmocka_unit_test(matches_are_numbered_in_the_order_of_time),
		cmocka_unit_test(slices_and_samples_are_numbered_together),
		cmocka_unit_test(a_tracks_first_match_is_in_it),
		cmocka_unit_test(a_set_of_rows_knows_places_and_numbers),
		cmocka_unit_test(what_is_interrupted_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
