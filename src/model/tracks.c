/* SPDX-License-Identifier: MIT */
/* tracks.c: tracks, found by their specs. */
#include "base/array.h"
#include "base/queue.h"
#include "model/build.h"

static const char *const types[] = {
	[KY_TRACK_GLOBAL] = "global_track",
	[KY_TRACK_PROCESS] = "process_track",
	[KY_TRACK_THREAD] = "thread_execution",
	[KY_TRACK_CPU] = "cpu_track",
	[KY_TRACK_COUNTER] = "global_counter",
	[KY_TRACK_PROCESS_COUNTER] = "process_counter",
	[KY_TRACK_THREAD_COUNTER] = "thread_counter",
	[KY_TRACK_CPU_COUNTER] = "cpu_counter",
};

uint32_t ky_track_new(struct ky_trace *trace, const struct ky_track_spec *spec)
{
	struct ky_tracks *tracks = &trace->tracks;
	const uint32_t row =
		tracks->rows.count < KY_STAGE_TRACKS_MAX ? ky_append(trace, tracks) : KY_NONE;
	if (row == KY_NONE) {
		ky_trace_no_memory(trace);
		return 0;
	}
	tracks->name[row] = spec->name;
	tracks->owner[row] = spec->owner;
	tracks->parent[row] = KY_NONE;
	tracks->type[row] = spec->type ? spec->type : ky_string_z(trace, types[spec->kind]);
	tracks->unit[row] = 0;
	tracks->args[row] = 0;
	tracks->id[row] = spec->id;
	tracks->kind[row] = spec->kind;
	tracks->flags[row] = spec->flags;
	return row;
}

/* Specs are found by a seeded hash of 128 bits: a collision by chance does not happen. */
uint32_t ky_track(struct ky_trace *trace, const struct ky_track_spec *spec)
{
	const uint64_t a =
		ky_hash_pair((uint64_t)spec->kind << 40 | (uint64_t)spec->flags << 32 | spec->owner,
			     (uint64_t)spec->category << 32 | spec->name);
	const uint64_t b = ky_hash_pair(spec->id ^ a, spec->type);
	bool made;
	uint64_t *row = ky_pair_map_add(&trace->build->track_by_spec, a, b, &made);
	if (!row) {
		ky_trace_no_memory(trace);
		return 0;
	}
	if (made)
		*row = ky_track_new(trace, spec);
	return (uint32_t)*row;
}

/* Return the track of an owner; the array holds row + 1. */
static uint32_t own_track(struct ky_trace *trace, uint32_t **rows, uint64_t *room,
			  enum ky_track_kind kind, uint32_t owner)
{
	if (__builtin_expect(owner >= *room, 0) &&
	    !KY_ARRAY_GROW_ZERO(*rows, *room, (uint64_t)owner + 1)) {
		ky_trace_no_memory(trace);
		return 0;
	}
	if (!(*rows)[owner]) {
		const struct ky_track_spec spec = {.kind = (uint8_t)kind, .owner = owner};
		(*rows)[owner] = ky_track_new(trace, &spec) + 1;
	}
	return (*rows)[owner] - 1;
}

uint32_t ky_track_of_thread(struct ky_trace *trace, uint32_t thread)
{
	struct ky_build *build = trace->build;
	if (thread >= trace->threads.rows.count)
		return ky_track_global(trace, 0);
	return own_track(trace, &build->thread_track, &build->thread_track_room, KY_TRACK_THREAD,
			 thread);
}

uint32_t ky_track_of_process(struct ky_trace *trace, uint32_t process)
{
	struct ky_build *build = trace->build;
	if (process >= trace->processes.rows.count)
		return ky_track_global(trace, 0);
	return own_track(trace, &build->process_track, &build->process_track_room, KY_TRACK_PROCESS,
			 process);
}

uint32_t ky_track_global(struct ky_trace *trace, uint32_t name)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_GLOBAL, .owner = KY_NONE, .name = name};
	return ky_track(trace, &spec);
}

uint32_t ky_track_counter(struct ky_trace *trace, enum ky_track_kind kind, uint32_t owner,
			  uint32_t name)
{
	const struct ky_track_spec spec = {.kind = (uint8_t)kind, .owner = owner, .name = name};
	return ky_track(trace, &spec);
}

uint32_t ky_track_thread(const struct ky_trace *trace, uint32_t track)
{
	const uint8_t kind = trace->tracks.kind[track];
	const bool of_thread = kind == KY_TRACK_THREAD || kind == KY_TRACK_THREAD_COUNTER;
	const uint32_t owner = trace->tracks.owner[track];
	return of_thread && owner < trace->threads.rows.count ? owner : KY_NONE;
}

uint32_t ky_track_process(const struct ky_trace *trace, uint32_t track)
{
	const uint32_t thread = ky_track_thread(trace, track);
	if (thread != KY_NONE)
		return trace->threads.process[thread];
	const uint8_t kind = trace->tracks.kind[track];
	const bool of_process = kind == KY_TRACK_PROCESS || kind == KY_TRACK_PROCESS_COUNTER;
	const uint32_t owner = trace->tracks.owner[track];
	return of_process && owner < trace->processes.rows.count ? owner : KY_NONE;
}

/* ---- tracks beside others ---- */

/*
 * Tracks for complete events that overlap others of their thread without nesting.
 *
 * The first few tracks beside a thread's are tried in order (slices.c), since overlapping spans are mostly two or
 * three deep and nest among themselves. After those comes the crowd: tracks that have one slice at a time, in a
 * queue by its end. So a million overlapping slices take a million queue operations, and none is dropped.
 */

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

KY_QUEUE(crowd, struct ky_crowd_track, a->free_at < b->free_at)

uint32_t ky_overflow_crowd(struct ky_trace *trace, uint32_t track, int64_t ts, int64_t dur)
{
	struct ky_crowd *crowd = crowd_of(trace, track);
	struct ky_crowd_track entry = {.track = track};
	if (!crowd || !KY_ARRAY_GROW_ZERO(crowd->queue, crowd->room, (uint64_t)crowd->count + 1)) {
		ky_trace_no_memory(trace);
		return track;
	}
	if (__builtin_add_overflow(ts, dur, &entry.free_at))
		entry.free_at = INT64_MAX;
	if (crowd->count && crowd->queue[0].free_at <= ts) {
		entry.track = crowd->queue[0].track;
		crowd_down(crowd->queue, crowd->count, 0, entry);
	} else {
		entry.track = ky_overflow_track(trace, track);
		crowd_up(crowd->queue, crowd->count++, entry);
	}
	return entry.track;
}

void ky_overflow_free(struct ky_build *build)
{
	for (uint64_t i = 0; i < build->crowds_count; i++)
		KY_ARRAY_FREE(build->crowds[i].queue, build->crowds[i].room);
	KY_ARRAY_FREE(build->crowds, build->crowds_room);
	ky_pair_map_free(&build->crowd_by_track);
}
