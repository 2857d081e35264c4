/* SPDX-License-Identifier: MIT */
/* fail.c: see fail.h. */
#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>

int ky_fail(char message[KY_MESSAGE_BYTES], int error, const char *format, ...)
{
	va_list list;
	if (!message)
		return error;
	va_start(list, format);
	vsnprintf(message, KY_MESSAGE_BYTES, format, list);
	va_end(list);
	return error;
}
