/* SPDX-License-Identifier: MIT */
/* options.h: the command line; see options.c. */
#ifndef DEMO_OPTIONS_H
#define DEMO_OPTIONS_H

#include <stdint.h>

#define OPTIONS_OUTPUTS_MAX 8

struct options {
	uint64_t tasks;
	int workers;
	uint64_t seed;
	double seconds;
	int outputs_count;
	const char *outputs[OPTIONS_OUTPUTS_MAX];
	const char *categories; /* NULL is all */
};

enum options_verdict { OPTIONS_GO, OPTIONS_HELP, OPTIONS_WRONG };

/* Fills in *options; prints the help or what is wrong. */
enum options_verdict options_parse(struct options *options, int argc, char **argv);

#endif /* DEMO_OPTIONS_H */
