/* SPDX-License-Identifier: MIT */
/*
 * test_threads.c: threads that come and go by the thousand share a bounded number of rings, and every
 * event is read or counted. A thread keeps the name it was given, whatever slot it has.
 */
#include "readback.h"

#include <kymo/kymo.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENTS 10u

static void *trace_and_return(void *context)
{
	const uint32_t number = (uint32_t)(uintptr_t)context;
	for (uint32_t i = 0; i < EVENTS; i++)
		KYMO_INSTANT("net", "event", "number", number, "inverse", ~number);
	return NULL;
}

#ifndef EMULATED
#define EMULATED 0
#endif
#ifdef __GLIBC__
#define GLIBC 1
#else
#define GLIBC 0
#endif

/* Without the thread's destructors: as a thread of clone() ends. */
static void *trace_and_vanish(void *context)
{
	trace_and_return(context);
	syscall(SYS_exit, 0);
	return NULL;
}

static void check_event(void *context, const struct ky_event *e)
{
	(void)context;
	if (e->kind == KYMO_KIND_LOST)
		return;
	CHECK(e->args_count == 2);
	CHECK((uint32_t)e->args[0].value.u == (uint32_t)~e->args[1].value.u);
}

static void run_threads(void *(*body)(void *), uint32_t count, uint32_t at_once)
{
	pthread_t threads[64];
	for (uint32_t i = 0; i < count; i += at_once) {
		for (uint32_t j = 0; j < at_once; j++)
			CHECK(pthread_create(&threads[j], NULL, body, (void *)(uintptr_t)(i + j)) ==
			      0);
		for (uint32_t j = 0; j < at_once; j++)
			pthread_join(threads[j], NULL);
	}
}

static void account(uint32_t threads)
{
	const struct readback totals = readback(check_event, NULL);
	const struct ky_drum_header *header = ky_drum_peek()->header;
	CHECK(totals.damaged == 0);
	CHECK(totals.events + totals.lost == (uint64_t)threads * EVENTS);
	CHECK(totals.events > 0);
	CHECK(header->space_used <= ky_drum_get()->header->budget_bytes);
}

static void small_drum(uint32_t rings)
{
	ky_limits.ring_bytes = KY_RING_BYTES_MIN;
	ky_limits.total_bytes = 256u << 10;
	ky_limits.rings_max = rings;
	ky_limits.categories = "*";
}

static void thousands(void)
{
	const uint32_t threads = sanitized() ? 2000 : 10000;
	small_drum(2048);
	run_threads(trace_and_return, threads, 8);
	account(threads);
	CHECK(ky_drum_peek()->header->lost_ringless == 0); /* there was a ring for everybody */
	CHECK(ky_drum_peek()->header->rings_used <= 16);
}

static void ten_thousand_threads_share_a_few_rings(void **state)
{
	(void)state;
	assert_int_equal(in_child(thousands), 0);
}

static void vanishing(void)
{
	small_drum(24);
	run_threads(trace_and_vanish, 2000, 4);
	account(2000);
	CHECK(ky_drum_peek()->header->lost_ringless == 0);
}

static void what_a_thread_leaves_that_vanished_is_used_again(void **state)
{
	(void)state;
	/* They want to see a thread end; in qemu one is there for a while after it has ended. */
	if (sanitized() || !GLIBC || EMULATED)
		skip();
	assert_int_equal(in_child(vanishing), 0);
}

static pthread_barrier_t barrier;

static void *trace_together(void *context)
{
	pthread_barrier_wait(&barrier);
	trace_and_return(context);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* More threads at once than there are rings: those without one lose, and it is counted. */
static void too_many(void)
{
	small_drum(4);
	pthread_barrier_init(&barrier, NULL, 16);
	run_threads(trace_together, 16, 16);
	account(16);
	CHECK(ky_drum_peek()->header->lost_ringless == 12 * EVENTS);
}

static void events_of_threads_without_a_ring_are_counted(void **state)
{
	(void)state;
	assert_int_equal(in_child(too_many), 0);
}

/* Four full rings would be the budget: they get smaller instead, and everybody has one. */
static void more_than_full_rings(void)
{
	ky_limits.ring_bytes = 1u << 20;
	ky_limits.total_bytes = 4u << 20;
	ky_limits.categories = "*";
	pthread_barrier_init(&barrier, NULL, 64);
	run_threads(trace_together, 64, 64);
	account(64);
	CHECK(ky_drum_peek()->header->lost_ringless == 0);
}

static void rings_get_smaller_before_threads_get_none(void **state)
{
	(void)state;
	assert_int_equal(in_child(more_than_full_rings), 0);
}

static _Atomic bool stop;
static uint64_t written[2];

static void *trace_until_stopped(void *context)
{
	const uint32_t self = (uint32_t)(uintptr_t)context;
	uint64_t n = 0;
	for (; !stop; n++)
		KYMO_INSTANT("net", "event", "number", (uint32_t)n, "inverse", ~(uint32_t)n);
	written[self] = n;
	return NULL;
}

static void add_up(void *context, const struct ky_event *e)
{
	uint64_t *sum = context;
	check_event(NULL, e);
	*sum += e->kind == KYMO_KIND_LOST ? e->id : 1;
}

/* Read while it is written and lapped: nothing is damaged and the sum is right. */
static void read_while_written(void)
{
	static struct ky_stream stream;
	pthread_t threads[2];
	const char *what;
	uint64_t sum = 0;
	small_drum(16);
	struct ky_drum *drum = ky_drum_get();
	CHECK(ky_stream_open(&stream, drum->base, drum->bytes, NULL, false, 0, &what) == 0);
	stream.sink = (struct ky_stream_sink){.event = add_up, .context = &sum};
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, trace_until_stopped, (void *)i) == 0);
	for (int i = 0; i < (sanitized() ? 200 : 2000) || stream.lost == 0; i++) {
		ky_clock_take(drum, true);
		CHECK(ky_stream_read(&stream, 0) == 0);
		if (i % 16 == 0)
			sched_yield();
	}
	stop = true;
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(ky_stream_read_all(&stream) == 0);
	CHECK(stream.damaged == 0 && stream.events + stream.lost == written[0] + written[1]);
	CHECK(sum == written[0] + written[1] && stream.lost > 0);
	ky_stream_close(&stream);
}

static void a_reader_of_rings_being_overwritten_accounts_for_every_event(void **state)
{
	(void)state;
	assert_int_equal(in_child(read_while_written), 0);
}

/* The name that each event's thread has when the event is read. */
static void check_named(void *context, const struct ky_event *e)
{
	(void)context;
	CHECK(strcmp(e->thread->name.data, "named") == 0);
}

static pthread_key_t late_key;

static void trace_late(void *context)
{
	KYMO_INSTANT("net", "late", "number", (uint32_t)(uintptr_t)context);
}

static void *trace_named(void *context)
{
	kymo_thread_name("named");
	trace_and_return(context);
	CHECK(pthread_setspecific(late_key, (void *)1) == 0);
	return NULL;
}

/* Keys are destroyed in the order they were made, so the recorder's own comes before this one. */
static void trace_after_the_end(void)
{
	small_drum(16);
	CHECK(pthread_key_create(&late_key, trace_late) == 0);
	run_threads(trace_named, 2, 1);
	const struct readback totals = readback(check_named, NULL);
	CHECK(totals.events == 2 * (EVENTS + 1) && totals.lost == 0);
	CHECK(ky_drum_peek()->header->rings_used == 1); /* left again after the late event */
}

static void a_thread_keeps_its_name_while_it_ends(void **state)
{
	(void)state;
	assert_int_equal(in_child(trace_after_the_end), 0);
}

static void *name_and_trace_later(void *context)
{
	kymo_thread_name("named");
	pthread_barrier_wait(&barrier); /* no slot is left until the others end */
	pthread_barrier_wait(&barrier);
	trace_and_return(context);
	return NULL;
}

static void *hold_slot(void *context)
{
	trace_and_return(context);
	kymo_thread_name("named");
	pthread_barrier_wait(context);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void named_without_slot(void)
{
	pthread_barrier_t held;
	pthread_t holder, late;
	small_drum(1);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_barrier_init(&held, NULL, 2);
	CHECK(pthread_create(&holder, NULL, hold_slot, &held) == 0);
	pthread_barrier_wait(&held);
	CHECK(pthread_create(&late, NULL, name_and_trace_later, NULL) == 0);
	CHECK(pthread_join(holder, NULL) == 0);
	pthread_barrier_wait(&barrier);
	CHECK(pthread_join(late, NULL) == 0);
	const struct readback totals = readback(check_named, NULL);
	CHECK(totals.events == 2 * EVENTS && totals.lost == 0);
}

static void a_name_is_kept_until_there_is_a_slot_for_it(void **state)
{
	(void)state;
	assert_int_equal(in_child(named_without_slot), 0);
}

/* Counts the calls that ask whether a thread lives: the kernel hands each over as a signal. */
static _Atomic uint64_t questions;

static void on_question(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	ucontext_t *const machine = context;
#if defined(__x86_64__)
	machine->uc_mcontext.gregs[REG_RAX] = 0; /* it does */
#elif defined(__aarch64__)
	machine->uc_mcontext.regs[0] = 0;
#endif
	questions++;
}

static bool count_questions(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	struct sigaction action = {.sa_sigaction = on_question, .sa_flags = SA_SIGINFO};
	return sigaction(SIGSYS, &action, NULL) == 0 &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#define MANY 200000u

static void *trace_many(void *context)
{
	for (uint32_t i = 0; i < MANY; i++)
		KYMO_INSTANT("net", "event", "number", i, "inverse", ~i);
	return context;
}

static void *hold_room(void *context)
{
	trace_and_return(context);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* A thread that finds all slots, or all rings, in use asks once whether their threads live, and not with each event. */
static void trace_without_room(void)
{
	pthread_t threads[4], extra;
	if (!count_questions())
		exit(77);
	pthread_barrier_init(&barrier, NULL, 5);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, hold_room, (void *)i) == 0);
	pthread_barrier_wait(&barrier);
	CHECK(pthread_create(&extra, NULL, trace_many, NULL) == 0);
	pthread_join(extra, NULL);
	CHECK(ky_drum_peek()->header->lost_ringless == MANY);
	CHECK(questions > 0 && questions < MANY / 2);
	/* A slot that is given back is used again. */
	pthread_barrier_wait(&barrier);
	for (uint32_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	run_threads(trace_and_return, 1, 1);
	CHECK(ky_drum_peek()->header->lost_ringless == MANY);
}

static void trace_without_slot(void)
{
	small_drum(4);
	trace_without_room();
}

static void trace_without_ring(void)
{
	small_drum(64);
	ky_limits.total_bytes = 4 * KY_RING_BYTES_MIN;
	trace_without_room();
}

static void events_without_room_ask_no_system(void **state)
{
	(void)state;
	if (sanitized())
		skip();
	void (*const bodies[])(void) = {trace_without_slot, trace_without_ring};
	for (size_t i = 0; i < 2; i++) {
		const int code = in_child(bodies[i]);
		if (code == 77) {
			print_message("the kernel has no seccomp filters\n");
			skip();
		}
		assert_int_equal(code, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_thousand_threads_share_a_few_rings),
		cmocka_unit_test(what_a_thread_leaves_that_vanished_is_used_again),
		cmocka_unit_test(events_of_threads_without_a_ring_are_counted),
		cmocka_unit_test(rings_get_smaller_before_threads_get_none),
		cmocka_unit_test(a_reader_of_rings_being_overwritten_accounts_for_every_event),
		cmocka_unit_test(a_thread_keeps_its_name_while_it_ends),
		cmocka_unit_test(a_name_is_kept_until_there_is_a_slot_for_it),
		cmocka_unit_test(events_without_room_ask_no_system),
	};
	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
