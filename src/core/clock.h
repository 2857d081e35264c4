/* SPDX-License-Identifier: MIT */
/*
 * clock.h: from ticks to nanoseconds.
 *
 * The drum holds samples: the counter and the system's clocks read at one moment. A tick's time is
 * interpolated between the two samples around it. A tick is converted only when there is a sample
 * after it, so everybody who converts it (several sessions, a reader afterwards) gets the same
 * nanosecond, and the counter's true rate never has to be known.
 */
#ifndef KY_CORE_CLOCK_H
#define KY_CORE_CLOCK_H

#include "core/drum.h"
#include "core/event.h"

__extension__ typedef unsigned __int128 ky_u128;

/*
 * Adds a sample to the drum: when the last is old enough, or always when forced. Signal-safe; does
 * nothing when somebody else is at it and it is not forced.
 */
void ky_clock_take(struct ky_drum *drum, bool force);

/* The drum's counter and the system's clocks, now. */
struct ky_drum_reading ky_clock_read(const struct ky_drum *drum);

/* Copies of the samples, for one reader. */
struct ky_clock_map {
	struct ky_tick_reading *readings;
	uint32_t count;
	uint32_t room;
	uint64_t nominal; /* the rate where the samples do not tell; 0 is not known */
	/* The segment used last: between two samples, or from the last one on. */
	uint32_t count_then;           /* samples when it was chosen */
	uint64_t from_ticks, to_ticks; /* for which ticks it holds */
	uint64_t base_ticks, base_ns;  /* a sample of it */
	uint64_t rate;                 /* nanoseconds per tick, times KY_CLOCK_RATE_ONE */
};
#define KY_CLOCK_RATE_ONE (UINT64_C(1) << 32)

/* Brings the copy up to date. 0, or -ENOMEM. */
struct ky_drum_view;
int ky_clock_map_update(struct ky_clock_map *map, const struct ky_drum_view *view);
/* Appends one sample if it comes after the last. 0, or -ENOMEM. */
int ky_clock_map_add(struct ky_clock_map *map, const struct ky_tick_reading *sample);
void ky_clock_map_free(struct ky_clock_map *map);
/* Makes the segment that holds the tick the one used last. There is a sample. */
void ky_clock_choose_segment(struct ky_clock_map *map, uint64_t ticks);
/*
 * CLOCK_BOOTTIME of a tick. What is after the last sample is extrapolated by the rate of the samples
 * of the last while, for the last two may lie too close together to tell it.
 */
static inline uint64_t ky_clock_ns(struct ky_clock_map *map, uint64_t ticks)
{
	if (map->count == 0)
		return 0;
	/* With a new sample the last segment ends there. */
	if (ticks < map->from_ticks || ticks >= map->to_ticks || map->count != map->count_then)
		ky_clock_choose_segment(map, ticks);
	if (ticks >= map->base_ticks)
		return map->base_ns + (uint64_t)((ky_u128)(ticks - map->base_ticks) * map->rate /
						 KY_CLOCK_RATE_ONE);
	const uint64_t back =
		(uint64_t)((ky_u128)(map->base_ticks - ticks) * map->rate / KY_CLOCK_RATE_ONE);
	return back < map->base_ns ? map->base_ns - back : 0;
}
/* Whether the samples are far enough apart to tell the counter's rate. */
bool ky_clock_tells_rate(const struct ky_clock_map *map);
/* The ticks of the last sample: what came before can be converted. */
uint64_t ky_clock_horizon(const struct ky_clock_map *map);
/* Roughly, for information. */
uint64_t ky_clock_ticks_per_s(const struct ky_clock_map *map);
/* CLOCK_BOOTTIME for a CLOCK_MONOTONIC time, by the samples. */
uint64_t ky_clock_from_monotonic(const struct ky_clock_map *map, uint64_t monotonic_ns);

#endif
