/* SPDX-License-Identifier: MIT */
/*
 * drum_open_spans.h: the spans of a drum that were open when a window of time began.
 *
 *   ring    │ begin A   begin B   end B   begin C │ window: ... end C ... end A
 *                                                 ▲ here A and C begin once more
 *
 * The end of a function's call does not name the function: an end whose beginning is not in the file would have no name.
 * What the ring no longer has stays unknown.
 */
#ifndef KY_CAPTURE_DRUM_OPEN_SPANS_H
#define KY_CAPTURE_DRUM_OPEN_SPANS_H

#include "core/stream.h"

/*
 * Hand a piece with the beginnings, at from_ns, to the stream's sink for each ring that has any. To be called after the
 * window was read, which must not wait. Spans of trace points with arguments are left out. Return 0 or -ENOMEM.
 */
int ky_drum_before(struct ky_stream *stream, uint64_t from_ns);

#endif
