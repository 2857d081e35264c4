/* SPDX-License-Identifier: MIT */
/* target_run.c: see target_run.h. */
#include "target_run.h"

#include "capture/child.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void target_skip_without_ptrace(void)
{
#if !defined(__x86_64__)
	puts("skipped: functions are patched on x86-64 only");
	exit(77);
#endif
	const pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	const long result = ptrace(PTRACE_SEIZE, child, 0, 0);
	const int error = errno;
	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
	if (result) {
		printf("skipped: processes cannot be traced here: %s\n", strerror(error));
		exit(77);
	}
}

/* Run a target. gate: wait for its input before exec; -1: none. */
static void run(struct target *target, const char *path, const char *argument, int gate)
{
	int input[2], output[2];
	char byte;
	assert_non_null(path);
	assert_int_equal(pipe(input) | pipe(output), 0);
	target->pid = fork();
	if (target->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(input[0], 0);
		dup2(output[1], 1);
		for (int i = 0; i < 2; i++) {
			close(input[i]);
			close(output[i]);
		}
		if (gate >= 0)
			(void)!read(gate, &byte, 1);
		execl(path, path, argument, (char *)NULL);
		_exit(127);
	}
	close(input[0]);
	close(output[1]);
	target->input = input[1];
	target->output = output[0];
}

void target_await_ready(struct target *target)
{
	char word[6] = "";
	size_t got = 0;
	while (got < 6) {
		const ssize_t more = read(target->output, word + got, 6 - got);
		assert_true(more > 0);
		got += (size_t)more;
	}
	assert_memory_equal(word, "ready\n", 6);
}

void target_start(struct target *target, const char *path, const char *argument)
{
	run(target, path, argument, -1);
	target_await_ready(target);
}

void target_start_held(struct target *target, const char *path, const char *argument)
{
	int gate[2], status = 0;
	assert_int_equal(pipe(gate), 0);
	run(target, path, argument, gate[0]);
	assert_int_equal(ky_child_hold_begin(target->pid), 0);
	assert_int_equal(write(gate[1], "k", 1), 1);
	assert_int_equal(ky_child_hold_at_entry(target->pid, &status), 1);
	close(gate[0]);
	close(gate[1]);
}

int target_end(struct target *target)
{
	int status = 0;
	close(target->input);
	assert_int_equal(waitpid(target->pid, &status, 0), target->pid);
	close(target->output);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

char target_state(pid_t pid)
{
	char path[64], line[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return '?';
	const size_t got = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[got] = '\0';
	const char *end = strrchr(line, ')');
	return end && end[1] ? end[2] : '?';
}
