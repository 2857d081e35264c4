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
/* Return the text argument "trigger", ..., or NULL. */
const char *ky_snapshot_text(const struct ky_trace *trace, uint32_t slice, const char *key);
/* Return the number argument "pid", "tid", "from" or "to", or -1. */
int64_t ky_snapshot_number(const struct ky_trace *trace, uint32_t slice, const char *key);

#endif
