/* SPDX-License-Identifier: MIT */
/*
 * perf_map.h: the lines of a perf map (perf-PID.map): "START SIZE name", numbers in hexadecimal. Where
 * ranges overlap, the later line holds.
 */
#ifndef KY_PROCESS_PERF_MAP_H
#define KY_PROCESS_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_perf_map_line {
	uint64_t start;
	uint64_t bytes;
	const char *name;
	size_t name_bytes;
};

/* Parse one line, without its newline; false when it has another form. */
bool ky_perf_map_line(const char *text, size_t bytes, struct ky_perf_map_line *line);

/* Called with each line and its place; line is NULL when it has another form. */
typedef void (*ky_perf_map_fn)(void *context, uint64_t at, const struct ky_perf_map_line *line);
/* Read all lines of a text. */
void ky_perf_map_lines(const char *text, size_t bytes, ky_perf_map_fn line, void *context);

#endif
