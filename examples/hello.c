/* SPDX-License-Identifier: MIT */
/* hello.c: the smallest traced program. KYMO_TRACE=hello.json ./hello records it. */
#include <stdio.h>

#include <kymo/kymo.h>

static void greet(const char *who, int times)
{
	KYMO_SCOPE("hello", "greet", "who", who, "times", times);
	for (int i = 0; i < times; i++) {
		KYMO_INSTANT("hello", "again", "i", i);
		printf("hello, %s\n", who);
	}
}

int main(void)
{
	kymo_thread_name("main");
	greet("world", 3);
	return 0;
}
