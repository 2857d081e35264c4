/* SPDX-License-Identifier: MIT */
/*
 * pprof_export.c: writes a profile as pprof's protobuf message (github.com/google/pprof, proto/profile.proto), which `go tool pprof`
 * and many services read, usually compressed: out.pb.gz.
 *
 * A sample is a stack of locations, a value for the count, and one for each event (its weight, or the time in spans); labels have
 * the thread. A location is a frame, with its module where that is known. The order of fields is free, so that each is written as
 * soon as it is known; strings come last.
 */
#include "base/array.h"
#include "base/strings.h"
#include "formats/profile.h"
#include "formats/proto.h"
#include "formats/walk.h"

#include <errno.h>
#include <stdlib.h>

#define PUSH_BYTES (256u << 10)

/* Numbers of fields, by message. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING_TABLE,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR, LABEL_NUM };
enum {
	MAPPING_ID = 1,
	MAPPING_MEMORY_START,
	MAPPING_MEMORY_LIMIT,
	MAPPING_FILE_OFFSET,
	MAPPING_FILENAME,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS
};
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION_ID = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILENAME };

struct pprof_export {
	const struct ky_profile *profile;
	const struct ky_trace *trace;
	struct ky_out *out;
	struct ky_out message, inner;
	struct ky_strings strings;
	uint8_t *seen; /* by frame, or by string of spans: its location was written */
};

/* Return the number of a string in the file's table; 0 is the empty one. */
static uint64_t string_of(struct pprof_export *w, struct ky_text text)
{
	if (!text.bytes)
		return 0;
	const uint32_t number = ky_strings_add_utf8(&w->strings, text.data, text.bytes);
	if (!number)
		w->out->error = -ENOMEM;
	return number;
}

static uint64_t literal(struct pprof_export *w, const char *text)
{
	return string_of(w, (struct ky_text){text, (uint32_t)strlen(text)});
}

/* Append the finished message as a field of the profile, and begin the next. */
static void put_message(struct pprof_export *w, uint32_t field)
{
	if (w->message.error)
		w->out->error = w->message.error;
	ky_proto_message(w->out, field, &w->message);
	w->message.used = 0;
	if (w->out->used >= PUSH_BYTES)
		ky_out_push(w->out);
}

static void put_value_type(struct pprof_export *w, uint64_t type, const char *unit)
{
	ky_proto_uint(&w->message, VALUE_TYPE_TYPE, type);
	ky_proto_uint(&w->message, VALUE_TYPE_UNIT, literal(w, unit));
	put_message(w, PROFILE_SAMPLE_TYPE);
}

/* The first value is a count; the last is the one that pprof shows by default. */
static void put_value_types(struct pprof_export *w)
{
	const struct ky_profile *const profile = w->profile;
	const uint32_t main_event = ky_profile_main_event(profile);
	put_value_type(w, literal(w, profile->spans ? "spans" : "samples"), "count");
	for (uint32_t i = 0; i < profile->events_count; i++) {
		const uint32_t name = profile->events[i].name;
		const uint64_t type = profile->spans ? literal(w, "time")
				      : name         ? string_of(w, ky_walk_text(w->trace, name))
						     : literal(w, "events");
		put_value_type(w, type, profile->events[i].time ? "nanoseconds" : "count");
		if (i == main_event)
			ky_proto_uint(w->out, PROFILE_DEFAULT_SAMPLE_TYPE, type);
	}
}

static void put_mapping(struct pprof_export *w, uint32_t mapping)
{
	const struct ky_mappings *const mappings = &w->trace->mappings;
	ky_proto_uint(&w->message, MAPPING_ID, (uint64_t)mapping + 1);
	ky_proto_uint(&w->message, MAPPING_MEMORY_START, mappings->start[mapping]);
	ky_proto_uint(&w->message, MAPPING_MEMORY_LIMIT, mappings->end[mapping]);
	ky_proto_uint(&w->message, MAPPING_FILE_OFFSET, mappings->offset[mapping]);
	ky_proto_uint(&w->message, MAPPING_FILENAME,
		      string_of(w, ky_walk_text(w->trace, mappings->name[mapping])));
	ky_proto_uint(&w->message, MAPPING_BUILD_ID,
		      string_of(w, ky_walk_text(w->trace, mappings->build_id[mapping])));
	/* The names are here: pprof shall not look for the program. */
	ky_proto_uint(&w->message, MAPPING_HAS_FUNCTIONS, 1);
	put_message(w, PROFILE_MAPPING);
}

struct used_mapping {
	uint64_t start;
	uint32_t mapping;
	bool used;
};

KY_ORDER(by_start, struct used_mapping,
	 KY_COMPARE_THEN(a->start, b->start, KY_COMPARE(a->mapping, b->mapping)))

/* Mark the mappings of the rows' functions. */
static void mark_used(const struct pprof_export *w, struct used_mapping *used)
{
	for (uint32_t i = 0; i < w->profile->rows_count; i++)
		for (uint32_t node = w->profile->rows[i].node; node != KY_NONE;
		     node = ky_profile_parent(w->profile, node)) {
			const uint32_t mapping =
				w->trace->frames.mapping[ky_profile_frame(w->profile, node)];
			if (mapping != KY_NONE)
				used[mapping].used = true;
		}
}

/* Write the mappings that samples are in. pprof takes the first for the program, which has the lowest address as a rule. */
static void put_mappings(struct pprof_export *w)
{
	const uint32_t count = w->profile->spans ? 0 : w->trace->mappings.rows.count;
	struct used_mapping *const used = calloc((size_t)count + 1, sizeof(*used));
	if (!used) {
		w->out->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		used[i] = (struct used_mapping){w->trace->mappings.start[i], i, false};
	if (count)
		mark_used(w, used);
	qsort(used, count, sizeof(*used), by_start);
	for (uint32_t i = 0; i < count; i++)
		if (used[i].used)
			put_mapping(w, used[i].mapping);
	free(used);
}

/* Write a frame's function and location, both numbered as the frame is, from 1 on. */
static void put_location(struct pprof_export *w, uint32_t frame)
{
	const struct ky_frames *const frames = &w->trace->frames;
	const bool spans = w->profile->spans;
	char room[64];
	const uint64_t id = (uint64_t)frame + 1;
	const uint64_t name = string_of(w, ky_profile_name(w->trace, spans, frame, room));
	ky_proto_uint(&w->message, FUNCTION_ID, id);
	ky_proto_uint(&w->message, FUNCTION_NAME, name);
	ky_proto_uint(&w->message, FUNCTION_SYSTEM_NAME, name);
	if (!spans && frames->file[frame])
		ky_proto_uint(&w->message, FUNCTION_FILENAME,
			      string_of(w, ky_walk_text(w->trace, frames->file[frame])));
	put_message(w, PROFILE_FUNCTION);
	w->inner.used = 0;
	ky_proto_uint(&w->inner, LINE_FUNCTION_ID, id);
	if (!spans)
		ky_proto_uint(&w->inner, LINE_LINE, frames->line[frame]);
	ky_proto_uint(&w->message, LOCATION_ID, id);
	if (!spans && frames->mapping[frame] != KY_NONE) {
		const uint32_t mapping = frames->mapping[frame];
		ky_proto_uint(&w->message, LOCATION_MAPPING_ID, (uint64_t)mapping + 1);
		ky_proto_uint(&w->message, LOCATION_ADDRESS,
			      w->trace->mappings.start[mapping] + frames->rel_pc[frame] -
				      w->trace->mappings.offset[mapping]);
	}
	ky_proto_message(&w->message, LOCATION_LINE, &w->inner);
	put_message(w, PROFILE_LOCATION);
	w->seen[frame] = 1;
}

static void put_packed(struct ky_out *out, uint64_t value)
{
	ky_out_done(out, ky_proto_varint_at(ky_out_room(out, KY_PROTO_VARINT_BYTES), value));
}

static void put_label(struct pprof_export *w, const char *key, uint32_t field, uint64_t value)
{
	w->inner.used = 0;
	ky_proto_uint(&w->inner, LABEL_KEY, literal(w, key));
	ky_proto_uint(&w->inner, field, value);
	ky_proto_message(&w->message, SAMPLE_LABEL, &w->inner);
}

static void put_labels(struct pprof_export *w, const struct ky_profile_row *row)
{
	char room[64];
	put_label(w, "thread", LABEL_STR,
		  string_of(w, ky_profile_owner(w->trace, row->thread, row->process, room)));
	if (row->thread != KY_NONE)
		put_label(w, "tid", LABEL_NUM, (uint64_t)w->trace->threads.tid[row->thread]);
	if (row->process != KY_NONE)
		put_label(w, "pid", LABEL_NUM, (uint64_t)w->trace->processes.pid[row->process]);
}

static void put_sample(struct pprof_export *w, const struct ky_profile_row *row)
{
	for (uint32_t node = row->node; node != KY_NONE;
	     node = ky_profile_parent(w->profile, node)) {
		const uint32_t frame = ky_profile_frame(w->profile, node);
		if (!w->seen[frame])
			put_location(w, frame);
	}
	w->inner.used = 0;
	for (uint32_t node = row->node; node != KY_NONE; node = ky_profile_parent(w->profile, node))
		put_packed(&w->inner, (uint64_t)ky_profile_frame(w->profile, node) + 1);
	ky_proto_message(&w->message, SAMPLE_LOCATION_ID, &w->inner);
	w->inner.used = 0;
	put_packed(&w->inner, row->count);
	for (uint32_t i = 0; i < w->profile->events_count; i++)
		put_packed(&w->inner, i == row->event && row->value > 0 && row->value < 9e18
					      ? (uint64_t)(row->value + 0.5)
					      : 0);
	ky_proto_message(&w->message, SAMPLE_VALUE, &w->inner);
	put_labels(w, row);
	put_message(w, PROFILE_SAMPLE);
}

static int write_message(struct pprof_export *w)
{
	const struct ky_profile *const profile = w->profile;
	put_value_types(w);
	put_mappings(w);
	for (uint32_t i = 0; i < profile->rows_count && !w->out->error; i++)
		put_sample(w, &profile->rows[i]);
	if (w->trace->end_ns > w->trace->begin_ns)
		ky_proto_uint(w->out, PROFILE_DURATION_NANOS,
			      (uint64_t)w->trace->end_ns - (uint64_t)w->trace->begin_ns);
	for (uint32_t i = 0; i < w->strings.count && !w->out->error; i++) {
		ky_proto_bytes(w->out, PROFILE_STRING_TABLE, ky_strings_text(&w->strings, i),
			       ky_strings_bytes(&w->strings, i));
		if (w->out->used >= PUSH_BYTES)
			ky_out_push(w->out);
	}
	return w->out->error;
}

static int write_profile(const struct ky_export_job *job)
{
	struct ky_profile profile;
	struct pprof_export w = {.profile = &profile, .trace = job->trace, .out = job->out};
	int error = ky_profile_make(&profile, job);
	if (error)
		return error;
	const uint32_t frames =
		profile.spans ? job->trace->strings.count : job->trace->frames.rows.count;
	w.seen = calloc((size_t)frames + 1, 1);
	error = !w.seen ? -ENOMEM : ky_out_init(&w.message, 4096);
	if (!error)
		error = ky_out_init(&w.inner, 4096);
	if (!error)
		error = ky_strings_init(&w.strings);
	if (!error)
		error = write_message(&w);
	ky_out_free(&w.message);
	ky_out_free(&w.inner);
	ky_strings_free(&w.strings);
	free(w.seen);
	ky_profile_free(&profile);
	return error;
}

static const struct ky_format format = {.name = "pprof", .suffix = ".pb"};
const struct ky_exporter ky_exporter_pprof = {.format = &format, .write = write_profile};
