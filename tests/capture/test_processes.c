/* SPDX-License-Identifier: MIT */
/*
 * test_processes.c: without a mailbox: processes, their children and their drums are found in /proc, and their ends
 * are noticed and told from those of others that get the same number.
 */
#include "capture/process_users.h"
#include "core/drum.h"
#include "core/layout.h"
#include "lives.h"
#include "process/drum_find.h"
#include "process/proc.h"

#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENTS 50u

static struct lives lives;
static struct meeting meeting;
static char message[KY_MESSAGE_BYTES];

static int set_up(void **state)
{
	(void)state;
	meeting_open(&meeting);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	const bool right = lives.mistakes == 0;
	lives_end(&lives);
	meeting_close(&meeting);
	return right ? 0 : -1;
}

static pid_t follow(enum ky_processes_scope scope, void (*body)(void *), void *context)
{
	lives_begin(&lives, scope);
	const pid_t pid = start(body, context, NULL);
	if (scope != KY_PROCESSES_ALL)
		assert_int_equal(ky_processes_add(lives.processes, pid, message), 0);
	return pid;
}

static void reap(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Drums and ends.
 * ------------------------------------------------------------------------------------------------
 */

static void trace_and_wait(void *context)
{
	trace_events(EVENTS);
	arrive(&meeting);
	await_go(&meeting);
	if (context)
		raise(*(const int *)context);
	_exit(7);
}

static void a_process_has_its_drum_and_its_end(void **state)
{
	(void)state;
	const pid_t pid = follow(KY_PROCESSES_GIVEN, trace_and_wait, NULL);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1);
	assert_int_equal(ky_processes_count(lives.processes), 1);
	assert_int_equal(ky_processes_pid(lives.processes, 0), pid);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(lives_of(&lives, pid)->events, EVENTS);
	assert_int_equal(lives_of(&lives, pid)->status, 7 << 8); /* nobody has waited for it */
	assert_int_equal(ky_processes_count(lives.processes), 0);
	reap(pid);
}

static void a_killed_process_tells_its_signal(void **state)
{
	(void)state;
	static const int killed = SIGKILL;
	const pid_t pid = follow(KY_PROCESSES_GIVEN, trace_and_wait, (void *)(uintptr_t)&killed);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(lives_of(&lives, pid)->status, SIGKILL);
	assert_int_equal(lives_of(&lives, pid)->events, EVENTS);
	reap(pid);
}

static void wait_then_trace(void *context)
{
	arrive(&meeting);
	await_go(&meeting);
	trace_and_wait(context);
}

static void a_drum_that_is_made_later_is_found(void **state)
{
	(void)state;
	const pid_t pid = follow(KY_PROCESSES_GIVEN, wait_then_trace, NULL);
	await_child(&meeting);
	for (int i = 0; i < 5; i++)
		LIVES_UNTIL(&lives, true);
	assert_int_equal(lives_drums(&lives, pid), 0);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(lives_of(&lives, pid)->events, EVENTS);
	reap(pid);
}

static void *trace_in_thread(void *context)
{
	trace_and_wait(context);
	return NULL;
}

static void end_main_thread(void *context)
{
	pthread_t thread;
	pthread_create(&thread, NULL, trace_in_thread, context);
	pthread_exit(NULL);
}

static void a_process_whose_main_thread_ended_has_its_drum(void **state)
{
	(void)state;
	const pid_t pid = start(end_main_thread, NULL, NULL);
	struct ky_proc_stat stat = {0};
	await_child(&meeting);
	while (stat.state != 'Z')
		assert_int_equal(ky_proc_stat(pid, 0, &stat), 0);
	lives_begin(&lives, KY_PROCESSES_GIVEN);
	assert_int_equal(ky_processes_add(lives.processes, pid, message), 0);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1);
	assert_false(lives_ended(&lives, pid));
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(lives_of(&lives, pid)->events, EVENTS);
	reap(pid);
}

/* The other program's descriptors of the meeting are these. */
static void execute(void *context)
{
	(void)context;
	char in[16], out[16];
	trace_events(EVENTS);
	arrive(&meeting);
	await_go(&meeting);
	snprintf(in, sizeof(in), "%d", meeting.to_child[0]);
	snprintf(out, sizeof(out), "%d", meeting.to_parent[1]);
	setenv("KYMO_CATEGORIES", "*", 1);
	setenv("KYMO_LIMITS", "total=1M", 1);
	execl("/proc/self/exe", "test_processes", "trace", in, out, (char *)NULL);
	_exit(126);
}

static void a_process_that_executes_another_program_has_another_drum(void **state)
{
	(void)state;
	const pid_t pid = follow(KY_PROCESSES_GIVEN, execute, NULL);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 2);
	await_child(&meeting);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(lives.count, 1);
	assert_int_equal(lives_of(&lives, pid)->events, 2 * EVENTS);
	reap(pid);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Children.
 * ------------------------------------------------------------------------------------------------
 */

/* A child that does not trace has its parent's descriptor: that is not its drum. */
static void fork_one(void *context)
{
	trace_events(EVENTS);
	const pid_t child = fork();
	if (child == 0) {
		if (context) {
			const pid_t grandchild = fork();
			if (grandchild == 0) {
				trace_events(EVENTS);
				arrive(&meeting);
				await_go(&meeting);
				_exit(0);
			}
			waitpid(grandchild, NULL, 0);
		} else {
			arrive(&meeting);
			await_go(&meeting);
		}
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void children_and_their_children_are_found(void **state)
{
	const pid_t pid = follow(KY_PROCESSES_CHILDREN, fork_one, state);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives.count == 3 && lives.life[0].drums == 1 &&
				    lives.life[1].drums + lives.life[2].drums == 1);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_all_ended(&lives) == 3);
	assert_int_equal(lives.life[0].pid, pid);
	assert_int_equal(lives.life[0].events + lives.life[1].events + lives.life[2].events,
			 2 * EVENTS);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(lives.life[i].status == 0 || lives.life[i].status == -1);
	reap(pid);
}

/* The first child waits for its parent to ask how it ended; the second makes kymo look again. */
static void leave_a_zombie(void *context)
{
	(void)context;
	const pid_t first = fork();
	if (first == 0) {
		arrive(&meeting);
		await_go(&meeting);
		_exit(0);
	}
	siginfo_t info;
	waitid(P_PID, (id_t)first, &info, WEXITED | WNOWAIT);
	if (fork() == 0) {
		arrive(&meeting);
		await_go(&meeting);
		_exit(0);
	}
	wait(NULL);
	wait(NULL);
}

static void a_child_that_ended_is_told_once(void **state)
{
	(void)state;
	const pid_t pid = follow(KY_PROCESSES_CHILDREN, leave_a_zombie, NULL);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives.count == 2);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives.life[1].ended);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives.count == 3);
	assert_int_not_equal(lives.life[2].pid, lives.life[1].pid);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(lives.count, 3);
	reap(pid);
}

static void children_are_not_followed_unless_asked_for(void **state)
{
	(void)state;
	const pid_t pid = follow(KY_PROCESSES_GIVEN, fork_one, NULL);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(lives.count, 1);
	reap(pid);
}

static void *fork_in_thread(void *context)
{
	fork_one(context);
	return NULL;
}

static void fork_in_a_thread(void *context)
{
	pthread_t thread;
	pthread_create(&thread, NULL, fork_in_thread, context);
	pthread_join(thread, NULL);
}

static void a_child_of_any_thread_is_found(void **state)
{
	(void)state;
	const pid_t pid = follow(KY_PROCESSES_CHILDREN, fork_in_a_thread, NULL);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives.count == 2);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_all_ended(&lives) == 2);
	reap(pid);
}

/* As a container: its own numbers, and its first process is number 1. */
static void in_a_namespace(void *context)
{
	if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
		arrive(&meeting);
		_exit(77);
	}
	fork_one(context);
}

static void a_child_in_a_pid_namespace_is_found_with_its_drum(void **state)
{
	const pid_t pid = follow(KY_PROCESSES_CHILDREN, in_a_namespace, state);
	await_child(&meeting);
	LIVES_UNTIL(&lives,
		    lives_ended(&lives, pid) ||
			    (lives.count == 3 && lives.life[1].drums + lives.life[2].drums == 1));
	if (lives_ended(&lives, pid)) {
		reap(pid);
		skip();
	}
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_all_ended(&lives) == 3);
	assert_int_equal(lives.life[1].events + lives.life[2].events, EVENTS);
	reap(pid);
}

static void wait_for_ever(void *context)
{
	(void)context;
	for (;;)
		pause();
}

static void all_processes_with_a_drum_are_found(void **state)
{
	(void)state;
	const pid_t pid = follow(KY_PROCESSES_ALL, trace_and_wait, NULL);
	const pid_t without = start(wait_for_ever, NULL, NULL);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1);
	assert_null(lives_of(&lives, without));
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(lives_of(&lives, pid)->status, 7 << 8);
	kill(without, SIGKILL);
	reap(without);
	reap(pid);
}

/* What was there before is found by the first round, whatever it costs. */
static void the_first_round_is_complete(void **state)
{
	(void)state;
	const pid_t pid = start(trace_and_wait, NULL, NULL);
	await_child(&meeting);
	lives_begin(&lives, KY_PROCESSES_ALL);
	lives_round(&lives);
	assert_int_equal(lives_drums(&lives, pid), 1);
	let_go(&meeting);
	reap(pid);
}

/*
 * ------------------------------------------------------------------------------------------------
 * What the kernel reports.
 * ------------------------------------------------------------------------------------------------
 */

static void listen_or_skip(enum ky_processes_scope scope)
{
	lives_begin(&lives, scope);
	if (ky_processes_listen(lives.processes) != 0)
		skip(); /* this user may not */
	lives_round(&lives);
}

static struct ky_processes_facts facts(void)
{
	struct ky_processes_facts now;
	ky_processes_facts(lives.processes, &now);
	return now;
}

static void trace_and_end(void *context)
{
	(void)context;
	trace_events(EVENTS);
}

/* Nobody looked while they lived. */
static void programs_that_are_gone_are_counted(void **state)
{
	(void)state;
	listen_or_skip(KY_PROCESSES_ALL);
	const uint64_t before = facts().missed;
	for (int i = 0; i < 3; i++)
		reap(start(trace_and_end, NULL, NULL));
	/* Other programs of the machine may be missed, too. */
	LIVES_UNTIL(&lives, facts().missed >= before + 3 || facts().unseen);
	if (facts().unseen) {
		print_message("the machine was so busy that the kernel's reports did not fit\n");
		skip();
	}
	const pid_t pid = start(trace_and_wait, NULL, NULL);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	reap(pid);
}

/* Its first child ends at once: nobody in /proc says whose child the second is. */
static void fork_a_daemon(void *context)
{
	(void)context;
	await_go(&meeting);
	const pid_t child = fork();
	if (child == 0) {
		if (fork() == 0)
			trace_and_wait(NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	await_go(&meeting);
}

/* Return the process that has a buffer; NULL: none yet. The child between may have been seen, too. */
static const struct life *life_with_drum(void)
{
	for (uint32_t i = 0; i < lives.count; i++)
		if (lives.life[i].drums == 1)
			return &lives.life[i];
	return NULL;
}

static void a_daemon_is_followed(void **state)
{
	(void)state;
	listen_or_skip(KY_PROCESSES_CHILDREN);
	const pid_t pid = start(fork_a_daemon, NULL, NULL);
	assert_int_equal(ky_processes_add(lives.processes, pid, message), 0);
	let_go(&meeting);
	await_child(&meeting);
	LIVES_UNTIL(&lives, life_with_drum() != NULL);
	let_go(&meeting);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_all_ended(&lives) == lives.count);
	assert_int_equal(life_with_drum()->events, EVENTS);
	assert_int_equal(facts().missed, 0);
	reap(pid);
}

/* The kernel tells this user nothing: what came and went is known by the numbers. */
static void what_came_and_went_unseen_is_counted(void **state)
{
	(void)state;
	lives_begin(&lives, KY_PROCESSES_ALL);
	lives_round(&lives);
	/* One more when the numbers have begun again: then they are not counted. */
	while (facts().unseen < 3) {
		reap(start(trace_and_end, NULL, NULL));
		lives_wait(&lives);
		lives_round(&lives);
	}
}

/*
 * ------------------------------------------------------------------------------------------------
 * Numbers.
 * ------------------------------------------------------------------------------------------------
 */

/* A child of that number, which is free; -1 when this user may not choose. */
static pid_t fork_as(pid_t number)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void a_number_that_is_used_again_is_another_process(void **state)
{
	(void)state;
	const pid_t pid = follow(KY_PROCESSES_GIVEN, trace_and_wait, NULL);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1);
	let_go(&meeting);
	reap(pid);
	const pid_t other = fork_as(pid);
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ky_limits.categories = "*";
		ky_limits.total_bytes = 1u << 20;
		trace_and_wait(NULL);
	}
	if (other < 0) {
		LIVES_UNTIL(&lives, lives_ended(&lives, pid));
		skip();
	}
	assert_int_equal(other, pid);
	await_child(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(lives.count, 1);
	assert_int_equal(lives.life[0].drums, 1);
	assert_int_equal(ky_processes_add(lives.processes, pid, message), 0);
	LIVES_UNTIL(&lives, lives_drums(&lives, pid) == 1 && !lives_ended(&lives, pid));
	assert_int_equal(lives.count, 2);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	reap(other);
}

static void end_at_once(void *context)
{
	(void)context;
}

static void what_cannot_be_followed_is_said(void **state)
{
	(void)state;
	lives_begin(&lives, KY_PROCESSES_GIVEN);
	const pid_t gone = start(end_at_once, NULL, NULL);
	reap(gone);
	assert_int_equal(ky_processes_add(lives.processes, gone, message), -ESRCH);
	assert_non_null(strstr(message, "no process with PID"));
	assert_int_equal(ky_processes_add(lives.processes, 0, message), -ESRCH);
	assert_int_equal(ky_processes_add(lives.processes, -5, message), -ESRCH);
	assert_int_equal(ky_processes_add(lives.processes, -5, NULL), -ESRCH);
}

static void *tell_tid_and_wait(void *context)
{
	*(pid_t *)context = (pid_t)syscall(SYS_gettid);
	arrive(&meeting);
	await_go(&meeting);
	return NULL;
}

static void a_thread_is_no_process(void **state)
{
	(void)state;
	pthread_t thread;
	pid_t tid;
	lives_begin(&lives, KY_PROCESSES_GIVEN);
	pthread_create(&thread, NULL, tell_tid_and_wait, &tid);
	await_child(&meeting);
	assert_int_equal(ky_processes_add(lives.processes, tid, message), -EINVAL);
	assert_non_null(strstr(message, "is a thread"));
	let_go(&meeting);
	pthread_join(thread, NULL);
}

/* As an ordinary user: a process of root. */
static void look_as_nobody(void *context)
{
	(void)context;
	struct ky_processes_facts facts;
	if (setresuid(65534, 65534, 65534) != 0)
		_exit(3);
	lives_begin(&lives, KY_PROCESSES_ALL);
	lives_round(&lives);
	ky_processes_facts(lives.processes, &facts);
	const int error = ky_processes_add(lives.processes, getppid(), message);
	lives_end(&lives);
	_exit(facts.hidden > 0 && error == -EACCES && strstr(message, "or as root") ? 0 : 1);
}

/* ---- users ---- */

static pid_t start_as(uid_t user)
{
	const pid_t child = fork();
	if (child == 0) {
		if (setresuid(user, user, user) != 0)
			_exit(1);
		for (;;)
			pause();
	}
	struct ky_proc_status status = {0};
	while (ky_proc_status(child, 0, &status) == 0 && status.user != user)
		sched_yield();
	return child;
}

static void a_user_whose_processes_take_long_waits(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	struct ky_process_users users = {0};
	const uint64_t ms = 1000000, now = 1000000 * ms;
	const pid_t mallory = start_as(54321), alice = start_as(54322);
	ky_process_users_charge(&users, mallory, ms / 2, now); /* short: not counted */
	assert_int_equal(users.count, 0);
	ky_process_users_charge(&users, mallory, 20 * ms, now);
	assert_true(ky_process_users_may_look(&users, mallory, now));
	ky_process_users_charge(&users, mallory, 20 * ms, now);
	assert_false(ky_process_users_may_look(&users, mallory, now));
	assert_true(ky_process_users_may_look(&users, alice, now));
	assert_true(ky_process_users_may_look(&users, mallory, now + 601 * ms));
	/* Never longer than a minute; root never. */
	ky_process_users_charge(&users, mallory, 1000000 * ms, now);
	assert_false(ky_process_users_may_look(&users, mallory, now + 50000 * ms));
	assert_true(ky_process_users_may_look(&users, mallory, now + 60000 * ms));
	ky_process_users_charge(&users, getpid(), 1000000 * ms, now);
	assert_true(ky_process_users_may_look(&users, getpid(), now));
	kill(mallory, SIGKILL);
	kill(alice, SIGKILL);
	waitpid(mallory, NULL, 0);
	waitpid(alice, NULL, 0);
}

static void make_drum(uint32_t pid)
{
	const struct ky_drum_header head = {.magic = KY_DRUM_MAGIC, .pid = pid};
	const int fd = memfd_create(KY_DRUM_NAME, 0);
	if (fd < 0 || write(fd, &head, sizeof(head)) != (ssize_t)sizeof(head))
		_exit(1);
}

static int count_on(void *context, int fd)
{
	(void)fd;
	++*(int *)context;
	return 0;
}

/* Return how many drums are found of a process that has so many others before its own. */
static int find_behind(uint32_t others)
{
	int ready[2], visited = 0;
	char byte;
	assert_int_equal(pipe(ready), 0);
	const pid_t child = fork();
	if (child == 0) {
		for (uint32_t i = 0; i < others; i++)
			make_drum(1u << 30);
		make_drum((uint32_t)getpid());
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	const int found = ky_drum_find(child, count_on, &visited);
	assert_int_equal(found, visited);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	return found;
}

static void the_search_among_descriptors_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(find_behind(10), 1);
	assert_int_equal(find_behind(100), 0);
}

static void what_may_not_be_looked_into_is_counted(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	const pid_t pid = start(look_as_nobody, NULL, NULL);
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/*
 * ------------------------------------------------------------------------------------------------
 * -p
 * ------------------------------------------------------------------------------------------------
 */

static void rename_and_wait(void *context)
{
	prctl(PR_SET_NAME, (const char *)context);
	trace_and_wait(NULL);
}

static bool is_among(pid_t pid, const pid_t *pids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static void processes_are_found_by_number_and_name(void **state)
{
	(void)state;
	char name[16], number[16];
	snprintf(name, sizeof(name), "a (%d) b", (int)getpid());
	const pid_t pid = start(rename_and_wait, name, NULL);
	struct ky_pids pids = {0};
	await_child(&meeting);
	snprintf(number, sizeof(number), "%d", (int)pid);
	assert_int_equal(ky_processes_find(number, &pids, message), 0);
	assert_true(pids.count == 1 && pids.at[0] == pid);
	assert_int_equal(ky_processes_find(name, &pids, message), 0);
	assert_true(pids.count == 2 && pids.at[1] == pid);
	/* The program's file: this one, and so all children of it. */
	assert_int_equal(ky_processes_find("test_processes", &pids, message), 0);
	assert_true(pids.count >= 3 && is_among(pid, pids.at + 2, pids.count - 2));
	assert_false(is_among(getpid(), pids.at + 2, pids.count - 2));
	const uint32_t before = pids.count;
	assert_int_equal(ky_processes_find("no such name", &pids, message), -ESRCH);
	assert_non_null(strstr(message, "no process is called 'no such name'"));
	assert_non_null(strstr(message, "with trace points"));
	assert_int_equal(ky_processes_find("99999999999", &pids, message), -ESRCH);
	assert_int_equal(ky_processes_find("", &pids, message), -ESRCH);
	assert_int_equal(pids.count, before);
	ky_pids_free(&pids);
	let_go(&meeting);
	reap(pid);
}

static void a_process_is_told_as_proc_has_it(void **state)
{
	(void)state;
	struct ky_proc_stat stat;
	prctl(PR_SET_NAME, ") S 1 (x y");
	assert_int_equal(ky_proc_stat(getpid(), 0, &stat), 0);
	assert_string_equal(stat.name, ") S 1 (x y");
	assert_int_equal(stat.parent, getppid());
	assert_int_equal(stat.state, 'R');
	assert_true(stat.started_ns > 0);
	prctl(PR_SET_NAME, "test_processes");
	assert_int_equal(ky_proc_stat(0, 0, &stat), -ESRCH);
}

/* Run by a test: its meeting is of these descriptors. */
static int run_program(char **argv)
{
	meeting.to_child[0] = (int)strtol(argv[2], NULL, 10);
	meeting.to_parent[1] = (int)strtol(argv[3], NULL, 10);
	trace_events(EVENTS);
	arrive(&meeting);
	await_go(&meeting);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "trace") == 0)
		return run_program(argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_process_has_its_drum_and_its_end),
		TEST(a_killed_process_tells_its_signal),
		TEST(a_drum_that_is_made_later_is_found),
		TEST(a_process_whose_main_thread_ended_has_its_drum),
		TEST(a_process_that_executes_another_program_has_another_drum),
		TEST(children_and_their_children_are_found),
		TEST(a_child_that_ended_is_told_once),
		TEST(children_are_not_followed_unless_asked_for),
		TEST(a_child_of_any_thread_is_found),
		TEST(a_child_in_a_pid_namespace_is_found_with_its_drum),
		TEST(all_processes_with_a_drum_are_found),
		TEST(the_first_round_is_complete),
		TEST(programs_that_are_gone_are_counted),
		TEST(a_daemon_is_followed),
		TEST(what_came_and_went_unseen_is_counted),
		TEST(a_number_that_is_used_again_is_another_process),
		TEST(what_cannot_be_followed_is_said),
		TEST(a_thread_is_no_process),
		cmocka_unit_test(a_user_whose_processes_take_long_waits),
		cmocka_unit_test(the_search_among_descriptors_is_bounded),
		TEST(what_may_not_be_looked_into_is_counted),
		cmocka_unit_test_setup(processes_are_found_by_number_and_name, set_up),
		cmocka_unit_test(a_process_is_told_as_proc_has_it),
	};
	return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
