/* SPDX-License-Identifier: MIT */
/*
 * busy.c: a program that is stopped and resumed, again and again, and must not notice. Its threads sleep, read, wait
 * for each other, take signals, and make threads that end; each checks what it sees. It ends when its input does:
 * exit 0, or 1 with an error message.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define OF_EACH 10

static atomic_bool ending;
static atomic_int wrong;
static atomic_ulong alarms;
static int wire[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static unsigned long turns;

static void complain(const char *what, int error)
{
	fprintf(stderr, "busy: %s: %s\n", what, strerror(error));
	atomic_store(&wrong, 1);
}

static void *sleep_often(void *unused)
{
	(void)unused;
	while (!atomic_load(&ending)) {
		struct timespec before, after;
		const struct timespec nap = {.tv_nsec = 3000000};
		clock_gettime(CLOCK_MONOTONIC, &before);
		if (nanosleep(&nap, NULL))
			complain("nanosleep", errno);
		clock_gettime(CLOCK_MONOTONIC, &after);
		if ((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec <
		    nap.tv_nsec)
			complain("nanosleep was too short", 0);
	}
	return NULL;
}

static void *read_often(void *unused)
{
	char byte;
	(void)unused;
	for (;;) {
		const ssize_t got = read(wire[0], &byte, 1);
		if (got == 0)
			return NULL;
		if (got < 0 || byte != 'k')
			complain("read", errno);
	}
}

static void *wait_often(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
	while (!atomic_load(&ending)) {
		const unsigned long seen = turns;
		while (turns == seen && !atomic_load(&ending))
			pthread_cond_wait(&turned, &mutex);
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *end_at_once(void *number)
{
	return (void *)((unsigned long)number * 3);
}

static void *make_threads(void *unused)
{
	(void)unused;
	for (unsigned long i = 1; !atomic_load(&ending); i++) {
		pthread_t thread;
		void *result = NULL;
		const int error = pthread_create(&thread, NULL, end_at_once, (void *)i);
		if (error) {
			complain("pthread_create", error);
			continue;
		}
		pthread_join(thread, &result);
		if (result != (void *)(i * 3))
			complain("a thread's result", 0);
		const char byte = 'k';
		if (write(wire[1], &byte, 1) != 1)
			complain("write", errno);
		pthread_mutex_lock(&mutex);
		turns++;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void on_alarm(int number)
{
	(void)number;
	atomic_fetch_add(&alarms, 1);
}

/* Compute sums that are always the same, while signals come. */
static void *reckon(void *unused)
{
	sigset_t set;
	(void)unused;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	while (!atomic_load(&ending)) {
		volatile unsigned long sum = 0;
		double product = 1;
		for (unsigned long i = 1; i <= 1000; i++) {
			sum += i * i;
			product *= 1 + 1 / (double)i;
		}
		if (sum != 333833500 || product < 1000.99 || product > 1001.01)
			complain("a sum", 0);
	}
	return NULL;
}

int main(void)
{
	static void *(*const lives[])(void *) = {sleep_often, read_often, wait_often, make_threads,
						 reckon};
	const size_t kinds = sizeof(lives) / sizeof(lives[0]);
	pthread_t thread;
	const struct itimerval often = {{0, 2000}, {0, 2000}};
	sigset_t set;
	char byte;
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pipe(wire))
		return 2;
	for (size_t i = 0; i < OF_EACH; i++)
		for (size_t kind = 0; kind < kinds; kind++)
			if (kind != 4 || i == 0)
				if (pthread_create(&thread, NULL, lives[kind], NULL))
					return 2;
	setitimer(ITIMER_REAL, &often, NULL);
	while (!atomic_load(&alarms))
		sched_yield();
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) != 0)
		complain("read of the input", errno);
	atomic_store(&ending, 1);
	_exit(atomic_load(&wrong));
}
