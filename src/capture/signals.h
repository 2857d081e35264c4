/* SPDX-License-Identifier: MIT */
/*
 * signals.h: the signals of a capture, read from a descriptor.
 *
 * A signal of the terminal (Ctrl-C) reached the program too, if it is in the same process group;
 * one that somebody sent to kymo alone did not, and is for kymo to pass on. Signals that were
 * ignored when kymo began (nohup, a job in the background) stay so.
 *
 * KY_SIGNAL_SNAPSHOT asks a kymo that captures for a snapshot, with the milliseconds to reach back
 * as its value (0: as its options say). It is blocked in such a kymo and in no other, which is how
 * `kymo snapshot` tells them apart.
 */
#ifndef KY_CAPTURE_SIGNALS_H
#define KY_CAPTURE_SIGNALS_H

#include "capture/trigger.h"

#include <signal.h>

#define KY_SIGNAL_SNAPSHOT (SIGRTMIN + 6)

struct ky_signals {
	int fd;
	sigset_t set;
	sigset_t asking; /* of these, what asks for a snapshot */
	sigset_t mask_before;
	struct sigaction child_before; /* SIGCHLD */
	struct sigaction pipe_before;  /* SIGPIPE */
};

struct ky_signal {
	int number;
	bool terminal; /* all of kymo's process group got it */
	int value;
	pid_t sender;
};

/* run: those that are passed on to a program belong to it too. 0 or -errno. */
int ky_signals_open(struct ky_signals *signals, bool run, const struct ky_trigger *triggers,
		    uint32_t count);
/* False: there are no more at the moment. */
bool ky_signals_next(struct ky_signals *signals, struct ky_signal *signal);
/* From now on Ctrl-C ends kymo at once; those that came before are forgotten. */
void ky_signals_let_interrupt(struct ky_signals *signals);
/*
 * All as before; what came and was not read is forgotten. Who asks for a snapshot now is late, and is not to end kymo
 * for it: those are ignored from here on.
 */
void ky_signals_close(struct ky_signals *signals);

#endif
