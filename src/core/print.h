/* SPDX-License-Identifier: MIT */
/*
 * print.h: the text of a KYMO_PRINT event, made when the trace is read.
 *
 * A printf over recorded values. It knows the flags "-+ #0", width, precision, '*', the length
 * modifiers of C and d i u x X o c s p f F e E g G a A %. Differences from printf, all of them
 * because the format and the values may come from a foreign or damaged trace:
 *
 * - The value's recorded type decides what is read; the conversion decides only how it looks. %d
 *   shows a double as a double and a string as a string, %s shows a number.
 * - A value that is not there is "(missing)". Text that is no conversion is copied unchanged. %n
 *   takes its value and does nothing.
 * - Width and precision are at most KY_PRINT_WIDTH_MAX.
 * - A string that was cut when it was recorded ends with "…", and so does a message that had no
 *   room.
 */
#ifndef KY_CORE_PRINT_H
#define KY_CORE_PRINT_H

#include <kymo/session.h>
#include <stddef.h>
#include <stdint.h>

#define KY_PRINT_WIDTH_MAX 512

/*
 * Format into out, which is NUL-terminated unless room is 0 and never has a NUL before that. Return the bytes before the
 * NUL: less than room, whatever the message would have needed.
 */
size_t ky_print(char *out, size_t room, const char *fmt, const struct kymo_arg *args,
		uint32_t count);

#endif
