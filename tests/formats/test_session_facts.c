/* SPDX-License-Identifier: MIT */
/*
 * test_session_facts.c: what a session's file of each format says beside the events, read back: the names of threads,
 * whenever they were given; what is missing, and why, the same as the process's buffer itself says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <kymo/session.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../sink/child.h"
#include "core/drum.h"
#include "formats/export.h"
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
	char message[KY_MESSAGE_BYTES] = "";
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

/*
 * Runs in each of the rounds of destructors but the last, when the thread sanitizer's thread has ended: after the recorder's
 * own destructor, which lets go of the thread in the third.
 */
static void record_late(void *value)
{
	const uintptr_t round = (uintptr_t)value;
	KYMO_INSTANT("a", "late", "round", round);
	if (round < PTHREAD_DESTRUCTOR_ITERATIONS - 1)
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

/* ---- what is missing ---- */

/* All rows of the losses and the problems of refused names, sorted: "12 ring overwritten of: last". */
#define LINES_MAX 32u
struct lines {
	char text[LINES_MAX][160];
	uint32_t count;
};

static char *new_line(struct lines *lines)
{
	MUST(lines->count < LINES_MAX);
	return lines->text[lines->count++];
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void take_lines(struct lines *lines, const struct ky_trace *trace)
{
	const struct ky_losses *l = &trace->losses;
	lines->count = 0;
	for (uint32_t i = 0; i < l->rows.count; i++)
		snprintf(new_line(lines), sizeof(lines->text[0]), "%llu %s of: %s",
			 (unsigned long long)l->events[i], text_of(trace, l->what[i]),
			 l->thread[i] == KY_NONE
				 ? "nobody"
				 : text_of(trace, trace->threads.name[l->thread[i]]));
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		if (strstr(text_of(trace, trace->problems.name[i]), "refused"))
			snprintf(new_line(lines), sizeof(lines->text[0]), "%llu %s",
				 (unsigned long long)trace->problems.number[i],
				 text_of(trace, trace->problems.name[i]));
	qsort(lines->text, lines->count, sizeof(lines->text[0]), compare);
}

/* Expect each file to have these lines, and as many lost events as the session counted. */
static void expect_lines(const struct lines *expected, const uint64_t lost[FILES])
{
	for (size_t i = 0; i < FILES; i++) {
		struct lines lines;
		struct ky_trace *trace = load(files[i]);
		take_lines(&lines, trace);
		for (uint32_t j = 0; j < lines.count; j++)
			fprintf(stderr, "%s: %s\n", files[i], lines.text[j]);
		MUST(trace->lost == lost[i]);
		MUST(lines.count == expected->count);
		for (uint32_t j = 0; j < lines.count; j++)
			MUST(strcmp(lines.text[j], expected->text[j]) == 0);
		ky_trace_close(&trace);
	}
}

static void stop_and_count(uint64_t lost[FILES])
{
	for (size_t i = 0; i < FILES; i++) {
		struct kymo_stats stats = {.size = sizeof(stats)};
		MUST(kymo_session_flush(sessions[i]) == 0);
		MUST(kymo_session_stats(sessions[i], &stats) == 0);
		lost[i] = stats.lost;
	}
	stop_all();
}

static void lose(uint64_t *counter, uint64_t count)
{
	__atomic_fetch_add(counter, count, __ATOMIC_RELAXED);
}

/* As the threads that it happens to do it, one by one. */
static void lose_by_each_cause(struct ky_drum_header *h)
{
	lose(&h->lost_ringless, 3);
	lose(&h->lost_nested, 5);
	lose(&h->lost_unfinished, 7);
	lose(&h->refused_sites, 11);
	lose(&h->refused_strings, 13);
	lose(&h->refused_names, 17);
	lose(&h->refused_categories, 19);
}

/* Convert the first file to each format, in the place of the others and its own. */
static void convert_all(void)
{
	const struct ky_export_selection all = {.from_ns = KY_TIME_NONE, .to_ns = KY_TIME_NONE};
	struct ky_trace *trace = load(files[0]);
	for (size_t i = 0; i < FILES; i++) {
		struct ky_export_left left = {0};
		char message[KY_MESSAGE_BYTES] = "";
		if (ky_export(trace, &all, files[i], NULL, &left, NULL, NULL, message) != 0)
			fprintf(stderr, "%s: %s\n", files[i], message);
		MUST(message[0] == '\0');
	}
	ky_trace_close(&trace);
}

static void lose_in_sessions(void)
{
	static const struct lines expected = {
		.text = {"11 drum_sites_refused", "13 drum_strings_refused",
			 "17 drum_names_refused", "19 drum_categories_refused",
			 "3 no buffer for their thread of: nobody",
			 "5 in signal handlers, too deep of: nobody",
			 "7 a signal handler jumped out of them of: nobody"},
		.count = 7};
	uint64_t lost[FILES];
	KYMO_INSTANT("a", "before");
	lose_by_each_cause(ky_drum_peek()->header);
	start_all();
	KYMO_INSTANT("a", "one");
	lose_by_each_cause(ky_drum_peek()->header);
	stop_and_count(lost);
	for (size_t i = 0; i < FILES; i++)
		MUST(lost[i] == 15);
	expect_lines(&expected, lost);
	convert_all();
	expect_lines(&expected, lost);
}

static void each_format_has_the_losses_with_their_causes(void **state)
{
	(void)state;
	child_expect(lose_in_sessions);
}

static void overwrite(void *name)
{
	kymo_thread_name(name);
	KYMO_INSTANT("a", "one");
	flush_all();
	for (uint32_t i = 0; i < 200000; i++)
		KYMO_INSTANT("a", "many", "number", i);
}

/* Expect losses of this thread alone, by this cause alone. */
static void expect_overwritten(const char *path, uint64_t lost, uint64_t there)
{
	struct ky_trace *trace = load(path);
	const struct ky_losses *l = &trace->losses;
	uint64_t events = 0;
	for (uint32_t i = 0; i < l->rows.count; i++) {
		MUST(strcmp(text_of(trace, l->what[i]), "ring overwritten") == 0);
		MUST(l->thread[i] != KY_NONE && l->ts[i] >= 0);
		MUST(strcmp(text_of(trace, trace->threads.name[l->thread[i]]), "writer") == 0);
		events += l->events[i];
	}
	MUST(events == lost && trace->lost == lost);
	MUST(trace->slices.rows.count == there);
	ky_trace_close(&trace);
}

static void overwrite_in_sessions(void)
{
	uint64_t lost[FILES];
	ky_limits.ring_bytes = ky_limits.total_bytes = 16u << 10;
	for (size_t i = 0; i < FILES; i++) {
		const struct kymo_options options = {.size = sizeof(options),
						     .path = files[i],
						     .ring_bytes = 16u << 10,
						     .total_bytes = 16u << 10};
		MUST(kymo_session_start(&sessions[i], &options) == 0);
	}
	on_thread(overwrite, "writer");
	stop_and_count(lost);
	for (size_t i = 0; i < FILES; i++)
		expect_overwritten(files[i], lost[i], 200001 - lost[i]);
}

static void what_was_overwritten_is_a_loss_of_its_thread(void **state)
{
	(void)state;
	child_expect(overwrite_in_sessions);
}

static void overwrite_unwanted(void *name)
{
	kymo_thread_name(name);
	KYMO_INSTANT("b", "one");
	flush_all();
	for (uint32_t i = 0; i < 200000; i++)
		KYMO_INSTANT("a", "many", "number", i);
}

/* The sessions want none of the events that follow: the losses have no event after them. */
static void overwrite_beside_sessions(void)
{
	uint64_t lost[FILES];
	struct kymo_session *all;
	const struct kymo_options none = {.size = sizeof(none), .format = KYMO_FORMAT_NONE};
	ky_limits.ring_bytes = ky_limits.total_bytes = 16u << 10;
	for (size_t i = 0; i < FILES; i++) {
		const struct kymo_options options = {.size = sizeof(options),
						     .path = files[i],
						     .categories = "b",
						     .ring_bytes = 16u << 10,
						     .total_bytes = 16u << 10};
		MUST(kymo_session_start(&sessions[i], &options) == 0);
	}
	MUST(kymo_session_start(&all, &none) == 0);
	on_thread(overwrite_unwanted, "writer");
	stop_and_count(lost);
	MUST(kymo_session_stop(&all) == 0);
	for (size_t i = 0; i < FILES; i++)
		expect_overwritten(files[i], lost[i], 1);
}

static void losses_without_a_later_event_have_their_thread(void **state)
{
	(void)state;
	child_expect(overwrite_beside_sessions);
}

/* ---- names without room ---- */

static void name_many(void)
{
	uint64_t lost[FILES];
	ky_limits.heap_bytes = 64u << 10;
	start_all();
	KYMO_INSTANT("a", "one");
	for (uint32_t i = 0; i < 3000; i++) {
		char name[32];
		snprintf(name, sizeof(name), "name number %u", i);
		kymo_thread_name(name);
	}
	const uint64_t refused = ky_drum_peek()->header->refused_names;
	MUST(refused > 0);
	stop_and_count(lost);
	for (size_t i = 0; i < FILES; i++) {
		struct ky_trace *trace = load(files[i]);
		MUST(problems_of(trace, "drum_names_refused") == refused);
		MUST(trace->lost == 0 && lost[i] == 0);
		ky_trace_close(&trace);
	}
}

static void names_without_room_are_counted_in_each_format(void **state)
{
	(void)state;
	child_expect(name_many);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_name_given_after_the_last_event_is_in_the_file),
		TEST(a_name_given_between_two_events_is_in_the_file),
		TEST(the_name_is_that_of_the_newest_buffer),
		TEST(a_thread_that_records_in_destructors_keeps_its_name),
		TEST(each_format_has_the_losses_with_their_causes),
		TEST(what_was_overwritten_is_a_loss_of_its_thread),
		TEST(losses_without_a_later_event_have_their_thread),
		TEST(names_without_room_are_counted_in_each_format),
	};
	return cmocka_run_group_tests_name("session_facts", tests, NULL, NULL);
}
