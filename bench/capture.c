/* SPDX-License-Identifier: MIT */
/*
 * capture.c: a program captured from outside: events lost at ten million events per second, the cost for the program, the delay of a
 * span: trigger, and the cost of a hit of a symbol: trigger.
 */
#include "capture.h"

#include "bench.h"
#include "child.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BURSTS 1500u /* three seconds: rings go round several times */
#define BURSTS_QUICK 5u
#define TURNS 5
#define BUFFER "16M" /* kymo run's default */
#define LIMITS "total=1G"
#define HITS 20000u
#define HITS_QUICK 20u
#define SLOW_SPANS 200u
#define SLOW_SPANS_QUICK 3u
#define MAGIC_TRACE_NS 8000.0 /* a hit, by its own documentation */

struct place {
	const struct settings *settings;
	char kymo[PATH_MAX + 16];
	char file[PATH_MAX + 16];
	char number[16];
};

/* Program and options of a child; ends with NULL. */
struct words {
	const char *argv[32];
	size_t count;
};

static void add(struct words *words, const char *word)
{
	if (words->count + 1 < sizeof(words->argv) / sizeof(words->argv[0]))
		words->argv[words->count++] = word;
}

static void add_kymo(struct words *words, struct place *place, const char *trigger,
		     const char *engine)
{
	const char *const always[] = {place->kymo, "run", "--quiet",  "--buffer",
				      BUFFER,      "-o",  place->file};
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		add(words, always[i]);
	if (trigger) {
		add(words, "--trigger");
		add(words, trigger);
	}
	if (engine) {
		add(words, "--probe");
		add(words, engine);
		add(words, "--cooldown");
		add(words, "1h");
	}
	add(words, "--");
}

static bool query(const struct place *place, const char *sql, char *output, size_t bytes)
{
	const char *const argv[] = {place->kymo, "query", "--csv", place->file, sql, NULL};
	return child_run(argv, output, bytes);
}

/* Return the number in the last line, or NAN. */
static double number_of(const struct place *place, const char *sql)
{
	char output[256] = "";
	if (!query(place, sql, output, sizeof(output)))
		return NAN;
	const char *const line = strchr(output, '\n');
	return line && line[1] ? strtod(line + 1, NULL) : NAN;
}

/* ---- streaming ---- */

static const struct report_column stream_columns[] = {
	{"alone_ns", "alone, ns/event", 2},
	{"watched_ns", "watched, ns/event", 2},
	{"ratio", "ratio", 3},
	{"million_events_s", "M events/s", 1},
	{"lost_percent", "lost, percent", 3},
	{NULL, NULL, 0},
};

struct stream_result {
	double alone_ns;
	double watched_ns;
	double events;
	double lost;
};

static bool run_busy(struct place *place, const char *how, uint32_t bursts, bool watched,
		     double *best_ns, double *events)
{
	struct words words = {.count = 0};
	char output[128] = "";
	double ns;
	snprintf(place->number, sizeof(place->number), "%" PRIu32, bursts);
	if (watched)
		add_kymo(&words, place, NULL, NULL);
	add(&words, place->settings->self);
	add(&words, "--busy");
	add(&words, how);
	add(&words, "--spans");
	add(&words, place->number);
	if (!child_run(words.argv, output, sizeof(output)) ||
	    sscanf(output, "%lf %lf", &ns, events) != 2)
		return false;
	*best_ns = fmin(ns, *best_ns);
	return true;
}

static bool count_kept(const struct place *place, struct stream_result *result, double events)
{
	const double kept = 2 * number_of(place, "select count(*) as n from slice where dur >= 0");
	unlink(place->file);
	result->events += events;
	result->lost += events - kept;
	return isfinite(kept);
}

/* Captured and uncaptured runs of the same program take turns. */
static void measure_stream(struct place *place, struct report *report, const char *how)
{
	const bool quick = place->settings->quick;
	const uint32_t bursts = quick ? BURSTS_QUICK : BURSTS;
	struct stream_result result = {.alone_ns = NAN, .watched_ns = NAN};
	double events = 0;
	bool fine = true;
	for (int turn = 0; fine && turn < (quick ? 1 : TURNS); turn++)
		fine = run_busy(place, how, bursts, false, &result.alone_ns, &events) &&
		       run_busy(place, how, bursts, true, &result.watched_ns, &events) &&
		       count_kept(place, &result, events);
	if (!fine) {
		report_failure(report, "two threads that record and %s: not captured", how);
		return;
	}
	char label[64];
	snprintf(label, sizeof(label), "bursts, between them it %s", how);
	const double ratio = result.watched_ns / result.alone_ns;
	report_row(report, label,
		   (double[]){result.alone_ns, result.watched_ns, ratio,
			      events / bursts * 500 / 1e6, 100 * result.lost / result.events});
	if (strcmp(how, "sleeps") == 0)
		report_target(report, ratio, 1.02, "x", "an event of a program that is watched");
}

/* ---- triggers ---- */

static const struct report_column trigger_columns[] = {
	{"alone_ns", "without, ns", 1},
	{"hit_ns", "with, ns", 0},
	{"published_ns", "magic-trace, ns", 0},
	{"p50_ms", "noticed, p50 ms", 2},
	{"p99_ms", "p99 ms", 2},
	{NULL, NULL, 0},
};

static double run_hits(struct place *place, const char *engine)
{
	struct words words = {.count = 0};
	char output[64] = "";
	double ns;
	snprintf(place->number, sizeof(place->number), "%u",
		 place->settings->quick ? HITS_QUICK : HITS);
	if (engine)
		add_kymo(&words, place, "symbol:bench_probed", engine);
	add(&words, place->settings->self);
	add(&words, "--hits");
	add(&words, place->number);
	const bool fine =
		child_run(words.argv, output, sizeof(output)) && sscanf(output, "%lf", &ns) == 1;
	if (engine)
		unlink(place->file);
	return fine ? ns : NAN;
}

static void measure_hits(struct place *place, struct report *report, const char *engine,
			 double alone_ns)
{
	char label[64];
	const double hit_ns = run_hits(place, engine);
	snprintf(label, sizeof(label), "symbol: by %s", engine);
	report_row(report, label, (double[]){alone_ns, hit_ns, MAGIC_TRACE_NS, NAN, NAN});
	if (!isfinite(hit_ns))
		report_note(report, "%s: not measured: not allowed here, or not possible", engine);
}

static void measure_latency(struct place *place, struct report *report)
{
	struct words words = {.count = 0};
	snprintf(place->number, sizeof(place->number), "%u",
		 place->settings->quick ? SLOW_SPANS_QUICK : SLOW_SPANS);
	add_kymo(&words, place, "span:bench/slow>1ms", NULL);
	add(&words, place->settings->self);
	add(&words, "--slow");
	add(&words, place->number);
	if (!child_run(words.argv, NULL, 0)) {
		report_failure(report, "span: triggers: not captured");
		return;
	}
	static const char sql[] = "select percentile(a.int_value, %d) / 1e6 as ms from args a join "
				  "slice s using (arg_set_id) "
				  "where a.key = 'debug.noticed_after_ns'";
	char text[256];
	snprintf(text, sizeof(text), sql, 50);
	const double p50 = number_of(place, text);
	snprintf(text, sizeof(text), sql, 99);
	const double p99 = number_of(place, text);
	const double fired = number_of(
		place, "select count(*) as n from args where key = 'debug.noticed_after_ns'");
	unlink(place->file);
	report_row(report, "span: of 3 ms over 1 ms", (double[]){NAN, NAN, NAN, p50, p99});
	if (fired != strtod(place->number, NULL))
		report_failure(report, "%g of %s slow spans were noticed", fired, place->number);
	report_target(report, p99, 10, "ms", "until a span: trigger is noticed, 99 of 100");
}

static bool find_kymo(const struct settings *settings, struct place *place)
{
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s", settings->self);
	char *const slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	place->settings = settings;
	snprintf(place->kymo, sizeof(place->kymo), "%s/../src/kymo", folder);
	snprintf(place->file, sizeof(place->file), "%s/capture.kymo", settings->files);
	return access(place->kymo, X_OK) == 0;
}

void capture_run(const struct settings *settings, struct report *report)
{
	struct place place;
	report_begin(report, "capture", "a program watched from outside", stream_columns);
	if (!find_kymo(settings, &place)) {
		report_note(report, "not measured: the tool is not built");
		report_end(report);
		return;
	}
	setenv("KYMO_CATEGORIES", "*", 1); /* it records without a capture, too */
	setenv("KYMO_BUFFER", BUFFER, 1);
	setenv("KYMO_LIMITS", LIMITS, 1);
	measure_stream(&place, report, "sleeps");
	measure_stream(&place, report, "spins");
	report_note(report,
		    "two threads, each %u spans every 2 ms; CPU time of the threads in the bursts; "
		    "rings of " BUFFER "; kymo run -o FILE.kymo",
		    CAPTURE_BURST_SPANS);
	report_end(report);
	report_begin(report, "triggers", "triggers", trigger_columns);
	const double alone_ns = run_hits(&place, NULL);
	measure_hits(&place, report, "uprobe", alone_ns);
	measure_hits(&place, report, "breakpoint", alone_ns);
	measure_latency(&place, report);
	report_note(report, "a call of a small function, without and with the trigger on it; "
			    "magic-trace: its published figure");
	report_end(report);
	unsetenv("KYMO_CATEGORIES");
	unsetenv("KYMO_BUFFER");
	unsetenv("KYMO_LIMITS");
}
