/* SPDX-License-Identifier: MIT */
/* program_libraries.c: see program_libraries.h. The loader has two seconds to answer, for it may be any program. */
#include "process/program_libraries.h"

#include "base/clock.h"
#include "process/program_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_BYTES_MAX (256u * 1024)
#define ANSWER_MS 2000

extern char **environ;

static bool find_loader(const char *program, char *loader, size_t room)
{
	struct ky_program_file *file;
	const int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	bool found = false;
	if (ky_program_file_open(&file, fd) == 0) {
		found = ky_program_file_loader(file, loader, room);
		ky_program_file_close(&file);
	}
	close(fd);
	return found;
}

bool ky_program_libraries_are_safe(const char *program)
{
	char loader[4096];
	struct stat status;
	if (!find_loader(program, loader, sizeof(loader)))
		return true;
	return stat(loader, &status) == 0 && status.st_uid == 0 &&
	       !(status.st_mode & (S_IWGRP | S_IWOTH));
}

static pid_t start(const char *loader, const char *program, int out)
{
	const char *const argv[] = {loader, "--list", program, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	if (posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) !=
		    0 ||
	    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) !=
		    0 ||
	    posix_spawn(&pid, loader, &actions, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* Reads to the end, or as long as there is time. */
static size_t read_answer(int fd, char *text, size_t room)
{
	const int64_t until = ky_clock_monotonic() / KY_CLOCK_MS_NS + ANSWER_MS;
	size_t used = 0;
	while (used < room) {
		struct pollfd ready = {fd, POLLIN, 0};
		const int64_t left = until - ky_clock_monotonic() / KY_CLOCK_MS_NS;
		const int polled = left > 0 ? poll(&ready, 1, (int)left) : 0;
		if (polled < 0 && errno == EINTR)
			continue;
		const ssize_t bytes = polled > 0 ? read(fd, text + used, room - used) : 0;
		if (bytes <= 0)
			break;
		used += (size_t)bytes;
	}
	return used;
}

/* "	libz.so.1 => /lib/libz.so.1 (0x7f...)", "	/lib64/ld-linux-x86-64.so.2 (0x7f...)" */
static void take_line(char *line, void (*each)(void *context, const char *path), void *context)
{
	char *path = strchr(line, '/');
	char *end = path ? strstr(path, " (0x") : NULL;
	char *arrow = strstr(line, " => /");
	if (arrow && end)
		path = arrow + strlen(" => ");
	if (!end || end < path)
		return;
	*end = '\0';
	each(context, path);
}

void ky_program_libraries(const char *program, void (*each)(void *context, const char *path),
			  void *context)
{
	char loader[4096];
	int out[2];
	if (!find_loader(program, loader, sizeof(loader)) || pipe2(out, O_CLOEXEC) != 0)
		return;
	char *text = malloc(ANSWER_BYTES_MAX + 1);
	const pid_t pid = text ? start(loader, program, out[1]) : -1;
	close(out[1]);
	const size_t bytes = pid > 0 ? read_answer(out[0], text, ANSWER_BYTES_MAX) : 0;
	close(out[0]);
	if (pid > 0) {
		kill(pid, SIGKILL); /* it has answered, or never will */
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	if (text)
		text[bytes] = '\0';
	char *rest = text;
	for (char *line = bytes ? strsep(&rest, "\n") : NULL; line; line = strsep(&rest, "\n"))
		take_line(line, each, context);
	free(text);
}
