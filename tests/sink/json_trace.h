/* SPDX-License-Identifier: MIT */
/*
 * json_trace.h: what is in a JSON file that a session wrote: the events line by line, and whether
 * the whole is valid. Just enough for files of the tests' own, whose names need no escapes.
 */
#ifndef KY_TESTS_JSON_TRACE_H
#define KY_TESTS_JSON_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_event {
	char phase;
	char name[64];
	char category[64];
	int32_t tid;
	int64_t time_ns;
	const char *line; /* as it is in the file */
};

struct json_trace {
	char *data;
	size_t bytes;
	struct json_event *events;
	size_t count;
	bool whole; /* one valid JSON value */
};

/* Ends the test process when there is no such file. */
void json_trace_read(struct json_trace *trace, const char *path);
/* The same from bytes; takes a copy. */
void json_trace_parse(struct json_trace *trace, const char *data, size_t bytes);
void json_trace_free(struct json_trace *trace);

/* How many events have the phase (0: any) and the name (NULL: any). */
size_t json_trace_count(const struct json_trace *trace, char phase, const char *name);
/* The first such event from index from on, or NULL. */
const struct json_event *json_trace_find(const struct json_trace *trace, char phase,
					 const char *name, size_t from);
/* A number among the arguments of an event; ends the test process when it is not there. */
int64_t json_trace_arg(const struct json_event *event, const char *key);
/*
 * By time and thread: every end has a begin. Returns how many spans stay open; ends the test
 * process when an end has no begin.
 */
size_t json_trace_open_spans(const struct json_trace *trace);

/* Read, count, free. */
size_t json_file_count(const char *path, char phase, const char *name);

#endif
