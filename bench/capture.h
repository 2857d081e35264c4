/* SPDX-License-Identifier: MIT */
/* capture.h: the programs that are watched from outside; all return the exit code. */
#ifndef BENCH_CAPTURE_H
#define BENCH_CAPTURE_H

#include <stdint.h>

#define CAPTURE_THREADS 2
#define CAPTURE_BURST_SPANS 5000u /* every 2 ms: 5 million events a second and thread */

/* how: "sleeps" or "spins" between bursts. Prints the CPU time of an event in nanoseconds and the events. */
int capture_busy_child(const char *how, uint32_t bursts);
/* Prints the shortest time of a call that a probe may be set on, in nanoseconds. */
int capture_hits_child(uint32_t hits);
int capture_slow_child(uint32_t spans);

#endif
