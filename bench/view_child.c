/* SPDX-License-Identifier: MIT */
/*
 * view_child.c: prepare a trace of N slices for viewing, and view it. Print one line: seconds to prepare it, bytes of the view
 * and of the trace's columns, peak memory in KiB; then a line per zoom: the visible time (ns), the median and the 99th
 * percentile of answering (ms), the 99th percentile of the CPU time, which does not depend on other programs, bytes of
 * an answer.
 *
 * The trace: threads that go in and out of spans, with pauses, so that spans last from nanoseconds to milliseconds. A
 * picture is of all of them, as wide as a screen, somewhere in the trace.
 */
#include "model/intake.h"
#include "server/api.h"
#include "server/tile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define THREADS 10u
#define ROWS 4u
#define NAMES 64u
#define WIDTH_PIXELS 1500
#define ZOOMS 5
#define CLOSEST_NS 20000.0 /* all of the picture at the last zoom */

static uint64_t seed = 1;

static uint64_t random_below(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static double now_s(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- the trace ---- */

static void name_all(struct ky_trace *trace, uint32_t tracks[THREADS], uint32_t names[NAMES])
{
	char text[32];
	for (uint32_t i = 0; i < THREADS; i++)
		tracks[i] = ky_track_of_thread(trace, ky_thread(trace, 1, 1 + i));
	for (uint32_t i = 0; i < NAMES; i++) {
		const int bytes = snprintf(text, sizeof(text), "function_%" PRIu32, i);
		names[i] = ky_string(trace, text, (size_t)bytes);
	}
}

static int64_t pause_ns(void)
{
	const uint64_t dice = random_below(4096);
	if (dice == 0)
		return (int64_t)random_below(2000000);
	return (int64_t)random_below(dice < 64 ? 20000 : 200) + 1;
}

static void put_slices(struct ky_trace *trace, uint32_t slices)
{
	uint32_t tracks[THREADS], names[NAMES], depth[THREADS] = {0};
	int64_t ts = 1000000000;
	name_all(trace, tracks, names);
	for (uint32_t put = 0; put < slices; ts += pause_ns()) {
		const uint32_t thread = (uint32_t)random_below(THREADS);
		if (depth[thread] < ROWS && random_below(8) < 5) {
			ky_put_begin(trace, ts, tracks[thread], 0, names[random_below(NAMES)], 0);
			depth[thread]++;
			put++;
		} else if (depth[thread]) {
			ky_put_end(trace, ts, tracks[thread], 0, 0, 0);
			depth[thread]--;
		}
	}
	for (uint32_t i = 0; i < THREADS; i++)
		for (; depth[i]; depth[i]--)
			ky_put_end(trace, ts, tracks[i], 0, 0, 0);
}

static struct ky_trace *make_trace(uint32_t slices)
{
	struct ky_trace *trace;
	if (ky_trace_open(&trace) != 0)
		return NULL;
	ky_trace_in_order(trace);
	put_slices(trace, slices);
	if (ky_trace_finish(trace, NULL, NULL) != 0)
		ky_trace_close(&trace);
	return trace;
}

/* ---- pictures ---- */

static uint32_t level_of(double width_ns)
{
	uint32_t level = 0;
	while (level < KY_TILE_LEVEL_MAX && width_ns / WIDTH_PIXELS >= (double)(2ull << level))
		level++;
	return level;
}

/* Answer one request; return the bytes of the answer, 0 on failure. */
static size_t answer(const struct ky_view *view, const uint32_t *tracks, uint32_t tracks_count,
		     double width_ns, double from_ns)
{
	const uint32_t level = level_of(width_ns);
	const double tile_ns = KY_TILE_PIXELS * (double)(1ull << level);
	const int64_t first = (int64_t)(from_ns / tile_ns);
	const struct ky_tile_range tiles = {
		.level = level,
		.first = first,
		.count = (uint32_t)((int64_t)((from_ns + width_ns) / tile_ns) - first + 1),
		.tracks = tracks,
		.tracks_count = tracks_count,
	};
	struct ky_buffer out = {0};
	const bool done = ky_tile_append(view, &tiles, &out) == 0 && !out.failed;
	const size_t bytes = done ? out.bytes : 0;
	ky_buffer_free(&out);
	return bytes;
}

static int compare_times(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;
	return left < right ? -1 : left > right;
}

static bool look(const struct ky_view *view, double width_ns, uint32_t pictures)
{
	uint32_t tracks[THREADS], tracks_count = 0;
	double *const times_ms = calloc(2 * (size_t)pictures, sizeof(*times_ms));
	double *const cpu_ms = times_ms + pictures;
	const double all_ns = (double)(view->trace->end_ns - view->trace->begin_ns);
	size_t bytes = 0;
	for (uint32_t i = 0; i < view->tracks_count && tracks_count < THREADS; i++)
		if (view->tracks[i].kind == KY_VIEW_SLICES)
			tracks[tracks_count++] = i;
	for (uint32_t i = 0; times_ms && i < pictures; i++) {
		const double from_ns =
			(all_ns - width_ns) * (double)random_below(1u << 30) / (1u << 30);
		const double begin_s = now_s(CLOCK_MONOTONIC);
		const double cpu_s = now_s(CLOCK_THREAD_CPUTIME_ID);
		const size_t got = answer(view, tracks, tracks_count, width_ns, from_ns);
		cpu_ms[i] = 1e3 * (now_s(CLOCK_THREAD_CPUTIME_ID) - cpu_s);
		times_ms[i] = 1e3 * (now_s(CLOCK_MONOTONIC) - begin_s);
		bytes += got;
		if (!got) {
			free(times_ms);
			return false;
		}
	}
	if (!times_ms)
		return false;
	qsort(times_ms, pictures, sizeof(*times_ms), compare_times);
	qsort(cpu_ms, pictures, sizeof(*cpu_ms), compare_times);
	const uint32_t p99 = (uint32_t)((uint64_t)pictures * 99 / 100);
	printf("%.0f %f %f %f %zu\n", width_ns, times_ms[pictures / 2], times_ms[p99], cpu_ms[p99],
	       bytes / pictures);
	free(times_ms);
	return true;
}

static bool look_at_all(const struct ky_view *view, uint32_t pictures)
{
	const double all_ns = (double)(view->trace->end_ns - view->trace->begin_ns);
	double width_ns = all_ns, step = 1;
	/* Zooms differ by a constant factor: the fourth root of the whole range. */
	for (double lo = 1, hi = 1e6; hi - lo > 1e-6 * hi;) {
		step = (lo + hi) / 2;
		if (all_ns / step / step / step / step > CLOSEST_NS)
			lo = step;
		else
			hi = step;
	}
	for (int i = 0; i < ZOOMS; i++, width_ns /= step)
		if (!look(view, width_ns, pictures))
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct ky_view *view;
	struct rusage usage;
	if (argc != 3)
		return 2;
	struct ky_trace *const trace = make_trace((uint32_t)strtoul(argv[1], NULL, 10));
	if (!trace)
		return 1;
	const uint64_t columns = ky_trace_memory(trace);
	const double begin_s = now_s(CLOCK_MONOTONIC);
	if (ky_view_open(&view, trace, NULL) != 0)
		return 1;
	const double ready_s = now_s(CLOCK_MONOTONIC) - begin_s;
	getrusage(RUSAGE_SELF, &usage);
	printf("%f %" PRIu64 " %" PRIu64 " %ld\n", ready_s, ky_view_memory(view), columns,
	       usage.ru_maxrss);
	const bool done = look_at_all(view, (uint32_t)strtoul(argv[2], NULL, 10));
	ky_view_close(&view);
	return done ? 0 : 1;
}
