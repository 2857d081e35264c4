/* SPDX-License-Identifier: MIT */
/* live_target.c: a program that traces until it is killed: a request and a query in it every few milliseconds. */
#include <kymo/kymo.h>

#include <stdint.h>
#include <time.h>

static void pause_ms(long ms)
{
	const struct timespec time = {.tv_nsec = ms * 1000000};
	nanosleep(&time, NULL);
}

int main(void)
{
	kymo_thread_name("worker");
	for (int64_t i = 0;; i++) {
		KYMO_BEGIN("net", "request", "number", i, "path", "/index");
		KYMO_BEGIN("db", "query");
		pause_ms(1);
		KYMO_END("db");
		KYMO_INSTANT("net.debug", "tick", "share", 0.5);
		KYMO_END("net");
		KYMO_COUNTER("load", "queue", i % 10);
		KYMO_PRINT("log", "request %d done", (int)i);
		pause_ms(4);
	}
}
