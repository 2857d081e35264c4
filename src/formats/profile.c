/* SPDX-License-Identifier: MIT */
/* profile.c: see profile.h. */
#include "formats/profile.h"

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "formats/walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* State while a profile is made. */
struct making_profile {
	struct ky_profile *profile;
	const struct ky_export_job *job;
	struct ky_pair_map rows;  /* (node, event), (thread, process): row */
	struct ky_pair_map nodes; /* parent, name: node */
	struct ky_u64_map events; /* string: number */
	uint32_t *node_of;        /* by slice */
};

bool ky_profile_of_spans(const struct ky_export_job *job)
{
	return job->selection->profile == KY_PROFILE_SPANS ||
	       (job->selection->profile == KY_PROFILE_ANY && !job->trace->samples.rows.count);
}

bool ky_profile_event_time(const struct ky_trace *trace, uint32_t event)
{
	/* perf's software clocks count nanoseconds: cpu-clock, task-clock. */
	return event && strstr(ky_text_of(trace, event), "clock") != NULL;
}

int64_t ky_profile_end(const struct ky_trace *trace, uint32_t slice)
{
	const int64_t ts = trace->slices.ts[slice], dur = trace->slices.dur[slice];
	const int64_t end = trace->end_ns > ts ? trace->end_ns : ts;
	return dur < 0 || dur > INT64_MAX - (ts > 0 ? ts : 0) ? end : ts + dur;
}

bool ky_profile_sample(const struct ky_export_job *job, uint32_t sample)
{
	const struct ky_export_selection *const part = job->selection;
	const int64_t ts = job->trace->samples.ts[sample];
	return (part->from_ns == KY_TIME_NONE || ts >= part->from_ns) &&
	       (part->to_ns == KY_TIME_NONE || ts < part->to_ns) &&
	       ky_selected_thread(part, job->trace->samples.thread[sample]);
}

/* Return the row of these, or NULL without memory. */
static struct ky_profile_row *row_of(struct making_profile *making, uint32_t node, uint32_t event,
				     uint32_t thread, uint32_t process)
{
	struct ky_profile *const profile = making->profile;
	bool made;
	uint64_t *const number = ky_pair_map_add(&making->rows, (uint64_t)node << 32 | event,
						 (uint64_t)thread << 32 | process, &made);
	if (!number)
		return NULL;
	if (!made)
		return &profile->rows[*number];
	*number = profile->rows_count;
	struct ky_profile_row *const row =
		KY_ARRAY_NEW(profile->rows, profile->rows_count, profile->rows_room);
	if (row)
		*row = (struct ky_profile_row){
			.node = node, .thread = thread, .process = process, .event = event};
	return row;
}

/* ---- samples ---- */

static struct ky_profile_event *event_of(struct making_profile *making, uint32_t name)
{
	struct ky_profile *const profile = making->profile;
	bool made;
	uint32_t *const number = ky_u64_map_add(&making->events, name, &made);
	if (!number)
		return NULL;
	if (!made)
		return &profile->events[*number];
	*number = profile->events_count;
	struct ky_profile_event *const event =
		KY_ARRAY_NEW(profile->events, profile->events_count, profile->events_room);
	if (event)
		*event = (struct ky_profile_event){
			.name = name, .time = ky_profile_event_time(profile->trace, name)};
	return event;
}

static int add_samples(struct making_profile *making)
{
	const struct ky_trace *const trace = making->job->trace;
	const struct ky_samples *const samples = &trace->samples;
	for (uint32_t i = 0; i < samples->rows.count; i++) {
		if (!ky_profile_sample(making->job, i))
			continue;
		const uint32_t thread = samples->thread[i];
		struct ky_profile_event *const event = event_of(making, samples->event[i]);
		if (!event)
			return -ENOMEM;
		event->count++;
		struct ky_profile_row *const row = row_of(
			making, samples->callsite[i], (uint32_t)(event - making->profile->events),
			thread, thread == KY_NONE ? KY_NONE : trace->threads.process[thread]);
		if (!row)
			return -ENOMEM;
		row->count++;
		row->value += samples->weight[i];
	}
	return 0;
}

/* ---- spans ---- */

/* Return the node of a name below a parent; KY_NONE without memory. */
static uint32_t node_of(struct making_profile *making, uint32_t parent, uint32_t name)
{
	struct ky_profile *const profile = making->profile;
	bool made;
	uint64_t *const number = ky_pair_map_add(&making->nodes, parent, name, &made);
	if (!number)
		return KY_NONE;
	if (!made)
		return (uint32_t)*number;
	*number = profile->nodes_count;
	return KY_ARRAY_ADD(profile->nodes, profile->nodes_count, profile->nodes_room,
			    (struct ky_profile_node){parent, name})
		       ? (uint32_t)*number
		       : KY_NONE;
}

/* Return the part of a slice that is in the selection. */
static double length_of(const struct ky_export_job *job, uint32_t slice)
{
	const struct ky_export_selection *const part = job->selection;
	int64_t from = job->trace->slices.ts[slice], to = ky_profile_end(job->trace, slice);
	if (part->from_ns != KY_TIME_NONE && from < part->from_ns)
		from = part->from_ns;
	if (part->to_ns != KY_TIME_NONE && to > part->to_ns)
		to = part->to_ns;
	return to > from ? (double)to - (double)from : 0;
}

/* Return the nearest slice around this one that is selected, or KY_NONE. */
static uint32_t parent_of(const struct making_profile *making, uint32_t slice)
{
	uint32_t parent = making->job->trace->slices.parent[slice];
	while (parent != KY_NONE && making->node_of[parent] == KY_NONE)
		parent = making->job->trace->slices.parent[parent];
	return parent;
}

static struct ky_profile_row *row_of_slice(struct making_profile *making, uint32_t slice)
{
	const struct ky_trace *const trace = making->job->trace;
	const uint32_t track = trace->slices.track[slice];
	return row_of(making, making->node_of[slice], 0, ky_track_thread(trace, track),
		      ky_track_process(trace, track));
}

static int add_slice(struct making_profile *making, uint32_t slice)
{
	const uint32_t parent = parent_of(making, slice);
	const double ns = length_of(making->job, slice);
	making->node_of[slice] =
		node_of(making, parent == KY_NONE ? KY_NONE : making->node_of[parent],
			making->job->trace->slices.name[slice]);
	if (making->node_of[slice] == KY_NONE)
		return -ENOMEM;
	struct ky_profile_row *const row = row_of_slice(making, slice);
	if (!row)
		return -ENOMEM;
	row->count++;
	row->value += ns;
	if (parent == KY_NONE)
		return 0;
	struct ky_profile_row *const above = row_of_slice(making, parent);
	if (!above)
		return -ENOMEM;
	above->value -= ns;
	return 0;
}

static int add_slices(struct making_profile *making)
{
	const struct ky_slices *const slices = &making->job->trace->slices;
	struct ky_profile *const profile = making->profile;
	making->node_of = malloc((slices->rows.count + 1) * sizeof(*making->node_of));
	if (!making->node_of ||
	    !KY_ARRAY_ADD(profile->events, profile->events_count, profile->events_room,
			  (struct ky_profile_event){.time = true}))
		return -ENOMEM;
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		making->node_of[i] = KY_NONE;
		if (slices->kind[i] != KY_SLICE_SPAN ||
		    !ky_selected_any_slice(making->job->trace, making->job->selection, i))
			continue;
		const int error = add_slice(making, i);
		if (error)
			return error;
	}
	return 0;
}

/* ---- the profile ---- */

void ky_profile_count_left(const struct ky_export_job *job)
{
	const struct ky_trace *const trace = job->trace;
	struct ky_export_left *const left = job->left;
	const bool spans = ky_profile_of_spans(job);
	for (uint32_t i = 0; i < trace->slices.rows.count; i++) {
		left->instants += trace->slices.kind[i] != KY_SLICE_SPAN;
		left->slices += !spans && trace->slices.kind[i] == KY_SLICE_SPAN;
	}
	left->counters += trace->counters.rows.count;
	left->flows += trace->flows.rows.count;
	left->sched += trace->sched.rows.count;
	left->samples += spans ? trace->samples.rows.count : 0;
	left->logs += trace->logs.rows.count;
	left->raw_events += trace->raw_events.rows.count;
}

int ky_profile_make(struct ky_profile *profile, const struct ky_export_job *job)
{
	struct making_profile making = {.profile = profile, .job = job};
	*profile = (struct ky_profile){.trace = job->trace, .spans = ky_profile_of_spans(job)};
	const int error = profile->spans ? add_slices(&making) : add_samples(&making);
	ky_pair_map_free(&making.rows);
	ky_pair_map_free(&making.nodes);
	ky_u64_map_free(&making.events);
	free(making.node_of);
	if (error)
		ky_profile_free(profile);
	else
		ky_profile_count_left(job);
	return error;
}

void ky_profile_free(struct ky_profile *profile)
{
	KY_ARRAY_FREE(profile->rows, profile->rows_room);
	KY_ARRAY_FREE(profile->events, profile->events_room);
	KY_ARRAY_FREE(profile->nodes, profile->nodes_room);
}

uint32_t ky_profile_main_event(const struct ky_profile *profile)
{
	uint32_t most = 0;
	for (uint32_t i = 1; i < profile->events_count; i++)
		if (profile->events[i].count > profile->events[most].count)
			most = i;
	return most;
}

uint32_t ky_profile_parent(const struct ky_profile *profile, uint32_t node)
{
	return profile->spans ? profile->nodes[node].parent
			      : profile->trace->callsites.parent[node];
}

uint32_t ky_profile_frame(const struct ky_profile *profile, uint32_t node)
{
	return profile->spans ? profile->nodes[node].name : profile->trace->callsites.frame[node];
}

static struct ky_text made_up(char room[64], int bytes)
{
	return (struct ky_text){room, bytes < 64 ? (uint32_t)bytes : 63};
}

/* Name a frame without a function by its module, as perf does. */
static struct ky_text unnamed(const struct ky_trace *trace, uint32_t mapping, char room[64])
{
	const char *const path =
		mapping == KY_NONE ? "" : ky_walk_text(trace, trace->mappings.name[mapping]).data;
	const char *const module = ky_file_name(path);
	return made_up(room, snprintf(room, 64, "[%s]", *module ? module : "unknown"));
}

struct ky_text ky_profile_name(const struct ky_trace *trace, bool spans, uint32_t frame,
			       char room[64])
{
	const uint32_t name = spans ? frame : trace->frames.name[frame];
	if (name)
		return ky_walk_text(trace, name);
	return unnamed(trace, spans ? KY_NONE : trace->frames.mapping[frame], room);
}

struct ky_text ky_profile_owner(const struct ky_trace *trace, uint32_t thread, uint32_t process,
				char room[64])
{
	if (thread != KY_NONE && trace->threads.name[thread])
		return ky_walk_text(trace, trace->threads.name[thread]);
	if (process != KY_NONE && trace->processes.name[process])
		return ky_walk_text(trace, trace->processes.name[process]);
	if (thread != KY_NONE)
		return made_up(room,
			       snprintf(room, 64, "thread %" PRId64, trace->threads.tid[thread]));
	if (process != KY_NONE)
		return made_up(room, snprintf(room, 64, "process %" PRId64,
					      trace->processes.pid[process]));
	return made_up(room, snprintf(room, 64, "trace"));
}
