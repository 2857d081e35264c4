/* SPDX-License-Identifier: MIT */
/* fail.h: the message of a failure, in one line: what was tried, what happened, what to do. */
#ifndef KY_BASE_FAIL_H
#define KY_BASE_FAIL_H

#define KY_MESSAGE_BYTES 512

/* Fill the message, which may be NULL, and return error. */
int ky_fail(char message[KY_MESSAGE_BYTES], int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
