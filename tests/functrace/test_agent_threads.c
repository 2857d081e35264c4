/* SPDX-License-Identifier: MIT */
/*
 * Stubs and agent with threads, signal handlers and forked children, each of which has a state or a ring of its own.
 * Each test has a process of its own.
 */
#include "../core/readback.h"
#include "harness.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct harness harness;

/* ---- threads ---- */

static void *thread_body(void *argument)
{
	(void)argument;
	CHECK(work(100) == 9900);
	return NULL;
}

static void short_threads_body(void)
{
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	pthread_t threads[4];
	for (int round = 0; round < 250; round++) {
		for (int i = 0; i < 4; i++)
			CHECK(pthread_create(&threads[i], NULL, thread_body, NULL) == 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	harness_check(&harness, 0);
	CHECK(harness_begun(&harness, "work") == 1000);
	CHECK(harness_begun(&harness, "add") == 100000);
	CHECK(harness_lost(&harness) == 0);
	CHECK(harness.home->states_used < 64); /* those of dead threads are taken again */
}

static void a_thousand_short_threads(void **state)
{
	(void)state;
	assert_int_equal(in_child(short_threads_body), 0);
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static HOOKABLE void on_signal(int number)
{
	(void)number;
	handled += add(1, 0);
}

static void signals_body(int flags)
{
	static uint8_t other[1 << 16];
	const stack_t stack = {.ss_sp = other, .ss_size = sizeof(other)};
	CHECK(sigaltstack(&stack, NULL) == 0);
	harness_open(&harness);
	HOOK(&harness, on_signal);
	HOOK(&harness, add);
	HOOK(&harness, work);
	HOOK(&harness, factorial);
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags | SA_RESTART};
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	const struct itimerval often = {{0, 50}, {0, 50}};
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (int i = 0; handled < 2000; i++) {
		CHECK(work(20) == 380);
		CHECK(factorial(10) == 3628800);
	}
	const struct itimerval never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &never, NULL);
	struct harness_events all = harness_read(&harness);
	CHECK(all.damaged == 0);
	CHECK(harness_begins(&all, "on_signal") > 0);
	harness_free(&all);
}

static void signals_here_body(void)
{
	signals_body(0);
}

static void signals_elsewhere_body(void)
{
	signals_body(SA_ONSTACK);
}

static void handlers_interrupt_anywhere(void **state)
{
	(void)state;
	assert_int_equal(in_child(signals_here_body), 0);
	assert_int_equal(in_child(signals_elsewhere_body), 0);
}

/* ---- fork ---- */

#define CHILDREN 1500u

static HOOKABLE int split(void)
{
	const pid_t pid = fork();
	if (pid == 0)
		CHECK(work(50) == 2450);
	return pid;
}

static uint64_t begins_of(const struct harness_events *all, int pid, const char *name)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < all->count; i++)
		count += all->events[i].kind == KYMO_KIND_BEGIN && all->events[i].pid == pid &&
			 all->events[i].tid == pid && strcmp(all->events[i].name, name) == 0;
	return count;
}

static void fork_body(void)
{
	int status = 0;
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	HOOK(&harness, split);
	CHECK(work(10) == 90);
	const int pid = split();
	if (pid == 0) /* it has returned through its parent's hook */
		_exit(work(2) == 2 ? 7 : 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(work(10) == 90);
	struct harness_events all = harness_read(&harness);
	harness_check_nesting(&all, 0);
	CHECK(begins_of(&all, pid, "add") == 52);
	CHECK(begins_of(&all, pid, "split") == 0);
	CHECK(begins_of(&all, getpid(), "add") == 20);
	CHECK(begins_of(&all, getpid(), "split") == 1);
	harness_free(&all);
}

static void a_forked_child_writes_into_its_parents_drum(void **state)
{
	(void)state;
	assert_int_equal(in_child(fork_body), 0);
}

/* However soon they end, all their events are there; and the rings of those that ended are used again. */
static void forks_body(void)
{
	int pids[CHILDREN], status = 0;
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	for (uint32_t i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(work(3) == 6 ? 0 : 1);
		CHECK(pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	}
	struct harness_events all = harness_read(&harness);
	harness_check_nesting(&all, 0);
	for (uint32_t i = 0; i < CHILDREN; i++)
		CHECK(begins_of(&all, pids[i], "add") == 3);
	harness_free(&all);
	CHECK(harness.drum.drum.header->rings_used < 600);
}

static void many_children_share_rings(void **state)
{
	(void)state;
	assert_int_equal(in_child(forks_body), 0);
}

/* A living one keeps its ring. */
static void siblings_body(void)
{
	int pids[8], status = 0, go[2];
	char byte = 0;
	CHECK(pipe(go) == 0);
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	for (int i = 0; i < 8; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			const bool good =
				work(3) == 6 && close(go[1]) == 0 && read(go[0], &byte, 1) == 0;
			_exit(good && work(4) == 12 ? 0 : 1);
		}
	}
	close(go[1]);
	for (int i = 0; i < 8; i++)
		CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	struct harness_events all = harness_read(&harness);
	harness_check_nesting(&all, 0);
	for (int i = 0; i < 8; i++)
		CHECK(begins_of(&all, pids[i], "add") == 7);
	harness_free(&all);
}

static void children_that_live_have_rings_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(in_child(siblings_body), 0);
}

/* ---- attached once more ---- */

static void again_body(void)
{
	harness_open(&harness);
	HOOK(&harness, add);
	CHECK(add(1, 2) == 3);
	/* Another drum in the place of the first. */
	struct ky_made_drum second;
	const struct ky_made_drum_options options = {.pid = getpid(),
						     .fd = -1,
						     .ticks = true,
						     .functions = HARNESS_FUNCTIONS_MAX,
						     .ring_bytes = 4u << 20,
						     .total_bytes = 256u << 20};
	CHECK(ky_made_drum_open(&second, &options) == 0);
	harness.home->drum = (uintptr_t)second.drum.base;
	harness.home->generation++;
	harness_state(&harness)->thread = 0;
	for (int i = 0; i < 10; i++)
		CHECK(add(1, 2) == 3);
	CHECK(harness_begun(&harness, "add") == 1);
	CHECK(second.drum.header->rings_used == 1);
	harness_off(&harness);
	ky_made_drum_close(&second);
}

static void a_new_drum_is_taken_up(void **state)
{
	(void)state;
	assert_int_equal(in_child(again_body), 0);
}

/* ---- the end of threads ---- */

static pthread_barrier_t barrier;
static volatile bool exits = true;

static HOOKABLE void end_here(int n)
{
	if (n > 0)
		end_here(n - 1);
	else if (exits)
		pthread_exit((void *)5);
	CHECK(add(1, 1) == 2);
}

static HOOKABLE void wait_here(void)
{
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
}

static void *ends(void *argument)
{
	(void)argument;
	end_here(20);
	return NULL;
}

static void *waits(void *argument)
{
	(void)argument;
	wait_here();
	return NULL;
}

static void thread_ends_body(void)
{
	harness_open(&harness);
	harness_hook_unwinder(&harness);
	HOOK(&harness, add);
	HOOK(&harness, end_here);
	HOOK(&harness, wait_here);
	for (int i = 0; i < 50; i++) {
		pthread_t thread;
		void *result = NULL;
		CHECK(pthread_create(&thread, NULL, ends, NULL) == 0);
		CHECK(pthread_join(thread, &result) == 0 && result == (void *)5);
		CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
		CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
		pthread_barrier_wait(&barrier);
		CHECK(pthread_cancel(thread) == 0);
		CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	}
	CHECK(harness_begun(&harness, "end_here") == 50 * 21);
}

static void threads_end_inside_calls(void **state)
{
	(void)state;
	assert_int_equal(in_child(thread_ends_body), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_short_threads),
		cmocka_unit_test(handlers_interrupt_anywhere),
		cmocka_unit_test(a_forked_child_writes_into_its_parents_drum),
		cmocka_unit_test(many_children_share_rings),
		cmocka_unit_test(children_that_live_have_rings_of_their_own),
		cmocka_unit_test(a_new_drum_is_taken_up),
		cmocka_unit_test(threads_end_inside_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
