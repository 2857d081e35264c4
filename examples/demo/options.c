/* SPDX-License-Identifier: MIT */
/* options.c: the command line's options, and the errors about them. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "scheduler.h"

#define TASKS_MAX 10000000
#define SECONDS_MAX 86400

static const char help[] =
	"usage: demo [options]\n"
	"\n"
	"A miniature object server that records itself with kymo. Client threads and a second\n"
	"process, the load generator, send requests; worker threads run them as tasks in\n"
	"transactions that get in each other's way and are retried. At the end it checks that\n"
	"no update was lost.\n"
	"\n"
	"  --tasks N               requests in all (1000)\n"
	"  --workers N             worker threads (4)\n"
	"  --seed N                the same seed asks for the same work (1)\n"
	"  --seconds N             the requests are spread over so much time (1)\n"
	"  --trace-output FILE     record to FILE, in the format of its suffix: .json .json.gz\n"
	"                          .pftrace .fxt .fxt.gz .kymo; may be given several times.\n"
	"                          The load generator records to FILE with -loadgen before the\n"
	"                          suffix; open both together to see requests cross processes\n"
	"  --trace-categories LIST record only these categories: globs, separated by commas, a\n"
	"                          '-' before one excludes it (all). The demo has: builtin\n"
	"                          client db gateway log profile request scheduler slow task\n"
	"                          verb world\n"
	"  --help                  this text\n"
	"\n"
	"Without --trace-output, KYMO_TRACE='out-${pid}.pftrace' in the environment does the "
	"same.\n"
	"Exit code: 0 all is well, 1 something failed, 2 the command line is wrong.\n";

enum choice { TASKS = 1, WORKERS, SEED, SECONDS, OUTPUT, CATEGORIES, HELP };

static const struct option longs[] = {
	{"tasks", required_argument, NULL, TASKS},
	{"workers", required_argument, NULL, WORKERS},
	{"seed", required_argument, NULL, SEED},
	{"seconds", required_argument, NULL, SECONDS},
	{"trace-output", required_argument, NULL, OUTPUT},
	{"trace-categories", required_argument, NULL, CATEGORIES},
	{"help", no_argument, NULL, HELP},
	{NULL, 0, NULL, 0},
};

/* Reads a number from low to high; says what is wrong with it. */
static bool parse_number(const char *option, const char *text, uint64_t low, uint64_t high,
			 uint64_t *number)
{
	char *end;
	errno = 0;
	*number = strtoull(text, &end, 10);
	const bool is_digit = text[0] >= '0' && text[0] <= '9';
	if (is_digit && *end == '\0' && errno == 0 && *number >= low && *number <= high)
		return true;
	fprintf(stderr, "demo: --%s takes a number from %llu to %llu, not '%s'\n", option,
		(unsigned long long)low, (unsigned long long)high, text);
	return false;
}

static bool parse_seconds(const char *text, double *seconds)
{
	char *end;
	*seconds = strtod(text, &end);
	if (end != text && *end == '\0' && *seconds >= 0 && *seconds <= SECONDS_MAX)
		return true;
	fprintf(stderr, "demo: --seconds takes a number from 0 to %d, not '%s'\n", SECONDS_MAX,
		text);
	return false;
}

static bool add_output(struct options *options, const char *path)
{
	if (options->outputs_count == OPTIONS_OUTPUTS_MAX) {
		fprintf(stderr, "demo: --trace-output can be given %d times at most\n",
			OPTIONS_OUTPUTS_MAX);
		return false;
	}
	options->outputs[options->outputs_count++] = path;
	return true;
}

/* Takes one option; returns false when it is wrong. */
static bool take(struct options *options, int option, const char *text)
{
	uint64_t workers = 0;
	switch (option) {
	case TASKS:
		return parse_number("tasks", text, 1, TASKS_MAX, &options->tasks);
	case WORKERS:
		if (!parse_number("workers", text, 1, SCHEDULER_WORKERS_MAX, &workers))
			return false;
		options->workers = (int)workers;
		return true;
	case SEED:
		return parse_number("seed", text, 0, UINT64_MAX, &options->seed);
	case SECONDS:
		return parse_seconds(text, &options->seconds);
	case OUTPUT:
		return add_output(options, text);
	case CATEGORIES:
		options->categories = text;
		return true;
	default:
		return false; /* getopt has said why */
	}
}

static enum options_verdict wrong(void)
{
	fputs("demo: --help says what is possible\n", stderr);
	return OPTIONS_WRONG;
}

enum options_verdict options_parse(struct options *options, int argc, char **argv)
{
	*options = (struct options){.tasks = 1000, .workers = 4, .seed = 1, .seconds = 1};
	int option;
	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (option == HELP) {
			fputs(help, stdout);
			return OPTIONS_HELP;
		}
		if (!take(options, option, optarg))
			return wrong();
	}
	if (optind < argc) {
		fprintf(stderr, "demo: '%s' is not an option\n", argv[optind]);
		return wrong();
	}
	return OPTIONS_GO;
}
