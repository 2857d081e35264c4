/* SPDX-License-Identifier: MIT */
/*
 * speedscope_export.c: writes a profile in speedscope's own JSON: for each thread its samples in the order of time, or its spans as
 * events that open and close frames. speedscope sums them up itself ("left heavy").
 *
 * frames has each function once. A profile is a thread and an event, or a track of spans: its rows are found by sorting all rows
 * by it, in the order of time.
 */
#include "base/array.h"
#include "base/map.h"
#include "formats/json/json_value.h"
#include "formats/profile.h"
#include "formats/walk.h"

#include <errno.h>
#include <stdlib.h>

#define PUSH_BYTES (256u << 10)

struct speedscope_export {
	const struct ky_export_job *job;
	const struct ky_trace *trace;
	struct ky_out *out;
	struct ky_out clean;
	bool spans;
	struct ky_u64_map frames; /* frame, or string of a span's name: number in the file */
	uint32_t frames_count;
	struct profile_item {
		uint64_t profile; /* thread and event, or track */
		uint32_t row;
	} * items;
	uint64_t items_count, items_room;
	uint32_t *path; /* frames of a stack, or the slices that are open */
	int64_t *ends;  /* when the open slices end in the file: no later than those around them */
	uint32_t depth, path_room, ends_room;
};

static void put(struct speedscope_export *w, const char *text)
{
	ky_json_append(w->out, text);
}

static int pushed(struct speedscope_export *w)
{
	return w->out->used >= PUSH_BYTES ? ky_out_push(w->out) : w->out->error;
}

/* ---- frames ---- */

static int put_frame(struct speedscope_export *w, uint32_t frame)
{
	char room[64];
	bool made;
	uint32_t *const number = ky_u64_map_add(&w->frames, frame, &made);
	if (!number)
		return -ENOMEM;
	if (!made)
		return 0;
	*number = w->frames_count++;
	put(w, *number ? ",\n{\"name\":" : "\n{\"name\":");
	ky_json_append_text(w->out, &w->clean, ky_profile_name(w->trace, w->spans, frame, room));
	if (!w->spans && w->trace->frames.file[frame]) {
		put(w, ",\"file\":");
		ky_json_append_text(w->out, &w->clean,
				    ky_walk_text(w->trace, w->trace->frames.file[frame]));
		put(w, ",\"line\":");
		ky_json_append_uint(w->out, w->trace->frames.line[frame]);
	}
	put(w, "}");
	return pushed(w);
}

static bool wanted_slice(const struct speedscope_export *w, uint32_t slice)
{
	return w->trace->slices.kind[slice] == KY_SLICE_SPAN &&
	       ky_selected_any_slice(w->trace, w->job->selection, slice);
}

static int add_item(struct speedscope_export *w, uint64_t profile, uint32_t row)
{
	return KY_ARRAY_ADD(w->items, w->items_count, w->items_room,
			    (struct profile_item){profile, row})
		       ? 0
		       : -ENOMEM;
}

static int gather_slices(struct speedscope_export *w)
{
	const struct ky_slices *const slices = &w->trace->slices;
	int error = 0;
	for (uint32_t i = 0; i < slices->rows.count && !error; i++) {
		if (!wanted_slice(w, i))
			continue;
		error = put_frame(w, slices->name[i]);
		if (!error)
			error = add_item(w, slices->track[i], i);
	}
	return error;
}

static int gather_samples(struct speedscope_export *w)
{
	const struct ky_samples *const samples = &w->trace->samples;
	int error = 0;
	for (uint32_t i = 0; i < samples->rows.count && !error; i++) {
		if (!ky_profile_sample(w->job, i))
			continue;
		uint32_t node = samples->callsite[i];
		for (; node != KY_NONE && !error; node = w->trace->callsites.parent[node])
			error = put_frame(w, w->trace->callsites.frame[node]);
		if (!error)
			error = add_item(w, (uint64_t)samples->thread[i] << 32 | samples->event[i],
					 i);
	}
	return error;
}

/* ---- profiles ---- */

KY_ORDER(by_profile, struct profile_item,
	 KY_COMPARE_THEN(a->profile, b->profile, KY_COMPARE(a->row, b->row)))

static void put_head(struct speedscope_export *w, struct ky_text name, const char *type,
		     const char *unit)
{
	put(w, "{\"type\":\"");
	put(w, type);
	put(w, "\",\"name\":");
	ky_json_append_text(w->out, &w->clean, name);
	put(w, ",\"unit\":\"");
	put(w, unit);
	put(w, "\",\"startValue\":");
}

static int put_stack(struct speedscope_export *w, uint32_t node)
{
	w->depth = 0;
	for (; node != KY_NONE; node = w->trace->callsites.parent[node])
		if (!KY_ARRAY_ADD(w->path, w->depth, w->path_room, w->trace->callsites.frame[node]))
			return -ENOMEM;
	put(w, "[");
	for (uint32_t i = w->depth; i-- > 0;) {
		ky_json_append_uint(w->out, *ky_u64_map_find(&w->frames, w->path[i]));
		put(w, i ? "," : "");
	}
	put(w, "]");
	return pushed(w);
}

static int put_samples(struct speedscope_export *w, const struct profile_item *items,
		       uint64_t count)
{
	const struct ky_samples *const samples = &w->trace->samples;
	const uint32_t thread = samples->thread[items->row], event = samples->event[items->row];
	char room[64];
	double sum = 0;
	int error = 0;
	for (uint64_t i = 0; i < count; i++)
		sum += samples->weight[items[i].row];
	put_head(w,
		 ky_profile_owner(w->trace, thread,
				  thread == KY_NONE ? KY_NONE : w->trace->threads.process[thread],
				  room),
		 "sampled", ky_profile_event_time(w->trace, event) ? "nanoseconds" : "none");
	put(w, "0,\"endValue\":");
	ky_json_append_double(w->out, sum);
	put(w, ",\"samples\":[");
	for (uint64_t i = 0; i < count && !error; i++) {
		put(w, i ? "," : "");
		error = put_stack(w, samples->callsite[items[i].row]);
	}
	put(w, "],\"weights\":[");
	for (uint64_t i = 0; i < count && !error; i++) {
		put(w, i ? "," : "");
		ky_json_append_double(w->out, samples->weight[items[i].row]);
		error = pushed(w);
	}
	put(w, "]}");
	return error;
}

/* Put a time of the trace, which may be as long as 64 bits can say. */
static void put_time(struct speedscope_export *w, int64_t at)
{
	const int64_t begin = w->trace->begin_ns;
	ky_json_append_uint(w->out, at > begin ? (uint64_t)at - (uint64_t)begin : 0);
}

static int put_event(struct speedscope_export *w, char type, uint32_t slice, int64_t at, bool first)
{
	const char text[] = {type, '\0'};
	put(w, first ? "\n{\"type\":\"" : ",\n{\"type\":\"");
	put(w, text);
	put(w, "\",\"frame\":");
	ky_json_append_uint(w->out, *ky_u64_map_find(&w->frames, w->trace->slices.name[slice]));
	put(w, ",\"at\":");
	put_time(w, at);
	put(w, "}");
	return pushed(w);
}

static bool open_slice(struct speedscope_export *w, uint32_t slice)
{
	const int64_t around = w->depth ? w->ends[w->depth - 1] : INT64_MAX;
	const int64_t own = ky_profile_end(w->trace, slice);
	if (!KY_ARRAY_GROW(w->ends, w->ends_room, w->depth + 1) ||
	    !KY_ARRAY_ADD(w->path, w->depth, w->path_room, slice))
		return false;
	w->ends[w->depth - 1] = own < around ? own : around;
	w->job->left->ends += own > around && w->trace->slices.dur[slice] >= 0;
	return true;
}

/* Those around it are less deep. */
static bool is_within(const struct speedscope_export *w, uint32_t slice, uint32_t around)
{
	const struct ky_slices *const slices = &w->trace->slices;
	uint32_t parent = slices->parent[slice];
	while (parent != KY_NONE && slices->depth[parent] > slices->depth[around])
		parent = slices->parent[parent];
	return parent == around;
}

static int put_slices(struct speedscope_export *w, const struct profile_item *items, uint64_t count)
{
	const uint32_t track = w->trace->slices.track[items->row];
	char room[64];
	int64_t last = 0;
	int error = 0;
	for (uint64_t i = 0; i < count; i++) {
		const int64_t end = ky_profile_end(w->trace, items[i].row);
		last = end > last || !i ? end : last;
	}
	put_head(w,
		 ky_profile_owner(w->trace, ky_track_thread(w->trace, track),
				  ky_track_process(w->trace, track), room),
		 "evented", "nanoseconds");
	put(w, "0,\"endValue\":");
	put_time(w, last);
	put(w, ",\"events\":[");
	w->depth = 0;
	for (uint64_t i = 0; i <= count && !error; i++) {
		while (w->depth && !error &&
		       (i == count || !is_within(w, items[i].row, w->path[w->depth - 1]))) {
			error = put_event(w, 'C', w->path[w->depth - 1], w->ends[w->depth - 1],
					  false);
			w->depth--;
		}
		if (i == count || error)
			break;
		if (!open_slice(w, items[i].row))
			return -ENOMEM;
		error = put_event(w, 'O', items[i].row, w->trace->slices.ts[items[i].row], !i);
	}
	put(w, "]}");
	return error;
}

static int put_profiles(struct speedscope_export *w)
{
	int error = 0;
	if (w->items_count)
		qsort(w->items, w->items_count, sizeof(*w->items), by_profile);
	for (uint64_t i = 0, end; i < w->items_count && !error; i = end) {
		for (end = i; end < w->items_count && w->items[end].profile == w->items[i].profile;)
			end++;
		put(w, i ? ",\n" : "\n");
		error = (w->spans ? put_slices : put_samples)(w, w->items + i, end - i);
	}
	return error;
}

static int write_file(struct speedscope_export *w)
{
	put(w, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
	       "\"exporter\":\"kymo\",\"shared\":{\"frames\":[");
	int error = w->spans ? gather_slices(w) : gather_samples(w);
	put(w, "]},\n\"profiles\":[");
	if (!error)
		error = put_profiles(w);
	put(w, "]}\n");
	return error ? error : w->out->error;
}

static int write_profile(const struct ky_export_job *job)
{
	struct speedscope_export w = {.job = job,
				      .trace = job->trace,
				      .out = job->out,
				      .spans = ky_profile_of_spans(job)};
	int error = ky_out_init(&w.clean, 256);
	if (!error)
		error = write_file(&w);
	if (!error)
		ky_profile_count_left(job);
	ky_u64_map_free(&w.frames);
	KY_ARRAY_FREE(w.items, w.items_room);
	KY_ARRAY_FREE(w.path, w.path_room);
	KY_ARRAY_FREE(w.ends, w.ends_room);
	ky_out_free(&w.clean);
	return error;
}

static const struct ky_format format = {.name = "speedscope", .suffix = ".speedscope.json"};
const struct ky_exporter ky_exporter_speedscope = {.format = &format, .write = write_profile};
