/* SPDX-License-Identifier: MIT */
/*
 * viewer.c: traces of 1, 10 and 50 million slices in `kymo view` and Chromium, driven by viewer.mjs: the time until the
 * first picture is complete, the cost of panning for the page's thread, the server's answers for a screen at five
 * zooms, and its memory.
 *
 * The traces are of eight threads with nested spans, written by the recorder.
 */
#include "bench.h"
#include "child.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>
#include <kymo/session.h>

#define THREADS 8u
#define RING_BYTES (32u << 20)
#define SLICES_A_REQUEST 4u
#define FLUSH_EVERY 40000u /* requests: far less than a ring holds */
#define SLICES_QUICK 20000u
#define ZOOMS 5
/* Memory of the tool per slice, rounded up; a trace that does not fit is left out. */
#define SERVER_BYTES_A_SLICE 120u

static const struct report_column columns[] = {
	{"first_picture_s", "first picture, s", 2},
	{"frame_p50_ms", "frame p50, ms", 2},
	{"frame_p95_ms", "frame p95, ms", 2},
	{"between_p50_ms", "between p50, ms", 1},
	{"between_p95_ms", "between p95, ms", 1},
	{"server_mb", "server, MB", 0},
	{NULL, NULL, 0},
};

static const struct report_column zoom_columns[] = {
	{"pixel_ns", "ns a pixel", 0},
	{"p50_ms", "p50, ms", 2},
	{"p99_ms", "p99, ms", 2},
	{"kb", "KB", 1},
	{NULL, NULL, 0},
};

static const uint32_t sizes[] = {1000000, 10000000, 50000000};
#define SIZES_COUNT (sizeof(sizes) / sizeof(sizes[0]))

struct result {
	bool done;
	uint32_t slices;
	double first_s, peak_kb, frame_ms[2], between_ms[2]; /* p50, p95 */
	double zooms[ZOOMS][4];                              /* as zoom_columns */
};

struct writer {
	pthread_t thread;
	struct kymo_session *session;
	uint32_t number, requests;
};

/* A request of uneven length, so that at each zoom some slices are wide and most are not. */
static void request(uint32_t i)
{
	KYMO_SCOPE("bench", "request", "id", i);
	{
		KYMO_SCOPE("bench", "parse");
	}
	{
		KYMO_SCOPE("bench", "query", "rows", i % 100);
		for (volatile uint32_t spin = 0; spin < i % 64; spin = spin + 1)
			;
		KYMO_SCOPE("bench", "fetch");
	}
}

static void *write_requests(void *argument)
{
	const struct writer *writer = argument;
	char name[32];
	snprintf(name, sizeof(name), "worker %" PRIu32, writer->number);
	kymo_thread_name(name);
	for (uint32_t i = 0; i < writer->requests; i++) {
		request(i);
		/* So that nothing is lost. */
		if (i % FLUSH_EVERY == FLUSH_EVERY - 1)
			kymo_session_flush(writer->session);
	}
	return NULL;
}

int viewer_child(const char *path, uint32_t slices)
{
	struct writer writers[THREADS];
	struct kymo_session *session;
	const struct kymo_options options = {
		.size = sizeof(options), .path = path, .ring_bytes = RING_BYTES};
	struct kymo_stats stats = {.size = sizeof(stats)};
	if (kymo_session_start(&session, &options))
		return 1;
	uint32_t started = 0;
	for (; started < THREADS; started++) {
		writers[started] = (struct writer){.session = session,
						   .number = started,
						   .requests = slices / SLICES_A_REQUEST / THREADS};
		if (pthread_create(&writers[started].thread, NULL, write_requests,
				   &writers[started]))
			break;
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(writers[i].thread, NULL);
	kymo_session_flush(session);
	kymo_session_stats(session, &stats);
	return kymo_session_stop(&session) || stats.lost || started < THREADS ? 1 : 0;
}

static bool fits(uint32_t slices)
{
	const uint64_t available =
		(uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	return available > (uint64_t)slices * SERVER_BYTES_A_SLICE;
}

/* Parse the output of viewer.mjs. */
static bool parse(const char *text, struct result *result)
{
	int used = 0;
	if (sscanf(text, "%lf %lf %lf %lf %lf %lf%n", &result->first_s, &result->peak_kb,
		   &result->frame_ms[0], &result->frame_ms[1], &result->between_ms[0],
		   &result->between_ms[1], &used) != 6)
		return false;
	for (size_t i = 0; i < ZOOMS; i++) {
		double *zoom = result->zooms[i];
		text += used;
		if (sscanf(text, "%lf %lf %lf %lf%n", &zoom[0], &zoom[1], &zoom[2], &zoom[3],
			   &used) != 4)
			return false;
	}
	return true;
}

static void look_at(const struct settings *settings, struct report *report, const char *path,
		    struct result *result)
{
	char output[2048] = "";
	const char *const argv[] = {"node",
				    BENCH_VIEWER,
				    BENCH_KYMO,
				    path,
				    settings->quick ? "30" : "600",
				    settings->quick ? "3" : "200",
				    NULL};
	result->done = child_run(argv, output, sizeof(output)) && parse(output, result);
	if (strncmp(output, "skipped: ", 9) == 0)
		report_note(report, "not measured: %.*s", (int)strcspn(output + 9, "\n"),
			    output + 9);
	else if (!result->done)
		report_failure(report, "%g M: node %s KYMO FILE fails", result->slices / 1e6,
			       BENCH_VIEWER);
}

static void measure(const struct settings *settings, struct report *report, struct result *result)
{
	char path[PATH_MAX + 16], number[16];
	snprintf(path, sizeof(path), "%s/viewer.kymo", settings->files);
	snprintf(number, sizeof(number), "%" PRIu32, result->slices);
	const char *const make[] = {settings->self, "--view", path, "--spans", number, NULL};
	if (!fits(result->slices))
		report_note(report, "%g M: left out, there is too little free memory",
			    result->slices / 1e6);
	else if (!child_run(make, NULL, 0))
		report_failure(report, "a trace of %" PRIu32 " slices was not made",
			       result->slices);
	else
		look_at(settings, report, path, result);
	unlink(path);
}

static void show(struct report *report, const struct result *result)
{
	char label[32];
	snprintf(label, sizeof(label), "%g M slices", result->slices / 1e6);
	report_row(report, label,
		   (double[]){result->first_s, result->frame_ms[0], result->frame_ms[1],
			      result->between_ms[0], result->between_ms[1],
			      result->peak_kb * 1024 / 1e6});
	report_target(report, result->frame_ms[1], 8, "ms",
		      "script a frame while panning, p95, %g million slices", result->slices / 1e6);
}

static void show_zooms(struct report *report, const struct result *result)
{
	char label[48];
	double worst_ms = 0;
	for (size_t i = 0; i < ZOOMS; i++) {
		snprintf(label, sizeof(label), "%g M slices, zoom %zu", result->slices / 1e6, i);
		report_row(report, label, result->zooms[i]);
		worst_ms = fmax(worst_ms, result->zooms[i][2]);
	}
	if (result->slices == sizes[SIZES_COUNT - 1])
		report_target(report, worst_ms, 20, "ms",
			      "a viewport over HTTP, p99 of the worst zoom, %g million slices",
			      result->slices / 1e6);
}

void viewer_run(const struct settings *settings, struct report *report)
{
	const size_t count = settings->quick ? 1 : SIZES_COUNT;
	struct result results[SIZES_COUNT] = {{.done = false}};
	report_begin(report, "viewer", "the viewer in Chromium", columns);
	/* The smoke test of the other sections does not start a browser. */
	if (settings->quick && !settings->only) {
		report_note(report, "not measured in a quick run");
		report_end(report);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		results[i].slices = settings->quick ? SLICES_QUICK : sizes[i];
		measure(settings, report, &results[i]);
		if (results[i].done)
			show(report, &results[i]);
	}
	report_note(report, "first picture: from the start of kymo view; frame: script on the "
			    "page's thread while D is held");
	report_end(report);
	report_begin(report, "viewports", "a viewport over HTTP", zoom_columns);
	for (size_t i = 0; i < count; i++)
		if (results[i].done)
			show_zooms(report, &results[i]);
	report_note(report, "1500 pixels of up to 40 tracks at random places, nothing cached");
	report_end(report);
}
