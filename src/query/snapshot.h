/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h: the snapshots of a capture: instants with the reason and time at which the recorder
 * kept its buffers. They are ordinary events of the trace, so any format carries them.
 */
#ifndef KY_QUERY_SNAPSHOT_H
#define KY_QUERY_SNAPSHOT_H

#include "model/trace.h"

/* Return the first snapshot among the slices from this one on, or KY_NONE. */
uint32_t ky_snapshot_next(const struct ky_trace *trace, uint32_t slice);
bool ky_snapshot_is(const struct ky_trace *trace, uint32_t slice);
/* Return the text argument "trigger", "stack", ..., or NULL. */
const char *ky_snapshot_text(const struct ky_trace *trace, uint32_t slice, const char *key);
/* Return the number argument "pid", "tid", "from" or "to", or -1. */
int64_t ky_snapshot_number(const struct ky_trace *trace, uint32_t slice, const char *key);

/* A line of a snapshot's stack: "parse_header(char const*) (http.c:112)". Texts lie in it. */
struct ky_snapshot_frame {
	const char *line, *name, *file, *module;
	size_t line_bytes, name_bytes, file_bytes, module_bytes;
	uint32_t number; /* of the line in the file; 0: unknown */
};
/* Take the first line of a stack and move behind it; false at the end. */
bool ky_snapshot_frame(const char **stack, struct ky_snapshot_frame *frame);

#endif
