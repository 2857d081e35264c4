/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pid_t spawn(const char *const *argv, int output)
{
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	/* posix_spawn does not write to argv; its type is older than const. */
	if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(const void *)argv,
			 environ) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* Read to the end, so that the child never waits for us; keep what fits. */
static void read_all(int fd, char *output, size_t output_bytes)
{
	char rest[4096];
	size_t used = 0;
	for (;;) {
		const bool room = used + 1 < output_bytes;
		const ssize_t got = room ? read(fd, output + used, output_bytes - 1 - used)
					 : read(fd, rest, sizeof(rest));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		used += room ? (size_t)got : 0;
	}
	if (output_bytes)
		output[used] = '\0';
}

bool child_run(const char *const *argv, char *output, size_t output_bytes)
{
	int ends[2], status = 0;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	const pid_t pid = spawn(argv, ends[1]);
	close(ends[1]);
	read_all(ends[0], output, output_bytes);
	close(ends[0]);
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
