/* SPDX-License-Identifier: MIT */
/*
 * test_session_env.c: sessions that the environment starts: kymo reports once what cannot work, and forked
 * children have files of their own. The test runs itself again as the traced program, for the
 * environment is read at its start.
 */
#include "child.h"
#include "json_trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kymo/session.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the traced program ---- */

static void record(void)
{
	KYMO_INSTANT("a", "event");
}

static int wait_for(pid_t pid)
{
	int status = -1;
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

/* Fork a child that runs the body and then exits; note its pid in a file of that name. */
static void fork_child(const char *note, void (*body)(void))
{
	const pid_t pid = fork();
	if (pid == 0) {
		alarm(PATIENCE_S);
		body();
		exit(0);
	}
	MUST(wait_for(pid) == 0);
	FILE *file = fopen(note, "w");
	MUST(file && fprintf(file, "%d", (int)pid) > 0 && fclose(file) == 0);
}

static void record_100(void)
{
	for (int i = 0; i < 100; i++) {
		KYMO_SCOPE("a", "work");
	}
}

static void on_signal(int number)
{
	(void)number;
	KYMO_INSTANT("a", "in a handler");
}

/* The first event comes in a handler: the session begins later. */
static void record_in_handler_first(void)
{
	MUST(signal(SIGUSR1, on_signal) != SIG_ERR && raise(SIGUSR1) == 0);
	record_100();
}

/* All of it looks like a handler: the session begins at the end. */
static void record_with_signals_blocked(void)
{
	sigset_t all;
	sigfillset(&all);
	MUST(signal(SIGUSR1, on_signal) != SIG_ERR && sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	record_100();
}

static void record_and_quick_exit(void)
{
	record_with_signals_blocked();
	quick_exit(0);
}

static void record_in_another_folder(void)
{
	MUST(chdir("/") == 0);
	record_100();
}

static void do_nothing(void)
{
}

static void record_in_grandchild(void)
{
	fork_child("grandchild", record_100);
}

static void fork_children(void)
{
	record();
	fork_child("plain", record_100);
	fork_child("handler", record_in_handler_first);
	fork_child("blocked", record_with_signals_blocked);
	fork_child("quick", record_and_quick_exit);
	fork_child("folder", record_in_another_folder);
	fork_child("idle", do_nothing);
	fork_child("between", record_in_grandchild);
	record();
}

static unsigned count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned count = 0;
	for (struct dirent *entry; tasks && (entry = readdir(tasks));)
		count += entry->d_name[0] != '.';
	closedir(tasks);
	return count;
}

static void unshare_and_record(void)
{
	MUST(count_threads() == 1);
	MUST(unshare(CLONE_NEWUSER) == 0 || errno != EINVAL);
	record_100();
}

static void fork_and_unshare(void)
{
	record();
	fork_child("child", unshare_and_record);
}

/* The parent ends in order before the child's first event: a daemon begins like this. */
static void leave_a_daemon(void)
{
	int ends[2];
	char byte;
	record();
	MUST(pipe(ends) == 0);
	if (fork() != 0)
		exit(0);
	alarm(PATIENCE_S);
	close(ends[1]);
	while (read(ends[0], &byte, 1) > 0)
		;
	record_100();
	FILE *file = fopen("child", "w");
	MUST(file && fprintf(file, "%d", (int)getpid()) > 0 && fclose(file) == 0);
}

/* A daemon closes all descriptors; its data gets the number of standard error. */
static void reuse_standard_error(void)
{
	record();
	MUST(close(STDERR_FILENO) == 0);
	MUST(open("data", O_WRONLY | O_CREAT, 0600) == STDERR_FILENO);
	record();
}

/* ---- running it ---- */

/* Run a body in a program with this environment; before runs first, in the program's process. Return the status. */
static int run(const char *body, void (*before)(void), char *const environment[], int err)
{
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		char *const argv[] = {(char *)(uintptr_t) "test", (char *)(uintptr_t)body, NULL};
		alarm(PATIENCE_S);
		if (dup2(err, STDERR_FILENO) < 0)
			_exit(126);
		if (before)
			before();
		execve("/proc/self/exe", argv, environment);
		_exit(127);
	}
	int status = -1;
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Run with two variables and return the text on standard error: the caller frees it. */
static char *said(const char *body, void (*before)(void), const char *one, const char *other)
{
	char *const environment[] = {(char *)(uintptr_t)one, (char *)(uintptr_t)other, NULL};
	const int err = open("stderr", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0666);
	assert_true(err >= 0);
	assert_int_equal(run(body, before, environment, err), 0);
	char *text = calloc(1, 4096);
	assert_non_null(text);
	assert_true(pread(err, text, 4095, 0) >= 0);
	close(err);
	unlink("stderr");
	return text;
}

/* One line with the variable, the cause and the remedy. */
static void expect_said(void (*before)(void), const char *variable, const char *other,
			const char *cause, const char *remedy)
{
	char *text = said("record", before, variable, other);
	const char *const end = strchr(text, '\n');
	if (strncmp(text, "kymo: ", 6) != 0 || !strstr(text, variable) || !strstr(text, cause) ||
	    !strstr(text, remedy) || !end || end[1] != '\0')
		fail_msg("%s: '%s'", variable, text);
	free(text);
}

static void expect_silence(const char *body, const char *variable, const char *other)
{
	char *text = said(body, NULL, variable, other);
	assert_string_equal(text, "");
	free(text);
}

static void limit_files(void)
{
	const struct rlimit small = {64 << 10, RLIM_INFINITY};
	if (setrlimit(RLIMIT_FSIZE, &small) != 0)
		_exit(125);
}

static void forbid_memfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(125);
}

static void become_nobody(void)
{
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
		_exit(125);
}

/* ---- what cannot work ---- */

static void a_trace_that_cannot_be_written_is_said(void **state)
{
	(void)state;
	const char *suffixes = "use .json, .json.gz, .pftrace, .perfetto-trace";
	expect_said(NULL, "KYMO_TRACE=/no/such/out.json", NULL, "No such file",
		    "make the directory");
	expect_said(NULL, "KYMO_TRACE=out.txt", NULL, "no output format", suffixes);
	expect_said(NULL, "KYMO_TRACE=out", "KYMO_QUIET=0", "no output format", suffixes);
	assert_int_equal(mkdir("closed", 0555), 0);
	expect_said(become_nobody, "KYMO_TRACE=closed/out.json", NULL, "denied", "may write to");
	assert_int_equal(symlink("/dev/full", "full.json"), 0);
	expect_said(NULL, "KYMO_TRACE=full.json", NULL, "No space", "free some");
	expect_said(NULL, "KYMO_TRACE=marker:x", NULL, "no output format", suffixes);
}

static void shared_memory_that_cannot_be_had_is_said(void **state)
{
	(void)state;
	expect_said(limit_files, "KYMO_TRACE=out.json", NULL, "RLIMIT_FSIZE", "ulimit -f");
	expect_said(forbid_memfd, "KYMO_TRACE=out.json", NULL, "seccomp", "allow memfd_create");
	expect_said(forbid_memfd, "KYMO_CATEGORIES=*", NULL, "seccomp", "allow memfd_create");
	expect_said(NULL, "KYMO_DRUM_DIR=/no/such", NULL, "no such directory",
		    "make the directory");
}

static void values_that_mean_nothing_are_said(void **state)
{
	(void)state;
	expect_said(NULL, "KYMO_BUFFER=lots", NULL, "not a size", "64k, 4M");
	expect_said(NULL, "KYMO_BUFFER=4MB", NULL, "not a size", "64k, 4M");
	expect_said(NULL, "KYMO_BUFFER=0", NULL, "not a size", "64k, 4M");
	expect_said(NULL, "KYMO_LIMITS=total=1M,ring=3", NULL, "not a list", "rings=N");
	expect_said(NULL, "KYMO_LIMITS=total", NULL, "not a list", "rings=N");
	expect_said(NULL, "KYMO_MODE=circle", "KYMO_TRACE=a.json", "not a mode", "ring or stream");
	char *text = said("record", NULL, "KYMO_MODE=\033[2J\n", "KYMO_TRACE=b.json");
	assert_string_equal(text, "kymo: KYMO_MODE=?[2J?: not a mode: use ring or stream\n");
	free(text);
}

static void what_works_is_silent_and_so_is_quiet(void **state)
{
	(void)state;
	expect_silence("record", "KYMO_TRACE=/no/such/out.json", "KYMO_QUIET=1");
	expect_silence("record", "KYMO_BUFFER=lots", "KYMO_QUIET=1");
	expect_silence("record", "KYMO_TRACE=out.json", "KYMO_BUFFER=64k");
	expect_silence("record", "KYMO_TRACE=", "KYMO_LIMITS=total=1M,rings=3");
	expect_silence("record", "KYMO_TRACE=out.perfetto-trace", NULL);
	assert_int_equal(access("out.perfetto-trace", R_OK), 0);
	char head[2] = "";
	const int fd = open("out.perfetto-trace", O_RDONLY);
	assert_int_equal(read(fd, head, 1), 1);
	assert_int_equal(head[0], 0x0a); /* a TracePacket */
	close(fd);
}

static void nothing_is_written_to_another_file(void **state)
{
	(void)state;
	struct stat status;
	assert_int_equal(symlink("/dev/full", "full.json"), 0);
	/* The disk may be found full before the program closes its standard error, or after. */
	free(said("reuse_standard_error", NULL, "KYMO_TRACE=full.json", NULL));
	assert_int_equal(stat("data", &status), 0);
	assert_int_equal(status.st_size, 0);
}

static void a_pipe_that_nobody_reads_does_no_harm(void **state)
{
	(void)state;
	char *const environment[] = {(char *)(uintptr_t) "KYMO_TRACE=out.txt", NULL};
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	assert_int_equal(run("record", NULL, environment, ends[1]), 0);
	close(ends[1]);
	/* Full, with a reader that sleeps. */
	char page[4096] = "";
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
	assert_int_equal(run("record", NULL, environment, ends[1]), 0);
	close(ends[0]);
	close(ends[1]);
}

/* ---- forked children ---- */

static void expect_child(const char *note, size_t spans, size_t handled)
{
	char pid[16] = "", path[64];
	FILE *file = fopen(note, "r");
	assert_non_null(file);
	assert_non_null(fgets(pid, sizeof(pid), file));
	fclose(file);
	snprintf(path, sizeof(path), "out.%s.json", pid);
	struct json_trace trace;
	json_trace_read(&trace, path);
	assert_true(trace.whole);
	assert_int_equal(json_trace_count(&trace, 'i', "in a handler"), handled);
	assert_int_equal(json_trace_count(&trace, 'i', "event"), 0);
	assert_int_equal(json_trace_count(&trace, 0, "work"), spans);
	json_trace_free(&trace);
}

static void children_get_files_with_their_pids(void **state)
{
	(void)state;
	expect_silence("fork_children", "KYMO_TRACE=out.json", NULL);
	assert_int_equal(json_file_count("out.json", 'i', "event"), 2);
	assert_int_equal(json_file_count("out.json", 0, "work"), 0);
	expect_child("plain", 100, 0);
	expect_child("handler", 100, 1);
	expect_child("blocked", 100, 0);
	expect_child("quick", 100, 0);
	expect_child("folder", 100, 0);
	expect_child("grandchild", 100, 0);
	/* out.json, six children, eight notes: those that record nothing leave no file. */
	assert_int_equal(folder_files(), 1 + 6 + 8);
}

static void children_keep_the_newest_in_ring_mode(void **state)
{
	(void)state;
	expect_silence("fork_children", "KYMO_TRACE=out.json", "KYMO_MODE=ring");
	expect_child("plain", 100, 0);
	expect_child("handler", 100, 1);
}

static void a_child_has_no_thread_before_it_records(void **state)
{
	(void)state;
	expect_silence("fork_and_unshare", "KYMO_TRACE=out.json", NULL);
	expect_child("child", 100, 0);
}

static void a_child_outlives_its_parents_session(void **state)
{
	(void)state;
	char *const environment[] = {(char *)(uintptr_t) "KYMO_TRACE=out.json", NULL};
	assert_int_equal(run("leave_a_daemon", NULL, environment, STDERR_FILENO), 0);
	for (const int64_t until = now_ms() + PATIENCE_MS; access("child", R_OK) != 0;) {
		assert_true(now_ms() < until);
		look_again();
	}
	/* It is gone, and its file whole, when it holds the lock no more. */
	assert_int_equal(json_file_count("out.json", 'i', "event"), 1);
	char pid[16] = "";
	FILE *file = fopen("child", "r");
	while (!fgets(pid, sizeof(pid), file))
		rewind(file);
	fclose(file);
	for (const int64_t until = now_ms() + PATIENCE_MS; kill(atoi(pid), 0) == 0;) {
		assert_true(now_ms() < until);
		look_again();
	}
	expect_child("child", 100, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(int argc, char **argv)
{
	static const struct child_body bodies[] = {
		{"record", record},
		{"reuse_standard_error", reuse_standard_error},
		{"fork_children", fork_children},
		{"fork_and_unshare", fork_and_unshare},
		{"leave_a_daemon", leave_a_daemon},
		{NULL, NULL},
	};
	child_main(argc, argv, bodies);

	const struct CMUnitTest messages[] = {
		TEST(a_trace_that_cannot_be_written_is_said),
		TEST(shared_memory_that_cannot_be_had_is_said),
		TEST(values_that_mean_nothing_are_said),
		TEST(what_works_is_silent_and_so_is_quiet),
		TEST(nothing_is_written_to_another_file),
		TEST(a_pipe_that_nobody_reads_does_no_harm),
	};
	const struct CMUnitTest children[] = {
		TEST(children_get_files_with_their_pids),
		TEST(children_keep_the_newest_in_ring_mode),
		TEST(a_child_has_no_thread_before_it_records),
		TEST(a_child_outlives_its_parents_session),
	};
	int failed = cmocka_run_group_tests_name("messages", messages, NULL, NULL);
	if (FORKS_KEEP_LOCKS)
		print_message("skipped: the sanitizer's own locks do not survive a fork\n");
	else
		failed += cmocka_run_group_tests_name("children", children, NULL, NULL);
	return failed != 0;
}
