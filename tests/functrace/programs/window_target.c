/* SPDX-License-Identifier: MIT */
/*
 * window_target.c THREADS [crash]: threads that call step_0 to step_15 in turn, for ever, so that a recording shows
 * whether a call is missing. Prints "ready" when all have started; then for each byte of the standard input the main
 * thread calls trigger_here() or, with "crash", makes one of the threads read an invalid address. Ends with its
 * input.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS(X)                                                                                   \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

static volatile int crashes;
static pthread_barrier_t begun;

#define STEP(n)                                                                                    \
	__attribute__((noinline)) static uint64_t step_##n(uint64_t value)                         \
	{                                                                                          \
		for (int i = 0; i < 100; i++)                                                      \
			__asm__ volatile("" : "+r"(value));                                        \
		return value * 3 + n;                                                              \
	}
STEPS(STEP)

#define NAME(n) step_##n,
static uint64_t (*const steps[])(uint64_t) = {STEPS(NAME)};

__attribute__((noinline)) static void crash_now(void)
{
	uintptr_t nowhere = 8;
	__asm__("" : "+r"(nowhere));
	*(volatile int *)nowhere = 1;
}

static void *walk(void *arg)
{
	const int self = *(int *)arg;
	uint64_t value = 1;
	pthread_barrier_wait(&begun);
	for (size_t i = 0;; i++) {
		value = steps[i % 16](value);
		if (self == 0 && crashes)
			crash_now();
	}
	return NULL;
}

void trigger_here(int number);
__attribute__((noinline)) void trigger_here(int number)
{
	__asm__ volatile("" : "+r"(number));
}

int main(int argc, char **argv)
{
	static int numbers[64];
	const int count = argc > 1 ? atoi(argv[1]) % 64 : 2;
	char byte;
	pthread_barrier_init(&begun, NULL, (unsigned)count + 1);
	for (int i = 0; i < count; i++) {
		pthread_t thread;
		numbers[i] = i;
		if (pthread_create(&thread, NULL, walk, &numbers[i]) != 0)
			return 1;
	}
	pthread_barrier_wait(&begun);
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		if (argc > 2)
			crashes = 1;
		else
			trigger_here(byte);
	}
	return 0;
}
