/* SPDX-License-Identifier: MIT */
/* clock.h: the time that timers and the pace of the clients go by. */
#ifndef DEMO_CLOCK_H
#define DEMO_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000
#define NS_PER_S 1000000000

static inline int64_t clock_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

#endif /* DEMO_CLOCK_H */
