/* SPDX-License-Identifier: MIT */
/*
 * overflow.c: tracks for complete events that overlap others of their thread without nesting.
 *
 * The first few tracks beside a thread's are tried in order (slices.c), since overlapping spans are mostly two or
 * three deep and nest among themselves. After those comes the crowd: tracks that have one slice at a time, in a
 * heap by its end. So a million overlapping slices take a million heap operations, and none is dropped.
 */
#include "base/array.h"
#include "model/build.h"

uint32_t ky_overflow_track(struct ky_trace *trace, uint32_t track)
{
	const struct ky_tracks *tracks = &trace->tracks;
	const struct ky_track_spec spec = {
		.kind = tracks->kind[track],
		.flags = tracks->flags[track] | KY_TRACK_OVERFLOW,
		.owner = tracks->owner[track],
		.name = tracks->name[track],
		.type = tracks->type[track],
		.id = tracks->id[track],
	};
	const uint32_t overflow = ky_track_new(trace, &spec);
	if (!trace->error)
		tracks->parent[overflow] = track;
	return overflow;
}

static struct ky_crowd *crowd_of(struct ky_trace *trace, uint32_t track)
{
	struct ky_build *build = trace->build;
	bool made;
	uint64_t *at = ky_pair_map_add(&build->crowd_by_track, track, 0, &made);
	if (!at || !KY_ARRAY_GROW_ZERO(build->crowds, build->crowds_room,
				       (uint64_t)build->crowds_count + 1))
		return NULL;
	if (made)
		*at = build->crowds_count++;
	return &build->crowds[*at];
}

static void push(struct ky_crowd *crowd, struct ky_crowd_track entry)
{
	uint32_t at = crowd->count++;
	for (; at && entry.free_at < crowd->heap[(at - 1) / 2].free_at; at = (at - 1) / 2)
		crowd->heap[at] = crowd->heap[(at - 1) / 2];
	crowd->heap[at] = entry;
}

static void replace_top(struct ky_crowd *crowd, struct ky_crowd_track entry)
{
	uint32_t at = 0;
	for (uint32_t child = 1; child < crowd->count; child = 2 * at + 1) {
		if (child + 1 < crowd->count &&
		    crowd->heap[child + 1].free_at < crowd->heap[child].free_at)
			child++;
		if (entry.free_at <= crowd->heap[child].free_at)
			break;
		crowd->heap[at] = crowd->heap[child];
		at = child;
	}
	crowd->heap[at] = entry;
}

uint32_t ky_overflow_crowd(struct ky_trace *trace, uint32_t track, int64_t ts, int64_t dur)
{
	struct ky_crowd *crowd = crowd_of(trace, track);
	struct ky_crowd_track entry = {.track = track};
	if (!crowd || !KY_ARRAY_GROW_ZERO(crowd->heap, crowd->room, (uint64_t)crowd->count + 1)) {
		ky_trace_no_memory(trace);
		return track;
	}
	if (__builtin_add_overflow(ts, dur, &entry.free_at))
		entry.free_at = INT64_MAX;
	if (crowd->count && crowd->heap[0].free_at <= ts) {
		entry.track = crowd->heap[0].track;
		replace_top(crowd, entry);
	} else {
		entry.track = ky_overflow_track(trace, track);
		push(crowd, entry);
	}
	return entry.track;
}

void ky_overflow_free(struct ky_build *build)
{
	for (uint64_t i = 0; i < build->crowds_count; i++)
		KY_ARRAY_FREE(build->crowds[i].heap, build->crowds[i].room);
	KY_ARRAY_FREE(build->crowds, build->crowds_room);
	ky_pair_map_free(&build->crowd_by_track);
}
