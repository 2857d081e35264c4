/* SPDX-License-Identifier: MIT */
/*
 * follow.h: reading the process's own drum while it is written, for sessions and subscribers alike: when
 * to sample the clocks, how far behind to stay, when to hurry.
 */
#ifndef KY_SINK_FOLLOW_H
#define KY_SINK_FOLLOW_H

#include "core/drum.h"
#include "core/stream.h"

/* Takes a sample of the clocks when it is time, or when the rings fill up. */
void ky_follow_sample(struct ky_drum *drum, const struct ky_stream *stream);
/* Hands out what came before the last sample, less the time an event may be on its way. */
int ky_follow_news(struct ky_stream *stream);
/* Hands out all that was recorded before the call. */
int ky_follow_all(struct ky_drum *drum, struct ky_stream *stream);
/* Whether the rings are so full that there is no time for a nap. */
bool ky_follow_hurry(const struct ky_stream *stream);

#endif
