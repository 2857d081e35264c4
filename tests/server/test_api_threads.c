/* SPDX-License-Identifier: MIT */
/*
 * test_api_threads.c: SQL through the API, its limits and its cancelling; and many threads at once, which must all get the
 * responses that one gets. Runs under the thread sanitizer.
 */
#include "asking.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ENDLESS                                                                                    \
	"with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r"

static char *trace_text(void)
{
	struct ky_buffer text = {0};
	ky_buffer_text(&text, "{\"traceEvents\": [");
	for (unsigned i = 0; i < 2000; i++)
		ky_buffer_format(
			&text,
			"%s{\"ph\": \"X\", \"name\": \"n%u\", \"pid\": 1, \"tid\": %u, \"ts\": %u, "
			"\"dur\": 10, \"args\": {\"i\": %u}}",
			i ? "," : "", i % 7, i % 3, i * 20, i);
	ky_buffer_text(&text, "]}");
	ky_buffer_add(&text, "", 1);
	assert_false(text.failed);
	return text.data;
}

static void open_many(struct asking *asking)
{
	char *const text = trace_text();
	asking_open(asking, text);
	free(text);
}

static void sql_has_rows(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	open_many(&asking);
	ask(&asking, "api/sql", "",
	    "select name, count(*) as n from slice group by name order by name", &reply);
	assert_int_equal(reply.status, 200);
	assert_int_equal(reply_length(&reply, "columns"), 2);
	reply_text_is(&reply, "columns.1", "n");
	assert_int_equal(reply_length(&reply, "rows"), 7);
	reply_text_is(&reply, "rows.0.0", "n0");
	assert_int_equal(reply_int(&reply, "rows.0.1"), 286);
	assert_false(reply_bool(&reply, "more"));
	assert_true(reply_real(&reply, "ms") >= 0);
	reply_free(&reply);
	ask(&asking, "api/sql", "",
	    "select 9007199254740992, 9007199254740993, -9007199254740993, 1e999, 0.5, null, "
	    "x'0aff', 'a\"b'",
	    &reply);
	assert_int_equal(ky_json_tree_type(&reply.tree, reply_node(&reply, "rows.0.0")),
			 KY_JSON_NUMBER);
	reply_text_is(&reply, "rows.0.1", "9007199254740993");
	reply_text_is(&reply, "rows.0.2", "-9007199254740993");
	assert_true(reply_is_null(&reply, "rows.0.3"));
	assert_true(reply_real(&reply, "rows.0.4") == 0.5);
	assert_true(reply_is_null(&reply, "rows.0.5"));
	reply_text_is(&reply, "rows.0.6", "0aff");
	reply_text_is(&reply, "rows.0.7", "a\"b");
	reply_free(&reply);
	asking_close(&asking);
}

static void sql_has_limits(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	open_many(&asking);
	ask(&asking, "api/sql", "", "select id from slice", &reply);
	assert_int_equal(reply_length(&reply, "rows"), 1000);
	assert_true(reply_bool(&reply, "more"));
	reply_free(&reply);
	ask(&asking, "api/sql", "limit=2000", "select id from slice", &reply);
	assert_int_equal(reply_length(&reply, "rows"), 2000);
	assert_false(reply_bool(&reply, "more"));
	reply_free(&reply);
	ask(&asking, "api/sql", "limit=3",
	    "create table mine as select 1 as a union select 2; select a from mine; -- the end",
	    &reply);
	assert_int_equal(reply_length(&reply, "rows"), 2);
	reply_free(&reply);
	ask(&asking, "api/tables", "", NULL, &reply);
	char place[64];
	snprintf(place, sizeof(place), "tables.%u.columns.0",
		 reply_find(&reply, "tables", "name", "mine"));
	reply_text_is(&reply, place, "a");
	const uint32_t slice = reply_find(&reply, "tables", "name", "slice");
	snprintf(place, sizeof(place), "tables.%u.columns.1", slice);
	reply_text_is(&reply, place, "ts");
	reply_find(&reply, "tables", "name", "thread_slice");
	reply_free(&reply);
	asking_close(&asking);
}

static void wrong_sql_says_where(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	static const char *const wrong[][2] = {
		{"select 1;\nselect x from slice", "line 2, column 8: no such column: x"},
		{"attach 'x' as y", "not authorized"},
		{"select abs(-9223372036854775808)", "integer overflow"},
		{"select length(zeroblob(100000000) || '')", "string or blob too big"},
	};
	open_many(&asking);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ask(&asking, "api/sql", "", wrong[i][0], &reply);
		assert_int_equal(reply.status, 200);
		reply_text_is(&reply, "error", wrong[i][1]);
		assert_int_equal(reply_length(&reply, "rows"), 0);
		reply_free(&reply);
	}
	ask(&asking, "api/sql", "", "", &reply);
	assert_int_equal(reply_length(&reply, "columns"), 0);
	reply_free(&reply);
	asking_close(&asking);
}

/* ---- threads ---- */

static void *ask_endless(void *context)
{
	struct reply reply;
	ask(context, "api/sql", "", ENDLESS, &reply);
	char *error = NULL;
	struct ky_json_text text;
	const uint32_t node = ky_json_tree_get(&reply.tree, 0, "error");
	if (node && ky_json_tree_text(&reply.tree, node, &text))
		error = strndup((const char *)text.at, text.bytes);
	reply_free(&reply);
	return error;
}

/* Cancel until it has ended: the first attempt may come before it begins. */
static void sql_can_be_cancelled(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	pthread_t thread;
	void *error = NULL;
	open_many(&asking);
	assert_int_equal(pthread_create(&thread, NULL, ask_endless, &asking), 0);
	while (pthread_tryjoin_np(thread, &error) != 0) {
		ask(&asking, "api/cancel", "", "", &reply);
		assert_int_equal(reply.status, 200);
		reply_free(&reply);
	}
	assert_non_null(error);
	assert_string_equal(error, "cancelled");
	free(error);
	ask(&asking, "api/sql", "", "select 1", &reply);
	assert_int_equal(reply_int(&reply, "rows.0.0"), 1);
	reply_free(&reply);
	asking_close(&asking);
}

static void who_stops_ends_what_runs_for_good(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	pthread_t thread;
	void *error = NULL;
	open_many(&asking);
	assert_int_equal(pthread_create(&thread, NULL, ask_endless, &asking), 0);
	ky_api_interrupt(asking.answers);
	assert_int_equal(pthread_join(thread, &error), 0);
	assert_non_null(error);
	assert_non_null(strstr(error, "closed"));
	free(error);
	ask(&asking, "api/sql", "", "select 1", &reply);
	assert_non_null(strstr(reply.body.data, "closed"));
	reply_free(&reply);
	asking_close(&asking);
}

static const char *const questions[][3] = {
	{"api/trace", "", NULL},
	{"api/event", "kind=slices&id=1234", NULL},
	{"api/range", "from=1000000&to=2000000", NULL},
	{"api/range", "from=0&to=3&tracks=1", NULL},
	{"api/flame", "from=1000000&to=2000000&of=slices", NULL},
	{"api/search", "q=n3&at=5", NULL},
	{"api/search", "q=n5&at=5", NULL},
	{"api/search", "q=arg.i:77&near=0", NULL},
	{"api/search", "q=n6", NULL},
	{"api/search", "q=n", NULL},
	{"api/search", "q=name:4", NULL},
	{"api/tables", "", NULL},
	{"api/tiles", "g=7&level=9&first=0&count=3&tracks=1,2", NULL},
	{"api/sql", "", "select count(*) from slice"},
	{"api/event", "kind=slices&id=99999", NULL},
};
#define QUESTIONS (sizeof(questions) / sizeof(questions[0]))

/* Remove what differs each time: the milliseconds of SQL. */
static char *body_of(struct asking *asking, size_t question, size_t *bytes)
{
	struct reply reply;
	ask(asking, questions[question][0], questions[question][1], questions[question][2], &reply);
	char *const ms = questions[question][2] ? strstr(reply.body.data, "\"ms\"") : NULL;
	*bytes = ms ? (size_t)(ms - reply.body.data) : reply.body.bytes;
	char *const copy = malloc(*bytes);
	assert_non_null(copy);
	memcpy(copy, reply.body.data, *bytes);
	reply_free(&reply);
	return copy;
}

struct crowd {
	struct asking *asking;
	char *expected[QUESTIONS];
	size_t bytes[QUESTIONS];
};

static void *ask_all(void *context)
{
	const struct crowd *const crowd = context;
	uintptr_t wrong = 0;
	for (unsigned i = 0; i < 10 * QUESTIONS; i++) {
		size_t bytes;
		const size_t question = (i * 7 + (uintptr_t)&bytes / 4096) % QUESTIONS;
		char *const body = body_of(crowd->asking, question, &bytes);
		wrong += bytes != crowd->bytes[question] ||
			 memcmp(body, crowd->expected[question], bytes) != 0;
		free(body);
	}
	return (void *)wrong;
}

static void many_threads_are_answered_as_one(void **state)
{
	(void)state;
	struct asking one, asking;
	struct crowd crowd = {.asking = &asking};
	pthread_t threads[4];
	open_many(&one);
	open_many(&asking);
	for (size_t i = 0; i < QUESTIONS; i++)
		crowd.expected[i] = body_of(&one, i, &crowd.bytes[i]);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_all, &crowd), 0);
	for (size_t i = 0; i < 4; i++) {
		void *wrong = NULL;
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	for (size_t i = 0; i < QUESTIONS; i++)
		free(crowd.expected[i]);
	asking_close(&asking);
	asking_close(&one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sql_has_rows),
		cmocka_unit_test(sql_has_limits),
		cmocka_unit_test(wrong_sql_says_where),
		cmocka_unit_test(sql_can_be_cancelled),
		cmocka_unit_test(who_stops_ends_what_runs_for_good),
		cmocka_unit_test(many_threads_are_answered_as_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
