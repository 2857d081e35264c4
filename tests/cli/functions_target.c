/* SPDX-License-Identifier: MIT */
/*
 * functions_target.c: a program whose calls are known, for functions.sh.
 *
 *	functions_target N [crash]	work() N times, each calls leaf() twice; then finish(41), or a crash
 *	functions_target forks N	N children one after the other, each works once and ends at once
 *	functions_target patched	waits until work() begins with a jump, then calls it 100 times
 *	functions_target forever	says "ready" and works until SIGTERM; 0 when all results were right. Says "traced" when
 *					it has called work() with a jump at its beginning, each time one is put there
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

static volatile sig_atomic_t asked;
static volatile int zero, finished;

APART unsigned leaf(unsigned x);
APART unsigned work(unsigned x);
APART void finish(int code);
APART void fall(unsigned x);

unsigned leaf(unsigned x)
{
	return x * 2654435761u ^ x >> 7;
}

unsigned work(unsigned x)
{
	const unsigned first = leaf(x);
	return first + leaf(first ^ 1);
}

void finish(int code)
{
	finished = code;
}

void fall(unsigned x)
{
	finished = (int)leaf(x);
	*(volatile int *)(long)zero = 1; /* which is the crash */
	finished++;
}

static void on_term(int number)
{
	asked = number;
}

static bool work_is_patched(void)
{
	const volatile unsigned char *const code = (const volatile unsigned char *)(size_t)work;
	return *code == 0xe9;
}

static int work_for_ever(void)
{
	static volatile unsigned seven = 7; /* or the compiler would call it once */
	const unsigned right = work(seven);
	bool was_patched = false;
	signal(SIGTERM, on_term);
	puts("ready");
	fflush(stdout);
	while (!asked) {
		const bool patched = work_is_patched();
		if (work(seven) != right)
			return 1;
		if (patched && !was_patched) {
			puts("traced");
			fflush(stdout);
		}
		was_patched = patched;
	}
	return 0;
}

static int fork_often(long count)
{
	int status = 0, failed = 0;
	for (long i = 0; i < count; i++) {
		const pid_t pid = fork();
		if (pid == 0)
			_exit(work((unsigned)i) == 0);
		failed |= pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
	}
	return failed;
}

static int work_when_patched(void)
{
	unsigned sum = 0;
	while (!work_is_patched())
		usleep(1000);
	for (unsigned i = 0; i < 100; i++)
		sum += work(i);
	return sum == 0;
}

int main(int argc, char **argv)
{
	unsigned sum = 0;
	if (argc > 1 && strcmp(argv[1], "forever") == 0)
		return work_for_ever();
	if (argc > 1 && strcmp(argv[1], "patched") == 0)
		return work_when_patched();
	if (argc > 2 && strcmp(argv[1], "forks") == 0)
		return fork_often(strtol(argv[2], NULL, 10));
	const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	for (long i = 0; i < count; i++)
		sum += work((unsigned)i);
	printf("%u\n", sum);
	fflush(stdout);
	if (argc > 2)
		fall(1);
	finish(41);
	return 0;
}
