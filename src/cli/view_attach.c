/* SPDX-License-Identifier: MIT */
/* view_attach.c: records processes for kymo view -p; see view_verb.h. */
#include "cli/view_verb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 20

/* Run in the child: in a group of its own, because Ctrl-C is for the parent; it ends with the parent. */
static _Noreturn void run(const struct ky_view_command *command, const char *path, pid_t parent,
			  const sigset_t *mask)
{
	const char *arguments[2 * KY_VIEW_INPUTS_MAX + 6] = {"kymo", "attach", "--quiet", "-o",
							     path};
	size_t count = 5;
	for (uint32_t i = 0; i < command->targets_count; i++) {
		arguments[count++] = "-p";
		arguments[count++] = command->targets[i];
	}
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGINT);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
	/* Standard output is for the address only. */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	if (getppid() == parent)
		execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
	_exit(127);
}

static void take_status(struct ky_attach *attach, int status)
{
	attach->pid = 0;
	attach->code = WIFEXITED(status) ? WEXITSTATUS(status) : KY_EXIT_FAILED;
}

bool ky_attach_ended(struct ky_attach *attach)
{
	int status;
	if (attach->pid && waitpid(attach->pid, &status, WNOHANG) == attach->pid)
		take_status(attach, status);
	return !attach->pid;
}

static bool has_file(const struct ky_attach *attach, const struct stat *before)
{
	struct stat now;
	return stat(attach->path, &now) == 0 && now.st_size > 0 && now.st_ino != before->st_ino;
}

int ky_attach_start(struct ky_attach *attach, const struct ky_view_command *command,
		    const char *path, struct ky_stop *stop)
{
	const pid_t parent = getpid();
	struct stat before = {0};
	*attach = (struct ky_attach){0};
	snprintf(attach->path, sizeof(attach->path), "%s", path);
	stat(path, &before);
	attach->pid = fork();
	if (attach->pid == 0)
		run(command, path, parent, &stop->before);
	if (attach->pid < 0) {
		attach->pid = 0;
		ky_cli_error("cannot start the recording: %s", strerror(errno));
		return KY_EXIT_FAILED;
	}
	while (!has_file(attach, &before)) {
		if (ky_attach_ended(attach) && !has_file(attach, &before))
			return attach->code ? attach->code : KY_EXIT_FAILED;
		if (ky_stop_wait(stop, LOOK_MS, -1))
			return KY_EXIT_FAILED;
	}
	return KY_EXIT_DONE;
}

void ky_attach_stop(struct ky_attach *attach)
{
	int status = 0;
	if (!attach->pid)
		return;
	kill(attach->pid, SIGINT);
	while (waitpid(attach->pid, &status, 0) < 0 && errno == EINTR)
		;
	take_status(attach, status);
}
