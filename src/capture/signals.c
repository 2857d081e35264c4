/* SPDX-License-Identifier: MIT */
/* signals.c: see signals.h. */
#include "capture/signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

/*
 * Signals that end a capture, and those that a program may want. SIGTSTP stops an attach or a
 * record as it does any program.
 */
static const int always[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
static const int passed_on[] = {SIGQUIT, SIGUSR1,  SIGUSR2, SIGCONT, SIGTSTP,
				SIGALRM, SIGWINCH, SIGURG,  SIGIO,   SIGPWR};

static void add(sigset_t *set, int number)
{
	struct sigaction action;
	if (sigaction(number, NULL, &action) != 0)
		return;
	if (action.sa_handler != SIG_IGN || number == SIGCHLD)
		sigaddset(set, number);
}

static bool ends_kymo(int number)
{
	return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

static void choose(struct ky_signals *signals, bool run, const struct ky_trigger *triggers,
		   uint32_t count)
{
	sigset_t *const set = &signals->set;
	sigemptyset(set);
	sigemptyset(&signals->asking);
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		add(set, always[i]);
	for (size_t i = 0; run && i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		add(set, passed_on[i]);
	for (uint32_t i = 0; i < count; i++) {
		if (triggers[i].kind != KY_TRIGGER_SIGNAL)
			continue;
		sigaddset(set, triggers[i].signal);
		if (!ends_kymo(triggers[i].signal))
			sigaddset(&signals->asking, triggers[i].signal);
	}
	sigaddset(set, KY_SIGNAL_SNAPSHOT);
	sigaddset(&signals->asking, KY_SIGNAL_SNAPSHOT);
}

int ky_signals_open(struct ky_signals *signals, bool run, const struct ky_trigger *triggers,
		    uint32_t count)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
	choose(signals, run, triggers, count);
	signals->fd = signalfd(-1, &signals->set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals->fd < 0)
		return -errno;
	/* Ignored children leave no exit code. A reader that went away is a write error, and must not end kymo. */
	sigaction(SIGCHLD, &usual, &signals->child_before);
	sigaction(SIGPIPE, &ignore, &signals->pipe_before);
	sigprocmask(SIG_BLOCK, &signals->set, &signals->mask_before);
	return 0;
}

bool ky_signals_next(struct ky_signals *signals, struct ky_signal *signal)
{
	struct signalfd_siginfo info;
	ssize_t got;
	do {
		got = read(signals->fd, &info, sizeof(info));
	} while (got < 0 && errno == EINTR);
	if (got != sizeof(info))
		return false;
	*signal = (struct ky_signal){.number = (int)info.ssi_signo,
				     .terminal = info.ssi_code == SI_KERNEL,
				     .value = info.ssi_code == SI_QUEUE ? info.ssi_int : 0,
				     .sender = (pid_t)info.ssi_pid};
	return true;
}

static void forget(struct ky_signals *signals)
{
	struct ky_signal signal;
	while (ky_signals_next(signals, &signal))
		;
}

void ky_signals_let_interrupt(struct ky_signals *signals)
{
	sigset_t interrupt;
	forget(signals);
	sigemptyset(&interrupt);
	if (sigismember(&signals->set, SIGINT) && !sigismember(&signals->mask_before, SIGINT))
		sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
}

void ky_signals_close(struct ky_signals *signals)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	if (signals->fd < 0)
		return;
	for (int number = 1; number <= SIGRTMAX; number++) {
		if (sigismember(&signals->asking, number) == 1)
			sigaction(number, &ignore, NULL);
	}
	forget(signals);
	sigprocmask(SIG_SETMASK, &signals->mask_before, NULL);
	sigaction(SIGCHLD, &signals->child_before, NULL);
	sigaction(SIGPIPE, &signals->pipe_before, NULL);
	close(signals->fd);
	signals->fd = -1;
}
