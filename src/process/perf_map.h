/* SPDX-License-Identifier: MIT */
/*
 * perf_map.h: the lines of a perf map (perf-PID.map): "START SIZE name", numbers in hexadecimal. Where
 * ranges overlap, the later line holds.
 */
#ifndef KY_PROCESS_PERF_MAP_H
#define KY_PROCESS_PERF_MAP_H

#include "formats/input.h"
#include "model/trace.h"

struct ky_perf_map_line {
	uint64_t start;
	uint64_t bytes;
	const char *name;
	size_t name_bytes;
};

typedef void (*ky_perf_map_fn)(void *context, const struct ky_perf_map_line *line);

/* Takes one line apart, without its newline; false when it is none. */
bool ky_perf_map_line(const char *text, size_t bytes, struct ky_perf_map_line *line);
/* All lines of an input; how many were none is counted in the trace's problems. 0 or -errno of the input. */
int ky_perf_map_read(struct ky_input *input, struct ky_trace *trace, ky_perf_map_fn line,
		     void *context);

#endif
