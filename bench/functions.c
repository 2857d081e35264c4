/* SPDX-License-Identifier: MIT */
/*
 * functions.c: the cost of a call of a traced function, beside the bare loop. A process of its own (functions_child.c)
 * makes the calls and traces itself.
 */
#include "functions.h"
#include "bench.h"
#include "child.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PROCESSES 8
#define NOT_HERE "function calls cannot be traced by patching on this machine"

static const struct report_column columns[] = {
	{"ns", "ns/call", 2},
	{"ratio", "x bare", 3},
	{"more_ns", "more than untraced, ns", 2},
	{NULL, NULL, 0},
};

static const char *const labels[FUNCTIONS_TIMES] = {
	[FUNCTIONS_BARE] = "bare loop",
	[FUNCTIONS_CALL] = "a call, not traced",
	[FUNCTIONS_PATCHED] = "entry and exit",
	[FUNCTIONS_ENTERED] = "entry alone",
	[FUNCTIONS_UNCOUNTED] = "entry and exit, counter not read",
	[FUNCTIONS_NOPS_OFF] = "nops, off",
	[FUNCTIONS_NOPS_ON] = "nops, on",
};

static bool measure_once(const struct settings *settings, double ns[FUNCTIONS_TIMES])
{
	char program[PATH_MAX + 16], output[256] = "";
	snprintf(program, sizeof(program), "%s_functions", settings->self);
	const char *const argv[] = {program, settings->quick ? "--quick" : NULL, NULL};
	if (!child_run(argv, output, sizeof(output)))
		return false;
	const char *at = output;
	for (int i = 0; i < FUNCTIONS_TIMES; i++) {
		char *end;
		ns[i] = strtod(at, &end);
		if (end == at)
			return false;
		at = end;
	}
	return true;
}

/*
 * Addresses are random in each process, and some are slower by a few percent. So this takes the shortest times of several
 * processes, and shows the slowest of them for a traced call.
 */
static bool measure(const struct settings *settings, double ns[FUNCTIONS_TIMES], double *slowest_ns)
{
	const int processes = settings->quick ? 1 : PROCESSES;
	*slowest_ns = 0;
	for (int i = 0; i < FUNCTIONS_TIMES; i++)
		ns[i] = INFINITY;
	for (int i = 0; i < processes; i++) {
		double once[FUNCTIONS_TIMES];
		if (!measure_once(settings, once))
			return false;
		*slowest_ns = fmax(*slowest_ns, once[FUNCTIONS_PATCHED]);
		for (int t = 0; t < FUNCTIONS_TIMES; t++)
			ns[t] = fmin(ns[t], once[t]);
	}
	return true;
}

void functions_run(const struct settings *settings, struct report *report)
{
	double ns[FUNCTIONS_TIMES], slowest_ns;
	report_begin(report, "functions", "function calls", columns);
	if (!measure(settings, ns, &slowest_ns)) {
		report_note(report, NOT_HERE);
		report_end(report);
		return;
	}
	for (int i = 0; i < FUNCTIONS_TIMES; i++)
		report_row(report, labels[i],
			   (double[]){ns[i], ns[i] / ns[FUNCTIONS_BARE],
				      i > FUNCTIONS_CALL ? ns[i] - ns[FUNCTIONS_CALL] : NAN});
	report_note(report,
		    "the shortest of several processes, whose memory lies elsewhere each time; "
		    "entry and exit in the slowest of them: %.3f x bare",
		    slowest_ns / ns[FUNCTIONS_BARE]);
	report_end(report);
	report_target(report, ns[FUNCTIONS_PATCHED] / ns[FUNCTIONS_BARE], 2.1, "x",
		      "a traced call, entry and exit: beside the bare loop");
	report_target(report, ns[FUNCTIONS_ENTERED] / ns[FUNCTIONS_BARE], 1.05, "x",
		      "a traced call, entry alone: beside the bare loop");
	report_target(report, fmax(0, ns[FUNCTIONS_NOPS_OFF] - ns[FUNCTIONS_CALL]), 0.3, "ns",
		      "a function compiled for tracing, off");
	report_target(report, ns[FUNCTIONS_UNCOUNTED] - ns[FUNCTIONS_CALL], 6, "ns",
		      "a traced call without reading the counter");
}
