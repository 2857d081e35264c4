/* SPDX-License-Identifier: MIT */
/*
 * prng.h: splitmix64. The same seed gives the same numbers on every machine, so a run of the demo
 * asks for the same work each time; only what the threads make of it differs.
 */
#ifndef DEMO_PRNG_H
#define DEMO_PRNG_H

#include <stdint.h>

static inline uint64_t prng_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* A number from 0 to limit - 1. */
static inline int64_t prng_below(uint64_t *state, int64_t limit)
{
	return (int64_t)(prng_next(state) % (uint64_t)limit);
}

#endif /* DEMO_PRNG_H */
