/* SPDX-License-Identifier: MIT */
/*
 * ftrace_text.h: lines of ftrace's text: of tracefs's trace and trace_pipe, of trace-cmd report, of atrace, and
 * of the systemTraceEvents of a Chrome trace.
 */
#ifndef KY_FORMATS_FTRACE_FTRACE_TEXT_H
#define KY_FORMATS_FTRACE_FTRACE_TEXT_H

#include "formats/ftrace/ftrace_event.h"
#include "model/kernel.h"

/* Read one line, without its newline. at is its place in the input. Lines that are no events are counted. */
void ky_ftrace_text_line(struct ky_trace *trace, const char *line, size_t bytes, uint64_t at);
/* Report whether it is an event's line, for probing. */
bool ky_ftrace_text_is_line(const char *line, size_t bytes);

/* The fields of what follows an event's name: ftrace_payload.c. */
void ky_ftrace_payload(struct ky_ftrace_event *event, const char *text, size_t bytes);

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
