/* SPDX-License-Identifier: MIT */
/*
 * spans_target.c: a program with trace points and functions whose calls are known, for functions.sh.
 *
 *	spans_target N	work() N times; each has a span, in which it calls leaf()
 *	spans_target crash	work() with a leaf() that sleeps for 20 ms and crashes
 */
#include <kymo/kymo.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline))

APART unsigned leaf(unsigned x);
APART unsigned work(unsigned x);

static volatile int zero, crashes;

unsigned leaf(unsigned x)
{
	if (crashes) {
		usleep(20000);
		*(volatile int *)(long)zero = 1;
	}
	__asm__ volatile("" : "+r"(x));
	return x * 3;
}

unsigned work(unsigned x)
{
	KYMO_SCOPE("spans", "span", "x", x);
	return leaf(x) + 1;
}

int main(int argc, char **argv)
{
	unsigned sum = 0;
	crashes = argc > 1 && strcmp(argv[1], "crash") == 0;
	if (crashes)
		return work(1) == 0;
	for (long i = argc > 1 ? atol(argv[1]) : 0; i > 0; i--)
		sum += work((unsigned)i);
	return sum == 0;
}
