/* SPDX-License-Identifier: MIT */
/*
 * view_stop.h: the signals that end kymo view in order: SIGINT, SIGTERM, SIGHUP, read from a descriptor. After the
 * first one they do what they usually do: a second Ctrl-C ends kymo at once.
 */
#ifndef KY_CLI_VIEW_STOP_H
#define KY_CLI_VIEW_STOP_H

#include <signal.h>
#include <stdbool.h>

struct ky_stop {
	int fd;
	sigset_t before; /* the mask; that of programs that are started */
	bool asked;
};

/* Before there are threads, which are to have the same mask. 0 or -errno. */
int ky_stop_open(struct ky_stop *stop);
void ky_stop_close(struct ky_stop *stop);
bool ky_stop_asked(struct ky_stop *stop);
/* Waits at most so long for it; other, when not -1, ends the waiting when it is readable. */
bool ky_stop_wait(struct ky_stop *stop, int milliseconds, int other);

#endif
