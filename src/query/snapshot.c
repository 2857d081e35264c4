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
