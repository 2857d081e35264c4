/* SPDX-License-Identifier: MIT */
/*
 * capture_output.h: the file of a capture has no name until there is something to keep: a program
 * that could not be started, or a flight recorder that no trigger fired, leaves what had the name
 * before as it was, and leaves nothing else. Where the file system has no files without a name, it
 * has another one (PATH.PID.tmp) until then.
 *
 * What is no regular file (a FIFO, a terminal) and what rotates has its name from the beginning.
 */
#ifndef KY_CAPTURE_CAPTURE_OUTPUT_H
#define KY_CAPTURE_CAPTURE_OUTPUT_H

#include "capture/bundle.h"

#include <limits.h>

struct ky_capture_output {
	int fd;                 /* to write to; -1: by path, as it is */
	char path[PATH_MAX];    /* what it is called once it is kept, as the user named it */
	char target[PATH_MAX];  /* and where links in it lead to */
	char waiting[PATH_MAX]; /* its name until then; "" is none */
	bool keep_old;          /* what had the name before becomes PATH.old */
	bool kept;
};

int ky_capture_output_open(struct ky_capture_output *output, const char *path, bool keep_old,
			   char message[KY_CAPTURE_MESSAGE_BYTES]);
/* There is something to keep: from now on it has its name. Only the first call does anything. */
int ky_capture_output_keep(struct ky_capture_output *output,
			   char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Nothing is left of what was not kept. */
void ky_capture_output_close(struct ky_capture_output *output);

#endif
