/* SPDX-License-Identifier: MIT */
/*
 * capture_target.c: the programs that capture.c watches: this one, as its own child.
 *
 * Their cost is the threads' own CPU time, which excludes kymo's share of the processors: so a captured loop is comparable
 * with an uncaptured one.
 */
#include "capture.h"

#include "repeat.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <kymo/kymo.h>

#define MS UINT64_C(1000000)
#define PERIOD_NS (2 * MS)
#define SLOW_NS (3 * MS)

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct busy {
	pthread_t thread;
	bool spins;
	uint32_t bursts;
	uint64_t cpu_ns; /* in the bursts only */
};

static void wait_until(uint64_t when_ns, bool spins)
{
	const struct timespec when = {(time_t)(when_ns / 1000000000), (long)(when_ns % 1000000000)};
	if (!spins)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
	while (clock_ns(CLOCK_MONOTONIC) < when_ns)
		;
}

static void *burst_after_burst(void *context)
{
	struct busy *busy = context;
	uint64_t next_ns = clock_ns(CLOCK_MONOTONIC);
	for (uint32_t burst = 0; burst < busy->bursts; burst++) {
		const uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (uint32_t i = 0; i < CAPTURE_BURST_SPANS; i++) {
			KYMO_SCOPE("bench", "span");
		}
		busy->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
		next_ns += PERIOD_NS;
		wait_until(next_ns, busy->spins);
	}
	return NULL;
}

int capture_busy_child(const char *how, uint32_t bursts)
{
	struct busy threads[CAPTURE_THREADS];
	uint64_t cpu_ns = 0;
	for (int i = 0; i < CAPTURE_THREADS; i++) {
		threads[i] = (struct busy){.spins = strcmp(how, "spins") == 0, .bursts = bursts};
		if (pthread_create(&threads[i].thread, NULL, burst_after_burst, &threads[i]) != 0)
			return 1;
	}
	for (int i = 0; i < CAPTURE_THREADS; i++) {
		pthread_join(threads[i].thread, NULL);
		cpu_ns += threads[i].cpu_ns;
	}
	const uint64_t events = UINT64_C(2) * CAPTURE_THREADS * CAPTURE_BURST_SPANS * bursts;
	printf("%f %" PRIu64 "\n", (double)cpu_ns / (double)events, events);
	return 0;
}

static __attribute__((noinline)) void use(uint64_t value)
{
	__asm__ volatile("" : : "r"(value) : "memory");
}

/*
 * The place of the probe. The kernel emulates its first instruction at a uprobe, as that of most functions (push, call,
 * nop); others are single-stepped, which costs about ten microseconds more.
 */
__attribute__((noinline, used)) static void bench_probed(uint64_t first, uint64_t second)
{
	use(first);
	use(second);
}

static void call_probed(uint32_t iterations)
{
	for (uint32_t i = 0; i < iterations; i++)
		bench_probed(i, 2 * i);
}

int capture_hits_child(uint32_t hits)
{
	double shortest_ns = 0;
	loop_fn *const run = call_probed;
	repeat_in_turns((struct repetitions){20, hits / 20 ? hits / 20 : 1}, &run, 1, &shortest_ns);
	printf("%f\n", shortest_ns);
	return 0;
}

/* Spans that last too long, at no particular times. */
int capture_slow_child(uint32_t spans)
{
	uint32_t random = 12345;
	for (uint32_t i = 0; i < spans; i++) {
		random = random * 1664525 + 1013904223;
		const struct timespec pause = {0, (long)(20 * MS + random % (10 * MS))};
		nanosleep(&pause, NULL);
		KYMO_SCOPE("bench", "slow");
		wait_until(clock_ns(CLOCK_MONOTONIC) + SLOW_NS, true);
	}
	return 0;
}
