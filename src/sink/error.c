/* SPDX-License-Identifier: MIT */
/* error.c: the texts of session.h's table of errors, and the system's for the rest. */
#include <kymo/session.h>
#include <string.h>

const char *kymo_strerror(int error)
{
	switch (error) {
#define TEXT(name, value, text)                                                                    \
	case name:                                                                                 \
		return text;
		KYMO_ERRORS(TEXT)
#undef TEXT
	default:
		break;
	}
	const char *text = strerrordesc_np(error < 0 ? -error : error);
	return text ? text : "unknown error";
}
