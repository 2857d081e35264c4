/* SPDX-License-Identifier: MIT */
/*
 * capture_output.h: the file of a capture, which has no name until there is something to keep. When
 * the program could not be started, or no trigger fired, an existing file of that name stays as it
 * was, and nothing else is left. Where the file system has no files without a name, it is
 * PATH.PID.tmp until then.
 *
 * Anything but a regular file (a FIFO, a terminal), and an output that rotates, has its name from
 * the beginning.
 */
#ifndef KY_CAPTURE_CAPTURE_OUTPUT_H
#define KY_CAPTURE_CAPTURE_OUTPUT_H

#include "capture/bundle.h"

#include <limits.h>

struct ky_capture_output {
	int fd;                 /* to write to; -1: open the path */
	char path[PATH_MAX];    /* as the user named it */
	char target[PATH_MAX];  /* with its links resolved */
	char waiting[PATH_MAX]; /* its name until then; "": none */
	bool keep_old;          /* rename an existing file to PATH.old */
	bool kept;
};

int ky_capture_output_open(struct ky_capture_output *output, const char *path, bool keep_old,
			   char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Give the file its name, because there is something to keep. Only the first call has an effect. */
int ky_capture_output_keep(struct ky_capture_output *output,
			   char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Close the file, and remove it if it was not kept. */
void ky_capture_output_close(struct ky_capture_output *output);

#endif
