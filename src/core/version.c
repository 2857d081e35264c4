/* SPDX-License-Identifier: MIT */
/*
 * version.c: the version of the library, as opposed to that of the headers a program was built with.
 */
#include <kymo/version.h>

const char *kymo_version(void)
{
	return KYMO_VERSION;
}
