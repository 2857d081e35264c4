/* SPDX-License-Identifier: MIT */
/*
 * live_odd_target.c MODE [OFFSET]: a program whose spans are hard to count, until it is killed: "open" has one that never ends; "async" an asynchronous one
 * that lasts long, whose id other processes have, too; "deep" more in each other than kymo keeps, in one that ends.
 */
#include <kymo/kymo.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEEP 5000

static void pause_ms(long ms)
{
	const struct timespec time = {.tv_nsec = ms * 1000000};
	nanosleep(&time, NULL);
}

static void dive(void)
{
	KYMO_BEGIN("odd", "outer");
	for (int i = 0; i < DEEP; i++)
		KYMO_BEGIN("odd", "deep");
	for (int i = 0; i < DEEP; i++)
		KYMO_END("odd");
	KYMO_BEGIN("odd", "behind");
	KYMO_END("odd");
	KYMO_END("odd");
}

int main(int argc, char **argv)
{
	const char *const mode = argc > 1 ? argv[1] : "";
	for (int64_t i = argc > 2 ? atoi(argv[2]) : 0;; i++) {
		if (strcmp(mode, "open") == 0 && i % 200 == 199)
			KYMO_BEGIN("odd", "open");
		if (strcmp(mode, "async") == 0 && i % 200 == 0)
			KYMO_ASYNC_BEGIN("odd", "async", 7);
		if (strcmp(mode, "async") == 0 && i % 200 == 190)
			KYMO_ASYNC_END("odd", "async", 7);
		if (strcmp(mode, "deep") == 0)
			dive();
		KYMO_INSTANT("odd", "tick");
		pause_ms(5);
	}
}
