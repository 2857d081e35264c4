/* SPDX-License-Identifier: MIT */
#include "repeat.h"

#include <math.h>
#include <time.h>

struct repetitions repeat_many(bool quick)
{
	/* About 0.1 ms each: shorter than a scheduler's tick, long against reading the clock. */
	const struct repetitions many = {400, 10000}, few = {3, 1000};
	return quick ? few : many;
}

uint64_t repeat_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double repeat_once(loop_fn *run, uint32_t iterations)
{
	const uint64_t begin_ns = repeat_now_ns();
	run(iterations);
	return (double)(repeat_now_ns() - begin_ns) / iterations;
}

void repeat_in_turns(struct repetitions repetitions, loop_fn *const *runs, size_t count,
		     double *shortest_ns)
{
	for (size_t i = 0; i < count; i++)
		shortest_ns[i] = INFINITY;
	for (uint32_t turn = 0; turn < repetitions.count; turn++) {
		for (size_t i = 0; i < count; i++) {
			const double ns = repeat_once(runs[i], repetitions.iterations);
			if (ns < shortest_ns[i])
				shortest_ns[i] = ns;
		}
	}
}
