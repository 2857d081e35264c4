/* SPDX-License-Identifier: MIT */
/* tick_source.c: clock readings as a process takes them for its own drum. */
#include "process/tick_source.h"

#include "core/clock.h"
#include "os/os.h"
#include "os/ticks.h"

/* Two readings of one boot agree on the wall-clock time of that boot up to this, since time is adjusted. */
#define SAME_BOOT_NS UINT64_C(5000000000)

static struct ky_drum drum_here(uint32_t tick_source)
{
	return (struct ky_drum){.ticks_inline = tick_source != KY_TICKS_MONOTONIC};
}

bool ky_tick_source_is_here(uint32_t tick_source)
{
	return tick_source == KY_TICKS_MONOTONIC ||
	       (tick_source != KY_TICKS_NONE && (int)tick_source == ky_cpu_tick_source());
}

uint64_t ky_tick_source_ticks(uint32_t tick_source)
{
	const struct ky_drum here = drum_here(tick_source);
	return ky_drum_ticks(&here);
}

struct ky_tick_reading ky_tick_source_now(uint32_t tick_source)
{
	const struct ky_drum here = drum_here(tick_source);
	const struct ky_drum_reading now = ky_clock_read(&here);
	return (struct ky_tick_reading){now.ticks, now.boottime_ns, now.monotonic_ns,
					now.realtime_ns};
}

bool ky_tick_source_same_boot(const struct ky_tick_reading *then, const struct ky_tick_reading *now)
{
	const uint64_t apart = (now->realtime_ns - now->boottime_ns) -
			       (then->realtime_ns - then->boottime_ns) + SAME_BOOT_NS;
	return now->ticks > then->ticks && now->boottime_ns > then->boottime_ns &&
	       apart < 2 * SAME_BOOT_NS;
}
