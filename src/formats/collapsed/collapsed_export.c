/* SPDX-License-Identifier: MIT */
/*
 * collapsed_export.c: writes a profile as collapsed stacks, a line each: "thread;outermost;...;innermost VALUE", as
 * flamegraph.pl, inferno, speedscope and others read them. Of several events the one with the most samples is written.
 */
#include "base/array.h"
#include "formats/json/json_value.h"
#include "formats/profile.h"

#include <errno.h>

#define PUSH_BYTES (256u << 10)

struct collapsed_export {
	const struct ky_profile *profile;
	struct ky_out *out;
	uint32_t *path; /* nodes of a stack, the innermost first */
	uint32_t depth, room;
};

/* Append a frame: a semicolon would end it, a line feed the line. */
static void put_frame(struct ky_out *out, struct ky_text text)
{
	for (size_t i = 0; i < text.bytes; i++) {
		const char c = text.data[i];
		const char put = c == ';' ? ':' : (unsigned char)c < ' ' ? ' ' : c;
		ky_out_append(out, &put, 1);
	}
}

static bool find_path(struct collapsed_export *w, uint32_t node)
{
	w->depth = 0;
	for (; node != KY_NONE; node = ky_profile_parent(w->profile, node))
		if (!KY_ARRAY_ADD(w->path, w->depth, w->room, node))
			return false;
	return true;
}

static int put_row(struct collapsed_export *w, const struct ky_profile_row *row, double value)
{
	char room[64];
	const struct ky_trace *const trace = w->profile->trace;
	if (!find_path(w, row->node))
		return -ENOMEM;
	put_frame(w->out, ky_profile_owner(trace, row->thread, row->process, room));
	for (uint32_t i = w->depth; i-- > 0;) {
		const uint32_t frame = ky_profile_frame(w->profile, w->path[i]);
		ky_out_append(w->out, ";", 1);
		put_frame(w->out, ky_profile_name(trace, w->profile->spans, frame, room));
	}
	ky_out_append(w->out, " ", 1);
	ky_json_append_uint(w->out, (uint64_t)value);
	ky_out_append(w->out, "\n", 1);
	return w->out->used >= PUSH_BYTES ? ky_out_push(w->out) : w->out->error;
}

static int write_rows(struct collapsed_export *w, struct ky_export_left *left)
{
	const struct ky_profile *const profile = w->profile;
	const uint32_t event = ky_profile_main_event(profile);
	for (uint32_t i = 0; i < profile->rows_count; i++) {
		const struct ky_profile_row *const row = &profile->rows[i];
		/* Times and periods are whole numbers but for what rounding did to them. */
		const double value = row->value + 0.5;
		if (row->event != event) {
			left->samples += row->count;
		} else if (value >= 1 && value < 1e19) {
			const int error = put_row(w, row, value);
			if (error)
				return error;
		} else if (!profile->spans) {
			left->samples += row->count; /* their weight is no whole number above 0 */
		}
	}
	return 0;
}

static int write_profile(const struct ky_export_job *job)
{
	struct ky_profile profile;
	struct collapsed_export w = {.profile = &profile, .out = job->out};
	int error = ky_profile_make(&profile, job);
	if (error)
		return error;
	error = write_rows(&w, job->left);
	KY_ARRAY_FREE(w.path, w.room);
	ky_profile_free(&profile);
	return error;
}

static const struct ky_format format = {.name = "collapsed", .suffix = ".folded"};
const struct ky_exporter ky_exporter_collapsed = {.format = &format, .write = write_profile};
