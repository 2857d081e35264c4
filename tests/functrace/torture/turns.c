/* SPDX-License-Identifier: MIT */
/*
 * turns.c: libraries that take turns at one address. It is compiled three times: with FIRST and with SECOND to libraries
 * whose functions begin at the same offsets and with instructions of other lengths, and to the program that loads them
 * in turn. Its arguments are the libraries; it prints the sum of what they return.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define TURNS 10
#define CALLS 100

#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

#if defined(FIRST) || defined(SECOND)
volatile int sink;
/* Functions with large frames and with none: their first instructions have different lengths. */
static int small(int a, int b)
{
	sink = a;
	return a ^ b;
}

static __attribute__((always_inline)) inline int large(int a, int b, int size)
{
	char frame[4096];
	memset(frame, a, sizeof(frame));
	__asm__ volatile("" : : "r"(frame), "r"(size) : "memory", "rbx", "r12", "r13", "r14");
	return frame[b & 15] + b;
}

#ifdef FIRST
#define IS_LARGE(number) ((number) % 2 == 0)
#define NAME(number) first_##number
#else
#define IS_LARGE(number) ((number) % 2 == 1)
#define NAME(number) second_##number
#endif
#define FUNCTION(number)                                                                           \
	__attribute__((noinline, aligned(512))) int NAME(number)(int a, int b)                     \
	{                                                                                          \
		return IS_LARGE(number) ? large(a, b, number) : small(a, b) + (number);            \
	}
ALL(FUNCTION)

__attribute__((aligned(512))) int run(void)
{
	int sum = 0;
	for (int i = 0; i < CALLS; i++) {
#define CALL(number) sum += NAME(number)(i, sum);
		ALL(CALL)
	}
	return sum;
}
#else
int main(int count, char **words)
{
	unsigned sum = 0;
	void *places[2] = {NULL, NULL};
	for (int i = 0; i < TURNS * 2; i++) {
		void *library = count == 3 ? dlopen(words[1 + i % 2], RTLD_NOW) : NULL;
		void *run = library ? dlsym(library, "run") : NULL;
		int (*call)(void);
		if (!run) {
			puts("cannot load the libraries");
			return 1;
		}
		memcpy(&call, &run, sizeof(call));
		places[i % 2] = run;
		sum += (unsigned)call();
		dlclose(library);
	}
	printf("%u, at %s\n", sum, places[0] == places[1] ? "one place" : "two places");
	return 0;
}
#endif
