/* SPDX-License-Identifier: MIT */
/*
 * instructions.c: instructions per iteration. This program runs itself under valgrind's callgrind, with some
 * iterations and with twice as many: what the first thread takes more includes the beginnings of blocks, but
 * not the registration of the trace point.
 */
#include "bench.h"
#include "child.h"
#include "loops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ITERATIONS 100000u
#define ITERATIONS_QUICK 1000u

static const struct report_column columns[] = {
	{"with_loop", "with the loop", 1},
	{"alone", "alone", 1},
	{NULL, NULL, 0},
};

struct counted {
	const char *name; /* of a loop in loops.h, or bare, or empty */
	bool on;
	const char *label;
};
static const struct counted all[] = {
	{"empty", true, "empty loop"},
	{"bare", true, "bare loop"},
	{"scope", true, "scope, on"},
	{"instant", true, "instant, on"},
	{"int2", true, "instant, 2 integers, on"},
	{"int2_string", true, "instant, 2 integers and string, on"},
	{"scope", false, "scope, off"},
	{"instant", false, "instant, off"},
};

static loop_fn *find_run(const char *function)
{
	if (strncmp(function, "loop_", 5) == 0)
		return strcmp(function, "loop_bare") == 0 ? loop_bare : loop_empty;
	const bool on = strncmp(function, "on_", 3) == 0;
	const struct loop *loop = loop_find(function + (on ? 3 : 4));
	return !loop ? NULL : on ? loop->on : loop->off;
}

int instructions_child(const char *function, uint32_t iterations)
{
	loop_fn *run = strlen(function) > 4 ? find_run(function) : NULL;
	if (!run)
		return 2;
	tracing_on();
	run(iterations);
	return 0;
}

static void name_function(char *function, size_t bytes, const struct counted *counted)
{
	const char *prefix = loop_find(counted->name) == NULL ? "loop_"
			     : counted->on                    ? "on_"
							      : "off_";
	snprintf(function, bytes, "%s%s", prefix, counted->name);
}

/* Return the total that callgrind wrote, or -1. */
static double read_total(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[256];
	double total = -1;
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "summary: %lf", &total) == 1 ||
		    sscanf(line, "totals: %lf", &total) == 1)
			break;
	if (file)
		fclose(file);
	return total;
}

/* Return the instructions of the first thread with so many iterations, or -1. */
static double run_total(const struct settings *settings, const char *function, uint32_t iterations)
{
	char path[PATH_MAX], first[PATH_MAX + 8], out[PATH_MAX + 32], number[16];
	if ((size_t)snprintf(path, sizeof(path), "%s/callgrind", settings->files) >= sizeof(path))
		return -1;
	snprintf(out, sizeof(out), "--callgrind-out-file=%s", path);
	snprintf(first, sizeof(first), "%s-01", path);
	snprintf(number, sizeof(number), "%" PRIu32, iterations);
	const char *const argv[] = {"valgrind",
				    "--tool=callgrind",
				    out,
				    "--separate-threads=yes",
				    settings->self,
				    "--loop",
				    function,
				    "--iterations",
				    number,
				    NULL};
	const double total = child_run(argv, NULL, 0) ? read_total(first) : -1;
	unlink(path);
	unlink(first);
	return total;
}

/* Return the instructions per iteration, or NAN. */
static double count(const struct settings *settings, const struct counted *counted)
{
	const uint32_t iterations = settings->quick ? ITERATIONS_QUICK : ITERATIONS;
	char function[64];
	name_function(function, sizeof(function), counted);
	const double once = run_total(settings, function, iterations);
	const double twice = run_total(settings, function, 2 * iterations);
	return once > 0 && twice > 0 ? (twice - once) / iterations : NAN;
}

void instructions_run(const struct settings *settings, struct report *report)
{
	const char *const version[] = {"valgrind", "--version", NULL};
	double empty = NAN, scope = NAN;
	report_begin(report, "instructions", "instructions of an iteration", columns);
	const bool possible = child_run(version, NULL, 0);
	if (!possible)
		report_note(report,
			    "skipped: valgrind is not installed (apt-get install valgrind)");
	/* --quick only tests that it works, which takes valgrind most of a second. */
	const size_t some = settings->quick ? 1 : sizeof(all) / sizeof(all[0]);
	for (size_t i = 0; possible && i < some; i++) {
		const double with_loop = count(settings, &all[i]);
		if (i == 0)
			empty = with_loop;
		if (all[i].on && strcmp(all[i].name, "scope") == 0)
			scope = with_loop;
		report_row(report, all[i].label, (double[]){with_loop, with_loop - empty});
	}
	if (possible && isnan(empty))
		report_note(report, "valgrind could not run this program");
	report_end(report);
	report_target(report, scope, 44, "", "instructions of a scope, on, with the loop's own");
}
