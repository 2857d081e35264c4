/* SPDX-License-Identifier: MIT */
/*
 * loops.h: the loops that are measured. Each trace point is there twice: in a category that is on and in
 * one that is off. The compiler must not merge iterations, move work out of the loop or drop a loop, so
 * every iteration ends with a barrier; a disabled trace point is compared with the empty loop, which has it
 * too.
 */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* The category of the loops that are on. */
#define LOOPS_CATEGORY "bench"

typedef void loop_fn(uint32_t iterations);

struct loop {
	const char *name;  /* the loops are the functions on_NAME and off_NAME */
	const char *label; /* for people */
	uint32_t events;   /* in an iteration, on */
	uint32_t points;   /* trace points in an iteration */
	loop_fn *on;
	loop_fn *off;
};

extern const struct loop loops[];
extern const size_t loops_count;

/* Return the loop of that name, or NULL. */
const struct loop *loop_find(const char *name);

/* Read the counter, store 16 bytes: the minimum for recording an event. */
loop_fn loop_bare;
/* Nothing but the barrier. */
loop_fn loop_empty;

#endif
