/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h: the snapshots of a capture: instants that say why and when the recorder kept what it had. They are events
 * of the trace as all others, so any format carries them.
 */
#ifndef KY_QUERY_SNAPSHOT_H
#define KY_QUERY_SNAPSHOT_H

#include "model/trace.h"

/* The first snapshot among the slices from this one on, or KY_NONE. */
uint32_t ky_snapshot_next(const struct ky_trace *trace, uint32_t slice);
/* "trigger", ...; NULL when it is not there. */
const char *ky_snapshot_text(const struct ky_trace *trace, uint32_t slice, const char *key);
/* "pid", "tid", "from", "to"; -1 when it is not there. */
int64_t ky_snapshot_number(const struct ky_trace *trace, uint32_t slice, const char *key);

#endif
