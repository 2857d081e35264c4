/* SPDX-License-Identifier: MIT */
/* follow.c: an event may take a while into its ring while later ones of other threads are in already. */
#include "sink/follow.h"

#define LAG_PER_S 1000u /* a thousandth of a second */
#define HURRY_PERCENT 10u

void ky_follow_sample(struct ky_drum *drum, const struct ky_stream *stream)
{
	ky_clock_take(drum, ky_follow_hurry(stream));
}

int ky_follow_news(struct ky_stream *stream)
{
	return ky_stream_read(stream, ky_clock_ticks_per_s(&stream->clock) / LAG_PER_S);
}

int ky_follow_all(struct ky_drum *drum, struct ky_stream *stream)
{
	const uint64_t now = ky_drum_ticks(drum);
	ky_clock_take(drum, true);
	const int error = ky_stream_read(stream, 0);
	/* No sample could be had (a thread holds its lock and sleeps): then without. */
	if (error == 0 && ky_clock_horizon(&stream->clock) < now)
		return ky_stream_read_all(stream);
	return error;
}

bool ky_follow_hurry(const struct ky_stream *stream)
{
	return ky_stream_pressure(stream) > HURRY_PERCENT;
}
