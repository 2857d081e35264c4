/* SPDX-License-Identifier: MIT */
/*
 * view.c: see view.h. A view is made in steps: sample spans, tracks, rows, pyramids, levels. Each needs the ones before, and all
 * together read the columns once or twice.
 */
#include "base/array.h"
#include "server/view_pyramids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

static uint32_t *no_nodes(uint32_t count)
{
	uint32_t *const nodes = malloc(((size_t)count + 1) * sizeof(*nodes));
	for (uint32_t i = 0; nodes && i < count; i++)
		nodes[i] = KY_NONE;
	return nodes;
}

static void close_plan(struct ky_view_plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		free(plan->nodes[i].track.key);
		free(plan->nodes[i].track.name);
	}
	KY_ARRAY_FREE(plan->nodes, plan->room);
	free(plan->process_node);
	free(plan->thread_node);
}

static int plan_tracks(struct ky_view *view, const struct ky_view_tally *tally,
		       struct ky_view_strands *strands)
{
	struct ky_view_plan plan = {
		.view = view,
		.tally = tally,
		.strands = strands,
		.process_node = no_nodes(view->trace->processes.rows.count),
		.thread_node = no_nodes(view->trace->threads.rows.count),
		.cpus = KY_NONE,
		.globals = KY_NONE,
		.threads = KY_NONE,
		.kernel = KY_NONE,
	};
	int error = plan.process_node && plan.thread_node ? ky_view_tracks(&plan) : -ENOMEM;
	if (!error)
		error = ky_view_plan_finish(&plan);
	close_plan(&plan);
	return error;
}

/* Make the view's tracks, with numbered pyramids without rows. Return 0 or -ENOMEM. */
static int make_tracks(struct ky_view *view)
{
	struct ky_view_tally tally = {0};
	struct ky_view_strands strands = {0};
	int error = ky_view_tally_open(&tally, view);
	if (!error)
		error = ky_view_strands_open(&strands, view->trace, &tally);
	if (!error)
		error = ky_view_strands_pack(&strands, view);
	if (!error)
		error = plan_tracks(view, &tally, &strands);
	ky_view_strands_close(&strands);
	ky_view_tally_close(&tally);
	return error;
}

static int stage(const struct ky_view_options *options, const char *name)
{
	return options->progress ? options->progress(options->context, name, 0, 1) : 0;
}

static int make(struct ky_view *view, const struct ky_view_options *options)
{
	int error = stage(options, "joining samples");
	if (!error)
		error = ky_sample_spans_open(view);
	if (!error)
		error = stage(options, "making tracks");
	if (!error)
		error = ky_view_pyramids_open(view);
	if (!error)
		error = make_tracks(view);
	return error ? error : ky_view_pyramids_fill(view, options);
}

int ky_view_open(struct ky_view **view, struct ky_trace *trace,
		 const struct ky_view_options *options)
{
	static const struct ky_view_options usual = {.base_ns = KY_TIME_NONE};
	const struct ky_view_options *const o = options ? options : &usual;
	struct ky_view *made = calloc(1, sizeof(*made));
	*view = NULL;
	if (!made) {
		ky_trace_close(&trace);
		return -ENOMEM;
	}
	made->trace = trace;
	made->name = strdup(o->name ? o->name : "");
	made->generation = o->generation;
	made->live = o->live;
	made->base_ns = o->base_ns == KY_TIME_NONE ? trace->begin_ns : o->base_ns;
	const int error = made->name ? make(made, o) : -ENOMEM;
	if (error)
		ky_view_close(&made);
	*view = made;
	return error;
}

void ky_view_close(struct ky_view **view)
{
	struct ky_view *const closed = *view;
	if (!closed)
		return;
	for (uint32_t i = 0; i < closed->tracks_count; i++) {
		free(closed->tracks[i].key);
		free(closed->tracks[i].name);
	}
	free(closed->tracks);
	free(closed->track_of);
	free(closed->row_of);
	free(closed->pyramids);
	free(closed->name);
	ky_view_pyramids_close(closed);
	ky_sample_spans_close(&closed->sample_spans);
	ky_trace_close(&closed->trace);
	free(closed);
	*view = NULL;
}

uint64_t ky_view_memory(const struct ky_view *view)
{
	const struct ky_sample_spans *const spans = &view->sample_spans;
	uint64_t bytes = sizeof(*view) + ky_view_pyramids_memory(view);
	for (uint32_t i = 0; i < view->tracks_count; i++)
		bytes += sizeof(*view->tracks) + strlen(view->tracks[i].key) +
			 strlen(view->tracks[i].name) + 2;
	if (view->track_of)
		bytes += view->trace->tracks.rows.count * sizeof(*view->track_of);
	if (view->row_of)
		bytes += view->trace->slices.rows.count * sizeof(*view->row_of);
	bytes += view->pyramids_count * sizeof(*view->pyramids);
	return bytes +
	       spans->count * (sizeof(*spans->ts) + sizeof(*spans->dur) + sizeof(*spans->frame) +
			       sizeof(*spans->callsite) + sizeof(*spans->thread) +
			       sizeof(*spans->samples) + sizeof(*spans->depth));
}

/* ---- places ---- */

bool ky_view_place(const struct ky_view *view, enum ky_view_kind kind, uint32_t event,
		   struct ky_view_place *place)
{
	if (kind >= KY_VIEW_KINDS || !view->tables)
		return false;
	const struct ky_view_table *const table = &view->tables[kind];
	const uint32_t pyramid =
		event < table->count ? ky_view_pyramids_find(table, event) : KY_NONE;
	if (pyramid == KY_NONE)
		return false;
	place->track = view->pyramids[pyramid].track;
	place->row = view->pyramids[pyramid].row;
	return true;
}
