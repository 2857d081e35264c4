/* SPDX-License-Identifier: MIT */
/* clock.h: the system's clocks in nanoseconds, and sleeping. */
#ifndef KY_BASE_CLOCK_H
#define KY_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define KY_CLOCK_SECOND_NS INT64_C(1000000000)
#define KY_CLOCK_MS_NS INT64_C(1000000)

/* Return a clock's time: CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME or another; 0: there is none. */
static inline int64_t ky_clock_ns(clockid_t clock)
{
	struct timespec now = {0};
	(void)clock_gettime(clock, &now);
	return now.tv_sec * KY_CLOCK_SECOND_NS + now.tv_nsec;
}

/* Return the time since some start: for durations and deadlines. */
static inline int64_t ky_clock_monotonic(void)
{
	return ky_clock_ns(CLOCK_MONOTONIC);
}

/* Return the time since boot, suspension included: the time of traces. */
static inline int64_t ky_clock_boottime(void)
{
	return ky_clock_ns(CLOCK_BOOTTIME);
}

/* Return the time of day since 1970. */
static inline int64_t ky_clock_realtime(void)
{
	return ky_clock_ns(CLOCK_REALTIME);
}

/* Return a duration as the system calls take it. */
static inline struct timespec ky_clock_timespec(int64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / KY_CLOCK_SECOND_NS),
				 .tv_nsec = (long)(ns % KY_CLOCK_SECOND_NS)};
}

#endif
