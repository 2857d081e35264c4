/* SPDX-License-Identifier: MIT */
/*
 * greeter.c: the library. It is compiled with -DKYMO_EMBEDDED and ships kymo.h: it is linked with
 * nothing of kymo. Whether its events go anywhere is the business of the program it is used in.
 */
#include "greeter.h"

#include <stdbool.h>
#include <stdio.h>

#include <kymo/kymo.h>

static int greet_once(const char *who, int number)
{
	KYMO_SCOPE("greeter", "greet_once", "number", number);
	const int bytes = printf("hello, %s\n", who);
	KYMO_COUNTER("greeter", "bytes_per_name", (double)bytes / 8);
	return bytes;
}

int greeter_greet(const char *who, int times)
{
	KYMO_SCOPE("greeter", "greet", "who", who, "times", times, "often", (bool)(times > 2));
	int bytes = 0;
	for (int i = 0; i < times; i++)
		bytes += greet_once(who, i);
	KYMO_INSTANT_DYN("greeter", who, "nobody", (const char *)NULL);
	KYMO_ASYNC_BEGIN("greeter", "afterglow", 42);
	KYMO_ASYNC_END("greeter", "afterglow", 42);
	KYMO_PRINT("greeter", "greeted %s with %d bytes", who, bytes);
	return bytes;
}
