/* SPDX-License-Identifier: MIT */
/*
 * test_round_trip.c: what the recorder writes is, read back, the same trace in every format. One program run is recorded
 * by a session a format at once; each file is loaded, and put into lines that leave out what the formats name
 * differently: slices with their thread, depth and arguments, counters, arrows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>
#include <kymo/session.h>

#include "formats/load.h"

/* What a format puts before an argument's key and behind a counter's name. */
static const struct form {
	const char *suffix;
	const char *prefix;
	const char *counter_suffix;
} forms[] = {
	{"kymo", "debug.", ""},
	{"fxt", "", ":value:0"},
	{"json", "args.", " value"},
	{"pftrace", "debug.", ""},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* Whether there is an end without a begin, as when the session began within the span. */
static bool ends_late;
static char folder[] = "/tmp/kymo-test-round-trip-XXXXXX";

static void path_of(char *path, size_t room, const struct form *form)
{
	snprintf(path, room, "%s/out.%s", folder, form->suffix);
}

static void record_one(int i)
{
	char text[64];
	snprintf(text, sizeof(text), "made at run time %d", i % 3);
	KYMO_SCOPE("net", "recv", "bytes", i, "peer", text, "ratio", i / 4.0);
	KYMO_FLOW_BEGIN("net", "message", (uint64_t)i);
	{
		KYMO_SCOPE_DYN("db", text);
		KYMO_INSTANT("db", "row", "found", (_Bool)(i & 1), "at", (void *)&forms);
	}
	KYMO_COUNTER("db", "rows", i * 3);
	KYMO_COUNTER("db", "load", 0.25 * i);
	KYMO_ASYNC_BEGIN("task", "task", (uint64_t)i, "number", i);
	KYMO_PRINT("log", "%d of %s", i, text);
	KYMO_BEGIN("net", "by hand");
	KYMO_FLOW_END("net", "message", (uint64_t)i);
	KYMO_END("net", "result", -i);
	KYMO_ASYNC_END("task", "task", (uint64_t)i);
}

static void *record_all(void *name)
{
	kymo_thread_name(name);
	for (int i = 0; i < 500; i++)
		record_one(i + (*(const char *)name == 'a' ? 0 : 1000));
	if (ends_late)
		KYMO_END("net", "late", 1);
	return NULL;
}

static void record(void)
{
	struct kymo_session *sessions[FORMS];
	pthread_t threads[2];
	char path[128];
	for (size_t i = 0; i < FORMS; i++) {
		path_of(path, sizeof(path), &forms[i]);
		const struct kymo_options options = {.size = sizeof(options), .path = path};
		assert_int_equal(kymo_session_start(&sessions[i], &options), 0);
	}
	pthread_create(&threads[0], NULL, record_all, "a thread");
	pthread_create(&threads[1], NULL, record_all, "b thread");
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	for (size_t i = 0; i < FORMS; i++)
		assert_int_equal(kymo_session_stop(&sessions[i]), 0);
}

/* ---- a trace as lines ---- */

struct lines {
	char **line;
	size_t count, room;
};

static void add_line(struct lines *lines, char *line)
{
	if (lines->count == lines->room) {
		lines->room = lines->room ? lines->room * 2 : 1024;
		lines->line = realloc(lines->line, lines->room * sizeof(*lines->line));
		assert_non_null(lines->line);
	}
	lines->line[lines->count++] = line;
}

static const char *text_or_empty(const struct ky_trace *trace, uint32_t string)
{
	const char *text = ky_text_of(trace, string);
	return text ? text : "";
}

static void print_value(FILE *out, const struct ky_trace *trace, uint32_t row)
{
	const uint64_t value = trace->args.value[row];
	double real;
	memcpy(&real, &value, sizeof(real));
	switch (trace->args.type[row]) {
	case KY_ARG_STRING: {
		/* Where a format has no pointers, they are text. */
		const char *text = text_or_empty(trace, (uint32_t)value);
		if (strncmp(text, "0x", 2) == 0)
			fprintf(out, "%llu", strtoull(text, NULL, 16));
		else
			fputs(text, out);
		break;
	}
	case KY_ARG_REAL:
		fprintf(out, "%.9g", real);
		break;
	default:
		fprintf(out, "%" PRId64, (int64_t)value);
	}
}

static void print_args(FILE *out, const struct ky_trace *trace, uint32_t set,
		       const struct form *form)
{
	const size_t prefix = strlen(form->prefix);
	for (uint32_t i = ky_arg_set_first(trace, set); i < ky_arg_set_end(trace, set); i++) {
		const char *key = text_or_empty(trace, trace->args.key[i]);
		if (strncmp(key, "source", 6) == 0 || strncmp(key, form->prefix, prefix) != 0)
			continue;
		fprintf(out, " %s=", key + prefix);
		print_value(out, trace, i);
	}
}

static void add_slices(struct lines *lines, const struct ky_trace *trace, const struct form *form)
{
	const struct ky_slices *slices = &trace->slices;
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		char *line;
		size_t bytes;
		const uint32_t thread = ky_track_thread(trace, slices->track[i]);
		FILE *out = open_memstream(&line, &bytes);
		assert_non_null(out);
		fprintf(out, "slice %" PRId64 " %" PRId64 " depth %u %s/%s", slices->ts[i],
			slices->dur[i], slices->depth[i], text_or_empty(trace, slices->category[i]),
			text_or_empty(trace, slices->name[i]));
		if (thread != KY_NONE)
			fprintf(out, " on %s", text_or_empty(trace, trace->threads.name[thread]));
		print_args(out, trace, slices->args[i], form);
		fclose(out);
		add_line(lines, line);
	}
}

static void add_counters(struct lines *lines, const struct ky_trace *trace, const struct form *form)
{
	const struct ky_counters *counters = &trace->counters;
	for (uint32_t i = 0; i < counters->rows.count; i++) {
		char *line;
		const char *name = text_or_empty(trace, trace->tracks.name[counters->track[i]]);
		const size_t bytes = strlen(name) - strlen(form->counter_suffix);
		assert_string_equal(name + bytes, form->counter_suffix);
		assert_true(asprintf(&line, "counter %" PRId64 " %.*s %.9g", counters->ts[i],
				     (int)bytes, name, counters->value[i]) > 0);
		add_line(lines, line);
	}
}

static void add_flows(struct lines *lines, const struct ky_trace *trace)
{
	for (uint32_t i = 0; i < trace->flows.rows.count; i++) {
		char *line;
		assert_true(asprintf(&line, "flow %" PRId64 " %" PRId64,
				     trace->slices.ts[trace->flows.out[i]],
				     trace->slices.ts[trace->flows.in[i]]) > 0);
		add_line(lines, line);
	}
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void load(struct lines *lines, const struct form *form)
{
	char message[KY_MESSAGE_BYTES];
	char path[128];
	struct ky_trace *trace;
	*lines = (struct lines){NULL, 0, 0};
	path_of(path, sizeof(path), form);
	if (ky_load(&trace, path, NULL, message) != 0)
		fail_msg("%s", message);
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		assert_int_equal(trace->problems.severity[i], KY_INFO);
	assert_int_equal(trace->lost, 0);
	add_slices(lines, trace, form);
	add_counters(lines, trace, form);
	add_flows(lines, trace);
	qsort(lines->line, lines->count, sizeof(*lines->line), compare_lines);
	ky_trace_close(&trace);
}

static void free_lines(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->line[i]);
	free(lines->line);
}

/* Records once, and compares so many of the forms. */
static void compare(size_t forms_count)
{
	struct lines reference;
	record();
	load(&reference, &forms[0]);
	/* 1000 times: three spans, an instant, a message and an asynchronous span. */
	assert_true(reference.count >= 1000 * (6 + 2 + 1));
	for (size_t i = 1; i < forms_count; i++) {
		struct lines lines;
		load(&lines, &forms[i]);
		for (size_t j = 0; j < lines.count && j < reference.count; j++)
			if (strcmp(lines.line[j], reference.line[j]) != 0)
				fail_msg("%s has \"%s\" where %s has \"%s\"", forms[i].suffix,
					 lines.line[j], forms[0].suffix, reference.line[j]);
		assert_int_equal(lines.count, reference.count);
		free_lines(&lines);
	}
	free_lines(&reference);
}

static void every_format_reads_back_as_the_same_trace(void **state)
{
	(void)state;
	ends_late = false;
	compare(FORMS);
}

static void a_span_whose_begin_is_lost_is_the_same(void **state)
{
	(void)state;
	ends_late = true;
	compare(2);
}

static void remove_files(void)
{
	char path[128];
	for (size_t i = 0; i < FORMS; i++) {
		path_of(path, sizeof(path), &forms[i]);
		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_reads_back_as_the_same_trace),
		cmocka_unit_test(a_span_whose_begin_is_lost_is_the_same),
	};
	if (!mkdtemp(folder))
		return 1;
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_files();
	return failed;
}
