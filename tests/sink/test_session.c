/* SPDX-License-Identifier: MIT */
/*
 * test_session.c: what a session takes, when it refuses, and that each gets exactly its events.
 * What becomes of the file is in test_session_files.c, what of the process in
 * test_session_process.c.
 */
#include "child.h"
#include "core/drum.h"
#include "core/stall.h"
#include "json_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <kymo/session.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct kymo_session *start(const char *path, const char *categories)
{
	struct kymo_session *session = NULL;
	const struct kymo_options options = {
		.size = sizeof(options), .path = path, .categories = categories};
	MUST(kymo_session_start(&session, &options) == 0);
	MUST(session != NULL);
	return session;
}

static int try_start(struct kymo_options options)
{
	struct kymo_session *session = (void *)1;
	options.size = sizeof(options);
	const int error = kymo_session_start(&session, &options);
	MUST((error == 0) == (session != NULL));
	kymo_session_stop(&session);
	return error;
}

/* A program for another C library or CPU may find none. */
static bool have_zlib(void)
{
	return try_start((struct kymo_options){.path = "zlib.json.gz"}) != KYMO_EZLIB;
}

static void record_around_a_session(void)
{
	KYMO_INSTANT("a", "before");
	struct kymo_session *session = start("out.json", NULL);
	KYMO_INSTANT("a", "during", "number", 7);
	MUST(kymo_session_error(session) == 0);
	MUST(kymo_session_stop(&session) == 0);
	MUST(session == NULL);
	KYMO_INSTANT("a", "after");
	MUST(!KYMO_ENABLED("a"));
	struct json_trace trace;
	json_trace_read(&trace, "out.json");
	MUST(trace.whole);
	MUST(json_trace_count(&trace, 'i', NULL) == 1);
	MUST(json_trace_arg(json_trace_find(&trace, 'i', "during", 0), "number") == 7);
	json_trace_free(&trace);
}

static void a_session_holds_what_was_recorded_while_it_ran(void **state)
{
	(void)state;
	child_expect(record_around_a_session);
}

static void check_magic(const char *path, const char *magic, size_t bytes)
{
	char head[16] = "";
	struct kymo_session *session = start(path, NULL);
	KYMO_INSTANT("a", "x");
	MUST(kymo_session_stop(&session) == 0);
	const int fd = open(path, O_RDONLY);
	MUST(read(fd, head, sizeof(head)) == (ssize_t)sizeof(head));
	close(fd);
	MUST(memcmp(head, magic, bytes) == 0);
}

static void write_every_format(void)
{
	static const char fxt[] = {0x10, 0, 0x04, 0x46, 0x78, 0x54, 0x16, 0};
	check_magic("a.json", "[\n{", 3);
	check_magic("a.pftrace", "\x0a", 1);
	check_magic("a.fxt", fxt, sizeof(fxt));
	if (have_zlib()) {
		check_magic("a.json.gz", "\x1f\x8b", 2);
		check_magic("a.fxt.gz", "\x1f\x8b", 2);
	}
	check_magic("a.kymo", "", 0);
	MUST(try_start((struct kymo_options){.path = "b.txt", .format = KYMO_FORMAT_JSON}) == 0);
	MUST(json_file_count("b.txt", 'M', "process_name") == 1);
}

static void the_suffix_or_the_option_chooses_the_format(void **state)
{
	(void)state;
	child_expect(write_every_format);
}

#define A_LOT 200000u

static struct kymo_stats record_a_lot(struct kymo_options options)
{
	struct kymo_session *session = NULL;
	struct kymo_stats stats = {.size = sizeof(stats)};
	options.size = sizeof(options);
	options.path = "many.kymo";
	MUST(kymo_session_start(&session, &options) == 0);
	for (uint32_t i = 0; i < A_LOT; i++)
		KYMO_INSTANT("a", "one of many", "number", i);
	MUST(kymo_session_flush(session) == 0 && kymo_session_stats(session, &stats) == 0);
	MUST(kymo_session_stop(&session) == 0);
	return stats;
}

/* Rings of 16 KiB hold a thousandth of what a thread writes, and may not grow. */
static void record_with_stall(void)
{
	ky_limits.ring_bytes = ky_limits.total_bytes = 16u << 10;
	const struct kymo_stats stats = record_a_lot((struct kymo_options){
		.ring_bytes = 16u << 10, .total_bytes = 16u << 10, .stall_ms = 600000});
	MUST(stats.events == A_LOT && stats.lost == 0);
	MUST(stats.stalled > 0 && stats.stalled_ns > 0);
}

static void threads_wait_for_a_session_that_asks_for_it(void **state)
{
	(void)state;
	child_expect(record_with_stall);
}

/* The ring is small, but there is memory for all events. */
static void record_with_memory(void)
{
	ky_limits.ring_bytes = 16u << 10;
	const struct kymo_stats stats = record_a_lot(
		(struct kymo_options){.ring_bytes = 16u << 10, .total_bytes = 64u << 20});
	MUST(stats.events == A_LOT && stats.lost == 0 && stats.stalled == 0);
}

static void rings_grow_before_a_session_loses_events(void **state)
{
	(void)state;
	child_expect(record_with_memory);
}

/* A session that does not read, as one of a recorder that was killed: it is waited for once. */
static void record_for_the_dead(void)
{
	ky_limits.ring_bytes = ky_limits.total_bytes = 16u << 10;
	ky_limits.categories = "*";
	struct ky_drum *drum = ky_drum_get();
	MUST(drum && ky_stall_join(drum, 1000000) == 0);
	drum->header->readers[0].state = KY_READER_ACTIVE;
	for (uint32_t i = 0; i < A_LOT; i++)
		KYMO_INSTANT("a", "one of many", "number", i);
	MUST(drum->header->stalled == 1);
}

static void a_session_that_does_not_read_is_waited_for_once(void **state)
{
	(void)state;
	child_expect(record_for_the_dead);
}

/* It wanted to be waited for an hour: nobody waits for a process that is gone. */
static void record_for_the_killed(void)
{
	int status;
	ky_limits.ring_bytes = ky_limits.total_bytes = 16u << 10;
	ky_limits.categories = "*";
	struct ky_drum *drum = ky_drum_get();
	MUST(drum && ky_stall_join(drum, UINT64_C(3600000000000)) == 0);
	const pid_t killed = fork();
	if (killed == 0)
		_exit(0);
	MUST(waitpid(killed, &status, 0) == killed);
	drum->header->readers[0].pid = (uint32_t)killed;
	drum->header->readers[0].state = KY_READER_ACTIVE;
	for (uint32_t i = 0; i < A_LOT; i++)
		KYMO_INSTANT("a", "one of many", "number", i);
	MUST(drum->header->stalled == 1);
}

static void a_reader_that_was_killed_holds_nobody_up(void **state)
{
	(void)state;
	child_expect(record_for_the_killed);
}

static void start_three_sessions(void)
{
	struct kymo_session *net = start("net.json", "net*");
	struct kymo_session *most = start("most.json", "*,-net.debug,-db");
	struct kymo_session *all = start("all.json", NULL);
	for (int i = 0; i < 10; i++) {
		KYMO_INSTANT("net.io", "io");
		KYMO_INSTANT("net.debug", "debug");
		KYMO_INSTANT("db", "query");
		KYMO_INSTANT("ui", "draw");
	}
	MUST(kymo_session_stop(&all) == 0);
	KYMO_INSTANT("net.io", "late");
	KYMO_INSTANT("db", "late");
	MUST(kymo_session_stop(&net) == 0);
	MUST(kymo_session_stop(&most) == 0);
}

static void sessions_at_once_get_exactly_their_categories(void **state)
{
	(void)state;
	child_expect(start_three_sessions);
	assert_int_equal(json_file_count("net.json", 'i', NULL), 21);
	assert_int_equal(json_file_count("net.json", 'i', "io"), 10);
	assert_int_equal(json_file_count("net.json", 'i', "late"), 1);
	assert_int_equal(json_file_count("most.json", 'i', NULL), 21);
	assert_int_equal(json_file_count("most.json", 'i', "debug"), 0);
	assert_int_equal(json_file_count("most.json", 'i', "late"), 1);
	assert_int_equal(json_file_count("all.json", 'i', NULL), 40);
	assert_int_equal(json_file_count("all.json", 'i', "late"), 0);
}

static void record_many(void *argument)
{
	for (int i = 0; i < *(int *)argument; i++)
		KYMO_INSTANT("a", "many", "i", i);
}

static void flush_between(void)
{
	struct kymo_session *session = start("out.json", NULL);
	int count = 500;
	for (size_t round = 1; round <= 20; round++) {
		record_many(&count);
		on_thread(record_many, &count);
		MUST(kymo_session_flush(session) == 0);
		MUST(json_file_count("out.json", 'i', "many") == round * 1000);
	}
	kymo_session_stop(&session);
}

static void a_flush_makes_everything_before_it_visible(void **state)
{
	(void)state;
	child_expect(flush_between);
}

static void flush_without_samples(void)
{
	struct kymo_session *session = start("out.json", NULL);
	/* A thread that the scheduler took off the CPU while it holds the lock of the samples. */
	ky_drum_peek()->clock->lock = 1;
	int count = 10;
	record_many(&count);
	MUST(kymo_session_flush(session) == 0);
	MUST(json_file_count("out.json", 'i', "many") == 10);
	record_many(&count);
	MUST(kymo_session_stop(&session) == 0);
	MUST(json_file_count("out.json", 'i', "many") == 20);
}

static void a_flush_does_without_a_sample_of_the_clocks(void **state)
{
	(void)state;
	child_expect(flush_without_samples);
}

static void wait_for_event(const char *path, const char *name)
{
	const int64_t deadline = now_ms() + PATIENCE_MS;
	while (json_file_count(path, 'i', name) == 0) {
		MUST(now_ms() < deadline);
		look_again();
	}
}

static void wait_for_flush_period(void)
{
	struct kymo_session *session;
	const struct kymo_options options = {
		.size = sizeof(options), .path = "out.json", .flush_ms = 20};
	MUST(kymo_session_start(&session, &options) == 0);
	KYMO_INSTANT("a", "first");
	wait_for_event("out.json", "first");
	KYMO_INSTANT("a", "second");
	wait_for_event("out.json", "second");
	kymo_session_stop(&session);
}

static void events_are_in_the_file_after_flush_ms(void **state)
{
	(void)state;
	child_expect(wait_for_flush_period);
}

static void look_at_the_head(void)
{
	struct kymo_session *session;
	const struct kymo_options options = {
		.size = sizeof(options), .path = "out.json", .flush_ms = 10 * PATIENCE_MS};
	MUST(kymo_session_start(&session, &options) == 0);
	const int64_t deadline = now_ms() + PATIENCE_MS;
	struct stat status;
	do {
		MUST(now_ms() < deadline);
		look_again();
		MUST(stat("out.json", &status) == 0);
	} while (status.st_size == 0);
	MUST(json_file_count("out.json", 'M', "process_name") == 1);
	kymo_session_stop(&session);
}

static void the_file_has_its_head_long_before_the_first_flush(void **state)
{
	(void)state;
	child_expect(look_at_the_head);
}

static void wait_for_the_end(struct kymo_options options)
{
	struct kymo_session *session;
	options.size = sizeof(options);
	options.duration_ms = 30;
	MUST(kymo_session_start(&session, &options) == 0);
	MUST(KYMO_ENABLED("a"));
	KYMO_INSTANT("a", "early");
	const int64_t deadline = now_ms() + PATIENCE_MS;
	while (KYMO_ENABLED("a")) {
		MUST(now_ms() < deadline);
		look_again();
	}
	KYMO_INSTANT("a", "late");
	MUST(kymo_session_flush(session) == 0);
	MUST(kymo_session_stop(&session) == 0);
}

static void run_short_sessions(void)
{
	wait_for_the_end((struct kymo_options){.path = "out.json"});
	MUST(json_file_count("out.json", 'i', "early") == 1);
	MUST(json_file_count("out.json", 'i', "late") == 0);
	wait_for_the_end((struct kymo_options){.path = "ring.json", .mode = KYMO_MODE_RING});
	MUST(json_file_count("ring.json", 'i', "early") == 1);
	wait_for_the_end((struct kymo_options){.format = KYMO_FORMAT_NONE});
}

static void a_session_stops_by_itself_after_its_duration(void **state)
{
	(void)state;
	child_expect(run_short_sessions);
}

static void start_by_config(void)
{
	/* duration_ms 60000, output_path "c.json", a track_event source with enabled "net". */
	static const char config[] = "\x18\xe0\xd4\x03\xea\x01\x06"
				     "c.json"
				     "\x12\x17\x0a\x15\x0a\x0btrack_event\x8a\x07\x05\x12\x03"
				     "net";
	struct kymo_session *session;
	const struct kymo_options options = {.size = sizeof(options),
					     .perfetto_config = config,
					     .perfetto_config_bytes = sizeof(config) - 1};
	MUST(kymo_session_start(&session, &options) == 0);
	KYMO_INSTANT("net", "wanted");
	KYMO_INSTANT("db", "unwanted");
	MUST(kymo_session_stop(&session) == 0);
	MUST(json_file_count("c.json", 'i', NULL) == 1);
	MUST(json_file_count("c.json", 'i', "wanted") == 1);
	MUST(try_start((struct kymo_options){.path = "d.json",
					     .perfetto_config = "\x18",
					     .perfetto_config_bytes = 1}) == KYMO_ECONFIG);
	MUST(access("d.json", F_OK) != 0);
}

static void a_trace_config_stands_for_options(void **state)
{
	(void)state;
	child_expect(start_by_config);
}

static void try_wrong_options(void)
{
	struct kymo_session *session = (void *)1;
	const struct kymo_options unsized = {.path = "out.json"};
	MUST(kymo_session_start(&session, &unsized) == KYMO_EOPTIONS && !session);
	MUST(kymo_session_start(&session, NULL) == KYMO_EOPTIONS);
	MUST(kymo_session_start(NULL, &unsized) == KYMO_EOPTIONS);
	MUST(try_start((struct kymo_options){.path = NULL}) == KYMO_EOPTIONS);
	MUST(try_start((struct kymo_options){.fd = -3}) == KYMO_EOPTIONS);
	MUST(try_start((struct kymo_options){.path = "out.json", .mode = 7}) == KYMO_EOPTIONS);
	MUST(try_start((struct kymo_options){.path = "out.json", .format = 99}) == KYMO_EFORMAT);
	MUST(try_start((struct kymo_options){.path = "out.json", .format = -1}) == KYMO_EFORMAT);
	MUST(try_start((struct kymo_options){.path = "out.txt"}) == KYMO_EFORMAT);
	MUST(try_start((struct kymo_options){.path = ""}) == KYMO_EFORMAT);
	MUST(try_start((struct kymo_options){.path = "no/such/out.json"}) == -ENOENT);
	MUST(try_start((struct kymo_options){.fd = 777}) == -EBADF);
	MUST(folder_files() == 0);
}

static void wrong_options_are_refused_with_their_reason(void **state)
{
	(void)state;
	child_expect(try_wrong_options);
}

static void try_without_permission(void)
{
	MUST(mkdir("closed", 0555) == 0);
	MUST(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
	MUST(try_start((struct kymo_options){.path = "closed/out.json"}) == -EACCES);
}

static void a_folder_without_permission_is_named_as_such(void **state)
{
	(void)state;
	child_expect(try_without_permission);
}

static void call_with_nothing(void)
{
	struct kymo_session *session = NULL;
	struct kymo_stats stats = {.size = sizeof(stats)};
	MUST(kymo_session_stop(NULL) == 0);
	MUST(kymo_session_stop(&session) == 0);
	MUST(kymo_session_flush(NULL) == KYMO_EOPTIONS);
	MUST(kymo_session_error(NULL) == KYMO_EOPTIONS);
	MUST(kymo_session_stats(NULL, &stats) == KYMO_EOPTIONS);
	session = start("out.json", NULL);
	MUST(kymo_session_stats(session, NULL) == KYMO_EOPTIONS);
	stats.size = 0;
	MUST(kymo_session_stats(session, &stats) == KYMO_EOPTIONS);
	MUST(kymo_session_stop(&session) == 0);
	MUST(kymo_session_stop(&session) == 0);
}

static void nothing_and_stop_again_are_no_crash(void **state)
{
	(void)state;
	child_expect(call_with_nothing);
}

static void take_all_slots(void)
{
	struct kymo_session *sessions[64];
	const struct kymo_options none = {.size = sizeof(none), .format = KYMO_FORMAT_NONE};
	int count = 0, error = 0;
	while (count < 64 && (error = kymo_session_start(&sessions[count], &none)) == 0)
		count++;
	MUST(error == KYMO_ESLOTS && count >= 16);
	FILE *old = fopen("out.json", "w");
	fputs("precious", old);
	fclose(old);
	MUST(try_start((struct kymo_options){.path = "out.json"}) == KYMO_ESLOTS);
	struct stat status;
	MUST(stat("out.json", &status) == 0 && status.st_size == 8);
	while (count--)
		MUST(kymo_session_stop(&sessions[count]) == 0);
	MUST(try_start((struct kymo_options){.path = "out.json"}) == 0);
}

static void a_session_that_cannot_start_leaves_the_file_alone(void **state)
{
	(void)state;
	child_expect(take_all_slots);
}

static void look_at_stats(void)
{
	struct kymo_session *session = start("out.json", "a");
	struct kymo_stats stats = {.size = sizeof(stats)};
	int count = 1000;
	record_many(&count);
	KYMO_INSTANT("b", "unwanted");
	MUST(kymo_session_flush(session) == 0);
	MUST(kymo_session_stats(session, &stats) == 0);
	struct stat status;
	MUST(stat("out.json", &status) == 0);
	MUST(stats.events == 1000 && stats.lost == 0 && stats.files == 1);
	MUST(stats.bytes == (uint64_t)status.st_size);
	struct kymo_stats part = {.size = offsetof(struct kymo_stats, lost), .lost = 42};
	MUST(kymo_session_stats(session, &part) == 0);
	MUST(part.events == 1000 && part.lost == 42);
	kymo_session_stop(&session);
}

static void stats_tell_events_bytes_and_files(void **state)
{
	(void)state;
	child_expect(look_at_stats);
}

static void name_and_record(void *argument)
{
	(void)argument;
	kymo_thread_name("worker");
	KYMO_INSTANT("a", "x");
}

static void record_names(void)
{
	struct kymo_session *session = start("out.json", NULL);
	kymo_process_name("the program");
	on_thread(name_and_record, NULL);
	kymo_session_stop(&session);
	struct json_trace trace;
	json_trace_read(&trace, "out.json");
	MUST(strstr(json_trace_find(&trace, 'M', "thread_name", 0)->line, "\"worker\""));
	bool found = false;
	for (size_t i = 0; i < trace.count; i++)
		found |= strstr(trace.events[i].line, "\"the program\"") != NULL;
	MUST(found);
	json_trace_free(&trace);
}

static void names_of_threads_and_process_are_in_the_file(void **state)
{
	(void)state;
	child_expect(record_names);
}

static _Atomic bool flushing;

static void *flush_for_ever(void *session)
{
	while (kymo_session_flush(session) == 0) {
		flushing = true;
		pthread_testcancel();
	}
	return NULL;
}

static void cancel_a_flush(void)
{
	for (int i = 0; i < 20; i++) {
		struct kymo_session *session = start("out.json", NULL);
		pthread_t thread;
		flushing = false;
		MUST(pthread_create(&thread, NULL, flush_for_ever, session) == 0);
		while (!flushing)
			look_again();
		MUST(pthread_cancel(thread) == 0);
		MUST(pthread_join(thread, NULL) == 0);
		MUST(kymo_session_stop(&session) == 0);
	}
}

static void a_thread_cancelled_in_a_flush_leaves_no_lock_behind(void **state)
{
	(void)state;
	child_expect(cancel_a_flush);
}

static void count_descriptors(void)
{
	struct kymo_session *session = start("first.json", NULL);
	kymo_session_stop(&session);
	const int before = open("/dev/null", O_RDONLY);
	for (int i = 0; i < 5; i++) {
		MUST(try_start((struct kymo_options){.path = "out.json.gz"}) ==
		     (have_zlib() ? 0 : KYMO_EZLIB));
		MUST(try_start((struct kymo_options){.path = "r.json", .mode = 1}) == 0);
		MUST(try_start((struct kymo_options){.fd = before, .format = 1}) == -EBADF);
		MUST(try_start((struct kymo_options){.path = "no/out.json"}) == -ENOENT);
	}
	const int after = open("/dev/null", O_RDONLY);
	MUST(after == before + 1);
}

static void no_descriptor_is_left_open(void **state)
{
	(void)state;
	child_expect(count_descriptors);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_session_holds_what_was_recorded_while_it_ran),
		TEST(the_suffix_or_the_option_chooses_the_format),
		TEST(sessions_at_once_get_exactly_their_categories),
		TEST(a_flush_makes_everything_before_it_visible),
		TEST(a_flush_does_without_a_sample_of_the_clocks),
		TEST(events_are_in_the_file_after_flush_ms),
		TEST(the_file_has_its_head_long_before_the_first_flush),
		TEST(a_session_stops_by_itself_after_its_duration),
		TEST(a_trace_config_stands_for_options),
		TEST(wrong_options_are_refused_with_their_reason),
		TEST(a_folder_without_permission_is_named_as_such),
		TEST(nothing_and_stop_again_are_no_crash),
		TEST(a_session_that_cannot_start_leaves_the_file_alone),
		TEST(stats_tell_events_bytes_and_files),
		TEST(names_of_threads_and_process_are_in_the_file),
		TEST(a_thread_cancelled_in_a_flush_leaves_no_lock_behind),
		TEST(no_descriptor_is_left_open),
		TEST(threads_wait_for_a_session_that_asks_for_it),
		TEST(rings_grow_before_a_session_loses_events),
		TEST(a_session_that_does_not_read_is_waited_for_once),
		TEST(a_reader_that_was_killed_holds_nobody_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
