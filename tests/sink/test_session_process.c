/* SPDX-License-Identifier: MIT */
/*
 * test_session_process.c: sessions and the life of the process: its ends in and out of order, fork,
 * and sessions that the environment starts.
 */
#include "child.h"
#include "json_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <kymo/session.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct kymo_session *start(const char *path)
{
	struct kymo_session *session = NULL;
	const struct kymo_options options = {.size = sizeof(options), .path = path};
	MUST(kymo_session_start(&session, &options) == 0);
	return session;
}

static void expect_file(const char *path, bool whole, size_t events)
{
	struct json_trace trace;
	json_trace_read(&trace, path);
	assert_int_equal(trace.whole, whole);
	assert_int_equal(json_trace_count(&trace, 'i', "event"), events);
	json_trace_free(&trace);
}

static void leave_by_exit(void)
{
	start("a.json");
	start("b.json");
	KYMO_INSTANT("a", "event");
	exit(0);
}

static void leave_by_quick_exit(void)
{
	start("c.json");
	KYMO_INSTANT("a", "event");
	quick_exit(0);
}

static void exit_here(void *argument)
{
	(void)argument;
	KYMO_INSTANT("a", "event");
	exit(0);
}

static void leave_by_exit_of_a_thread(void)
{
	start("d.json");
	on_thread(exit_here, NULL);
}

static void files_are_finished_at_exit_and_quick_exit(void **state)
{
	(void)state;
	child_expect(leave_by_exit);
	expect_file("a.json", true, 1);
	expect_file("b.json", true, 1);
	child_expect(leave_by_quick_exit);
	expect_file("c.json", true, 1);
	child_expect(leave_by_exit_of_a_thread);
	expect_file("d.json", true, 1);
}

static struct kymo_session *shared;
static _Atomic int threads_ready;

static void *stop_shared(void *argument)
{
	(void)argument;
	threads_ready++;
	kymo_session_stop(&shared);
	return NULL;
}

static void *flush_for_ever(void *session)
{
	threads_ready++;
	for (;;)
		kymo_session_flush(session);
	return NULL;
}

static void exit_while_stopping(void)
{
	pthread_t thread;
	shared = start("out.json");
	KYMO_INSTANT("a", "event");
	MUST(pthread_create(&thread, NULL, stop_shared, NULL) == 0);
	pthread_detach(thread);
	while (threads_ready == 0)
		;
	exit(0);
}

static void exit_while_flushing(void)
{
	pthread_t thread;
	struct kymo_session *session = start("out.json");
	KYMO_INSTANT("a", "event");
	for (int i = 0; i < 3; i++) {
		MUST(pthread_create(&thread, NULL, flush_for_ever, session) == 0);
		pthread_detach(thread);
	}
	while (threads_ready < 3)
		;
	exit(0);
}

static void exit_waits_for_whoever_stops_or_flushes(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		child_expect(exit_while_stopping);
		expect_file("out.json", true, 1);
	}
	for (int i = 0; i < 10; i++) {
		child_expect(exit_while_flushing);
		expect_file("out.json", true, 1);
	}
}

static void flush_and_go_on(void)
{
	struct kymo_session *session = start("out.json");
	for (int i = 0; i < 100; i++)
		KYMO_INSTANT("a", "event");
	MUST(kymo_session_flush(session) == 0);
	KYMO_INSTANT("a", "unwritten");
}

static void leave_by__exit(void)
{
	flush_and_go_on();
	_exit(0);
}

static void leave_by_abort(void)
{
	const struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGABRT, SIG_DFL);
	flush_and_go_on();
	abort();
}

static void leave_by_kill(void)
{
	flush_and_go_on();
	kill(getpid(), SIGKILL);
}

static void what_was_flushed_survives_any_end(void **state)
{
	(void)state;
	child_expect(leave_by__exit);
	expect_file("out.json", false, 100);
	assert_true(WIFSIGNALED(child_run(leave_by_abort)));
	expect_file("out.json", false, 100);
	assert_true(WIFSIGNALED(child_run(leave_by_kill)));
	expect_file("out.json", false, 100);
}

static int wait_for(pid_t pid)
{
	int status = -1;
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

static void live_as_a_child(struct kymo_session *session)
{
	MUST(!KYMO_ENABLED("a"));
	KYMO_INSTANT("a", "of the child");
	MUST(kymo_session_flush(session) == KYMO_EFORKED);
	MUST(kymo_session_stop(&session) == KYMO_EFORKED && !session);
	struct kymo_session *own = start("child.json");
	KYMO_INSTANT("a", "of the child");
	MUST(kymo_session_flush(own) == 0);
	exit(0);
}

static void fork_while_recording(void)
{
	struct kymo_session *session = start("parent.json");
	KYMO_INSTANT("a", "event");
	const pid_t pid = fork();
	if (pid == 0)
		live_as_a_child(session);
	KYMO_INSTANT("a", "event");
	MUST(wait_for(pid) == 0);
	KYMO_INSTANT("a", "event");
	MUST(kymo_session_stop(&session) == 0);
	MUST(json_file_count("parent.json", 'i', NULL) == 3);
	MUST(json_file_count("child.json", 'i', "of the child") == 1);
	MUST(json_file_count("child.json", 'i', NULL) == 1);
}

/* A child of fork() that allocates, while another thread of the parent was at it. */
static void skip_where_forks_keep_locks(void)
{
	if (FORKS_KEEP_LOCKS) {
		print_message("skipped: the sanitizer's own locks do not survive such a fork\n");
		skip();
	}
}

static void a_child_leaves_the_parents_file_alone_and_has_its_own(void **state)
{
	(void)state;
	skip_where_forks_keep_locks();
	child_expect(fork_while_recording);
	expect_file("parent.json", true, 3);
	expect_file("child.json", true, 0);
}

static void fork_and_stay(void)
{
	int ends[2], trace[2];
	char byte, data[1 << 12];
	MUST(pipe(ends) == 0 && pipe(trace) == 0);
	struct kymo_session *session = start("out.json");
	struct kymo_session *piped;
	const struct kymo_options options = {
		.size = sizeof(options), .fd = trace[1], .format = KYMO_FORMAT_JSON};
	MUST(kymo_session_start(&piped, &options) == 0);
	close(trace[1]);
	const pid_t pid = fork();
	if (pid == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	MUST(kymo_session_stop(&session) == 0 && kymo_session_stop(&piped) == 0);
	/* The child lives, and holds neither the pipe nor the lock of the file. */
	while (read(trace[0], data, sizeof(data)) > 0)
		;
	session = start("out.json");
	MUST(kymo_session_stop(&session) == 0);
	MUST(folder_files() == 1);
	close(ends[1]);
	MUST(wait_for(pid) == 0);
}

static void a_child_that_lives_on_holds_no_file_of_the_parent(void **state)
{
	(void)state;
	child_expect(fork_and_stay);
}

static _Atomic bool forking;

static void *start_and_stop(void *argument)
{
	while (forking) {
		struct kymo_session *session = start(argument);
		KYMO_INSTANT("a", "event");
		kymo_session_stop(&session);
	}
	return NULL;
}

static void ignore(const struct kymo_event *events, size_t count, void *context)
{
	(void)events;
	(void)count;
	(void)context;
}

static void *subscribe_and_not(void *argument)
{
	(void)argument;
	while (forking)
		kymo_unsubscribe(kymo_subscribe(ignore, NULL, NULL));
	return NULL;
}

static void fork_amid_everything(void)
{
	pthread_t threads[2];
	forking = true;
	MUST(pthread_create(&threads[0], NULL, start_and_stop, (void *)(uintptr_t) "t.json") == 0);
	MUST(pthread_create(&threads[1], NULL, subscribe_and_not, NULL) == 0);
	for (int i = 0; i < 30; i++) {
		const pid_t pid = fork();
		if (pid == 0) {
			alarm(PATIENCE_S);
			struct kymo_session *session = start("c${pid}.json");
			const int subscription = kymo_subscribe(ignore, NULL, NULL);
			MUST(subscription >= 0 && kymo_unsubscribe(subscription) == 0);
			MUST(kymo_session_stop(&session) == 0);
			quick_exit(0); /* what the parent's threads were at is lost in here */
		}
		MUST(wait_for(pid) == 0);
	}
	forking = false;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void a_fork_at_any_moment_leaves_no_lock_behind(void **state)
{
	(void)state;
	if (SANITIZED) {
		print_message("skipped: the sanitizer's own locks do not survive such a fork\n");
		skip();
	}
	child_expect(fork_amid_everything);
}

/* ---- started by the environment: these bodies run in a program that was executed again ---- */

static void record_and_return(void)
{
	KYMO_INSTANT("a", "event");
	KYMO_INSTANT("b", "other");
}

static void exec_self(const char *body)
{
	char *const argv[] = {(char *)(uintptr_t) "test", (char *)(uintptr_t)body, NULL};
	execv("/proc/self/exe", argv);
	_exit(127);
}

static void record_with_a_second_program(void)
{
	KYMO_INSTANT("a", "event");
	const pid_t pid = fork();
	if (pid == 0)
		exec_self("record_and_return");
	MUST(wait_for(pid) == 0);
	FILE *note = fopen("pid", "w");
	fprintf(note, "%d", (int)pid);
	fclose(note);
}

static void record_in_children(void)
{
	KYMO_INSTANT("a", "event");
	for (int i = 0; i < 2; i++) {
		const pid_t pid = fork();
		if (pid == 0) {
			KYMO_INSTANT("a", "event");
			exit(0);
		}
		MUST(wait_for(pid) == 0);
	}
}

static void run_with(const char *body, const char *trace, const char *other)
{
	char *const environment[] = {(char *)(uintptr_t)trace, (char *)(uintptr_t)other, NULL};
	assert_int_equal(child_exec(body, environment), 0);
}

static void the_environment_starts_a_session_that_ends_with_the_program(void **state)
{
	(void)state;
	run_with("record_and_return", "KYMO_TRACE=out.json", NULL);
	expect_file("out.json", true, 1);
	assert_int_equal(json_file_count("out.json", 'i', NULL), 2);
	run_with("record_and_return", "KYMO_TRACE=some.json", "KYMO_CATEGORIES=b");
	expect_file("some.json", true, 0);
	assert_int_equal(json_file_count("some.json", 'i', "other"), 1);
	run_with("record_and_return", "KYMO_TRACE=ring.json", "KYMO_MODE=ring");
	expect_file("ring.json", true, 1);
	run_with("record_and_return", "KYMO_TRACE=/no/such/folder/out.json", "KYMO_QUIET=1");
	run_with("record_and_return", "KYMO_TRACE=", NULL);
}

static void two_programs_with_one_name_get_a_file_each(void **state)
{
	(void)state;
	run_with("record_with_a_second_program", "KYMO_TRACE=out.json", NULL);
	expect_file("out.json", true, 1);
	char pid[16] = "", path[64];
	FILE *note = fopen("pid", "r");
	assert_non_null(fgets(pid, sizeof(pid), note));
	fclose(note);
	snprintf(path, sizeof(path), "out.%s.json", pid);
	expect_file(path, true, 1);
}

static void children_get_files_of_their_own(void **state)
{
	(void)state;
	skip_where_forks_keep_locks();
	run_with("record_in_children", "KYMO_TRACE=out.${pid}.json", NULL);
	assert_int_equal(folder_files(), 3);
	run_with("record_in_children", "KYMO_TRACE=one.json", NULL);
	assert_int_equal(folder_files(), 6);
	expect_file("one.json", true, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(int argc, char **argv)
{
	static const struct child_body bodies[] = {
		{"record_and_return", record_and_return},
		{"record_with_a_second_program", record_with_a_second_program},
		{"record_in_children", record_in_children},
		{NULL, NULL},
	};
	child_main(argc, argv, bodies);
	const struct CMUnitTest tests[] = {
		TEST(files_are_finished_at_exit_and_quick_exit),
		TEST(exit_waits_for_whoever_stops_or_flushes),
		TEST(what_was_flushed_survives_any_end),
		TEST(a_child_leaves_the_parents_file_alone_and_has_its_own),
		TEST(a_child_that_lives_on_holds_no_file_of_the_parent),
		TEST(a_fork_at_any_moment_leaves_no_lock_behind),
		TEST(the_environment_starts_a_session_that_ends_with_the_program),
		TEST(two_programs_with_one_name_get_a_file_each),
		TEST(children_get_files_of_their_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
