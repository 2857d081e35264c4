/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

/*
 * The thread sanitizer refuses threads in a child of a process with threads: some tests are that.
 * And it sleeps a second before each exit.
 */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0:atexit_sleep_ms=100";
}

_Noreturn void child_fail(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: in process %d: %s\n", file, line, (int)getpid(), condition);
	_exit(1);
}

int child_run(void (*body)(void))
{
	fflush(stdout);
	fflush(stderr);
	const pid_t pid = fork();
	if (pid == 0) {
		alarm(PATIENCE_S);
		body();
		_exit(0);
	}
	int status = -1;
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

void child_expect(void (*body)(void))
{
	assert_int_equal(child_run(body), 0);
}

void child_own_mounts(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) != 0)
		_exit(1);
}

bool child_may_own_mounts(void)
{
	return child_run(child_own_mounts) == 0;
}

int child_exec(const char *body, char *const environment[])
{
	fflush(stdout);
	fflush(stderr);
	const pid_t pid = fork();
	if (pid == 0) {
		char *const argv[] = {(char *)(uintptr_t) "test", (char *)(uintptr_t)body, NULL};
		alarm(PATIENCE_S);
		execve("/proc/self/exe", argv, environment);
		_exit(127);
	}
	int status = -1;
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

void child_main(int argc, char **argv, const struct child_body *bodies)
{
	for (; argc > 1 && bodies->name; bodies++)
		if (strcmp(argv[1], bodies->name) == 0) {
			bodies->run();
			exit(0);
		}
}

int folder_setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/kymo-test-sink-XXXXXX");
	return mkdtemp(folder) && chmod(folder, 0777) == 0 ? chdir(folder) : -1;
}

static unsigned each_file(int (*visit)(int dir, const char *name))
{
	DIR *const dir = opendir(folder);
	unsigned count = 0;
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		count++;
		if (visit)
			visit(dirfd(dir), entry->d_name);
	}
	closedir(dir);
	return count;
}

static int remove_file(int dir, const char *name)
{
	return unlinkat(dir, name, 0) == 0 || unlinkat(dir, name, AT_REMOVEDIR) == 0 ? 0 : -1;
}

int folder_teardown(void **state)
{
	(void)state;
	each_file(remove_file);
	return chdir("/") != 0 || rmdir(folder) != 0;
}

unsigned folder_files(void)
{
	return each_file(NULL);
}

int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void look_again(void)
{
	const struct timespec pause = {0, 500000};
	nanosleep(&pause, NULL);
}

struct call {
	void (*fn)(void *argument);
	void *argument;
};

static void *run_call(void *context)
{
	const struct call *call = context;
	call->fn(call->argument);
	return NULL;
}

void on_thread(void (*fn)(void *argument), void *argument)
{
	struct call call = {fn, argument};
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, run_call, &call) == 0);
	MUST(pthread_join(thread, NULL) == 0);
}
