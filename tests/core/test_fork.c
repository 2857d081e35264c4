/* SPDX-License-Identifier: MIT */
/*
 * test_fork.c: a child has a drum of its own with nothing of the parent's in it, however it was made,
 * and the parent's stays as it was.
 */
#include "os/os.h"
#include "readback.h"

#include <fcntl.h>
#include <kymo/kymo.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void small_drum(void)
{
	ky_limits.ring_bytes = 64u << 10;
	ky_limits.total_bytes = 1u << 20;
	ky_limits.categories = "*";
}

static void count_marked(void *context, const struct ky_event *e)
{
	uint64_t *counts = context;
	if (e->kind != KYMO_KIND_LOST && e->args_count == 1)
		counts[e->args[0].value.u & 3]++;
}

/* One trace point for all, so that the child meets a registered one. */
static void trace(uint32_t mark, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++)
		KYMO_INSTANT("net", "event", "mark", mark);
}

static void expect(uint64_t ones, uint64_t twos)
{
	uint64_t counts[4] = {0};
	const struct readback totals = readback(count_marked, counts);
	CHECK(counts[1] == ones && counts[2] == twos);
	CHECK(totals.events == ones + twos && totals.lost == 0 && totals.damaged == 0);
}

static void child_traces(void)
{
	trace(2, 30);
	expect(0, 30);
	CHECK(ky_drum_peek()->header->pid == (uint32_t)ky_os_pid());
}

static void wait_for(pid_t pid)
{
	int status = -1;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void forked(void)
{
	small_drum();
	trace(1, 100);
	const pid_t pid = fork();
	if (pid == 0) {
		CHECK(ky_drum_get()); /* the child's own, made when it first needs one */
		expect(0, 0);
		child_traces();
		_exit(0);
	}
	trace(1, 10);
	wait_for(pid);
	expect(110, 0);
}

static void a_forked_child_starts_with_none_of_the_parents_events(void **state)
{
	(void)state;
	assert_int_equal(in_child(forked), 0);
}

static void *trace_in_thread(void *barrier)
{
	trace(2, 1);
	pthread_barrier_wait(barrier);
	trace(2, 20000);
	return NULL;
}

/* The other thread is first: it must not get the writer that the forking thread still points to. */
static void child_with_threads(void)
{
	pthread_barrier_t barrier;
	pthread_t thread;
	CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
	CHECK(pthread_create(&thread, NULL, trace_in_thread, &barrier) == 0);
	pthread_barrier_wait(&barrier);
	trace(2, 20000);
	pthread_join(thread, NULL);
	uint64_t counts[4] = {0};
	const struct readback totals = readback(count_marked, counts);
	CHECK(totals.damaged == 0 && totals.events + totals.lost == 40001);
	CHECK(counts[1] == 0 && counts[2] == totals.events);
}

/* Many times, with nothing before the threads: both want the child's drum at once. */
static void child_races(void)
{
	pthread_barrier_t barrier;
	pthread_t thread;
	CHECK(pthread_barrier_init(&barrier, NULL, 1) == 0);
	CHECK(pthread_create(&thread, NULL, trace_in_thread, &barrier) == 0);
	trace(2, 20000);
	pthread_join(thread, NULL);
	uint64_t counts[4] = {0};
	const struct readback totals = readback(count_marked, counts);
	CHECK(totals.damaged == 0 && totals.events + totals.lost == 40001);
	CHECK(ky_drum_peek()->header->pid == (uint32_t)ky_os_pid());
}

static void forked_with_threads(void)
{
	small_drum();
	trace(1, 100);
	for (int i = 0; i < 40; i++) {
		const pid_t pid = fork();
		if (pid == 0) {
			i ? child_races() : child_with_threads();
			_exit(0);
		}
		wait_for(pid);
	}
	expect(100, 0);
}

static void threads_of_a_child_have_writers_of_their_own(void **state)
{
	(void)state;
	if (thread_sanitized()) /* it wants no threads in a child */
		skip();
	assert_int_equal(in_child(forked_with_threads), 0);
}

/* Without the hooks of fork: what CRIU, sandboxes and some language runtimes do. */
static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void raw_forked(void)
{
	small_drum();
	trace(1, 100);
	const pid_t pid = raw_fork();
	if (pid == 0) {
		child_traces();
		_exit(0);
	}
	wait_for(pid);
	trace(1, 10);
	expect(110, 0);
}

static void a_child_of_a_raw_clone_has_its_own_drum(void **state)
{
	(void)state;
	assert_int_equal(in_child(raw_forked), 0);
}

/* The thread that forks has no writer yet, so nothing in it tells that it is another process. */
static void *fork_first(void *context)
{
	pid_t *pid = context;
	*pid = raw_fork();
	if (*pid == 0) {
		child_traces();
		_exit(0);
	}
	return NULL;
}

static void raw_forked_by_a_fresh_thread(void)
{
	pthread_t thread;
	pid_t pid = 0;
	small_drum();
	trace(1, 100);
	CHECK(pthread_create(&thread, NULL, fork_first, &pid) == 0);
	pthread_join(thread, NULL);
	wait_for(pid);
	expect(100, 0);
}

static void a_child_of_a_thread_that_never_traced_has_its_own_drum(void **state)
{
	(void)state;
	assert_int_equal(in_child(raw_forked_by_a_fresh_thread), 0);
}

static void raw_forked_before_any_event(void)
{
	small_drum();
	CHECK(KYMO_ENABLED("net")); /* makes the drum, and nothing else */
	const pid_t pid = raw_fork();
	if (pid == 0) {
		child_traces();
		_exit(0);
	}
	wait_for(pid);
	expect(0, 0);
	CHECK(ky_drum_peek()->header->rings_used == 0);
}

static void a_child_of_a_process_without_events_has_its_own_drum(void **state)
{
	(void)state;
	assert_int_equal(in_child(raw_forked_before_any_event), 0);
}

/* vfork's child is in the parent's memory: its drum must stay the parent's. */
static void vforked(void)
{
	small_drum();
	trace(1, 10);
	const pid_t pid = vfork();
	if (pid == 0) {
		trace(1, 1);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	wait_for(pid);
	trace(1, 10);
	expect(21, 0);
}

static void vfork_and_exec_leave_the_parents_drum_alone(void **state)
{
	(void)state;
	if (sanitized()) /* to them vfork is fork */
		skip();
	assert_int_equal(in_child(vforked), 0);
}

/* The same, when the child's event is the first one of the process. */
static void vforked_first(void)
{
	small_drum();
	CHECK(KYMO_ENABLED("net"));
	const pid_t pid = vfork();
	if (pid == 0) {
		trace(1, 1);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	wait_for(pid);
	CHECK(ky_drum_peek()->header->lost_ringless ==
	      1); /* a writer would be of the child's thread */
	ky_drum_peek()->header->lost_ringless = 0;
	trace(1, 10);
	expect(10, 0);
	CHECK(ky_drum_peek()->header->pid == (uint32_t)getpid());
}

static void an_event_in_vforks_child_does_not_take_the_drum_away(void **state)
{
	(void)state;
	if (sanitized())
		skip();
	assert_int_equal(in_child(vforked_first), 0);
}

/* A daemon closes everything, opens its log, and forks: the log is not the drum. */
static void descriptor_reused(void)
{
	small_drum();
	trace(1, 10);
	const int fd = ky_drum_peek()->fd;
	close(fd);
	CHECK(dup2(open("/dev/null", O_RDWR | O_CLOEXEC), fd) == fd);
	const pid_t pid = fork();
	if (pid == 0) {
		struct stat status;
		child_traces();
		CHECK(fstat(fd, &status) == 0 && S_ISCHR(status.st_mode));
		_exit(0);
	}
	wait_for(pid);
	expect(10, 0);
}

static void a_descriptor_that_is_no_longer_the_drums_is_not_closed(void **state)
{
	(void)state;
	assert_int_equal(in_child(descriptor_reused), 0);
}

static void no_drum_for_the_child(bool raw)
{
	small_drum();
	trace(1, 10);
	struct rlimit limit;
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	const struct rlimit none = {0, limit.rlim_max};
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	const pid_t pid = raw ? raw_fork() : fork();
	if (pid == 0) {
		trace(2, 1000);
		KYMO_INSTANT("other", "first", "text", "abc");
		CHECK(!KYMO_ENABLED("third"));
		kymo_thread_name("name");
		CHECK(ky_drum_peek() == NULL);
		_exit(0);
	}
	wait_for(pid);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) ==
	      0); /* the leak sanitizer opens files at the end */
}

static void no_drum_after_fork(void)
{
	no_drum_for_the_child(false);
}

static void no_drum_after_raw_fork(void)
{
	no_drum_for_the_child(true);
}

static void a_child_that_can_have_no_drum_runs_on(void **state)
{
	(void)state;
	assert_int_equal(in_child(no_drum_after_fork), 0);
	assert_int_equal(in_child(no_drum_after_raw_fork), 0);
}

static void check_name(void *name, const struct ky_event *e)
{
	CHECK(strcmp(e->thread->name.data, name) == 0);
}

/* The child's thread is another one: it has the kernel's name until it gets one of its own. */
static void named_before(bool raw)
{
	char comm[16];
	char child[] = "child", parent[] = "parent";
	small_drum();
	ky_os_comm(comm);
	kymo_thread_name(parent);
	trace(1, 10);
	for (int given = 0; given < 2; given++) {
		const pid_t pid = raw ? raw_fork() : fork();
		if (pid == 0) {
			if (given)
				kymo_thread_name(child);
			trace(2, 10);
			CHECK(readback(check_name, given ? child : comm).events == 10);
			_exit(0);
		}
		wait_for(pid);
	}
	CHECK(readback(check_name, parent).events == 10);
}

static void named_before_fork(void)
{
	named_before(false);
}

static void named_before_raw_fork(void)
{
	named_before(true);
}

static void a_child_has_not_the_name_of_the_parents_thread(void **state)
{
	(void)state;
	assert_int_equal(in_child(named_before_fork), 0);
	assert_int_equal(in_child(named_before_raw_fork), 0);
}

static void *make_the_drum(void *context)
{
	__atomic_store_n((int *)context, 1, __ATOMIC_RELEASE);
	trace(1, 1);
	return NULL;
}

/* Forks while another thread is making the drum: that thread is not in the child. */
static void forked_while_making(void)
{
	static unsigned delay; /* changes from one try to the next: see below */
	pthread_t thread;
	int started = 0;
	small_drum();
	delay = (unsigned)getpid() * 7919u % 30000u;
	CHECK(pthread_create(&thread, NULL, make_the_drum, &started) == 0);
	while (!__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		;
	for (volatile unsigned i = 0; i < delay; i++)
		;
	const pid_t pid = fork();
	if (pid == 0) {
		alarm(300); /* it would wait for that thread at each event */
		trace(2, 200);
		CHECK(ky_drum_peek() && ky_drum_peek()->header->pid == (uint32_t)ky_os_pid());
		_exit(0);
	}
	wait_for(pid);
	pthread_join(thread, NULL);
}

static void a_fork_while_the_drum_is_being_made_does_not_block_the_child(void **state)
{
	(void)state;
	if (thread_sanitized()) /* takes the parent's threads for the child's */
		skip();
	for (int i = 0; i < 60; i++)
		assert_int_equal(in_child(forked_while_making), 0);
}

/* A fork in a handler that interrupted an event: both processes finish the event. */
static pid_t forked_pid;
static bool trace_in_handler;

static void fork_in_handler(int signal)
{
	(void)signal;
	forked_pid = fork();
	CHECK(forked_pid >= 0);
	if (forked_pid == 0 && trace_in_handler)
		trace(2, 10);
}

static void fork_in_event(void)
{
	small_drum();
	trace(1, 10);
	CHECK(signal(SIGUSR1, fork_in_handler) != SIG_ERR);
	struct kymo_i_writer *const w = kymo_i_tls;
	uint64_t *const event = (uint64_t *)kymo_i_park(w);
	raise(SIGUSR1);
	if (forked_pid > 0) {
		wait_for(forked_pid);
		CHECK(event[0] == 0 && event[1] == 0);
	}
	/* As the fast path does it; the event before has the same header. */
	event[1] = 1;
	event[0] = event[-2];
	w->ky_events++;
	w->ky_pos = (uintptr_t)(event + 2);
	if (forked_pid == 0) {
		trace(2, 3000);
		uint64_t counts[4] = {0};
		const struct readback totals = readback(count_marked, counts);
		CHECK(counts[1] == 0 && totals.damaged == 0);
		CHECK(totals.events + totals.lost == 3000u + (trace_in_handler ? 10u : 0u));
		_exit(0);
	}
	trace(1, 5);
	expect(16, 0);
}

static void fork_in_event_and_trace(void)
{
	trace_in_handler = true;
	fork_in_event();
}

static void a_child_finishes_its_parents_event_out_of_sight(void **state)
{
	(void)state;
	assert_int_equal(in_child(fork_in_event), 0);
	assert_int_equal(in_child(fork_in_event_and_trace), 0);
}

/* The same with real signals: in the slow path, too. */
static volatile sig_atomic_t forks, is_child;

static void fork_at_times(int signal)
{
	(void)signal;
	forks++;
	const pid_t pid = is_child ? -1 : fork();
	if (pid == 0)
		is_child = 1;
	if (pid > 0)
		wait_for(pid);
}

struct numbers {
	uint32_t next;
};

static void check_number(void *context, const struct ky_event *e)
{
	struct numbers *numbers = context;
	if (e->kind == KYMO_KIND_LOST)
		return;
	const uint32_t number = (uint32_t)readback_arg(e, "number")->value.u;
	CHECK(number >= numbers->next);
	CHECK((uint32_t)readback_arg(e, "inverse")->value.u == ~number);
	numbers->next = number + 1;
}

static void fork_storm(void)
{
	ky_limits.ring_bytes = KY_RING_BYTES_MIN;
	ky_limits.total_bytes = 1u << 20;
	ky_limits.categories = "*";
	struct sigaction action = {.sa_handler = fork_at_times, .sa_flags = SA_RESTART};
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	/* One signal at a time: with a slow fork nothing but handlers would run. */
	const struct itimerval once = {{0, 0}, {0, 200}};
	uint32_t number = 0;
	for (int seen = -1; forks < 100 && !is_child; number++) {
		const int now = forks;
		if (now != seen)
			CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
		seen = now;
		KYMO_INSTANT("net", "numbered", "number", number, "inverse", ~number);
	}
	for (uint32_t i = 0; i < 2000; i++, number++)
		KYMO_INSTANT("net", "numbered", "number", number, "inverse", ~number);
	struct numbers numbers = {0};
	const struct readback totals = readback(check_number, &numbers);
	CHECK(totals.damaged == 0 && numbers.next == number);
	if (is_child)
		_exit(0);
}

static void forks_in_handlers_damage_no_events(void **state)
{
	(void)state;
	if (thread_sanitized())
		skip();
	assert_int_equal(in_child(fork_storm), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forked_child_starts_with_none_of_the_parents_events),
		cmocka_unit_test(threads_of_a_child_have_writers_of_their_own),
		cmocka_unit_test(a_child_of_a_raw_clone_has_its_own_drum),
		cmocka_unit_test(a_child_of_a_thread_that_never_traced_has_its_own_drum),
		cmocka_unit_test(a_child_of_a_process_without_events_has_its_own_drum),
		cmocka_unit_test(vfork_and_exec_leave_the_parents_drum_alone),
		cmocka_unit_test(an_event_in_vforks_child_does_not_take_the_drum_away),
		cmocka_unit_test(a_descriptor_that_is_no_longer_the_drums_is_not_closed),
		cmocka_unit_test(a_child_that_can_have_no_drum_runs_on),
		cmocka_unit_test(a_child_has_not_the_name_of_the_parents_thread),
		cmocka_unit_test(a_fork_while_the_drum_is_being_made_does_not_block_the_child),
		cmocka_unit_test(a_child_finishes_its_parents_event_out_of_sight),
		cmocka_unit_test(forks_in_handlers_damage_no_events),
	};
	return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
