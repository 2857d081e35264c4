/* SPDX-License-Identifier: MIT */
/*
 * loadgen.c: a client that is a process of its own, forked from the server's.
 *
 * A forked process has none of its parent's events and sessions; it records to files of its own. The
 * ids of its requests are in both processes' files, and so are the two ends of its flows.
 */
#include "loadgen.h"

#include <stdio.h>

#include "recording.h"

#include <kymo/kymo.h>

int loadgen_main(struct client *client, const struct options *options)
{
	static struct recording recording;
	kymo_process_name("demo loadgen");
	kymo_thread_name("loadgen");
	if (!client_wait_for_server(client))
		return 1; /* the server has said why */
	int code = recording_start(&recording, options, "-loadgen");
	if (code == 0 && !client_work(client)) {
		fputs("demo: the server hung up on the load generator\n", stderr);
		code = 1;
	}
	if (!recording_stop(&recording))
		code = 1;
	return code;
}
