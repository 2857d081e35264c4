/* SPDX-License-Identifier: MIT */
/*
 * signals.h: the signals of a capture, read from a descriptor.
 *
 * A signal of the terminal (Ctrl-C) also reached the program, if it is in the same process group;
 * one that was sent to kymo alone did not, and kymo passes it on. Signals that were ignored when
 * kymo started (nohup, a background job) stay ignored.
 *
 * KY_SIGNAL_SNAPSHOT requests a snapshot from a kymo that captures. Its value is how many
 * milliseconds to reach back (0: the default). Only such a kymo has it blocked, which is how `kymo
 * snapshot` recognises one.
 */
#ifndef KY_CAPTURE_SIGNALS_H
#define KY_CAPTURE_SIGNALS_H

#include "capture/trigger.h"

#include <signal.h>

#define KY_SIGNAL_SNAPSHOT (SIGRTMIN + 6)

struct ky_signals {
	int fd;
	sigset_t set;
	sigset_t asking; /* those that request a snapshot */
	sigset_t mask_before;
	struct sigaction child_before; /* SIGCHLD */
	struct sigaction pipe_before;  /* SIGPIPE */
};

struct ky_signal {
	int number;
	bool terminal; /* sent to kymo's whole process group */
	int value;
	pid_t sender;
};

/*
 * Open the descriptor. run: also take the signals that are passed on to a program. Return 0 or
 * -errno.
 */
int ky_signals_open(struct ky_signals *signals, bool run, const struct ky_trigger *triggers,
		    uint32_t count);
/* Return the next signal; false when there are no more now. */
bool ky_signals_next(struct ky_signals *signals, struct ky_signal *signal);
/* Let Ctrl-C end kymo at once from now on, and discard signals that came before. */
void ky_signals_let_interrupt(struct ky_signals *signals);
/*
 * Restore everything, and discard signals that were not read. A late request for a snapshot must
 * not end kymo: these signals are ignored from now on.
 */
void ky_signals_close(struct ky_signals *signals);

#endif
