/* SPDX-License-Identifier: MIT */
/*
 * view_attach.h: kymo view -p: a `kymo attach` of our own that records into a file, which is followed. It is a
 * process, so that all that recording does with signals, limits and failures is as it is there.
 */
#ifndef KY_CLI_VIEW_ATTACH_H
#define KY_CLI_VIEW_ATTACH_H

#include "cli/view_stop.h"
#include "cli/view_verb.h"

#include <limits.h>
#include <sys/types.h>

struct ky_attach {
	pid_t pid; /* 0: has ended */
	int code;  /* of its exit */
	char path[PATH_MAX];
};

/* Begins, and returns once the file is there. An enum ky_exit: what failed was said. */
int ky_attach_start(struct ky_attach *attach, const struct ky_view_command *command,
		    const char *path, struct ky_stop *stop);
/* Whether it has ended by itself: the processes have. */
bool ky_attach_ended(struct ky_attach *attach);
/* Ends it, in order. */
void ky_attach_stop(struct ky_attach *attach);

#endif
