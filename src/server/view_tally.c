/* SPDX-License-Identifier: MIT */
/* view_tally.c: counts the events of each track, thread and CPU in one pass over a few columns. */
#include "server/view_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int make_room(struct ky_view_tally *tally, const struct ky_view *view)
{
	const size_t tracks = view->trace->tracks.rows.count,
		     threads = view->trace->threads.rows.count;
	tally->cpus = view->tables[KY_LANE_SCHED].keys;
	tally->tracks = calloc(tracks + 1, sizeof(*tally->tracks));
	tally->states = calloc(threads + 1, sizeof(*tally->states));
	tally->sample_spans = calloc(threads + 1, sizeof(*tally->sample_spans));
	tally->sample_rows = calloc(threads + 1, sizeof(*tally->sample_rows));
	tally->sched = calloc((size_t)tally->cpus + 1, sizeof(*tally->sched));
	return tally->tracks && tally->states && tally->sample_spans && tally->sample_rows &&
			       tally->sched
		       ? 0
		       : -ENOMEM;
}

static void count_slices(struct ky_view_tally *tally, const struct ky_slices *slices)
{
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		struct ky_view_tally_track *const track = &tally->tracks[slices->track[i]];
		track->slices++;
		if (slices->depth[i] >= track->rows)
			track->rows = (uint16_t)(slices->depth[i] + 1);
	}
}

static void count_counters(struct ky_view_tally *tally, const struct ky_counters *counters)
{
	for (uint32_t i = 0; i < counters->rows.count; i++) {
		struct ky_view_tally_track *const track = &tally->tracks[counters->track[i]];
		const double value = counters->value[i];
		track->min = track->counters ? fmin(track->min, value) : value;
		track->max = track->counters ? fmax(track->max, value) : value;
		track->counters++;
	}
}

static void count_kernel(struct ky_view_tally *tally, const struct ky_trace *trace)
{
	const struct ky_sched *const sched = &trace->sched;
	for (uint32_t i = 0; i < sched->rows.count; i++) {
		const uint32_t thread = sched->thread[i];
		const bool idle = thread != KY_NONE && trace->threads.is_idle[thread];
		if (sched->cpu[i] < tally->cpus && !idle)
			tally->sched[sched->cpu[i]]++;
	}
	for (uint32_t i = 0; i < trace->thread_states.rows.count; i++)
		if (trace->thread_states.thread[i] != KY_NONE)
			tally->states[trace->thread_states.thread[i]]++;
	for (uint32_t i = 0; i < trace->losses.rows.count; i++)
		tally->losses += trace->losses.ts[i] != KY_TIME_NONE;
}

static void count_sample_spans(struct ky_view_tally *tally, const struct ky_sample_spans *spans)
{
	for (uint32_t i = 0; i < spans->count; i++) {
		const uint32_t thread = spans->thread[i];
		tally->sample_spans[thread]++;
		if (spans->depth[i] >= tally->sample_rows[thread])
			tally->sample_rows[thread] = (uint16_t)(spans->depth[i] + 1);
	}
}

int ky_view_tally_open(struct ky_view_tally *tally, const struct ky_view *view)
{
	*tally = (struct ky_view_tally){0};
	if (make_room(tally, view))
		return -ENOMEM;
	count_slices(tally, &view->trace->slices);
	count_counters(tally, &view->trace->counters);
	count_kernel(tally, view->trace);
	count_sample_spans(tally, &view->sample_spans);
	return 0;
}

void ky_view_tally_close(struct ky_view_tally *tally)
{
	free(tally->tracks);
	free(tally->states);
	free(tally->sample_spans);
	free(tally->sample_rows);
	free(tally->sched);
	*tally = (struct ky_view_tally){0};
}
