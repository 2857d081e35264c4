/* SPDX-License-Identifier: MIT */
/*
 * test_session_ring.c: sessions that keep the newest events and write them when asked: what is in a
 * snapshot, where it begins, and how it comes to be a file.
 */
#include "child.h"
#include "core/drum.h"
#include "json_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <kymo/session.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENTS 20000

/* A ring of a few blocks, so that little is enough to overwrite it. */
static struct kymo_session *start(const char *path)
{
	struct kymo_session *session = NULL;
	const struct kymo_options options = {
		.size = sizeof(options), .path = path, .mode = KYMO_MODE_RING};
	ky_limits.ring_bytes = 16 << 10;
	MUST(kymo_session_start(&session, &options) == 0);
	return session;
}

static void wait_for_files(struct kymo_session *session, uint32_t files)
{
	struct kymo_stats stats = {.size = sizeof(stats)};
	const int64_t deadline = now_ms() + PATIENCE_MS;
	do {
		MUST(now_ms() < deadline);
		look_again();
		MUST(kymo_session_stats(session, &stats) == 0);
	} while (stats.files < files || stats.bytes == 0);
}

static void overwrite_the_ring(void)
{
	struct kymo_session *session = start("out.json");
	for (int i = 0; i < EVENTS; i++)
		KYMO_INSTANT("a", "event", "i", i);
	MUST(folder_files() == 0);
	MUST(kymo_session_flush(session) == 0);
	struct json_trace trace;
	json_trace_read(&trace, "out.json");
	const size_t count = json_trace_count(&trace, 'i', "event");
	MUST(trace.whole && count > 100 && count < 1100);
	const struct json_event *event = json_trace_find(&trace, 'i', "event", 0);
	for (size_t i = 0; i < count; i++, event++)
		MUST(json_trace_arg(event, "i") == (int64_t)(EVENTS - count + i));
	/* What the ring overwrote is no loss. */
	MUST(json_trace_count(&trace, 'i', "events lost") == 0);
	json_trace_free(&trace);
	struct kymo_stats stats = {.size = sizeof(stats)};
	MUST(kymo_session_stats(session, &stats) == 0);
	MUST(stats.events == count && stats.lost == 0 && stats.files == 1);
	MUST(kymo_session_stop(&session) == 0);
	MUST(folder_files() == 1);
}

static void only_the_newest_events_are_kept_and_none_counts_as_lost(void **state)
{
	(void)state;
	child_expect(overwrite_the_ring);
}

static void ask_for_snapshots(void)
{
	struct kymo_session *session = start("out.${rotation}.json");
	KYMO_INSTANT("a", "first");
	kymo_snapshot("slow request", 42);
	wait_for_files(session, 1);
	struct json_trace trace;
	json_trace_read(&trace, "out.0.json");
	MUST(trace.whole && json_trace_count(&trace, 'i', "first") == 1);
	MUST(json_trace_arg(json_trace_find(&trace, 'i', "slow request", 0), "arg") == 42);
	json_trace_free(&trace);
	KYMO_INSTANT("a", "second");
	kymo_snapshot("again", 0);
	wait_for_files(session, 2);
	KYMO_INSTANT("a", "third");
	MUST(kymo_session_stop(&session) == 0);
	MUST(json_file_count("out.1.json", 'i', "second") == 1);
	MUST(json_file_count("out.1.json", 'i', "third") == 0);
	MUST(json_file_count("out.2.json", 'i', "third") == 1);
	MUST(folder_files() == 3);
}

static void each_snapshot_is_a_file_with_its_reason(void **state)
{
	(void)state;
	child_expect(ask_for_snapshots);
}

static void replace_in_one_step(void)
{
	struct kymo_session *session = start("out.json");
	struct stat before, after;
	KYMO_INSTANT("a", "event");
	MUST(kymo_session_flush(session) == 0);
	const int reader = open("out.json", O_RDONLY);
	MUST(fstat(reader, &before) == 0);
	KYMO_INSTANT("a", "event");
	MUST(kymo_session_flush(session) == 0);
	/* A reader with the old file open keeps all of it. */
	MUST(fstat(reader, &after) == 0 && after.st_size == before.st_size && after.st_nlink == 0);
	MUST(stat("out.json", &after) == 0 && after.st_ino != before.st_ino);
	MUST(json_file_count("out.json", 'i', "event") == 2);
	MUST(kymo_session_stop(&session) == 0);
	MUST(folder_files() == 1);
}

static void a_snapshot_replaces_the_last_in_one_step(void **state)
{
	(void)state;
	child_expect(replace_in_one_step);
}

static void mark_and_snapshot(void)
{
	struct kymo_session *session = start("out.json");
	struct kymo_session *other = start("other.json");
	KYMO_INSTANT("a", "before");
	kymo_mark_start();
	KYMO_INSTANT("a", "after");
	MUST(kymo_session_flush(session) == 0);
	MUST(json_file_count("out.json", 'i', "before") == 0);
	MUST(json_file_count("out.json", 'i', "after") == 1);
	/* It holds for the next snapshot of each session, and for that one alone. */
	MUST(kymo_session_flush(other) == 0);
	MUST(json_file_count("other.json", 'i', "before") == 0);
	MUST(kymo_session_flush(session) == 0);
	MUST(json_file_count("out.json", 'i', "before") == 1);
	MUST(kymo_session_stop(&session) == 0);
	MUST(kymo_session_stop(&other) == 0);
}

static void a_mark_is_where_the_next_snapshot_begins(void **state)
{
	(void)state;
	child_expect(mark_and_snapshot);
}

static void last_long(int64_t ms)
{
	KYMO_SCOPE_OVER("a", "request", 20000000, "ms", ms);
	const int64_t until = now_ms() + ms;
	while (now_ms() < until)
		look_again();
}

static void take_too_long(void)
{
	struct kymo_session *session = start("out.json");
	struct kymo_stats stats = {.size = sizeof(stats)};
	last_long(0);
	MUST(kymo_session_stats(session, &stats) == 0 && stats.files == 0);
	last_long(30);
	wait_for_files(session, 1);
	struct json_trace trace;
	json_trace_read(&trace, "out.json");
	MUST(json_trace_count(&trace, 'B', "request") == 2);
	MUST(json_trace_arg(json_trace_find(&trace, 'i', "request", 0), "arg") > 20000000);
	json_trace_free(&trace);
	kymo_session_stop(&session);
}

static void a_span_that_took_too_long_makes_a_snapshot(void **state)
{
	(void)state;
	child_expect(take_too_long);
}

static void inner(void)
{
	KYMO_SCOPE("a", "inner");
	for (int i = 0; i < EVENTS; i++)
		KYMO_INSTANT("a", "event");
}

static void lose_begins(void)
{
	struct kymo_session *session = start("out.json");
	{
		KYMO_SCOPE("a", "outer");
		inner();
	}
	KYMO_BEGIN("a", "open");
	MUST(kymo_session_stop(&session) == 0);
	struct json_trace trace;
	json_trace_read(&trace, "out.json");
	MUST(trace.whole && json_trace_open_spans(&trace) == 1);
	const struct json_event *outer_begin = json_trace_find(&trace, 'B', "outer", 0);
	const struct json_event *inner_begin = json_trace_find(&trace, 'B', "inner", 0);
	MUST(outer_begin && strstr(outer_begin->line, "\"begin_lost\":true"));
	MUST(inner_begin && strstr(inner_begin->line, "\"begin_lost\":true"));
	MUST(outer_begin->time_ns < inner_begin->time_ns);
	MUST(inner_begin->time_ns < json_trace_find(&trace, 'i', "event", 0)->time_ns);
	MUST(strstr(json_trace_find(&trace, 'B', "open", 0)->line, "begin_lost") == NULL);
	json_trace_free(&trace);
}

static void spans_without_their_begin_are_there_and_nested(void **state)
{
	(void)state;
	child_expect(lose_begins);
}

static void start_late(void)
{
	struct kymo_session *early = start("early.json");
	KYMO_INSTANT("a", "before");
	struct kymo_session *late = start("late.json");
	KYMO_INSTANT("a", "after");
	MUST(kymo_session_stop(&late) == 0);
	MUST(kymo_session_stop(&early) == 0);
	MUST(json_file_count("late.json", 'i', "before") == 0);
	MUST(json_file_count("late.json", 'i', "after") == 1);
	MUST(json_file_count("early.json", 'i', "before") == 1);
}

static void nothing_from_before_the_session_is_in_it(void **state)
{
	(void)state;
	child_expect(start_late);
}

static void write_where_nobody_can(void)
{
	MUST(mkdir("folder", 0777) == 0);
	struct kymo_session *session = start("folder/out.json");
	KYMO_INSTANT("a", "event");
	MUST(kymo_session_flush(session) == 0);
	MUST(unlink("folder/out.json") == 0 && rmdir("folder") == 0);
	MUST(kymo_session_flush(session) == -ENOENT);
	MUST(kymo_session_error(session) == -ENOENT);
	MUST(mkdir("folder", 0777) == 0);
	MUST(kymo_session_stop(&session) == -ENOENT);
	/* A session that has ended with an error writes no more. */
	MUST(access("folder/out.json", F_OK) != 0);
	MUST(rmdir("folder") == 0);
}

static void a_snapshot_that_cannot_be_written_ends_the_session(void **state)
{
	(void)state;
	child_expect(write_where_nobody_can);
}

static void start_where_nobody_can_write(void)
{
	struct kymo_session *session = (void *)1;
	struct kymo_options options = {.size = sizeof(options),
				       .path = "no/such/${rotation}.json",
				       .mode = KYMO_MODE_RING};
	MUST(kymo_session_start(&session, &options) == -ENOENT && !session);
	MUST(mkdir("closed", 0777) == 0 && mkdir("closed/folder", 0777) == 0);
	MUST(chmod("closed", 0555) == 0);
	MUST(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
	options.path = "closed/out.json";
	MUST(kymo_session_start(&session, &options) == -EACCES && !session);
	options.path = "closed/folder";
	options.format = KYMO_FORMAT_JSON;
	MUST(kymo_session_start(&session, &options) == -EISDIR && !session);
}

static void a_recorder_that_could_never_write_is_refused_at_the_start(void **state)
{
	(void)state;
	child_expect(start_where_nobody_can_write);
	assert_int_equal(chmod("closed", 0777), 0);
	assert_int_equal(rmdir("closed/folder"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_the_newest_events_are_kept_and_none_counts_as_lost),
		TEST(each_snapshot_is_a_file_with_its_reason),
		TEST(a_snapshot_replaces_the_last_in_one_step),
		TEST(a_mark_is_where_the_next_snapshot_begins),
		TEST(a_span_that_took_too_long_makes_a_snapshot),
		TEST(spans_without_their_begin_are_there_and_nested),
		TEST(nothing_from_before_the_session_is_in_it),
		TEST(a_snapshot_that_cannot_be_written_ends_the_session),
		TEST(a_recorder_that_could_never_write_is_refused_at_the_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
