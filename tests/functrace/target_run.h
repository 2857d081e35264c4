/* SPDX-License-Identifier: MIT */
/*
 * target_run.h: a program under test (targets/), which writes "ready" to its output and ends when its input does,
 * with 0 when all its checks were right.
 */
#ifndef TARGET_RUN_H
#define TARGET_RUN_H

#include <sys/types.h>

struct target {
	pid_t pid;
	int input; /* our end */
	int output;
};

/* End the test program with 77 and a reason where processes cannot be traced. */
void target_skip_without_ptrace(void);
/* Start a target and wait until it is ready. argument may be NULL. */
void target_start(struct target *target, const char *path, const char *argument);
/* Start a target that is stopped (SIGSTOP) at its entry point: ky_child_hold_end() lets it run. */
void target_start_held(struct target *target, const char *path, const char *argument);
void target_await_ready(struct target *target);
/* Let it end. Return its exit code, or 128 and more for a signal. */
int target_end(struct target *target);
/* As in /proc/PID/stat. */
char target_state(pid_t pid);

#endif
