/* SPDX-License-Identifier: MIT */
/*
 * kernel_guard.c: a process that outlives kymo by a moment. An instance of tracefs goes on
 * recording when whoever made it is killed: the guard waits at a pipe that only kymo can write to,
 * and when that ends, it removes the instance.
 *
 *   kymo ── pipe, never written to ──▶ guard: read() ends ─▶ rmdir, until kymo's files are closed
 *
 * It has nothing of kymo's open and is in no terminal's session. Where it is killed too, the next
 * kymo cleans up (kernel_instance.c).
 */
#include "capture/kernel_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <tracefs/tracefs.h>
#include <unistd.h>

#define TRIES 1000
#define PAUSE_NS 10000000

static _Noreturn void guard(const int ends[2], const char *path)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	sigset_t all;
	char none;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "kymo-guard");
	close(ends[1]);
	(void)dup2(ends[0], STDIN_FILENO);
	(void)close_range(STDIN_FILENO + 1, ~0U, 0);
	while (read(STDIN_FILENO, &none, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < TRIES && rmdir(path) != 0 && errno == EBUSY; i++)
		(void)nanosleep(&pause, NULL);
	_exit(0);
}

void ky_kernel_guard_start(struct ky_kernel_guard *out, struct tracefs_instance *instance)
{
	int ends[2];
	*out = (struct ky_kernel_guard){.fd = -1};
	char *path = tracefs_instance_get_dir(instance);
	if (path && pipe2(ends, O_CLOEXEC) == 0) {
		const pid_t pid = fork();
		if (pid == 0)
			guard(ends, path);
		close(ends[0]);
		if (pid > 0)
			*out = (struct ky_kernel_guard){.pid = pid, .fd = ends[1]};
		else
			close(ends[1]);
	}
	tracefs_put_tracing_file(path);
}

void ky_kernel_guard_end(struct ky_kernel_guard *guard)
{
	if (guard->pid <= 0)
		return;
	close(guard->fd);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*guard = (struct ky_kernel_guard){.fd = -1};
}
