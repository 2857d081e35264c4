/* SPDX-License-Identifier: MIT */
/*
 * repeat.h: how a time is measured. Other programs and the hypervisor make times longer, never shorter,
 * and they come and go: so a loop is run for many short repetitions and the shortest counts, and what is
 * compared takes turns, so that all see the same minutes of the machine.
 */
#ifndef BENCH_REPEAT_H
#define BENCH_REPEAT_H

#include "loops.h"

#include <stdbool.h>
#include <stddef.h>

struct repetitions {
	uint32_t count;
	uint32_t iterations; /* of the loop in each */
};

struct repetitions repeat_many(bool quick);

/* CLOCK_MONOTONIC. */
uint64_t repeat_now_ns(void);

/* How long one run took, in nanoseconds per iteration. */
double repeat_once(loop_fn *run, uint32_t iterations);

/* The shortest time of each loop, in nanoseconds an iteration; the loops take turns. */
void repeat_in_turns(struct repetitions repetitions, loop_fn *const *runs, size_t count,
		     double *shortest_ns);

#endif
