/* SPDX-License-Identifier: MIT */
/*
 * ftrace_event.h: a kernel event with its fields, as ftrace's text, trace.dat and raw pages have it, on its way
 * into the model.
 *
 *   text line ──┐
 *   ring buffer ┴─▶ struct ky_ftrace_event ─▶ raw event with arguments, and what the event means
 */
#ifndef KY_FORMATS_FTRACE_FTRACE_EVENT_H
#define KY_FORMATS_FTRACE_FTRACE_EVENT_H

#include "model/kernel.h"

#define KY_FTRACE_FIELDS_MAX 64u

enum ky_ftrace_kind { KY_FTRACE_INT, KY_FTRACE_UINT, KY_FTRACE_POINTER, KY_FTRACE_TEXT };

struct ky_ftrace_field {
	const char *key;
	uint32_t key_bytes;
	uint32_t key_string; /* its number, 0: not looked up yet */
	enum ky_ftrace_kind kind;
	uint32_t bytes;   /* of the text */
	const char *text; /* also of numbers in text, NULL in binary ones */
	int64_t number;
};

/* The tasks of a recording of only some, and events that wait until all of them are known (ftrace_tasks.c). */
struct ky_ftrace_watched;

struct ky_ftrace_event {
	int64_t ts;
	uint32_t cpu;
	int32_t tid;
	int32_t tgid;     /* 0: not known */
	uint32_t comm;    /* string, 0: not known */
	uint32_t name;    /* string */
	uint32_t release; /* of the kernel, major << 8 | minor; 0: not known */
	uint32_t
		machine; /* ELF's number of it (EM_), for the numbers of system calls; 0: not known */
	struct ky_ftrace_watched *watched; /* NULL: all tasks were recorded */
	const char *name_text;
	size_t name_bytes;
	const char *text; /* of a marker or print; else of the line after the name, or NULL */
	size_t text_bytes;
	uint32_t fields_count;
	struct ky_ftrace_field fields[KY_FTRACE_FIELDS_MAX];
};

/* Put the raw event, and the slices, counters, ... of a known one. */
void ky_ftrace_put(struct ky_trace *trace, struct ky_ftrace_event *event);

/* Put the meaning of a known event; do nothing for any other. */
void ky_ftrace_known(struct ky_trace *trace, const struct ky_ftrace_event *event);

/* Add a field, if there is room. */
void ky_ftrace_add_text(struct ky_ftrace_event *event, const char *key, size_t key_bytes,
			const char *text, size_t bytes);
/* Add a value of text: a number if it is one. */
void ky_ftrace_add_value(struct ky_ftrace_event *event, const char *key, size_t key_bytes,
			 const char *text, size_t bytes);

/* False without memory. */
bool ky_ftrace_watched_switch(struct ky_ftrace_watched *watched, int64_t ts,
			      const struct ky_switch *event);
bool ky_ftrace_watched_waking(struct ky_ftrace_watched *watched, int64_t ts, int32_t tid,
			      uint32_t comm, int32_t waker_tid);
void ky_ftrace_watched_add(struct ky_ftrace_watched *watched, int32_t tid);

const struct ky_ftrace_field *ky_ftrace_find(const struct ky_ftrace_event *event, const char *key);
/* Get a number; false when the field is missing or not a number. */
bool ky_ftrace_number(const struct ky_ftrace_event *event, const char *key, int64_t *number);
/* Return the string of a field; 0 when it is missing or not text. */
uint32_t ky_ftrace_string(struct ky_trace *trace, const struct ky_ftrace_event *event,
			  const char *key);

/* Return the name of a system call ("sys_read") by ELF's number of the machine (EM_), or NULL. */
const char *ky_ftrace_syscall_name(uint32_t machine, int64_t number);

/* ---- lines of text ---- */

/*
 * Lines of ftrace's text: of tracefs's trace and trace_pipe, of trace-cmd report, of atrace, and
 * of the systemTraceEvents of a Chrome trace.
 */

/* Read one line, without its newline. at is its place in the input. Lines that are no events are counted. */
void ky_ftrace_text_line(struct ky_trace *trace, const char *line, size_t bytes, uint64_t at);
/* Report whether it is an event's line, for probing. */
bool ky_ftrace_text_is_line(const char *line, size_t bytes);

/* Lines of `ps` that atrace and systrace append. A zeroed one begins. */
struct ky_ftrace_dump {
	enum {
		KY_DUMP_NONE,
		KY_DUMP_LONG, /* USER PID PPID VSZ RSS WCHAN PC S NAME COMM */
		KY_DUMP_SHORT /* USER PID TID CMD */
	} form;
};
/* Report whether the line belonged to it. */
bool ky_ftrace_dump_line(struct ky_trace *trace, struct ky_ftrace_dump *dump, const char *line,
			 size_t bytes);

/* ---- lines of the function_graph tracer: ftrace_graph.c ---- */

struct ky_ftrace_graph_cpu;

/* A zeroed one begins. */
struct ky_ftrace_graph {
	struct ky_ftrace_graph_cpu *cpus;
	uint32_t cpus_room;
};

/* Read a line; false when it is not of that tracer. */
bool ky_ftrace_graph_line(struct ky_trace *trace, struct ky_ftrace_graph *graph, const char *line,
			  size_t bytes);
void ky_ftrace_graph_end(struct ky_ftrace_graph *graph);

#endif
