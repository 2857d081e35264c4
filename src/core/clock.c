/* SPDX-License-Identifier: MIT */
/*
 * clock.c: taking samples and interpolating between them.
 *
 * The list in the drum only grows at its end. When it is full, every second sample of the older half
 * goes: old ticks then lie in a longer segment, which moves them by nanoseconds at most, and readers
 * that converted them before do not do so again. seq is odd meanwhile.
 */
#include "core/clock.h"
#include "os/os.h"

#include "core/drum_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Two samples closer than this say little about the rate. */
#define SPACING_NS UINT64_C(4000000)
/* How far back the rate for what comes after the last sample is measured. */
#define BASELINE_NS UINT64_C(200000000)

/* The closest of a few readings: the counter right before and right after tells how close. */
struct ky_drum_reading ky_clock_read(const struct ky_drum *drum)
{
	struct ky_drum_reading best = {0};
	uint64_t best_width = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		const uint64_t before = ky_drum_ticks(drum);
		const uint64_t boottime = ky_os_boottime();
		const uint64_t after = ky_drum_ticks(drum);
		if (after - before >= best_width)
			continue;
		best_width = after - before;
		best.ticks = before + (after - before) / 2;
		best.boottime_ns = boottime;
	}
	const uint64_t boottime = ky_os_boottime();
	const uint64_t monotonic = ky_os_monotonic();
	const uint64_t realtime = ky_os_realtime();
	best.monotonic_ns = monotonic - (boottime - best.boottime_ns);
	best.realtime_ns = realtime - (boottime - best.boottime_ns);
	return best;
}

/* Others may be reading, or this be the last that the process does: without ticks it is none. */
static void put_sample(struct ky_drum_reading *to, const struct ky_drum_reading *from)
{
	KYMO_I_STORE(&to->ticks, 0);
	KY_STORE_FENCE();
	KYMO_I_STORE(&to->boottime_ns, from->boottime_ns);
	KYMO_I_STORE(&to->monotonic_ns, from->monotonic_ns);
	KYMO_I_STORE(&to->realtime_ns, from->realtime_ns);
	__atomic_store_n(&to->ticks, from->ticks, __ATOMIC_RELEASE);
}

/* False when it was changed meanwhile. No two samples have the same ticks. */
static bool get_sample(struct ky_tick_reading *to, const struct ky_drum_reading *from)
{
	/* Acquire: pairs with the release above. */
	to->ticks = __atomic_load_n(&from->ticks, __ATOMIC_ACQUIRE);
	to->boottime_ns = KYMO_I_LOAD(&from->boottime_ns);
	to->monotonic_ns = KYMO_I_LOAD(&from->monotonic_ns);
	to->realtime_ns = KYMO_I_LOAD(&from->realtime_ns);
	KY_LOAD_FENCE();
	return to->ticks != 0 && KYMO_I_LOAD(&from->ticks) == to->ticks;
}

static void thin(struct ky_drum_clock *clock)
{
	const uint32_t half = clock->count / 2;
	__atomic_store_n(&clock->seq, clock->seq + 1, __ATOMIC_RELEASE);
	uint32_t to = 1; /* the first stays */
	for (uint32_t from = 2; from < half; from += 2)
		put_sample(&clock->readings[to++], &clock->readings[from]);
	for (uint32_t from = half; from < clock->count; from++)
		put_sample(&clock->readings[to++], &clock->readings[from]);
	__atomic_store_n(&clock->count, to, __ATOMIC_RELEASE);
	__atomic_store_n(&clock->seq, clock->seq + 1, __ATOMIC_RELEASE);
}

static void add_sample(struct ky_drum *drum, bool force)
{
	struct ky_drum_clock *clock = drum->clock;
	const uint32_t max = drum->header->clock_max;
	uint32_t count = clock->count;
	const struct ky_drum_reading *last =
		count && count <= max ? &clock->readings[count - 1] : NULL;
	if (last && !force && ky_os_boottime() - last->boottime_ns < SPACING_NS)
		return;
	const struct ky_drum_reading sample = ky_clock_read(drum);
	if (last && (sample.ticks <= last->ticks || sample.boottime_ns < last->boottime_ns))
		return;
	if (count >= max) {
		thin(clock);
		count = clock->count;
	}
	if (count >= max)
		return;
	put_sample(&clock->readings[count], &sample);
	/* Release: the sample is whole before it counts. */
	__atomic_store_n(&clock->count, count + 1, __ATOMIC_RELEASE);
}

void ky_clock_take(struct ky_drum *drum, bool force)
{
	/* A holder is done within microseconds; one that never is (a scribbled drum) is passed over. */
	for (int tries = 0; __atomic_exchange_n(&drum->clock->lock, 1, __ATOMIC_ACQUIRE) != 0;
	     tries++) {
		if (!force || tries > 1 << 16)
			return;
		ky_cpu_relax();
	}
	add_sample(drum, force);
	__atomic_store_n(&drum->clock->lock, 0, __ATOMIC_RELEASE);
}

static int make_room(struct ky_clock_map *map, uint32_t count)
{
	if (count <= map->room)
		return 0;
	struct ky_tick_reading *grown = realloc(map->readings, count * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	map->readings = grown;
	map->room = count;
	return 0;
}

/* The list stays ordered whatever the drum holds. */
int ky_clock_map_add(struct ky_clock_map *map, const struct ky_tick_reading *sample)
{
	if (map->count) {
		const struct ky_tick_reading *last = &map->readings[map->count - 1];
		if (sample->ticks <= last->ticks || sample->boottime_ns < last->boottime_ns)
			return 0;
	}
	if (map->count == map->room && make_room(map, map->room ? map->room * 2 : 64) != 0)
		return -ENOMEM;
	map->readings[map->count++] = *sample;
	return 0;
}

/* Only the new ones at the end matter: looks back to where the copy ends. */
static int add_newer(struct ky_clock_map *map, const struct ky_drum_reading *samples,
		     uint32_t count)
{
	const uint64_t have = ky_clock_horizon(map);
	uint32_t from = count;
	while (from > 0 && (!map->count || KYMO_I_LOAD(&samples[from - 1].ticks) > have))
		from--;
	for (uint32_t i = from; i < count; i++) {
		struct ky_tick_reading sample;
		if (get_sample(&sample, &samples[i]) && ky_clock_map_add(map, &sample) != 0)
			return -ENOMEM;
	}
	return 0;
}

#define TRIES 100

int ky_clock_map_update(struct ky_clock_map *map, const struct ky_drum_view *view)
{
	const struct ky_drum_clock *clock = view->clock;
	int error = 0;
	for (int tries = 0; tries < TRIES && error == 0; tries++) {
		const uint32_t had = map->count;
		const uint32_t seq = __atomic_load_n(&clock->seq, __ATOMIC_ACQUIRE);
		uint32_t count = __atomic_load_n(&clock->count, __ATOMIC_ACQUIRE);
		count = count < view->header.clock_max ? count : view->header.clock_max;
		/* Killed while it moved them: the whole ones are all there is. */
		const bool dead = tries == TRIES - 1 && map->count == 0;
		if (seq & 1 && !dead)
			continue;
		error = add_newer(map, clock->readings, count);
		KY_LOAD_FENCE();
		if (dead || __atomic_load_n(&clock->seq, __ATOMIC_RELAXED) == seq)
			break;
		map->count = had; /* some may have been passed over while they moved */
	}
	return error;
}

void ky_clock_map_free(struct ky_clock_map *map)
{
	free(map->readings);
	memset(map, 0, sizeof(*map));
}

uint64_t ky_clock_horizon(const struct ky_clock_map *map)
{
	return map->count ? map->readings[map->count - 1].ticks : 0;
}

bool ky_clock_tells_rate(const struct ky_clock_map *map)
{
	return map->count > 1 &&
	       map->readings[map->count - 1].boottime_ns - map->readings[0].boottime_ns >=
		       SPACING_NS;
}

static uint64_t rate_between(const struct ky_tick_reading *a, const struct ky_tick_reading *b)
{
	return (uint64_t)((ky_u128)(b->boottime_ns - a->boottime_ns) * KY_CLOCK_RATE_ONE /
			  (b->ticks - a->ticks));
}

/* The rate at the end, over a time long enough for the readings' own jitter not to count. */
static uint64_t last_rate(const struct ky_clock_map *map)
{
	const struct ky_tick_reading *last = &map->readings[map->count - 1];
	uint32_t from = map->count - 1;
	while (from > 0 && last->boottime_ns - map->readings[from].boottime_ns < BASELINE_NS)
		from--;
	if (map->count < 2 || (map->nominal && !ky_clock_tells_rate(map)))
		return map->nominal;
	return rate_between(&map->readings[from], last);
}

/* The sample at or before the tick, or the first. */
static uint32_t find_sample(const struct ky_clock_map *map, uint64_t ticks)
{
	uint32_t low = 0, high = map->count;
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;
		if (map->readings[middle].ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void ky_clock_choose_segment(struct ky_clock_map *map, uint64_t ticks)
{
	const uint32_t at = find_sample(map, ticks);
	const struct ky_tick_reading *sample = &map->readings[at];
	const bool last = at + 1 == map->count;
	map->count_then = map->count;
	map->from_ticks = at == 0 ? 0 : sample->ticks;
	map->to_ticks = last ? UINT64_MAX : sample[1].ticks;
	map->base_ticks = sample->ticks;
	map->base_ns = sample->boottime_ns;
	map->rate = last ? last_rate(map) : rate_between(sample, sample + 1);
}

uint64_t ky_clock_ticks_per_s(const struct ky_clock_map *map)
{
	if (map->count < 2)
		return 0;
	const struct ky_tick_reading *a = &map->readings[0], *b = &map->readings[map->count - 1];
	if (b->boottime_ns == a->boottime_ns)
		return 0;
	return (uint64_t)((ky_u128)(b->ticks - a->ticks) * 1000000000u /
			  (b->boottime_ns - a->boottime_ns));
}

uint64_t ky_clock_from_monotonic(const struct ky_clock_map *map, uint64_t monotonic_ns)
{
	if (map->count == 0)
		return monotonic_ns;
	const struct ky_tick_reading *last = &map->readings[map->count - 1];
	return monotonic_ns + (last->boottime_ns - last->monotonic_ns);
}
