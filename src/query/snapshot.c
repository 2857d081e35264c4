/* SPDX-License-Identifier: MIT */
/* snapshot.c: see snapshot.h. */
#include "query/snapshot.h"

#include <string.h>

static bool is_text(const struct ky_trace *trace, uint32_t string, const char *text)
{
	return string && strcmp(ky_text_of(trace, string), text) == 0;
}

/* Return an argument of the slice, or KY_NONE; formats put different prefixes before its key. */
static uint32_t find_arg(const struct ky_trace *trace, uint32_t slice, const char *key)
{
	const uint32_t set = trace->slices.args[slice];
	if (!set)
		return KY_NONE;
	for (uint32_t i = ky_arg_set_first(trace, set); i < ky_arg_set_end(trace, set); i++) {
		const char *name = ky_text_of(trace, trace->args.key[i]);
		const char *dot = name ? strrchr(name, '.') : NULL;
		if (name && strcmp(dot ? dot + 1 : name, key) == 0)
			return i;
	}
	return KY_NONE;
}

/*
 * Recognise a snapshot by its track, by its thread in formats without tracks, else by arguments
 * that only snapshots have.
 */
static bool is_snapshot(const struct ky_trace *trace, uint32_t slice)
{
	const uint32_t track = trace->slices.track[slice];
	if (trace->slices.kind[slice] != KY_SLICE_INSTANT)
		return false;
	const uint32_t thread = ky_track_thread(trace, track);
	return is_text(trace, trace->tracks.name[track], "snapshots") ||
	       (thread != KY_NONE && is_text(trace, trace->threads.name[thread], "snapshots")) ||
	       find_arg(trace, slice, "trigger") != KY_NONE;
}

bool ky_snapshot_is(const struct ky_trace *trace, uint32_t slice)
{
	const uint32_t category = ky_strings_find(&trace->strings, "kymo", 4);
	return category && trace->slices.category[slice] == category && is_snapshot(trace, slice);
}

uint32_t ky_snapshot_next(const struct ky_trace *trace, uint32_t slice)
{
	const uint32_t category = ky_strings_find(&trace->strings, "kymo", 4);
	if (!category)
		return KY_NONE;
	for (; slice < trace->slices.rows.count; slice++) {
		if (trace->slices.category[slice] == category && is_snapshot(trace, slice))
			return slice;
	}
	return KY_NONE;
}

const char *ky_snapshot_text(const struct ky_trace *trace, uint32_t slice, const char *key)
{
	const uint32_t arg = find_arg(trace, slice, key);
	return arg != KY_NONE && trace->args.type[arg] == KY_ARG_STRING
		       ? ky_text_of(trace, (uint32_t)trace->args.value[arg])
		       : NULL;
}

int64_t ky_snapshot_number(const struct ky_trace *trace, uint32_t slice, const char *key)
{
	const uint32_t arg = find_arg(trace, slice, key);
	const bool is_number = arg != KY_NONE && (trace->args.type[arg] == KY_ARG_INT ||
						  trace->args.type[arg] == KY_ARG_UINT);
	return is_number ? (int64_t)trace->args.value[arg] : -1;
}

/* "http.c:112", "http.c:31, inlined" or "libc.so.6" */
static void take_place(struct ky_snapshot_frame *frame, const char *text, size_t bytes)
{
	const char *const end = text + bytes;
	const char *colon = NULL;
	for (const char *at = text; at + 1 < end; at++)
		if (*at == ':' && at[1] >= '0' && at[1] <= '9')
			colon = at;
	if (!colon) {
		frame->module = text;
		frame->module_bytes = bytes;
		return;
	}
	frame->file = text;
	frame->file_bytes = (size_t)(colon - text);
	for (const char *at = colon + 1; at < end && *at >= '0' && *at <= '9'; at++)
		frame->number = frame->number * 10 + (uint32_t)(*at - '0');
}

bool ky_snapshot_frame(const char **stack, struct ky_snapshot_frame *frame)
{
	const char *const line = *stack + strspn(*stack, "\n");
	const size_t bytes = strcspn(line, "\n");
	*frame = (struct ky_snapshot_frame){
		.line = line, .line_bytes = bytes, .name = line, .name_bytes = bytes};
	*stack = line + bytes;
	for (size_t at = bytes; at > 1 && line[bytes - 1] == ')' && !frame->file && !frame->module;
	     at--) {
		if (line[at - 1] != '(' || line[at - 2] != ' ')
			continue;
		frame->name_bytes = at - 2;
		take_place(frame, line + at, bytes - at - 1);
	}
	return bytes != 0;
}
