/* SPDX-License-Identifier: MIT */
/*
 * test_signals.c: a storm of signals whose handlers trace, over threads that trace. Every event is
 * whole, and is read or counted as lost; also the very first ones of a process.
 */
#include "os/os.h"
#include "readback.h"

#include <errno.h>
#include <kymo/kymo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 3u
#define DEPTH_MAX 6 /* deeper than a thread has writers */

/* Who wrote an event: a thread's own code or its handler. Numbers follow each other in each. */
static __thread uint64_t own_number;
static __thread volatile uint64_t handler_number;
static __thread uint32_t self;
static _Atomic uint64_t written;
static _Atomic bool stop;

static void name_text(char text[24], uint64_t number)
{
	/* Of every length up to 20, and without stdio, which is not for handlers. */
	const size_t bytes = number % 21;
	for (size_t i = 0; i < bytes; i++)
		text[i] = (char)('a' + (number + i) % 26);
	text[bytes] = '\0';
}

/* Called, so that its stack pointer is not that of a caller which has parked the writer itself. */
static __attribute__((noinline)) void trace_plain(uint64_t number, uint32_t who)
{
	KYMO_INSTANT("net", "plain", "number", number, "inverse", ~number, "who", who);
	written++;
}

static void trace_text(uint64_t number, uint32_t who)
{
	char text[24];
	const char *const t = text;
	name_text(text, number);
	KYMO_INSTANT("net", "text", "number", number, "text", t, "who", who);
	written++;
}

static void trace_one(uint64_t number, uint32_t who)
{
	if (number % 3)
		trace_plain(number, who);
	else
		trace_text(number, who);
}

/* Signals sent to a thread whose handlers have not returned: as deep as they may nest. */
static _Atomic int32_t outstanding[THREADS];

static void on_signal(int signal)
{
	(void)signal;
	const int saved = errno;
	errno = 12345;
	/* A handler that interrupts this one takes numbers as well, so none is used twice. */
	const uint64_t number = __atomic_fetch_add(&handler_number, 1, __ATOMIC_RELAXED);
	trace_one(number, THREADS + self);
	if (errno != 12345)
		check_failed(__FILE__, __LINE__, "errno is left alone");
	errno = saved;
	outstanding[self]--;
}

static void *trace_under_fire(void *context)
{
	self = (uint32_t)(uintptr_t)context;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0); /* from here on self is right */
	while (!stop || outstanding[self] != 0)
		trace_one(own_number++, self);
	return NULL;
}

/* As many signals as the threads can take, of the kind that queues. */
static void fire(const pthread_t *threads, long milliseconds)
{
	const uint64_t until = ky_os_monotonic() + (uint64_t)milliseconds * 1000000u;
	while (ky_os_monotonic() < until)
		for (uint32_t i = 0; i < THREADS; i++)
			if (outstanding[i] < DEPTH_MAX) {
				outstanding[i]++;
				CHECK(pthread_kill(threads[i], SIGRTMIN) == 0);
			}
}

struct order {
	uint64_t events;
	uint64_t from_handlers;
	uint64_t next[2 * THREADS];
};

static void check_event(void *context, const struct ky_event *e)
{
	struct order *order = context;
	if (e->kind == KYMO_KIND_LOST)
		return;
	char text[24];
	const uint64_t number = readback_arg(e, "number")->value.u;
	const uint64_t who = readback_arg(e, "who")->value.u;
	name_text(text, number);
	CHECK(e->args_count == 3 && who < 2 * THREADS &&
	      strcmp(e->site->category.data, "net") == 0);
	if (number % 3)
		CHECK(strcmp(e->name.data, "plain") == 0 &&
		      readback_arg(e, "inverse")->value.u == ~number);
	else
		CHECK(strcmp(e->name.data, "text") == 0 &&
		      strcmp(readback_arg(e, "text")->string, text) == 0);
	/* A thread's own events are in order; a handler's number may be overtaken by a nested one. */
	if (who < THREADS) {
		CHECK(number >= order->next[who]);
		order->next[who] = number + 1;
	}
	order->events++;
	order->from_handlers += who >= THREADS;
}

#ifndef EMULATED
#define EMULATED 0
#endif

static void storm(int flags, long milliseconds)
{
	pthread_t threads[THREADS];
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | flags};
	sigset_t set;
	CHECK(sigaction(SIGRTMIN, &action, NULL) == 0);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, trace_under_fire, (void *)i) == 0);
	fire(threads, milliseconds);
	stop = true;
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	struct order order = {0};
	const struct readback totals = readback(check_event, &order);
	CHECK(totals.damaged == 0 && totals.events + totals.lost == written);
	CHECK(order.events == totals.events);
	/* A CPU in software may be too slow to be interrupted in that time. */
	CHECK(EMULATED || milliseconds < 100 || order.from_handlers > 0);
}

static void small_drum(void)
{
	ky_limits.ring_bytes = 256u << 10;
	ky_limits.total_bytes = 8u << 20;
	ky_limits.categories = "*";
}

static void plain_storm(void)
{
	small_drum();
	storm(0, 800);
}

static void nested_storm(void)
{
	small_drum();
	storm(SA_NODEFER, 800);
}

/* Nobody has a ring, a registered trace point or even a drum when the first signals come. */
static void first_events(void)
{
	small_drum();
	storm(SA_NODEFER, 3);
}

static void on_timer(int signal)
{
	(void)signal;
	const uint64_t number = __atomic_fetch_add(&handler_number, 1, __ATOMIC_RELAXED);
	trace_one(number, THREADS + self);
}

/* The thread sanitizer hands signals over in calls that may wait: so there is one now and then. */
static void *trace_until_stopped(void *context)
{
	self = (uint32_t)(uintptr_t)context;
	while (!stop) {
		trace_one(own_number++, self);
		if (own_number % 512 == 0)
			usleep(0);
	}
	return NULL;
}

/* SIGPROF as profilers use it: the running thread gets it. Also under the thread sanitizer. */
static void timer_storm(void)
{
	pthread_t threads[THREADS];
	small_drum();
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	CHECK(sigaction(SIGPROF, &action, NULL) == 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, trace_until_stopped, (void *)i) == 0);
	const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
	const uint64_t until = ky_os_monotonic() + UINT64_C(800000000);
	while (ky_os_monotonic() < until)
		usleep(1000);
	CHECK(setitimer(ITIMER_PROF, &never, NULL) == 0);
	stop = true;
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	struct order order = {0};
	const struct readback totals = readback(check_event, &order);
	CHECK(totals.damaged == 0 && totals.events + totals.lost == written);
	CHECK(order.events == totals.events && order.from_handlers > 0);
}

static void a_profiling_timers_handlers_damage_none(void **state)
{
	(void)state;
	assert_int_equal(in_child(timer_storm), 0);
}

static void handlers_that_interrupt_events_damage_none(void **state)
{
	(void)state;
	if (thread_sanitized())
		skip();
	assert_int_equal(in_child(plain_storm), 0);
}

static void handlers_that_interrupt_handlers_damage_none(void **state)
{
	(void)state;
	if (thread_sanitized())
		skip();
	assert_int_equal(in_child(nested_storm), 0);
}

static void the_first_events_of_a_process_may_be_in_handlers(void **state)
{
	(void)state;
	if (thread_sanitized())
		skip();
	for (int i = 0; i < 40; i++)
		assert_int_equal(in_child(first_events), 0);
}

/* A handler that interrupts an event, again and again, deeper than there are levels. */
static void dive(int signal)
{
	(void)signal;
	static int depth;
	if (++depth < 12) {
		struct kymo_i_writer *w = kymo_i_tls;
		const uintptr_t was = kymo_i_park(w); /* as if in the middle of an event */
		raise(SIGUSR1);
		trace_plain(1, THREADS);
		w->ky_pos = was;
	}
	trace_plain(2, THREADS);
	depth--;
}

static void deep(void)
{
	struct order order = {0};
	small_drum();
	struct sigaction action = {.sa_handler = dive, .sa_flags = SA_NODEFER};
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	trace_plain(1, 0);
	raise(SIGUSR1);
	trace_plain(2, 0);
	const struct readback totals = readback(check_event, &order);
	CHECK(totals.damaged == 0 && totals.events + totals.lost == written);
}

static void levels_too_deep_are_counted(void **state)
{
	(void)state;
	if (thread_sanitized())
		skip();
	assert_int_equal(in_child(deep), 0);
}

/* A part of the drum that is taken away, so that a signal comes exactly when it is needed. */
static struct {
	void *data;
	size_t bytes;
} part;

static void on_fault(int signal)
{
	(void)signal;
	CHECK(mprotect(part.data, part.bytes, PROT_READ | PROT_WRITE) == 0);
	trace_plain(1, THREADS);
	kymo_thread_name("named");
}

static void *trace_named(void *context)
{
	kymo_thread_name("named");
	trace_plain(1, 0);
	return context;
}

static void *trace_and_fault(void *context)
{
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = (int)SA_RESETHAND};
	CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
	CHECK(mprotect(part.data, part.bytes, PROT_NONE) == 0);
	trace_plain(2, 0);
	CHECK(sigaction(SIGSEGV, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
	return context;
}

static void check_named(void *context, const struct ky_event *e)
{
	(void)context;
	CHECK(strcmp(e->thread->name.data, "named") == 0);
}

static void fault_in_first_event(uint64_t from, uint64_t to, uint64_t events)
{
	void *(*const bodies[])(void *) = {trace_named, trace_and_fault};
	part.data = ky_drum_get()->base + from;
	part.bytes = to - from;
	for (size_t i = 0; i < 2; i++) {
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, bodies[i], NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	const struct readback totals = readback(check_named, NULL);
	CHECK(totals.events == events && totals.events + totals.lost == written);
	CHECK(ky_drum_peek()->header->rings_used == 1);
}

/* The header is first needed when the thread has seen that it has no slot. */
static void fault_before_attaching(void)
{
	small_drum();
	fault_in_first_event(0, KY_DRUM_HEADER_BYTES, 3);
}

/* The hash table is first needed when the thread has its slot, for the kernel's name. */
static void fault_while_attaching(void)
{
	small_drum();
	const struct ky_drum_header *h = ky_drum_get()->header;
	fault_in_first_event(h->buckets_at, h->rings_at, 2);
}

static void a_handler_that_traces_first_shares_its_threads_ring(void **state)
{
	(void)state;
	assert_int_equal(in_child(fault_before_attaching), 0);
}

static void a_name_given_while_a_thread_gets_its_slot_is_kept(void **state)
{
	(void)state;
	assert_int_equal(in_child(fault_while_attaching), 0);
}

/* The thread that makes the drum faults on the globs, and its handler gives it a name: there is no drum yet. */
static void fault_while_making(void)
{
	char *globs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(globs != MAP_FAILED);
	small_drum();
	globs[0] = '*';
	ky_limits.categories = globs;
	part.data = globs;
	part.bytes = 4096;
	trace_and_fault(NULL);
	const struct readback totals = readback(check_named, NULL);
	CHECK(totals.events == 1 && totals.events + totals.lost == written);
}

static void a_name_given_while_the_drum_is_made_is_kept(void **state)
{
	(void)state;
	assert_int_equal(in_child(fault_while_making), 0);
}

/*
 * Handlers that do not return: they jump out of the event that they interrupted, as siglongjmp, an exception or a
 * cancellation does.
 */
#define JUMPS 200
static sigjmp_buf before_event;

static void jump_out(int signal)
{
	(void)signal;
	siglongjmp(before_event, 1);
}

static void count_level0(void *context, const struct ky_event *e)
{
	*(uint64_t *)context += e->kind != KYMO_KIND_LOST;
}

static void check_all_in_one_ring(uint64_t events)
{
	uint64_t read = 0;
	const struct readback totals = readback(count_level0, &read);
	const struct ky_drum *drum = ky_drum_peek();
	CHECK(totals.damaged == 0 && totals.overwritten == 0 && read == events);
	CHECK(drum->header->lost_nested == 0 && drum->header->lost_ringless == 0);
	CHECK(drum->header->lost_unfinished == JUMPS && drum->header->rings_used == 1);
}

/* Leave an event, and trace in the same function. */
static void jump_out_of_events(void)
{
	small_drum();
	CHECK(signal(SIGUSR1, jump_out) != SIG_ERR);
	for (volatile int i = 0; i <= JUMPS; i++) {
		if (i > 0 && sigsetjmp(before_event, 1) == 0) {
			kymo_i_park(kymo_i_tls); /* as if in the middle of an event */
			raise(SIGUSR1);
		}
		KYMO_INSTANT("net", "after", "number", (int)i);
	}
	check_all_in_one_ring(JUMPS + 1);
}

__attribute__((noinline)) static void leave_event_below(int deep)
{
	volatile char frame[512];
	frame[0] = (char)deep;
	if (deep > 0)
		leave_event_below(deep - 1);
	kymo_i_park(kymo_i_tls);
	raise(SIGUSR1);
	frame[1] = frame[0];
}

/* Leave an event of functions that are called, and trace in their caller. */
static void jump_out_of_callees(void)
{
	small_drum();
	CHECK(signal(SIGUSR1, jump_out) != SIG_ERR);
	for (volatile int i = 0; i <= JUMPS; i++) {
		if (i > 0 && sigsetjmp(before_event, 1) == 0)
			leave_event_below(i % 40);
		KYMO_INSTANT("net", "after", "number", (int)i);
	}
	check_all_in_one_ring(JUMPS + 1);
}

static void threads_that_leave_events_recover(void **state)
{
	(void)state;
	if (thread_sanitized())
		skip();
	assert_int_equal(in_child(jump_out_of_events), 0);
	assert_int_equal(in_child(jump_out_of_callees), 0);
}

/* Events on a signal stack that is above the interrupted event's frame: that event is not left. */
static void trace_on_signal_stack(int signal)
{
	(void)signal;
	trace_plain(1, THREADS);
	trace_plain(2, THREADS);
}

static void interrupt_below_signal_stack(void)
{
	char stack[32768] __attribute__((aligned(16)));
	const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = trace_on_signal_stack, .sa_flags = SA_ONSTACK};
	small_drum();
	CHECK(sigaltstack(&alternate, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
	trace_plain(1, 0);
	struct kymo_i_writer *const w = kymo_i_tls;
	const uintptr_t was = kymo_i_park(w), parked = w->ky_pos;
	raise(SIGUSR1);
	CHECK(w->ky_pos == parked);
	w->ky_pos = was;
	trace_plain(2, 0);
	struct order order = {0};
	const struct readback totals = readback(check_event, &order);
	CHECK(totals.damaged == 0 && totals.events == 4 && written == 4);
	CHECK(ky_drum_peek()->header->lost_unfinished == 0);
}

static void events_on_a_signal_stack_leave_the_interrupted_one_alone(void **state)
{
	(void)state;
	if (sanitized())
		skip();
	assert_int_equal(in_child(interrupt_below_signal_stack), 0);
}

/* Real signals: each event is whole and in order, and almost all are there. */
static void on_jump_timer(int signal)
{
	(void)signal;
	const uint64_t number = __atomic_fetch_add(&handler_number, 1, __ATOMIC_RELAXED);
	trace_one(number, THREADS + self);
	siglongjmp(before_event, 1);
}

static void jump_storm(void)
{
	static volatile uint64_t jumps;
	small_drum();
	struct sigaction action = {.sa_handler = on_jump_timer};
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	trace_plain(1, 0);
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	if (sigsetjmp(before_event, 1) != 0)
		jumps++;
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	while (jumps < 3000)
		trace_one(__atomic_add_fetch(&own_number, 1, __ATOMIC_RELAXED), 0);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	struct order order = {0};
	const struct readback totals = readback(check_event, &order);
	CHECK(totals.damaged == 0 && order.from_handlers > 0);
	CHECK(ky_drum_peek()->header->lost_nested == 0);
}

static void handlers_that_jump_away_damage_none(void **state)
{
	(void)state;
	if (thread_sanitized())
		skip();
	assert_int_equal(in_child(jump_storm), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profiling_timers_handlers_damage_none),
		cmocka_unit_test(handlers_that_interrupt_events_damage_none),
		cmocka_unit_test(handlers_that_interrupt_handlers_damage_none),
		cmocka_unit_test(the_first_events_of_a_process_may_be_in_handlers),
		cmocka_unit_test(levels_too_deep_are_counted),
		cmocka_unit_test(a_handler_that_traces_first_shares_its_threads_ring),
		cmocka_unit_test(a_name_given_while_a_thread_gets_its_slot_is_kept),
		cmocka_unit_test(a_name_given_while_the_drum_is_made_is_kept),
		cmocka_unit_test(threads_that_leave_events_recover),
		cmocka_unit_test(events_on_a_signal_stack_leave_the_interrupted_one_alone),
		cmocka_unit_test(handlers_that_jump_away_damage_none),
	};
	return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}
