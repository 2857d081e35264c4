/* SPDX-License-Identifier: MIT */
/*
 * probe_target.c: a program that test_probe.c sets probes in. It writes a line for each thing that it has done, and goes on
 * when it is sent a byte: so nobody waits for a time.
 *
 *	probe_target [THREADS]	that many threads (4) from the start on
 *
 *	"ready"		the threads are there
 *	'w' → "done"	a call of each thread, one of a new thread, one of a child, one of the first thread
 *	'l' → "done"	goes over the line once
 *	's' → "storm"	then makes many threads as fast as it can → "done"
 *	'c' → "done"	a call of each of these, which end then
 *	'x' → "ready"	executes itself again
 *	the end of the input ends it
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 1000
#define STORM_THREADS 300u /* test_probe.c knows the number */

/* Tests know right arguments by their form: the first is the thread's number, the second 1000 times that. */
#define PLACE __attribute__((noinline, visibility("default")))
PLACE void probe_target_call(uint64_t number, uint64_t thousandfold);
PLACE int probe_target_line(int number);

static volatile uint64_t sink;

void probe_target_call(uint64_t number, uint64_t thousandfold)
{
	sink += number ^ thousandfold;
}

static void call(uint64_t number)
{
	probe_target_call(number, number * 1000);
}

static pthread_barrier_t before, after;

static void *work(void *argument)
{
	const uint64_t number = (uintptr_t)argument;
	for (;;) {
		pthread_barrier_wait(&before);
		call(number);
		pthread_barrier_wait(&after);
	}
	return NULL;
}

static void *call_once(void *argument)
{
	call((uintptr_t)argument);
	return NULL;
}

static void all_call(unsigned threads)
{
	pthread_t late;
	call(1);
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	if (pthread_create(&late, NULL, call_once, (void *)(uintptr_t)(threads + 2)) != 0)
		exit(1);
	pthread_join(late, NULL);
	const pid_t child = fork();
	if (child == 0) {
		call(threads + 3);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static pthread_barrier_t storm_before, storm_after;

static void *call_in_storm(void *argument)
{
	pthread_barrier_wait(&storm_before);
	call((uintptr_t)argument);
	pthread_barrier_wait(&storm_after);
	return NULL;
}

static void end_storm(void)
{
	pthread_barrier_wait(&storm_before);
	pthread_barrier_wait(&storm_after);
}

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		exit(1);
}

static void start_threads(unsigned threads)
{
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&before, NULL, threads + 1);
	pthread_barrier_init(&after, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		pthread_t thread;
		if (pthread_create(&thread, &small, work, (void *)(uintptr_t)(i + 2)) != 0)
			exit(1);
	}
}

static void begin_storm(void)
{
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	pthread_barrier_init(&storm_before, NULL, STORM_THREADS + 1);
	pthread_barrier_init(&storm_after, NULL, STORM_THREADS + 1);
	say("storm\n");
	for (unsigned i = 0; i < STORM_THREADS; i++) {
		pthread_t thread;
		if (pthread_create(&thread, &small, call_in_storm, (void *)(uintptr_t)(i + 1)) != 0)
			exit(1);
	}
}

int main(int argc, char **argv)
{
	const unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
	char order;
	if (threads > THREADS_MAX)
		return 2;
	start_threads(threads);
	say("ready\n");
	while (read(STDIN_FILENO, &order, 1) == 1) {
		if (order == 'x')
			execv("/proc/self/exe", argv);
		if (order == 'w')
			all_call(threads);
		else if (order == 's')
			begin_storm();
		else if (order == 'c')
			end_storm();
		else
			sink += (uint64_t)probe_target_line((int)sink);
		say("done\n");
	}
	return 0;
}

/* Known numbers, whatever is above. */
#line 1000 "probe_lines.c"
int probe_target_line(int number)
{

	sink += 3;
	number += (int)sink;
	sink += 5;
	return number;
}
