/* SPDX-License-Identifier: MIT */
/* cost.c: nanoseconds of each kind of event, on and off, beside the bare and the empty loop. */
#include "bench.h"
#include "repeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct report_column columns[] = {
	{"on_ns", "on, ns/event", 2},
	{"on_ratio", "x bare", 3},
	{"off_ns", "off, ns/point", 2},
	{NULL, NULL, 0},
};

/* The bare and the empty loop, then each loop on, then each off. */
enum { BARE, EMPTY, FIRST };

static double on_ns(const double *ns, size_t loop)
{
	return loops[loop].events ? ns[FIRST + loop] / loops[loop].events : NAN;
}

static double off_ns(const double *ns, size_t loop)
{
	const double more = ns[FIRST + loops_count + loop] - ns[EMPTY];
	return (more > 0 ? more : 0) / loops[loop].points;
}

static void add_targets(struct report *report, const double *ns)
{
	double off_worst = 0;
	for (size_t i = 0; i < loops_count; i++) {
		const double ratio = on_ns(ns, i) / ns[BARE];
		off_worst = fmax(off_worst, off_ns(ns, i));
		if (strcmp(loops[i].name, "instant") == 0 || strcmp(loops[i].name, "scope") == 0)
			report_target(report, ratio, 1.15, "x",
				      "%s, on: an event beside the bare loop", loops[i].label);
		if (strcmp(loops[i].name, "int2_string") == 0)
			report_target(report, ratio, 1.5, "x", "%s, on: beside the bare loop",
				      loops[i].label);
	}
	report_target(report, off_worst, 0.5, "ns", "trace point off, the costliest kind");
}

static void show(struct report *report, const double *ns)
{
	report_begin(report, "cost", "cost of an event", columns);
	report_row(report, "bare loop", (double[]){ns[BARE], 1, NAN});
	for (size_t i = 0; i < loops_count; i++)
		report_row(report, loops[i].label,
			   (double[]){on_ns(ns, i), on_ns(ns, i) / ns[BARE], off_ns(ns, i)});
	report_note(report,
		    "bare: read the counter, store 16 bytes; off: what it adds to an empty "
		    "loop of %.2f ns",
		    ns[EMPTY]);
	report_end(report);
}

void cost_run(const struct settings *settings, struct report *report)
{
	const size_t count = FIRST + 2 * loops_count;
	loop_fn **runs = calloc(count, sizeof(*runs));
	double *ns = calloc(count, sizeof(*ns));
	if (runs && ns) {
		runs[BARE] = loop_bare;
		runs[EMPTY] = loop_empty;
		for (size_t i = 0; i < loops_count; i++) {
			runs[FIRST + i] = loops[i].on;
			runs[FIRST + loops_count + i] = loops[i].off;
		}
		tracing_on();
		repeat_in_turns(repeat_many(settings->quick), runs, count, ns);
		show(report, ns);
		add_targets(report, ns);
	}
	free(runs);
	free(ns);
}
