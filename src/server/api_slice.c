/* SPDX-License-Identifier: MIT */
/*
 * api_slice.c: the part of api/event that only slices have. A pass over one column finds children and flows, in some
 * milliseconds for ten million rows; an index of all parents would take eight bytes per slice for a rare request.
 */
#include "server/api.h"

#include "model/index.h"
#include "query/filter.h"

#include <string.h>

#define CHILDREN_SHOWN 200u
#define PARENTS_SHOWN 500u
#define FLOWS_SHOWN 200u
#define ARGS_SHOWN 2000u
#define ARG_BYTES_MAX 65536u

/* ---- arguments ---- */

static const char *type_name(uint8_t type)
{
	static const char *const names[] = {"null", "int",     "int",    "real",
					    "bool", "pointer", "string", "json"};
	return type < sizeof(names) / sizeof(names[0]) ? names[type] : "null";
}

static void add_arg(struct ky_json_out *json, const struct ky_trace *trace, uint32_t arg)
{
	char room[KY_ARG_ROOM];
	size_t bytes;
	const char *const text = ky_api_text_arg(trace, arg, room, &bytes);
	const char *const key = ky_api_text_arg_key(trace, arg);
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_string(json, "key", key, strnlen(key, KY_NAME_BYTES_MAX));
	ky_json_out_text(json, "type", type_name(trace->args.type[arg]));
	ky_json_out_string(json, "value", text, bytes < ARG_BYTES_MAX ? bytes : ARG_BYTES_MAX);
	ky_json_out_end(json, '}');
}

static void add_args(struct ky_json_out *json, const struct ky_trace *trace, uint32_t set)
{
	const uint32_t end = ky_arg_set_end(trace, set);
	uint32_t shown = 0;
	ky_json_out_begin(json, "args", '[');
	for (uint32_t i = ky_arg_set_first(trace, set); i < end && shown < ARGS_SHOWN; i++) {
		if (ky_api_text_is_source(ky_api_text_arg_key(trace, i)))
			continue;
		add_arg(json, trace, i);
		shown++;
	}
	ky_json_out_end(json, ']');
}

/* ---- source ---- */

/* Return an argument of the set, or KY_NONE. */
static uint32_t find_arg(const struct ky_trace *trace, uint32_t set, const char *key)
{
	for (uint32_t i = ky_arg_set_first(trace, set); i < ky_arg_set_end(trace, set); i++) {
		if (strcmp(ky_api_text_arg_key(trace, i), key) == 0)
			return i;
	}
	return KY_NONE;
}

static void add_arg_text(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
			 uint32_t arg)
{
	char room[KY_ARG_ROOM];
	size_t bytes = 0;
	const char *const text = arg == KY_NONE ? "" : ky_api_text_arg(trace, arg, room, &bytes);
	ky_json_out_string(json, key, text, bytes < KY_NAME_BYTES_MAX ? bytes : KY_NAME_BYTES_MAX);
}

/* The keys of kymo and Perfetto, Perfetto's typed events, Chrome's tasks now and formerly. */
static const struct {
	const char *file, *line, *function;
} sources[] = {
	{"source.file_name", "source.line_number", "source.function_name"},
	{"source_location.file_name", "source_location.line_number",
	 "source_location.function_name"},
	{"task.posted_from.file_name", "task.posted_from.line_number",
	 "task.posted_from.function_name"},
	{"src_file", "src_line", "src_func"},
};

static void add_source(struct ky_json_out *json, const struct ky_trace *trace, uint32_t set)
{
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		const uint32_t file = find_arg(trace, set, sources[i].file);
		const uint32_t function = find_arg(trace, set, sources[i].function);
		if (file == KY_NONE && function == KY_NONE)
			continue;
		const uint32_t line = find_arg(trace, set, sources[i].line);
		const bool known = line != KY_NONE && trace->args.type[line] <= KY_ARG_UINT;
		ky_json_out_begin(json, "source", '{');
		add_arg_text(json, "file", trace, file);
		ky_json_out_uint(json, "line", known ? (uint32_t)trace->args.value[line] : 0);
		add_arg_text(json, "function", trace, function);
		ky_json_out_end(json, '}');
		return;
	}
	ky_json_out_null(json, "source");
}

/* ---- relatives ---- */

struct children {
	uint32_t rows[CHILDREN_SHOWN]; /* the first ones */
	uint64_t count;
	int64_t busy_ns; /* their share of the parent's time */
};

static int64_t end_of(const struct ky_trace *trace, uint32_t slice)
{
	const int64_t dur = trace->slices.dur[slice];
	return dur < 0 ? trace->end_ns : ky_add_clamped(trace->slices.ts[slice], dur);
}

/* Children begin within the slice, so they are among the rows after it up to its end. */
static void find_children(struct children *children, const struct ky_trace *trace, uint32_t slice)
{
	const struct ky_slices *const slices = &trace->slices;
	const int64_t end = end_of(trace, slice);
	const uint32_t last = ky_index_time(slices->ts, slices->rows.count, ky_add_clamped(end, 1));
	children->count = 0;
	children->busy_ns = 0;
	for (uint32_t i = slice + 1; i < last; i++) {
		if (slices->parent[i] != slice)
			continue;
		if (children->count < CHILDREN_SHOWN)
			children->rows[children->count] = i;
		children->count++;
		if (slices->kind[i] == KY_SLICE_INSTANT)
			continue;
		const int64_t till = end_of(trace, i) < end ? end_of(trace, i) : end;
		if (till > slices->ts[i])
			children->busy_ns = ky_add_clamped(children->busy_ns, till - slices->ts[i]);
	}
}

static void add_children(struct ky_json_out *json, const struct ky_api *api, uint32_t slice)
{
	const struct ky_trace *const trace = api->view->trace;
	struct children children;
	find_children(&children, trace, slice);
	if (trace->slices.kind[slice] == KY_SLICE_INSTANT)
		ky_json_out_null(json, "self");
	else
		ky_json_out_int(json, "self",
				ky_sub_clamped(ky_sub_clamped(end_of(trace, slice),
							      trace->slices.ts[slice]),
					       children.busy_ns));
	ky_json_out_uint(json, "childrenCount", children.count);
	ky_json_out_begin(json, "children", '[');
	for (uint32_t i = 0; i < CHILDREN_SHOWN && i < children.count; i++)
		ky_api_event_ref(json, NULL, api, KY_VIEW_SLICES, children.rows[i]);
	ky_json_out_end(json, ']');
}

static void add_parents(struct ky_json_out *json, const struct ky_api *api, uint32_t slice)
{
	const uint32_t *const parent = api->view->trace->slices.parent;
	ky_json_out_begin(json, "parents", '[');
	for (uint32_t i = 0; i < PARENTS_SHOWN && parent[slice] < slice; i++) {
		slice = parent[slice];
		ky_api_event_ref(json, NULL, api, KY_VIEW_SLICES, slice);
	}
	ky_json_out_end(json, ']');
}

/* ---- flows ---- */

/* Add the flows that have one end at the slice; here and there are the columns of both ends. */
static void add_flows(struct ky_json_out *json, const char *key, const struct ky_api *api,
		      uint32_t slice, const uint32_t *here, const uint32_t *there,
		      const char *other)
{
	const struct ky_trace *const trace = api->view->trace;
	const struct ky_flows *const flows = &trace->flows;
	uint32_t shown = 0;
	ky_json_out_begin(json, key, '[');
	for (uint32_t i = 0; i < flows->rows.count && shown < FLOWS_SHOWN; i++) {
		if (here[i] != slice || there[i] >= trace->slices.rows.count)
			continue;
		ky_json_out_begin(json, NULL, '{');
		ky_api_text(json, "name", trace,
			    flows->name[i] ? flows->name[i] : flows->category[i]);
		ky_api_event_ref(json, other, api, KY_VIEW_SLICES, there[i]);
		ky_json_out_end(json, '}');
		shown++;
	}
	ky_json_out_end(json, ']');
}

void ky_api_slice(struct ky_json_out *json, const struct ky_api *api, uint32_t slice)
{
	const struct ky_trace *const trace = api->view->trace;
	const uint32_t set = trace->slices.args[slice];
	add_children(json, api, slice);
	add_parents(json, api, slice);
	add_args(json, trace, set);
	add_source(json, trace, set);
	add_flows(json, "flowsIn", api, slice, trace->flows.in, trace->flows.out, "from");
	add_flows(json, "flowsOut", api, slice, trace->flows.out, trace->flows.in, "to");
}
