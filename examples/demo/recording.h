/* SPDX-License-Identifier: MIT */
/* recording.h: the trace files of this process; see recording.c. */
#ifndef DEMO_RECORDING_H
#define DEMO_RECORDING_H

#include <stdbool.h>

#include "options.h"

#define RECORDING_PATH_MAX 4096

struct kymo_session;

struct recording {
	int count;
	struct kymo_session *sessions[OPTIONS_OUTPUTS_MAX];
	char paths[OPTIONS_OUTPUTS_MAX][RECORDING_PATH_MAX];
};

/*
 * Starts a session for every output; tag (may be "") goes before the suffix of its name. Returns 0;
 * else it said why on stderr, and returns the exit code.
 */
int recording_start(struct recording *recording, const struct options *options, const char *tag);

/* Finishes the files and prints a line about each. Returns whether all is written. */
bool recording_stop(struct recording *recording);

#endif /* DEMO_RECORDING_H */
