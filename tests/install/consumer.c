/* SPDX-License-Identifier: MIT */
/*
 * consumer.c: a program of someone who installed kymo. With an argument it records itself to that
 * file; without one it is left to KYMO_TRACE. Exits with 0 when the library did what it should.
 */
#include <kymo/kymo.h>
#include <kymo/session.h>
#include <kymo/version.h>
#include <stdio.h>
#include <string.h>

static void work(int rounds)
{
	KYMO_SCOPE("consumer", "consumer_work", "rounds", rounds);
	for (int i = 0; i < rounds; i++)
		KYMO_INSTANT("consumer", "consumer_round", "i", i, "of", "consumer.c");
}

static int check(const char *what, int error)
{
	if (error < 0)
		fprintf(stderr, "consumer: %s: %s\n", what, kymo_strerror(error));
	return error < 0;
}

int main(int argc, char **argv)
{
	struct kymo_session *session = NULL;
	struct kymo_options options = {.size = sizeof(options)};
	int failed = strcmp(kymo_version(), KYMO_VERSION) != 0;

	options.path = argc > 1 ? argv[1] : NULL;
	if (options.path)
		failed += check("start", kymo_session_start(&session, &options));
	work(3);
	if (options.path)
		failed += check("stop", kymo_session_stop(&session));
	return failed != 0;
}
