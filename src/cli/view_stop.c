/* SPDX-License-Identifier: MIT */
/* view_stop.c: see view_stop.h. */
#include "cli/view_stop.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Who started kymo with one ignored (nohup, a job in the background) wants that. */
static void add_unless_ignored(sigset_t *set, int number)
{
	struct sigaction action;
	if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
		sigaddset(set, number);
}

int ky_stop_open(struct ky_stop *stop)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t set;
	*stop = (struct ky_stop){.fd = -1};
	sigemptyset(&set);
	add_unless_ignored(&set, SIGINT);
	add_unless_ignored(&set, SIGTERM);
	add_unless_ignored(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &stop->before);
	/* A client that went away is no reason to end. */
	sigaction(SIGPIPE, &ignore, NULL);
	stop->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return stop->fd >= 0 ? 0 : -errno;
}

void ky_stop_close(struct ky_stop *stop)
{
	if (stop->fd >= 0)
		close(stop->fd);
	stop->fd = -1;
	sigprocmask(SIG_SETMASK, &stop->before, NULL);
}

bool ky_stop_asked(struct ky_stop *stop)
{
	struct signalfd_siginfo info;
	if (!stop->asked && read(stop->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		stop->asked = true;
		sigprocmask(SIG_SETMASK, &stop->before, NULL);
	}
	return stop->asked;
}

bool ky_stop_wait(struct ky_stop *stop, int milliseconds, int other)
{
	struct pollfd fds[] = {{.fd = stop->fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};
	if (!stop->asked)
		poll(fds, 2, milliseconds);
	return ky_stop_asked(stop);
}
