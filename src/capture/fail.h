/* SPDX-License-Identifier: MIT */
/* fail.h: why something of a capture cannot be, in one line: what was tried, what happened, what to do. */
#ifndef KY_CAPTURE_FAIL_H
#define KY_CAPTURE_FAIL_H

#include "capture/bundle.h"

/* Fills the message, which may be NULL, and returns error. */
int ky_capture_fail(char message[KY_CAPTURE_MESSAGE_BYTES], int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
