/* SPDX-License-Identifier: MIT */
/*
 * threads.c: threads that are many, short, cancelled, ended from deep inside, or on the smallest stacks.
 */
#include "torture.h"

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>

static NOINLINE uint64_t work(uint64_t value, int depth)
{
	if (depth > 0)
		value = work(value, depth - 1);
	KEEP(value);
	return mix(value, (uint64_t)depth);
}

static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	must(pthread_create(thread, NULL, run, arg) == 0, "a thread");
}

static void *works(void *arg)
{
	*(uint64_t *)arg = work(*(uint64_t *)arg, 20);
	return arg;
}

static uint64_t in_sequence(void)
{
	uint64_t digest = 0;
	for (unsigned i = 0; i < 500 * torture_scale; i++) {
		pthread_t thread;
		uint64_t value = i;
		start(&thread, works, &value);
		pthread_join(thread, NULL);
		digest = mix(digest, value);
	}
	return digest;
}

#define CROWD 500
static pthread_barrier_t all_there;

static void *works_with_all(void *arg)
{
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < 50; i++)
		*(uint64_t *)arg = work(*(uint64_t *)arg, 10);
	pthread_barrier_wait(&all_there);
	return arg;
}

static uint64_t at_once(void)
{
	static pthread_t threads[CROWD];
	static uint64_t values[CROWD];
	const unsigned count = torture_scale > 4 ? CROWD : 100;
	uint64_t digest = 0;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	pthread_barrier_init(&all_there, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		values[i] = i;
		must(pthread_create(&threads[i], &attr, works_with_all, &values[i]) == 0,
		     "many threads");
	}
	for (unsigned i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		digest = mix(digest, values[i]);
	}
	pthread_barrier_destroy(&all_there);
	pthread_attr_destroy(&attr);
	return digest;
}

static uint64_t smallest_stacks(void)
{
	uint64_t digest = 0;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN);
	for (unsigned i = 0; i < 50; i++) {
		pthread_t thread;
		uint64_t value = i;
		must(pthread_create(&thread, &attr, works, &value) == 0,
		     "a thread with a small stack");
		pthread_join(thread, NULL);
		digest = mix(digest, value);
	}
	pthread_attr_destroy(&attr);
	return digest;
}

/* ---- ends ---- */

static void clean(void *arg)
{
	*(uint64_t *)arg = work(*(uint64_t *)arg, 3);
}

static NOINLINE void exit_deep(uint64_t *value, int depth)
{
	pthread_cleanup_push(clean, value);
	if (depth == 0)
		pthread_exit(value);
	exit_deep(value, depth - 1);
	pthread_cleanup_pop(1);
}

static void *exits(void *arg)
{
	exit_deep(arg, 20);
	return NULL;
}

static uint64_t thread_exit(void)
{
	uint64_t digest = 0;
	for (unsigned i = 0; i < 200 * torture_scale; i++) {
		pthread_t thread;
		uint64_t value = i;
		void *result = NULL;
		start(&thread, exits, &value);
		pthread_join(thread, &result);
		must(result == &value, "what a thread exits with");
		digest = mix(digest, value);
	}
	return digest;
}

static sem_t ready;

static NOINLINE void wait_deep(uint64_t *value, int depth)
{
	pthread_cleanup_push(clean, value);
	if (depth == 0) {
		sem_post(&ready);
		for (;;)
			pause();
	}
	wait_deep(value, depth - 1);
	pthread_cleanup_pop(1);
}

static void *waits(void *arg)
{
	wait_deep(arg, 20);
	return NULL;
}

static uint64_t cancel_all(void *(*run)(void *), unsigned count)
{
	uint64_t digest = 0;
	sem_init(&ready, 0, 0);
	for (unsigned i = 0; i < count; i++) {
		pthread_t thread;
		uint64_t value = i;
		void *result = NULL;
		start(&thread, run, &value);
		while (sem_wait(&ready) != 0)
			;
		pthread_cancel(thread);
		pthread_join(thread, &result);
		must(result == PTHREAD_CANCELED, "a thread that was cancelled");
		digest = mix(digest, value);
	}
	sem_destroy(&ready);
	return digest;
}

static uint64_t cancelled(void)
{
	return cancel_all(waits, 200 * torture_scale);
}

/* Cancel anywhere, even in the middle of a call: so only call functions that keep nothing. */
static NOINLINE void spin_deep(uint64_t *value, int depth)
{
	pthread_cleanup_push(clean, value);
	if (depth == 0) {
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
		sem_post(&ready);
		for (uint64_t i = 0;; i++)
			KEEP(i);
	}
	spin_deep(value, depth - 1);
	pthread_cleanup_pop(1);
}

static void *spins(void *arg)
{
	spin_deep(arg, 10);
	return NULL;
}

static uint64_t cancelled_anywhere(void)
{
	return cancel_all(spins, 100 * torture_scale);
}

static NOINLINE void call_deep(uint64_t *value, int depth)
{
	pthread_cleanup_push(clean, value);
	if (depth == 0) {
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
		sem_post(&ready);
		for (uint64_t i = 0;; i++)
			i = work(i, 3);
	}
	call_deep(value, depth - 1);
	pthread_cleanup_pop(1);
}

static void *calls(void *arg)
{
	call_deep(arg, 10);
	return NULL;
}

static uint64_t cancelled_in_calls(void)
{
	return cancel_all(calls, 100 * torture_scale);
}

/* ---- with each other ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned turn;
static uint64_t turn_digest;

static void *takes_turns(void *arg)
{
	const unsigned self = *(unsigned *)arg;
	for (unsigned i = 0; i < 500; i++) {
		pthread_mutex_lock(&lock);
		while (turn != self)
			pthread_cond_wait(&changed, &lock);
		turn_digest = work(turn_digest, (int)self);
		turn = (turn + 1) % 4;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

static uint64_t in_turns(void)
{
	pthread_t threads[4];
	unsigned numbers[4] = {0, 1, 2, 3};
	turn = 0;
	turn_digest = 1;
	for (int i = 0; i < 4; i++)
		start(&threads[i], takes_turns, &numbers[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return turn_digest;
}

static pthread_key_t key;
static uint64_t keys_ended;

static void end_key(void *arg)
{
	__atomic_fetch_add(&keys_ended, work((uint64_t)(uintptr_t)arg, 4) & 0xffff,
			   __ATOMIC_RELAXED);
}

static void *has_key(void *arg)
{
	pthread_setspecific(key, arg);
	return NULL;
}

static uint64_t key_destructors(void)
{
	keys_ended = 0;
	pthread_key_create(&key, end_key);
	for (uintptr_t i = 1; i < 200; i++) {
		pthread_t thread;
		start(&thread, has_key, (void *)i);
		pthread_join(thread, NULL);
	}
	pthread_key_delete(key);
	return keys_ended;
}

int main(int argc, char **argv)
{
	static const struct torture cases[] = {
		{"in_sequence", in_sequence},
		{"at_once", at_once},
		{"smallest_stacks", smallest_stacks},
		{"thread_exit", thread_exit},
		{"cancelled", cancelled},
		{"cancelled_anywhere", cancelled_anywhere},
		{"cancelled_in_calls", cancelled_in_calls},
		{"in_turns", in_turns},
		{"key_destructors", key_destructors},
		{NULL, NULL},
	};
	return argc ? torture_main(cases, argv) : 2;
}
