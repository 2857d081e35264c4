/* SPDX-License-Identifier: MIT */
/* api.c: the small public functions of kymo.h. */
#include "core/clock.h"
#include "core/heap.h"
#include "core/writer.h"

#include <errno.h>
#include <kymo/version.h>
#include <string.h>

const char *kymo_version(void)
{
	return KYMO_VERSION;
}

void kymo_process_name(const char *name)
{
	const int saved_errno = errno;
	struct ky_drum *drum = ky_drum_get();
	const uint32_t string =
		drum && name ? ky_heap_intern(drum, name, strnlen(name, KYMO_STRING_MAX)) : 0;
	/* Pairs with the acquire loads of process_name by sessions: the string is there. */
	if (string)
		__atomic_store_n(&drum->header->process_name, string, __ATOMIC_RELEASE);
	errno = saved_errno;
}

void kymo_snapshot(const char *reason, uint64_t arg)
{
	KYMO_I_SITE(site, KYMO_I_EACH_2, KYMO_KIND_SNAPSHOT, KYMO_SITE_NAME, "kymo", "", 1, 0, "",
		    reason, "arg", arg);
	const uint64_t values[] = {KYMO_I_WORD(reason), arg};
	ky_writer_record(&site, 0, 2, site_info.types, values);
	struct ky_drum *drum = ky_drum_peek();
	/* Pairs with the acquire loads of snapshots by sessions and recorders: the event is there. */
	if (drum)
		__atomic_fetch_add(&drum->header->snapshots, 1, __ATOMIC_RELEASE);
}

void kymo_mark_start(void)
{
	KYMO_I_SITE(site, KYMO_I_EACH_0, KYMO_KIND_MARK, 0, "kymo", "mark", 0, 0);
	ky_writer_record(&site, 0, 0, 0, NULL);
	struct ky_drum *drum = ky_drum_peek();
	if (drum)
		KYMO_I_STORE(&drum->header->mark_ticks, ky_drum_ticks(drum));
}

uint64_t kymo_i_ticks(void)
{
	const struct ky_drum *drum = ky_drum_peek();
	return drum ? ky_drum_ticks(drum) : 0;
}

/* Convert a number of ticks to nanoseconds, by the oldest and the newest reading. */
static uint64_t ticks_to_ns(struct ky_drum *drum, uint64_t ticks)
{
	const struct ky_drum_clock *clock = drum->clock;
	if (__atomic_load_n(&clock->count, __ATOMIC_RELAXED) < 2)
		ky_clock_take(drum, true);
	/* Pairs with the release store of count in add_reading(). */
	const uint32_t count = __atomic_load_n(&clock->count, __ATOMIC_ACQUIRE);
	if (count < 2 || count > drum->header->clock_max)
		return 0;
	const struct ky_drum_reading *a = &clock->readings[0], *b = &clock->readings[count - 1];
	if (b->ticks <= a->ticks)
		return 0;
	return (uint64_t)((ky_u128)ticks * (b->boottime_ns - a->boottime_ns) /
			  (b->ticks - a->ticks));
}

void kymo_i_over(const char *name, uint64_t begin_ticks, uint64_t min_ns)
{
	const int saved_errno = errno;
	struct ky_drum *drum = ky_drum_peek();
	if (drum && begin_ticks) {
		const uint64_t lasted_ns = ticks_to_ns(drum, ky_drum_ticks(drum) - begin_ticks);
		if (lasted_ns > min_ns)
			kymo_snapshot(name, lasted_ns);
	}
	errno = saved_errno;
}
