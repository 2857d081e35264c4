/* SPDX-License-Identifier: MIT */
/*
 * host_kymo.c: a program that uses the library and links libkymo, which is a host: the library's
 * events are in the program's trace, beside its own. There is nothing else to do.
 *
 *	host_kymo FILE		records to FILE
 */
#include <stdio.h>

#include "greeter.h"

#include <kymo/session.h>

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: host_kymo FILE\n", stderr);
		return 2;
	}
	struct kymo_session *session;
	const struct kymo_options options = {.size = sizeof(options), .path = argv[1]};
	int error = kymo_session_start(&session, &options);
	if (!error) {
		{
			KYMO_SCOPE("host", "main");
			greeter_greet("world", 3);
		}
		error = kymo_session_stop(&session);
	}
	if (error)
		fprintf(stderr, "host_kymo: %s: %s\n", argv[1], kymo_strerror(error));
	return error ? 1 : 0;
}
