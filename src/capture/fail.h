/* SPDX-License-Identifier: MIT */
/* fail.h: the message of a failure, in one line: what was tried, what happened, what to do. */
#ifndef KY_CAPTURE_FAIL_H
#define KY_CAPTURE_FAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KY_CAPTURE_MESSAGE_BYTES 512

/* Fill the message, which may be NULL, and return error. */
int ky_capture_fail(char message[KY_CAPTURE_MESSAGE_BYTES], int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
