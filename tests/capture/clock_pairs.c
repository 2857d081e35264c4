/* SPDX-License-Identifier: MIT */
/*
 * clock_pairs.c: the same moment, told by several clocks: for clocks.py, which runs it under `kymo run`.
 *
 *   KYMO_INSTANT "before"  ─  a line into trace_marker  ─  KYMO_INSTANT "after"       drum and ftrace
 *   a span "in" around work_inside(), then work_outside() without one, in turn        drum and perf's samples
 *
 * ftrace's events must lie between the two instants; a sample in work_inside() within a span, one in work_outside()
 * in none. However long the program is held up in between, that stays true: only clocks that disagree break it.
 */
#include <fcntl.h>
#include <kymo/kymo.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 2000
#define TURNS 6000
#define TURN_NS 100000

static volatile unsigned sum;

static long thread_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* A function of its own under its own name. */
#if __has_attribute(noclone)
#define OWN __attribute__((noinline, noclone))
#else
#define OWN __attribute__((noinline))
#endif

/* Two that are alike, and must not become one. */
static OWN void work_inside(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sum += i;
}

static OWN void work_outside(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sum += i * 3;
}

/* Rounds that take about TURN_NS. */
static unsigned measure(void)
{
	unsigned rounds = 1000;
	for (;;) {
		const long from = thread_ns();
		work_outside(rounds);
		if (thread_ns() - from >= TURN_NS)
			return rounds;
		rounds *= 2;
	}
}

static void write_pairs(int marker)
{
	char line[64];
	for (int i = 0; i < PAIRS; i++) {
		const int bytes = snprintf(line, sizeof(line), "I|%d|marker", (int)getpid());
		KYMO_INSTANT("clock", "before");
		if (write(marker, line, (size_t)bytes) != bytes)
			return;
		KYMO_INSTANT("clock", "after");
	}
}

int main(int argc, char **argv)
{
	const int marker = open(argc > 1 ? argv[1] : "/dev/null", O_WRONLY | O_CLOEXEC);
	if (marker < 0)
		return 1;
	const unsigned rounds = measure();
	write_pairs(marker);
	for (int i = 0; i < TURNS; i++) {
		{
			KYMO_SCOPE("clock", "in");
			work_inside(rounds);
		}
		work_outside(rounds);
	}
	return 0;
}
