/* SPDX-License-Identifier: MIT */
#include "core/coarse.h"

#include "core/clock.h"
#include "os/os.h"

#define BASELINE_NS UINT64_C(20000000)

void ky_coarse_begin(struct ky_coarse *c, struct ky_drum *drum)
{
	const struct ky_drum_reading first = ky_clock_read(drum);
	ky_os_sleep(BASELINE_NS);
	ky_clock_take(drum, true);
	const struct ky_drum_reading now = ky_clock_read(drum);
	const uint64_t ns = now.monotonic_ns - first.monotonic_ns;
	c->ticks = c->last = now.ticks;
	c->ns = now.monotonic_ns;
	c->rate = ns ? (uint64_t)(((ky_u128)(now.ticks - first.ticks) << 20) / ns) : 1u << 20;
}

/* The coarse clock is behind by up to a tick of the kernel's: no event comes before the beginning. */
uint64_t ky_coarse_ticks(struct ky_coarse *c)
{
	const uint64_t ns = ky_os_monotonic_coarse();
	const uint64_t past = ns > c->ns ? ns - c->ns : 0;
	const uint64_t now = c->ticks + (uint64_t)((ky_u128)past * c->rate >> 20);
	c->last = now > c->last ? now : c->last + 1;
	return c->last;
}
