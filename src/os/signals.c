/* SPDX-License-Identifier: MIT */
/* signals.c: what depends on the signals of the program: whether a handler runs, and a line that raises none. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Read one that write() raised, unless it was pending before. */
static void discard(int signal, const sigset_t *pending_before)
{
	const struct timespec at_once = {0, 0};
	sigset_t one = {0};
	sigaddset(&one, signal);
	if (!sigismember(pending_before, signal))
		(void)sigtimedwait(&one, NULL, &at_once);
}

/* Write where no signal is raised and nothing waits. */
static void write_quietly(int fd, const char *text, size_t bytes)
{
	struct pollfd out = {.fd = fd, .events = POLLOUT};
	sigset_t raised = {0}, mask, pending;
	if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
		return;
	/* A pipe that nobody reads, a terminal that stops writers in the background. */
	sigaddset(&raised, SIGPIPE);
	sigaddset(&raised, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &raised, &mask);
	sigpending(&pending);
	if (write(fd, text, bytes) < 0 && errno == EPIPE)
		discard(SIGPIPE, &pending);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/*
 * The program may close its standard error and open a file of its own there at any time: the check and the
 * write use one copy of the descriptor, which cannot change between the two. It is made and closed by system
 * calls, for the thread sanitizer takes dup() beside the program's close() for a race.
 */
void ky_os_report(const char *text, size_t bytes, uint64_t identity)
{
	const int copy = (int)syscall(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	const int fd =
		copy >= 0 ? copy : STDERR_FILENO; /* no descriptor is left: report just that */
	if (ky_os_identity(fd) == identity)
		write_quietly(fd, text, bytes);
	if (copy >= 0)
		syscall(SYS_close, copy);
}

bool ky_os_maybe_in_handler(void)
{
	sigset_t mask;
	if (pthread_sigmask(SIG_BLOCK, NULL, &mask) != 0)
		return true;
	for (int signal = 1; signal < NSIG; signal++) {
		struct sigaction action;
		const bool blocked = sigismember(&mask, signal) == 1;
		/* Those that the C library keeps for itself always have a handler. */
		if (sigaction(signal, NULL, &action) != 0) {
			if (blocked)
				return true;
			continue;
		}
		const bool handled = action.sa_flags & SA_SIGINFO ||
				     (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
		if (handled && (blocked || action.sa_flags & SA_NODEFER))
			return true;
	}
	return false;
}
