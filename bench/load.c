/* SPDX-License-Identifier: MIT */
/*
 * load.c: time and memory to read traces of 1, 10 and 50 million slices, in each format that the recorder writes;
 * for the smallest also by Perfetto's trace_processor as in the browser (WebAssembly under Node), where installed.
 *
 * The targets come from the native trace_processor on a machine of this kind: 70 MB of JSON and half a million slices
 * of protobuf per second.
 */
#include "bench.h"
#include "child.h"
#include "repeat.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kymo/kymo.h>
#include <kymo/session.h>

#define SLICES_QUICK 20000u
#define RING_BYTES (256u << 20)
#define SLICES_A_REQUEST 4u
#define FLUSH_EVERY 250000u /* requests: far less than the ring holds */
#define TURNS 3
#define TURNS_LARGE 1

static const struct report_column columns[] = {
	{"file_mb", "file, MB", 0},
	{"load_s", "load, s", 2},
	{"mb_s", "MB/s", 0},
	{"million_slices_s", "M slices/s", 2},
	{"peak_mb", "peak, MB", 0},
	{"peak_ratio", "peak/columns", 2},
	{"query_s", "aggregate, s", 3},
	{"reference_s", "trace_processor, s", 1},
	{NULL, NULL, 0},
};

static const uint32_t sizes[] = {1000000, 10000000, 50000000};

static const struct {
	const char *suffix;
	double mb_s;             /* at least, or NAN */
	double million_slices_s; /* at least, or NAN */
} formats[] = {{".json", 350, NAN}, {".pftrace", NAN, 2.5}, {".fxt", NAN, NAN}, {".kymo", NAN, 10}};
#define FORMATS_COUNT (sizeof(formats) / sizeof(formats[0]))

struct result {
	double load_s;
	uint32_t slices;
	uint64_t events;
	uint64_t column_bytes;
	long peak_kb;
	double query_s;
	double reference_s;
	uint64_t file_bytes;
};

/* A server's requests: nested spans, some with arguments. */
int load_child(const char *path, uint32_t slices)
{
	static const char *const tables[] = {"users", "orders", "items", "sessions"};
	struct kymo_session *session;
	const struct kymo_options options = {
		.size = sizeof(options), .path = path, .ring_bytes = RING_BYTES};
	struct kymo_stats stats = {.size = sizeof(stats)};
	int error = kymo_session_start(&session, &options);
	for (uint32_t i = 0; error == 0 && i < slices / SLICES_A_REQUEST; i++) {
		KYMO_SCOPE("bench", "request", "id", i);
		{
			KYMO_SCOPE("bench", "parse");
		}
		{
			KYMO_SCOPE("bench", "query", "table", tables[i % 4], "rows", i % 100);
		}
		{
			KYMO_SCOPE("bench", "reply");
		}
		/* So nothing is lost, however slow the format is. */
		if (i % FLUSH_EVERY == FLUSH_EVERY - 1)
			kymo_session_flush(session);
	}
	if (error == 0) {
		kymo_session_flush(session);
		kymo_session_stats(session, &stats);
		error = kymo_session_stop(&session);
	}
	return error || stats.lost ? 1 : 0;
}

static bool make_file(const struct settings *settings, const char *path, uint32_t slices,
		      struct result *result)
{
	char number[16];
	struct stat file;
	snprintf(number, sizeof(number), "%" PRIu32, slices);
	const char *const argv[] = {settings->self, "--trace", path, "--spans", number, NULL};
	if (!child_run(argv, NULL, 0) || stat(path, &file) != 0)
		return false;
	result->file_bytes = (uint64_t)file.st_size;
	return true;
}

static bool load_once(const struct settings *settings, const char *path, struct result *result)
{
	char program[PATH_MAX + 8], output[160] = "";
	snprintf(program, sizeof(program), "%s_load", settings->self);
	const char *const argv[] = {program, path, NULL};
	double load_s, query_s;
	if (!child_run(argv, output, sizeof(output)) ||
	    sscanf(output, "%lf %" SCNu32 " %" SCNu64 " %" SCNu64 " %ld %lf", &load_s,
		   &result->slices, &result->events, &result->column_bytes, &result->peak_kb,
		   &query_s) != 6)
		return false;
	result->load_s = fmin(load_s, result->load_s);
	result->query_s = fmin(query_s, result->query_s);
	return true;
}

/* Return the time of trace_processor, with the start of Node, or NAN where it is not installed. */
static double reference(const char *path)
{
	const uint64_t begin_ns = repeat_now_ns();
	const char *const argv[] = {"node", BENCH_ORACLE, path, "select count(*) from slice", NULL};
	return child_run(argv, NULL, 0) ? (double)(repeat_now_ns() - begin_ns) / 1e9 : NAN;
}

static void show(struct report *report, const char *suffix, uint32_t slices,
		 const struct result *result)
{
	char label[32];
	snprintf(label, sizeof(label), "%s %g M", suffix, slices / 1e6);
	const double mb = (double)result->file_bytes / 1e6;
	report_row(report, label,
		   (double[]){mb, result->load_s, mb / result->load_s,
			      slices / 1e6 / result->load_s, (double)result->peak_kb / 1e3,
			      (double)result->peak_kb * 1024 / (double)result->column_bytes,
			      result->query_s, result->reference_s});
	if (result->slices != slices)
		report_failure(report, "%s has %" PRIu32 " of %" PRIu32 " slices", label,
			       result->slices, slices);
}

static void hold(struct report *report, size_t format, uint32_t slices, const struct result *result)
{
	const double mb = (double)result->file_bytes / 1e6;
	if (slices != 10000000)
		return;
	if (isfinite(formats[format].mb_s))
		report_target(report, 1000 * result->load_s / mb, 1000 / formats[format].mb_s,
			      "s/GB", "loading %s", formats[format].suffix);
	if (isfinite(formats[format].million_slices_s))
		report_target(report, result->load_s, 10 / formats[format].million_slices_s, "s",
			      "loading 10 million slices of %s", formats[format].suffix);
	report_target(report, (double)result->peak_kb * 1024 / (double)result->column_bytes, 1.5,
		      "x", "peak memory for %s over its columns", formats[format].suffix);
	report_target(report, result->query_s, 0.5, "s", "aggregate over 10 million slices of %s",
		      formats[format].suffix);
}

static void measure(const struct settings *settings, struct report *report, size_t format,
		    uint32_t slices)
{
	char path[PATH_MAX + 16];
	struct result result = {.load_s = NAN, .query_s = NAN, .reference_s = NAN};
	snprintf(path, sizeof(path), "%s/load%s", settings->files, formats[format].suffix);
	bool done = make_file(settings, path, slices, &result);
	const int turns = slices > 10000000 || settings->quick ? TURNS_LARGE : TURNS;
	for (int turn = 0; done && turn < turns; turn++)
		done = load_once(settings, path, &result);
	if (done && slices == sizes[0] && strcmp(formats[format].suffix, ".kymo") != 0)
		result.reference_s = reference(path);
	unlink(path);
	if (!done) {
		report_failure(report, "%s of %" PRIu32 " slices was not made or not read",
			       formats[format].suffix, slices);
		return;
	}
	show(report, formats[format].suffix, slices, &result);
	hold(report, format, slices, &result);
}

void load_run(const struct settings *settings, struct report *report)
{
	char program[PATH_MAX + 8];
	snprintf(program, sizeof(program), "%s_load", settings->self);
	report_begin(report, "load", "reading traces back", columns);
	if (access(program, X_OK) != 0) {
		report_note(report, "not measured: the tool is not built");
		report_end(report);
		return;
	}
	const size_t count = settings->quick ? 1 : sizeof(sizes) / sizeof(sizes[0]);
	for (size_t format = 0; format < FORMATS_COUNT; format++)
		for (size_t i = 0; i < count; i++)
			measure(settings, report, format,
				settings->quick ? SLICES_QUICK : sizes[i]);
	report_note(report, "nested spans of one thread, every second with arguments; "
			    "aggregate: count, sum and max of dur by name, in SQL");
	report_note(report,
		    "trace_processor: WebAssembly under Node, with its start; native is about "
		    "4 times faster");
	report_end(report);
}
