/* SPDX-License-Identifier: MIT */
/*
 * spans_target.c: a program with trace points and functions whose calls are known, for functions.sh.
 *
 *	spans_target N	work() N times; each has a span, in which it calls leaf()
 */
#include <kymo/kymo.h>

#include <stdlib.h>

#define APART __attribute__((noinline))

APART unsigned leaf(unsigned x);
APART unsigned work(unsigned x);

unsigned leaf(unsigned x)
{
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
	for (long i = argc > 1 ? atol(argv[1]) : 0; i > 0; i--)
		sum += work((unsigned)i);
	return sum == 0;
}
