/* SPDX-License-Identifier: MIT */
/*
 * functions_target.c: a program that calls an almost empty function, in short repetitions, and prints the shortest time, in
 * nanoseconds per call. It is compiled as usual, without any tracer.
 *
 *   functions_target REPETITIONS CALLS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) static uint64_t callee(uint64_t value)
{
	__asm__ volatile("" : "+r"(value)::"memory");
	return value + 1;
}

__attribute__((noinline)) static uint64_t call_many(uint64_t value, unsigned long calls)
{
	for (unsigned long i = 0; i < calls; i++)
		value = callee(value);
	return value;
}

static double now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	const unsigned long repetitions = strtoul(argv[1], NULL, 10);
	const unsigned long calls = strtoul(argv[2], NULL, 10);
	double shortest = 1e18;
	uint64_t value = 0;
	for (unsigned long i = 0; i < repetitions; i++) {
		const double begin = now_ns();
		value = call_many(value, calls);
		const double took = now_ns() - begin;
		shortest = took < shortest ? took : shortest;
	}
	printf("%.3f\n", shortest / (double)calls);
	return value != repetitions * calls;
}
