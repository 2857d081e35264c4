/* SPDX-License-Identifier: MIT */
/*
 * stream_place.h: hand over the place of a stream to another copy of the library in the process. The copy whose session
 * KYMO_TRACE started may be unloaded, and its code with it: the places where it was in each ring are in the drum, and
 * another copy goes on from there. No event is read twice; one that was overwritten in between is counted.
 */
#ifndef KY_CORE_STREAM_PLACE_H
#define KY_CORE_STREAM_PLACE_H

#include "core/drum.h"
#include "core/stream.h"

/* Store where the stream is. All that it has read was delivered (ky_stream_read_all()). */
void ky_stream_place_leave(const struct ky_stream *stream, struct ky_drum *drum);
/* Continue a stream that was just opened where the last one was left. */
void ky_stream_place_resume(struct ky_stream *stream, const struct ky_drum *drum);
/* Report whether there are events after the places. */
bool ky_stream_place_news(const struct ky_drum *drum);

#endif
