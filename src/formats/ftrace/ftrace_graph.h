/* SPDX-License-Identifier: MIT */
/*
 * ftrace_graph.h: lines of ftrace's function_graph tracer.
 */
#ifndef KY_FORMATS_FTRACE_FTRACE_GRAPH_H
#define KY_FORMATS_FTRACE_FTRACE_GRAPH_H

#include "model/kernel.h"

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
