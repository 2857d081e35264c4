/* SPDX-License-Identifier: MIT */
/*
 * clock.c: take readings of the clocks and interpolate between them.
 *
 * The list in the drum only grows at its end. When it is full, every second reading of the older half is removed: old
 * ticks are then in a longer segment, which moves them by nanoseconds at most, and readers that converted them before do
 * not do so again. seq is odd during that.
 */
#include "core/clock.h"

#include "core/assert.h"
#include "core/drum_view.h"
#include "core/parked.h"
#include "core/slots.h"
#include "os/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Two readings closer than this say little about the rate. */
#define SPACING_NS UINT64_C(4000000)
/* How often the clocks are read even when no session runs. */
#define EVERY_NS UINT64_C(100000000)
/* A shorter suspension is not noticed. */
#define EPOCH_NS UINT64_C(50000000)
/* How far back the rate after the last reading is measured. */
#define BASELINE_NS UINT64_C(200000000)

/* Take the best of a few tries: the counter right before and right after shows how close they are. */
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

/*
 * Readers may look at any moment, and the process may end at any: a reading without ticks does not count. The release
 * store pairs with the acquire load in get_reading(); the fence keeps the zero before the rest.
 */
static void put_reading(struct ky_drum_reading *to, const struct ky_drum_reading *from)
{
	KYMO_I_STORE(&to->ticks, 0);
	KY_STORE_FENCE();
	KYMO_I_STORE(&to->boottime_ns, from->boottime_ns);
	KYMO_I_STORE(&to->monotonic_ns, from->monotonic_ns);
	KYMO_I_STORE(&to->realtime_ns, from->realtime_ns);
	__atomic_store_n(&to->ticks, from->ticks, __ATOMIC_RELEASE);
}

/* Copy a reading. Return false when it changed during the copy. No two readings have the same ticks. */
static bool get_reading(struct ky_tick_reading *to, const struct ky_drum_reading *from)
{
	/* Pairs with the release store in put_reading(). */
	to->ticks = __atomic_load_n(&from->ticks, __ATOMIC_ACQUIRE);
	to->boottime_ns = KYMO_I_LOAD(&from->boottime_ns);
	to->monotonic_ns = KYMO_I_LOAD(&from->monotonic_ns);
	to->realtime_ns = KYMO_I_LOAD(&from->realtime_ns);
	KY_LOAD_FENCE();
	return to->ticks != 0 && KYMO_I_LOAD(&from->ticks) == to->ticks;
}

/*
 * Remove every second reading of the older half. The release stores of seq and count pair with the acquire loads in
 * ky_clock_map_update(). seq is odd before a reading moves: put_reading()'s fence orders it before them.
 */
static void thin(struct ky_drum_clock *clock)
{
	const uint32_t half = clock->count / 2;
	__atomic_store_n(&clock->seq, clock->seq + 1, __ATOMIC_RELEASE);
	uint32_t to = 1; /* keep the first */
	for (uint32_t from = 2; from < half; from += 2)
		put_reading(&clock->readings[to++], &clock->readings[from]);
	for (uint32_t from = half; from < clock->count; from++)
		put_reading(&clock->readings[to++], &clock->readings[from]);
	__atomic_store_n(&clock->count, to, __ATOMIC_RELEASE);
	__atomic_store_n(&clock->seq, clock->seq + 1, __ATOMIC_RELEASE);
}

/* Set how many ticks make EVERY_NS: counters run at 25 MHz to 5 GHz. */
static void measure_rate(struct ky_drum_clock *clock, const struct ky_drum_reading *last,
			 const struct ky_drum_reading *now)
{
	const uint64_t ns = last ? now->boottime_ns - last->boottime_ns : 0;
	if (ns >= SPACING_NS)
		KYMO_I_STORE(&clock->every_ticks,
			     (uint64_t)((ky_u128)(now->ticks - last->ticks) * EVERY_NS / ns));
}

/*
 * The machine was suspended: CLOCK_BOOTTIME went on, CLOCK_MONOTONIC and perhaps the counter did not. Ticks before must
 * not be spread over that time. So the epoch before gets an end, at its own rate, right before the new reading.
 */
static bool end_epoch(const struct ky_drum_reading *last, const struct ky_drum_reading *now,
		      uint64_t every_ticks, struct ky_drum_reading *end)
{
	const uint64_t slept =
		(now->boottime_ns - last->boottime_ns) - (now->monotonic_ns - last->monotonic_ns);
	if (slept < EPOCH_NS || slept > INT64_MAX || every_ticks == 0 ||
	    now->ticks - last->ticks < 2)
		return false;
	*end = *last;
	end->ticks = now->ticks - 1;
	const uint64_t ran =
		(uint64_t)((ky_u128)(end->ticks - last->ticks) * EVERY_NS / every_ticks);
	/* The counter went on, too. */
	if (last->boottime_ns + ran + EPOCH_NS / 2 > now->boottime_ns)
		return false;
	end->boottime_ns += ran;
	end->monotonic_ns += ran;
	end->realtime_ns += ran;
	return true;
}

/*
 * The counter jumped ahead of the clocks, as when a virtual machine goes on elsewhere. Ticks before must not be pressed
 * into a moment: they end at their own rate, and what is between then and the new reading happened right before that.
 */
static bool end_jump(const struct ky_drum_reading *last, const struct ky_drum_reading *now,
		     uint64_t every_ticks, struct ky_drum_reading *end)
{
	const uint64_t ns = now->boottime_ns - last->boottime_ns;
	const uint64_t expected = (uint64_t)((ky_u128)ns * every_ticks / EVERY_NS);
	if (ns < SPACING_NS || expected > UINT64_MAX / 4 ||
	    now->ticks - last->ticks < 2 * expected + every_ticks)
		return false;
	*end = *now;
	end->ticks = last->ticks + expected;
	return true;
}

/* Report whether the rate is no guess: the last two readings have it, too, up to an eighth. */
static bool knows_rate(const struct ky_drum_clock *clock)
{
	if (clock->count < 2)
		return false;
	const struct ky_drum_reading *b = &clock->readings[clock->count - 1], *a = b - 1;
	const uint64_t ns = b->boottime_ns - a->boottime_ns, every = clock->every_ticks;
	const uint64_t ticks = (uint64_t)((ky_u128)ns * every / EVERY_NS);
	const uint64_t off = b->ticks - a->ticks - ticks + ticks / 8;
	return every && ns >= SPACING_NS && off <= ticks / 4;
}

/*
 * The counter went back: the kernel would not use it any more, and after that it shows no order. Go on with one that is made
 * of CLOCK_MONOTONIC, at the rate that the counter had, from where it would be now. All events take the slow path then.
 */
static void give_up(struct ky_drum *drum, const struct ky_drum_reading *last,
		    const struct ky_drum_reading *now)
{
	const uint64_t every = drum->clock->every_ticks ? drum->clock->every_ticks : EVERY_NS;
	const uint64_t ns = now->monotonic_ns - last->monotonic_ns;
	drum->made_ns = now->monotonic_ns;
	drum->made_ticks = last->ticks + (uint64_t)((ky_u128)ns * every / EVERY_NS) + 1;
	drum->made_rate = (every << 20) / EVERY_NS;
	/* Pairs with the acquire load in ky_drum_ticks(). */
	__atomic_store_n(&drum->ticks_inline, false, __ATOMIC_RELEASE);
}

static bool went_back(const struct ky_drum_reading *last, const struct ky_drum_reading *now)
{
	return last && now->ticks <= last->ticks &&
	       now->boottime_ns >= last->boottime_ns + SPACING_NS;
}

static void append(struct ky_drum *drum, const struct ky_drum_reading *reading)
{
	struct ky_drum_clock *clock = drum->clock;
	if (clock->count >= drum->header->clock_max)
		thin(clock);
	const uint32_t count = clock->count;
	if (count >= drum->header->clock_max)
		return;
	put_reading(&clock->readings[count], reading);
	/* Pairs with the acquire loads of count: the reading is complete before it counts. */
	__atomic_store_n(&clock->count, count + 1, __ATOMIC_RELEASE);
}

void ky_clock_put(struct ky_drum *drum, const struct ky_drum_reading *reading)
{
	struct ky_drum_clock *clock = drum->clock;
	const bool any = clock->count && clock->count <= drum->header->clock_max;
	const struct ky_drum_reading *last = any ? &clock->readings[clock->count - 1] : NULL;
	struct ky_drum_reading end;
	if (last && (reading->ticks <= last->ticks || reading->boottime_ns < last->boottime_ns))
		return;
	if (last && (end_epoch(last, reading, clock->every_ticks, &end) ||
		     (knows_rate(clock) && end_jump(last, reading, clock->every_ticks, &end))))
		append(drum, &end);
	else
		measure_rate(clock, last, reading);
	append(drum, reading);
}

static void add_reading(struct ky_drum *drum, bool force)
{
	struct ky_drum_clock *clock = drum->clock;
	const uint32_t max = drum->header->clock_max;
	const uint32_t count = clock->count;
	const struct ky_drum_reading *last =
		count && count <= max ? &clock->readings[count - 1] : NULL;
	if (last && !force && ky_os_boottime() - last->boottime_ns < SPACING_NS)
		return;
	struct ky_drum_reading reading = ky_clock_read(drum);
	if (drum->ticks_inline && went_back(last, &reading)) {
		give_up(drum, last, &reading);
		reading = ky_clock_read(drum);
	}
	/* Each time: a thread that was in the middle of an event goes back to the counter. */
	if (drum->made_rate)
		ky_slots_slow_only(true);
	ky_clock_put(drum, &reading);
}

/* Put the readings in order again that were being moved when their thread left. */
static void mend(struct ky_drum_clock *clock, uint32_t max)
{
	if (clock->seq % 2 == 0)
		return;
	uint32_t to = 0;
	for (uint32_t from = 0; from < clock->count && from < max; from++)
		if (clock->readings[from].ticks != 0 &&
		    (to == 0 || clock->readings[from].ticks > clock->readings[to - 1].ticks)) {
			const struct ky_drum_reading moved = clock->readings[from];
			put_reading(&clock->readings[to++], &moved);
		}
	__atomic_store_n(&clock->count, to, __ATOMIC_RELEASE);
	__atomic_store_n(&clock->seq, clock->seq + 1, __ATOMIC_RELEASE);
}

/* Take the lock, or report that another thread has it. The acquire pairs with the release store in ky_clock_take(). */
static bool try_lock(struct ky_drum *drum, uint32_t self, uintptr_t frame)
{
	struct ky_drum_clock *clock = drum->clock;
	uint32_t holder = 0;
	if (!__atomic_compare_exchange_n(&clock->lock, &holder, self, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED)) {
		/* A handler jumped out of this function, in this thread: see parked.h. */
		if (holder != self || !ky_parked_is_over(KYMO_I_LOAD(&clock->frame), frame, false))
			return false;
		mend(clock, drum->header->clock_max);
	}
	KYMO_I_STORE(&clock->frame, frame);
	return true;
}

void ky_clock_take(struct ky_drum *drum, bool force)
{
	/* A thread's own number, without a system call. */
	const uint32_t self = (uint32_t)((uintptr_t)&kymo_i_tls >> 4) | 1;
	/* The lock is held for microseconds; give up on one that is never released (a damaged drum). */
	for (int tries = 0; !try_lock(drum, self, KY_PARKED_FRAME()); tries++) {
		if (!force || tries > 1 << 16)
			return;
		ky_cpu_relax();
	}
	add_reading(drum, force);
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

/* Keep the list ordered whatever the drum holds. */
int ky_clock_map_add(struct ky_clock_map *map, const struct ky_tick_reading *reading)
{
	if (map->count) {
		const struct ky_tick_reading *last = &map->readings[map->count - 1];
		if (reading->ticks <= last->ticks || reading->boottime_ns < last->boottime_ns)
			return 0;
	}
	if (map->count == map->room && make_room(map, map->room ? map->room * 2 : 64) != 0)
		return -ENOMEM;
	map->readings[map->count++] = *reading;
	KY_ASSERT(map->count <= map->room);
	return 0;
}

/* Add the new readings at the end: look back to where the copy ends. */
static int add_newer(struct ky_clock_map *map, const struct ky_drum_reading *samples,
		     uint32_t count)
{
	const uint64_t have = ky_clock_horizon(map);
	uint32_t from = count;
	while (from > 0 && (!map->count || KYMO_I_LOAD(&samples[from - 1].ticks) > have))
		from--;
	for (uint32_t i = from; i < count; i++) {
		struct ky_tick_reading reading;
		if (get_reading(&reading, &samples[i]) && ky_clock_map_add(map, &reading) != 0)
			return -ENOMEM;
	}
	return 0;
}

#define TRIES 100

/* Return how many of the readings there are data for. */
static uint32_t with_data(const struct ky_drum_view *view, uint32_t count)
{
	const uint64_t at = view->header.clock_at + sizeof(struct ky_drum_clock);
	const uint64_t end = at + count * (uint64_t)sizeof(struct ky_drum_reading);
	return (uint32_t)((ky_drum_view_hole(view, at, end) - at) / sizeof(struct ky_drum_reading));
}

int ky_clock_map_update(struct ky_clock_map *map, const struct ky_drum_view *view)
{
	const struct ky_drum_clock *clock = view->clock;
	int error = 0;
	for (int tries = 0; tries < TRIES && error == 0; tries++) {
		const uint32_t had = map->count;
		/* Both pair with the release stores in thin() and add_reading(). */
		const uint32_t seq = __atomic_load_n(&clock->seq, __ATOMIC_ACQUIRE);
		uint32_t count = __atomic_load_n(&clock->count, __ATOMIC_ACQUIRE);
		count = count < view->header.clock_max ? count : view->header.clock_max;
		count = with_data(view, count);
		/* The process was killed while it moved them: take those that are complete. */
		const bool dead = tries == TRIES - 1 && map->count == 0;
		if (seq & 1 && !dead)
			continue;
		error = add_newer(map, clock->readings, count);
		/* The readings were copied before seq is read again. */
		KY_LOAD_FENCE();
		if (dead || __atomic_load_n(&clock->seq, __ATOMIC_RELAXED) == seq)
			break;
		map->count = had; /* some may have been skipped while they moved */
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

bool ky_clock_has_rate(const struct ky_clock_map *map)
{
	return map->count > 1 &&
	       map->readings[map->count - 1].boottime_ns - map->readings[0].boottime_ns >=
		       SPACING_NS;
}

static uint64_t rate_between(const struct ky_tick_reading *a, const struct ky_tick_reading *b)
{
	KY_ASSERT(a->ticks < b->ticks && a->boottime_ns <= b->boottime_ns);
	return (uint64_t)((ky_u128)(b->boottime_ns - a->boottime_ns) * KY_CLOCK_RATE_ONE /
			  (b->ticks - a->ticks));
}

/* Return the rate at the end, over a time long enough to make the readings' jitter small. */
static uint64_t last_rate(const struct ky_clock_map *map)
{
	const struct ky_tick_reading *last = &map->readings[map->count - 1];
	uint32_t from = map->count - 1;
	while (from > 0 && last->boottime_ns - map->readings[from].boottime_ns < BASELINE_NS)
		from--;
	if (map->count < 2 || (map->nominal && !ky_clock_has_rate(map)))
		return map->nominal;
	return rate_between(&map->readings[from], last);
}

/* Return the reading at or before the tick, or the first. */
static uint32_t find_reading(const struct ky_clock_map *map, uint64_t ticks)
{
	uint32_t low = 0, high = map->count;
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;
		if (map->readings[middle].ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	KY_ASSERT(low < map->count && (low == 0 || map->readings[low].ticks <= ticks));
	return low;
}

void ky_clock_choose_segment(struct ky_clock_map *map, uint64_t ticks)
{
	KY_ASSERT(map->count && map->count <= map->room);
	const uint32_t at = find_reading(map, ticks);
	const struct ky_tick_reading *reading = &map->readings[at];
	const bool last = at + 1 == map->count;
	map->count_then = map->count;
	map->from_ticks = at == 0 ? 0 : reading->ticks;
	map->to_ticks = last ? UINT64_MAX : reading[1].ticks;
	map->base_ticks = reading->ticks;
	map->base_ns = reading->boottime_ns;
	map->rate = last ? last_rate(map) : rate_between(reading, reading + 1);
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
