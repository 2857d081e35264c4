/* SPDX-License-Identifier: MIT */
/*
 * counter.c: a program that knows how often each of its functions is called, and what they return. Its threads go on
 * in steps until its input ends; a tracer can attach and detach at any moment. Exit 0 when all results were right.
 *
 *   "-"          nothing more
 *   "fork"       also makes children that do the same for a moment
 *   "once"       each of `counted` is called a known number of times, after a byte of input has come
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define NOINLINE static __attribute__((noinline, used))

static atomic_bool ending;
static atomic_int wrong;

NOINLINE unsigned long leaf(unsigned long x)
{
	__asm__ volatile("");
	return x * 2654435761u;
}

NOINLINE unsigned long many(unsigned long a, unsigned long b, unsigned long c, unsigned long d,
			    unsigned long e, unsigned long f, unsigned long g, unsigned long h)
{
	return leaf(a) + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

NOINLINE double halves(double x, int depth)
{
	return depth ? x + halves(x / 2, depth - 1) : x;
}

/* A tail call, where the compiler makes it one. */
NOINLINE unsigned long tail(unsigned long x)
{
	__asm__ volatile("");
	return leaf(x + 1);
}

static volatile int deeper = 1;

NOINLINE void jump_out(jmp_buf *where, int depth)
{
	if (!depth)
		longjmp(*where, 7);
	if (deeper)
		jump_out(where, depth - 1);
	__asm__ volatile("");
}

NOINLINE int jumps(void)
{
	jmp_buf where;
	const int came = setjmp(where);
	if (!came)
		jump_out(&where, 20);
	return came;
}

static int compare(const void *a, const void *b)
{
	const int left = *(const int *)a, right = *(const int *)b;
	return (left > right) - (left < right);
}

NOINLINE int sorts(unsigned seed)
{
	int numbers[64];
	for (int i = 0; i < 64; i++)
		numbers[i] = (int)(leaf(seed + (unsigned)i) & 0xffff);
	qsort(numbers, 64, sizeof(numbers[0]), compare);
	for (int i = 1; i < 64; i++)
		if (numbers[i - 1] > numbers[i])
			return 0;
	return 1;
}

NOINLINE void step(unsigned i)
{
	char text[64];
	const double sum = halves(1.0, 20);
	if (many(1, 2, 3, 4, 5, 6, 7, 8) != 2654435761u + 203)
		atomic_store(&wrong, 2);
	if (sum < 1.9999 || sum > 2.0)
		atomic_store(&wrong, 3);
	if (tail(i) != (i + 1ul) * 2654435761u)
		atomic_store(&wrong, 4);
	if (jumps() != 7)
		atomic_store(&wrong, 5);
	if (!sorts(i))
		atomic_store(&wrong, 6);
	snprintf(text, sizeof(text), "%u %s %.2f", i, "text", sum);
	if (strtoul(text, NULL, 10) != i)
		atomic_store(&wrong, 7);
}

static void *work(void *unused)
{
	for (unsigned i = 0; !atomic_load(&ending); i++)
		step(i);
	return unused;
}

static void *fork_often(void *unused)
{
	while (!atomic_load(&ending)) {
		int status = 0;
		const pid_t child = fork();
		if (child == 0) {
			for (unsigned i = 0; i < 50; i++)
				step(i);
			_exit(atomic_load(&wrong));
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			atomic_store(&wrong, 8);
	}
	return unused;
}

NOINLINE void counted(unsigned long times)
{
	unsigned long sum = 0;
	for (unsigned long i = 0; i < times; i++)
		sum += leaf(i);
	if (sum != times * (times - 1) / 2 * 2654435761u)
		atomic_store(&wrong, 9);
}

int main(int count, char **arguments)
{
	pthread_t threads[THREADS + 1];
	const char *mode = count > 1 ? arguments[1] : "-";
	int made = 0;
	char byte;
	if (strcmp(mode, "once") == 0) {
		puts("ready");
		fflush(stdout);
		while (read(0, &byte, 1) == 1) {
			counted(1000);
			puts("counts");
			fflush(stdout);
		}
		return atomic_load(&wrong);
	}
	for (; made < THREADS; made++)
		if (pthread_create(&threads[made], NULL, work, NULL))
			return 20;
	if (strcmp(mode, "fork") == 0 && !pthread_create(&threads[made], NULL, fork_often, NULL))
		made++;
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) != 0)
		atomic_store(&wrong, 10);
	atomic_store(&ending, 1);
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	return atomic_load(&wrong);
}
