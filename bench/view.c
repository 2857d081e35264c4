/* SPDX-License-Identifier: MIT */
/*
 * view.c: the time to prepare loaded traces of 1, 10 and 50 million slices for viewing, the time of each picture, from the
 * whole trace to microseconds of it, and the memory.
 */
#include "bench.h"
#include "child.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SLICES_QUICK 20000u
#define PICTURES "300"
#define PICTURES_QUICK "5"
#define ZOOMS 5
/* Memory left for columns, pyramids and the machine itself. */
#define BYTES_A_SLICE 60.0

static const struct report_column columns[] = {
	{"in_sight_ms", "in sight, ms", 3}, {"p50_ms", "p50, ms", 2},
	{"p99_ms", "p99, ms", 2},           {"p99_cpu_ms", "p99 of CPU, ms", 2},
	{"answer_kb", "answer, KB", 0},     {"ready_s", "ready, s", 2},
	{"view_mb", "view, MB", 0},         {"bytes_a_slice", "bytes/slice", 1},
	{"peak_mb", "peak, MB", 0},         {NULL, NULL, 0},
};

static const uint32_t sizes[] = {1000000, 10000000, 50000000};

struct result {
	double ready_s;
	uint64_t view_bytes, column_bytes;
	long peak_kb;
	double width_ns[ZOOMS], p50_ms[ZOOMS], p99_ms[ZOOMS], p99_cpu_ms[ZOOMS];
	uint64_t answer_bytes[ZOOMS];
};

static bool read_result(const char *text, struct result *result)
{
	int read = 0;
	if (sscanf(text, "%lf %" SCNu64 " %" SCNu64 " %ld\n%n", &result->ready_s,
		   &result->view_bytes, &result->column_bytes, &result->peak_kb, &read) != 4)
		return false;
	for (int i = 0; i < ZOOMS; i++) {
		text += read;
		if (sscanf(text, "%lf %lf %lf %lf %" SCNu64 "\n%n", &result->width_ns[i],
			   &result->p50_ms[i], &result->p99_ms[i], &result->p99_cpu_ms[i],
			   &result->answer_bytes[i], &read) != 5)
			return false;
	}
	return true;
}

static bool measure(const struct settings *settings, uint32_t slices, struct result *result)
{
	char program[PATH_MAX + 8], number[16], output[1024] = "";
	snprintf(program, sizeof(program), "%s_view", settings->self);
	snprintf(number, sizeof(number), "%" PRIu32, slices);
	const char *const argv[] = {program, number, settings->quick ? PICTURES_QUICK : PICTURES,
				    NULL};
	return child_run(argv, output, sizeof(output)) && read_result(output, result);
}

static void show(struct report *report, uint32_t slices, const struct result *result)
{
	char label[48];
	for (int i = 0; i < ZOOMS; i++) {
		snprintf(label, sizeof(label), "%g M, zoom %d", slices / 1e6, i + 1);
		report_row(report, label,
			   (double[]){result->width_ns[i] / 1e6, result->p50_ms[i],
				      result->p99_ms[i], result->p99_cpu_ms[i],
				      (double)result->answer_bytes[i] / 1e3,
				      i ? NAN : result->ready_s,
				      i ? NAN : (double)result->view_bytes / 1e6,
				      i ? NAN : (double)result->view_bytes / slices,
				      i ? NAN : (double)result->peak_kb * 1024 / 1e6});
	}
}

static void hold(struct report *report, uint32_t slices, const struct result *result)
{
	double worst = 0;
	for (int i = 0; i < ZOOMS; i++)
		worst = fmax(worst, result->p99_ms[i]);
	if (slices == 10000000)
		report_target(report, result->ready_s, 0.5, "s",
			      "10 million slices ready to be looked at");
	if (slices != 50000000)
		return;
	report_target(report, result->ready_s, 3, "s", "50 million slices ready to be looked at");
	report_target(report, worst, 20, "ms", "a picture of 50 million slices, p99 at any zoom");
	report_target(report, (double)result->view_bytes / slices, 10, "bytes",
		      "a view's memory for a slice");
}

static bool has_memory(uint32_t slices)
{
	const double pages = (double)sysconf(_SC_AVPHYS_PAGES);
	return pages * (double)sysconf(_SC_PAGESIZE) > slices * BYTES_A_SLICE;
}

void view_run(const struct settings *settings, struct report *report)
{
	char program[PATH_MAX + 8];
	const size_t count = settings->quick ? 1 : sizeof(sizes) / sizeof(sizes[0]);
	snprintf(program, sizeof(program), "%s_view", settings->self);
	report_begin(report, "view", "looking at traces", columns);
	if (access(program, X_OK) != 0) {
		report_note(report, "not measured: the tool is not built");
		report_end(report);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const uint32_t slices = settings->quick ? SLICES_QUICK : sizes[i];
		struct result result;
		if (!has_memory(slices)) {
			report_note(report, "%g million slices: not measured: too little memory",
				    slices / 1e6);
			continue;
		}
		if (!measure(settings, slices, &result)) {
			report_failure(report, "%" PRIu32 " slices could not be looked at", slices);
			continue;
		}
		show(report, slices, &result);
		hold(report, slices, &result);
	}
	report_note(report, "40 pyramids (10 threads, 4 deep), 1500 pixels, at random places");
	report_end(report);
}
