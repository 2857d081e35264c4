/* SPDX-License-Identifier: MIT */
/*
 * clock.h: convert ticks to nanoseconds.
 *
 * The drum holds readings: the counter and the system's clocks, read at one moment. A tick's time is interpolated between
 * the two readings around it. A tick is converted only when there is a reading after it, so all that convert it (several
 * sessions, a reader afterwards) get the same nanosecond, and nobody has to know the counter's true rate.
 */
#ifndef KY_CORE_CLOCK_H
#define KY_CORE_CLOCK_H

#include "core/drum.h"
#include "core/event.h"

__extension__ typedef unsigned __int128 ky_u128;

/*
 * Add a reading to the drum when the last is old enough, or always when forced. Do nothing while another thread does so,
 * unless forced. Signal-safe.
 */
void ky_clock_take(struct ky_drum *drum, bool force);

/* Add this reading, if it comes after the last. The caller has the clock's lock, or the drum alone. */
void ky_clock_put(struct ky_drum *drum, const struct ky_drum_reading *reading);

/* Read the drum's counter and the system's clocks. */
struct ky_drum_reading ky_clock_read(const struct ky_drum *drum);

/*
 * A reader's copy of the readings. Invariants: count <= room; ticks strictly increase, boottime_ns never decreases;
 * base and rate belong to the segment [from_ticks, to_ticks) while count is count_then.
 */
struct ky_clock_map {
	struct ky_tick_reading *readings;
	uint32_t count;
	uint32_t room;
	uint64_t nominal; /* the rate when the readings do not show it; 0 if not known */
	/* The segment used last: between two readings, or from the last one on. */
	uint32_t count_then;           /* readings when it was chosen */
	uint64_t from_ticks, to_ticks; /* for which ticks it holds */
	uint64_t base_ticks, base_ns;  /* a reading of it */
	uint64_t rate;                 /* nanoseconds per tick, times KY_CLOCK_RATE_ONE */
};
#define KY_CLOCK_RATE_ONE (UINT64_C(1) << 32)

/* Bring the copy up to date. Return 0 or -ENOMEM. */
struct ky_drum_view;
int ky_clock_map_update(struct ky_clock_map *map, const struct ky_drum_view *view);
/* Append a reading if it comes after the last. Return 0 or -ENOMEM. */
int ky_clock_map_add(struct ky_clock_map *map, const struct ky_tick_reading *reading);
void ky_clock_map_free(struct ky_clock_map *map);
/* Make the segment that holds the tick the one used last. The map has a reading. */
void ky_clock_choose_segment(struct ky_clock_map *map, uint64_t ticks);
/*
 * Return the CLOCK_BOOTTIME of a tick. After the last reading it is extrapolated by the rate of the last while: the last
 * two readings may be too close together to show the rate.
 */
static inline uint64_t ky_clock_map_ns(struct ky_clock_map *map, uint64_t ticks)
{
	if (map->count == 0)
		return 0;
	/* A new reading ends the last segment. */
	if (ticks < map->from_ticks || ticks >= map->to_ticks || map->count != map->count_then)
		ky_clock_choose_segment(map, ticks);
	if (ticks >= map->base_ticks)
		return map->base_ns + (uint64_t)((ky_u128)(ticks - map->base_ticks) * map->rate /
						 KY_CLOCK_RATE_ONE);
	const uint64_t back =
		(uint64_t)((ky_u128)(map->base_ticks - ticks) * map->rate / KY_CLOCK_RATE_ONE);
	return back < map->base_ns ? map->base_ns - back : 0;
}
/* Report whether the readings are far enough apart to show the counter's rate. */
bool ky_clock_has_rate(const struct ky_clock_map *map);
/* Return the ticks of the last reading: earlier ones can be converted. */
uint64_t ky_clock_horizon(const struct ky_clock_map *map);
/* Return the counter's approximate rate, 0 if not known. */
uint64_t ky_clock_ticks_per_s(const struct ky_clock_map *map);
/* Convert CLOCK_MONOTONIC to CLOCK_BOOTTIME, by the last reading. */
uint64_t ky_clock_from_monotonic(const struct ky_clock_map *map, uint64_t monotonic_ns);

#endif
