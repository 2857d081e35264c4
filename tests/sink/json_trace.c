/* SPDX-License-Identifier: MIT */
#include "json_trace.h"

#include "../formats/walk.h"
#include "child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy_text(char to[64], const char *line, const char *key)
{
	const char *from = strstr(line, key);
	to[0] = '\0';
	if (!from)
		return;
	from += strlen(key);
	const size_t bytes = strcspn(from, "\"");
	MUST(bytes < 64);
	memcpy(to, from, bytes);
	to[bytes] = '\0';
}

static int64_t number_after(const char *line, const char *key)
{
	const char *from = strstr(line, key);
	return from ? strtoll(from + strlen(key), NULL, 10) : 0;
}

static int64_t time_of(const char *line)
{
	const char *from = strstr(line, "\"ts\":");
	char *end;
	if (!from)
		return 0;
	const int64_t us = strtoll(from + 5, &end, 10);
	return us * 1000 + (*end == '.' ? strtoll(end + 1, NULL, 10) : 0);
}

static void add_line(struct json_trace *trace, const char *line)
{
	if ((trace->count & (trace->count - 1)) == 0) { /* room is the next power of two */
		const size_t room = trace->count ? trace->count * 2 : 1;
		trace->events = realloc(trace->events, room * sizeof(*trace->events));
		MUST(trace->events != NULL);
	}
	struct json_event *event = &trace->events[trace->count++];
	const char *phase = strstr(line, "\"ph\":\"");
	MUST(phase != NULL);
	event->phase = phase[6];
	event->line = line;
	event->tid = (int32_t)number_after(line, "\"tid\":");
	event->time_ns = time_of(line);
	copy_text(event->name, line, "\"name\":\"");
	copy_text(event->category, line, "\"cat\":\"");
}

void json_trace_parse(struct json_trace *trace, const char *data, size_t bytes)
{
	*trace = (struct json_trace){.bytes = bytes};
	trace->data = malloc(bytes + 1);
	MUST(trace->data != NULL);
	memcpy(trace->data, data, bytes);
	trace->data[bytes] = '\0';
	trace->whole = walk_json((const uint8_t *)trace->data, bytes);
	char *save = NULL;
	for (char *line = strtok_r(trace->data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		size_t length = strlen(line);
		length -= length && line[length - 1] == ',';
		if (line[0] == '{' && line[length - 1] == '}')
			add_line(trace, line);
	}
}

void json_trace_read(struct json_trace *trace, const char *path)
{
	FILE *file = fopen(path, "r");
	if (!file)
		fprintf(stderr, "%s cannot be opened\n", path);
	MUST(file != NULL);
	size_t room = 1 << 16, bytes = 0;
	char *data = malloc(room);
	for (size_t part; data && (part = fread(data + bytes, 1, room - bytes, file)) > 0;) {
		bytes += part;
		if (bytes == room)
			data = realloc(data, room *= 2);
	}
	MUST(data != NULL);
	fclose(file);
	json_trace_parse(trace, data, bytes);
	free(data);
}

void json_trace_free(struct json_trace *trace)
{
	free(trace->data);
	free(trace->events);
}

const struct json_event *json_trace_find(const struct json_trace *trace, char phase,
					 const char *name, size_t from)
{
	for (size_t i = from; i < trace->count; i++) {
		const struct json_event *event = &trace->events[i];
		if ((!phase || event->phase == phase) && (!name || strcmp(event->name, name) == 0))
			return event;
	}
	return NULL;
}

size_t json_trace_count(const struct json_trace *trace, char phase, const char *name)
{
	size_t count = 0;
	const struct json_event *event = json_trace_find(trace, phase, name, 0);
	for (; event; count++)
		event = json_trace_find(trace, phase, name, (size_t)(event - trace->events) + 1);
	return count;
}

int64_t json_trace_arg(const struct json_event *event, const char *key)
{
	char quoted[64];
	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	const char *args = strstr(event->line, "\"args\":{");
	MUST(args != NULL);
	const char *at = strstr(args, quoted);
	MUST(at != NULL);
	return strtoll(at + strlen(quoted), NULL, 10);
}

/* Readers sort by time and keep the order of the file where times are equal. */
static int by_time(const void *a, const void *b)
{
	const struct json_event *x = *(const struct json_event *const *)a;
	const struct json_event *y = *(const struct json_event *const *)b;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

size_t json_trace_open_spans(const struct json_trace *trace)
{
	const struct json_event **sorted = calloc(trace->count + 1, sizeof(struct json_event *));
	size_t open = 0, depth = 0;
	MUST(sorted != NULL);
	for (size_t i = 0; i < trace->count; i++)
		sorted[i] = &trace->events[i];
	qsort(sorted, trace->count, sizeof(struct json_event *), by_time);
	for (size_t i = 0; i < trace->count; i++) {
		if (i && sorted[i]->tid != sorted[i - 1]->tid)
			depth = 0;
		MUST(sorted[i]->phase != 'E' || depth > 0);
		depth += sorted[i]->phase == 'B';
		depth -= sorted[i]->phase == 'E';
		open += sorted[i]->phase == 'B';
		open -= sorted[i]->phase == 'E';
	}
	free(sorted);
	return open;
}

size_t json_file_count(const char *path, char phase, const char *name)
{
	struct json_trace trace;
	json_trace_read(&trace, path);
	const size_t count = json_trace_count(&trace, phase, name);
	json_trace_free(&trace);
	return count;
}
