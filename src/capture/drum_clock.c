/* SPDX-License-Identifier: MIT */
/*
 * drum_clock.c: one reading for all drums, ten times a second. Times after the last are
 * extrapolated, which is right to nanoseconds over a tenth of a second. Lists are bounded: when one
 * is full, every second reading of its older half is removed.
 */
#include "capture/drum_clock.h"

#include "os/os.h"
#include "os/ticks.h"
#include "process/drum_find.h"

#include <string.h>
#include <time.h>

#define EVERY_NS UINT64_C(100000000)
#define NEW_NS UINT64_C(1000000)
#define SAMPLES_MAX 1024u
/* Two readings so far apart give the counter's rate well enough to begin with. */
#define FIRST_NS 5000000
/* How far back of our readings a new drum's list begins: enough for the rate. */
#define BASELINE_NS UINT64_C(400000000)

static void thin(struct ky_clock_map *map)
{
	if (map->count < SAMPLES_MAX)
		return;
	const uint32_t half = map->count / 2;
	uint32_t to = 1;
	for (uint32_t from = 2; from < half; from += 2)
		map->readings[to++] = map->readings[from];
	for (uint32_t from = half; from < map->count; from++)
		map->readings[to++] = map->readings[from];
	map->count = to;
}

static int add(struct ky_clock_map *map, const struct ky_tick_reading *sample)
{
	thin(map);
	return ky_clock_map_add(map, sample);
}

static int take(struct ky_drum_clocks *clocks)
{
	const struct ky_tick_reading monotonic = ky_tick_source_now(KY_TICKS_MONOTONIC);
	int error = add(&clocks->monotonic, &monotonic);
	if (error == 0 && ky_cpu_tick_source() != KY_TICKS_NONE) {
		const struct ky_tick_reading cpu =
			ky_tick_source_now((uint32_t)ky_cpu_tick_source());
		error = add(&clocks->cpu, &cpu);
	}
	return error;
}

int ky_drum_clocks_open(struct ky_drum_clocks *clocks)
{
	memset(clocks, 0, sizeof(*clocks));
	clocks->monotonic.nominal = KY_CLOCK_RATE_ONE;
	int error = take(clocks);
	nanosleep(&(struct timespec){.tv_nsec = FIRST_NS}, NULL);
	if (error == 0)
		error = take(clocks);
	if (error)
		ky_drum_clocks_close(clocks);
	return error;
}

void ky_drum_clocks_close(struct ky_drum_clocks *clocks)
{
	ky_clock_map_free(&clocks->cpu);
	ky_clock_map_free(&clocks->monotonic);
}

bool ky_drum_clocks_round(struct ky_drum_clocks *clocks, bool now)
{
	const struct ky_clock_map *map = &clocks->monotonic;
	const uint64_t last_ns = map->readings[map->count - 1].boottime_ns;
	const uint64_t every_ns = now ? NEW_NS : EVERY_NS;
	return ky_os_boottime() - last_ns >= every_ns && take(clocks) == 0;
}

const struct ky_clock_map *ky_drum_clocks_of(const struct ky_drum_clocks *clocks,
					     uint32_t tick_source)
{
	if (!ky_tick_source_is_here(tick_source))
		return NULL;
	return tick_source == KY_TICKS_MONOTONIC ? &clocks->monotonic : &clocks->cpu;
}

/* Return the first of our readings that a new list needs. */
static uint32_t baseline(const struct ky_clock_map *ours)
{
	uint32_t at = ours->count - 1;
	const uint64_t last_ns = ours->readings[at].boottime_ns;
	while (at > 0 && last_ns - ours->readings[at].boottime_ns < BASELINE_NS)
		at--;
	return at;
}

/* Where processes come and go, readings are close together: each list needs few of them. */
static bool is_apart(const struct ky_clock_map *map, const struct ky_clock_map *ours, uint32_t at)
{
	return at + 1 == ours->count || map->count == 0 ||
	       ours->readings[at].boottime_ns >=
		       map->readings[map->count - 1].boottime_ns + EVERY_NS;
}

int ky_drum_clock_begin(struct ky_clock_map *map, const struct ky_drum_view *view,
			const struct ky_clock_map *ours)
{
	struct ky_clock_map theirs = {0};
	const uint32_t first = baseline(ours);
	ky_clock_map_free(map);
	map->nominal = ours->nominal;
	int error = ky_clock_map_update(&theirs, view);
	for (uint32_t i = 0; error == 0 && i < theirs.count; i++)
		if (ky_tick_source_same_boot(&theirs.readings[i], &ours->readings[first]))
			error = add(map, &theirs.readings[i]);
	for (uint32_t i = first; error == 0 && i < ours->count; i++)
		if (is_apart(map, ours, i))
			error = add(map, &ours->readings[i]);
	ky_clock_map_free(&theirs);
	return error;
}

int ky_drum_clock_follow(struct ky_clock_map *map, const struct ky_clock_map *ours)
{
	const uint64_t have = ky_clock_horizon(map);
	uint32_t from = ours->count;
	while (from > 0 && ours->readings[from - 1].ticks > have)
		from--;
	int error = 0;
	for (; error == 0 && from < ours->count; from++)
		error = add(map, &ours->readings[from]);
	return error;
}
