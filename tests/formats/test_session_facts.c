/* SPDX-License-Identifier: MIT */
/*
 * test_session_facts.c: what a session's file of each format says beside the events, read back: the names of threads,
 * whenever they were given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <kymo/session.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../sink/child.h"
#include "core/drum.h"
#include "formats/load.h"
#include "load_text.h"

static const char *const files[] = {"out.json", "out.pftrace", "out.fxt", "out.kymo"};
#define FILES (sizeof(files) / sizeof(files[0]))

static struct kymo_session *sessions[FILES];

static void start_all(void)
{
	for (size_t i = 0; i < FILES; i++) {
		const struct kymo_options options = {.size = sizeof(options), .path = files[i]};
		MUST(kymo_session_start(&sessions[i], &options) == 0);
	}
}

static void flush_all(void)
{
	for (size_t i = 0; i < FILES; i++)
		MUST(kymo_session_flush(sessions[i]) == 0);
}

static void stop_all(void)
{
	for (size_t i = 0; i < FILES; i++)
		MUST(kymo_session_stop(&sessions[i]) == 0);
}

static struct ky_trace *load(const char *path)
{
	char message[KY_LOAD_MESSAGE_BYTES] = "";
	struct ky_trace *trace = NULL;
	const int error = ky_load(&trace, path, NULL, message);
	if (error)
		fprintf(stderr, "%s: %s\n", path, message);
	MUST(error == 0);
	return trace;
}

/* ---- names ---- */

static uint32_t threads_named(const struct ky_trace *trace, const char *name)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < trace->threads.rows.count; i++)
		count += strcmp(text_of(trace, trace->threads.name[i]), name) == 0;
	return count;
}

/* Expect one thread of that name in each file, and none of the others that it had. */
static void expect_name(const char *name)
{
	for (size_t i = 0; i < FILES; i++) {
		struct ky_trace *trace = load(files[i]);
		if (threads_named(trace, name) != 1 || threads_named(trace, "earlier") != 0)
			fprintf(stderr, "%s: not one thread '%s'\n", files[i], name);
		MUST(threads_named(trace, name) == 1 && threads_named(trace, "earlier") == 0);
		ky_trace_close(&trace);
	}
}

static void record_then_rename(void *name)
{
	kymo_thread_name("earlier");
	KYMO_INSTANT("a", "one");
	flush_all();
	kymo_thread_name(name);
}

static void rename_at_the_end(void)
{
	start_all();
	on_thread(record_then_rename, "last");
	stop_all();
	expect_name("last");
}

static void a_name_given_after_the_last_event_is_in_the_file(void **state)
{
	(void)state;
	child_expect(rename_at_the_end);
}

static void rename_between_flushes(void *name)
{
	record_then_rename(name);
	KYMO_INSTANT("a", "two");
	flush_all();
}

static void rename_between(void)
{
	start_all();
	on_thread(rename_between_flushes, "last");
	stop_all();
	expect_name("last");
}

static void a_name_given_between_two_events_is_in_the_file(void **state)
{
	(void)state;
	child_expect(rename_between);
}

/* So many that the thread's first buffer is given back, with the name that it had. */
static void record_in_two_rings(void *name)
{
	kymo_thread_name("earlier");
	KYMO_INSTANT("a", "one");
	flush_all();
	ky_drum_grow(ky_drum_peek(), 1u << 20, 16u << 20);
	for (uint32_t i = 0; i < 5000; i++)
		KYMO_INSTANT("a", "many", "number", i);
	kymo_thread_name(name);
	flush_all();
}

static void rename_after_a_move(void)
{
	ky_limits.ring_bytes = 64u << 10;
	const struct kymo_options options = {
		.size = sizeof(options), .ring_bytes = 64u << 10, .total_bytes = 1u << 20};
	for (size_t i = 0; i < FILES; i++) {
		struct kymo_options own = options;
		own.path = files[i];
		MUST(kymo_session_start(&sessions[i], &own) == 0);
	}
	on_thread(record_in_two_rings, "last");
	stop_all();
	expect_name("last");
}

static void the_name_is_that_of_the_newest_buffer(void **state)
{
	(void)state;
	child_expect(rename_after_a_move);
}

/* ---- a thread that records at its very end ---- */

static pthread_key_t late_key;

/* Runs in each of the rounds of destructors: in the last ones the recorder has let go of the thread. */
static void record_late(void *value)
{
	const uintptr_t round = (uintptr_t)value;
	KYMO_INSTANT("a", "late", "round", round);
	pthread_setspecific(late_key, (void *)(round + 1));
	flush_all();
}

static void *name_and_end(void *name)
{
	kymo_thread_name(name);
	KYMO_INSTANT("a", "one");
	flush_all();
	pthread_setspecific(late_key, (void *)1);
	return NULL;
}

static void record_in_destructors(void)
{
	pthread_t thread;
	MUST(pthread_key_create(&late_key, record_late) == 0);
	start_all();
	MUST(pthread_create(&thread, NULL, name_and_end, "last") == 0);
	pthread_join(thread, NULL);
	stop_all();
	expect_name("last");
	for (size_t i = 0; i < FILES; i++) {
		struct ky_trace *trace = load(files[i]);
		MUST(trace->slices.rows.count > 2 && trace->threads.rows.count <= 2);
		ky_trace_close(&trace);
	}
}

static void a_thread_that_records_in_destructors_keeps_its_name(void **state)
{
	(void)state;
	child_expect(record_in_destructors);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_name_given_after_the_last_event_is_in_the_file),
		TEST(a_name_given_between_two_events_is_in_the_file),
		TEST(the_name_is_that_of_the_newest_buffer),
		TEST(a_thread_that_records_in_destructors_keeps_its_name),
	};
	return cmocka_run_group_tests_name("session_facts", tests, NULL, NULL);
}
