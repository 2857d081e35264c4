/* SPDX-License-Identifier: MIT */
/* signals.c: what depends on the signals of the program: whether a handler runs, and a line that raises none. */
#include "os/os.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* Read one that write() raised, unless it was pending before. */
static void discard(int signal, const sigset_t *pending_before)
{
	const struct timespec at_once = {0, 0};
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, signal);
	if (!sigismember(pending_before, signal))
		(void)sigtimedwait(&one, NULL, &at_once);
}

void ky_os_say(const char *text, size_t bytes)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	sigset_t raised, mask, pending;
	if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
		return;
	/* A pipe that nobody reads, a terminal that stops writers in the background. */
	sigemptyset(&raised);
	sigaddset(&raised, SIGPIPE);
	sigaddset(&raised, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &raised, &mask);
	sigpending(&pending);
	if (write(STDERR_FILENO, text, bytes) < 0 && errno == EPIPE)
		discard(SIGPIPE, &pending);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
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
