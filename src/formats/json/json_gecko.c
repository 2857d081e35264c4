/* SPDX-License-Identifier: MIT */
/*
 * json_gecko.c: a profile of Firefox, as its profiler saves it: per thread tables of columns.
 *
 *   samples.stack ─▶ stackTable {prefix, frame} ─▶ frameTable.func ─▶ funcTable.name ─▶ stringArray
 *   markers {name, phase, startTime, endTime, category, data}       times are milliseconds
 *
 * Markers become slices: phase 0 is an instant, 1 an interval, 2 a begin, 3 an end.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"

#include <errno.h>

/* A column: the nodes of an array's elements, by row. */
struct gecko_column {
	uint32_t at, end;
};

struct thread {
	struct ky_json *json;
	const struct ky_json_tree *tree;
	uint32_t *strings; /* by index of stringArray */
	uint64_t strings_count, strings_room;
	uint32_t *callsites; /* by row of stackTable */
	uint64_t callsites_count, callsites_room;
	uint32_t thread, track;
};

struct gecko {
	struct ky_json *json;
	struct ky_json_tree tree; /* of a thread */
	uint32_t *categories;
	uint64_t categories_count, categories_room;
};

static uint32_t member(const struct ky_json_tree *tree, uint32_t object, const char *key)
{
	return object == KY_JSON_NO_NODE ? KY_JSON_NO_NODE : ky_json_tree_get(tree, object, key);
}

static struct gecko_column column_of(const struct ky_json_tree *tree, uint32_t table,
				     const char *key)
{
	const uint32_t node = key ? member(tree, table, key) : table;
	if (node == KY_JSON_NO_NODE || tree->nodes[node].type != KY_JSON_ARRAY)
		return (struct gecko_column){0, 0};
	return (struct gecko_column){node + 1, tree->nodes[node].next};
}

/* Return the column's next node, KY_JSON_NO_NODE behind its end. */
static uint32_t take(const struct ky_json_tree *tree, struct gecko_column *column)
{
	const uint32_t node = column->at;
	if (node >= column->end)
		return KY_JSON_NO_NODE;
	column->at = tree->nodes[node].next;
	return node;
}

static bool append(struct ky_json *json, uint32_t **items, uint64_t *count, uint64_t *room,
		   uint32_t item)
{
	if (!KY_ARRAY_GROW_ZERO(*items, *room, *count + 1)) {
		json->trace->error = -ENOMEM;
		return false;
	}
	(*items)[(*count)++] = item;
	return true;
}

/* Return an element of a list by the index that a node holds, or none. */
static uint32_t item_of(const struct ky_json_tree *tree, uint32_t node, const uint32_t *items,
			uint64_t count, uint32_t none)
{
	int64_t index;
	if (!ky_json_tree_int(tree, node, &index) || index < 0 || (uint64_t)index >= count)
		return none;
	return items[index];
}

static bool time_of(const struct ky_json_tree *tree, uint32_t node, int64_t *ns)
{
	return ky_json_tree_decimal(tree, node, 6, ns) && *ns >= 0;
}

static void read_strings(struct thread *thread)
{
	const struct ky_json_tree *tree = thread->tree;
	struct gecko_column column =
		column_of(tree, ky_json_tree_get(tree, 0, "stringArray"), NULL);
	uint32_t node;

	if (!column.end)
		column = column_of(tree, ky_json_tree_get(tree, 0, "stringTable"), NULL);
	while ((node = take(thread->tree, &column)) != KY_JSON_NO_NODE)
		if (!append(thread->json, &thread->strings, &thread->strings_count,
			    &thread->strings_room,
			    ky_json_node_string(thread->json, thread->tree, node)))
			return;
}

/* Return a list made of a column of indices into another list. */
static uint32_t *follow(struct thread *thread, uint32_t table, const char *key,
			const uint32_t *items, uint64_t items_count, uint64_t *count,
			uint64_t *room)
{
	struct gecko_column column = column_of(thread->tree, table, key);
	uint32_t *list = NULL;
	uint32_t node;

	*count = 0;
	*room = 0;
	while ((node = take(thread->tree, &column)) != KY_JSON_NO_NODE)
		if (!append(thread->json, &list, count, room,
			    item_of(thread->tree, node, items, items_count, 0)))
			break;
	return list;
}

static void read_stacks(struct thread *thread)
{
	const struct ky_json_tree *tree = thread->tree;
	struct ky_trace *trace = thread->json->trace;
	uint64_t funcs_count, funcs_room, frames_count, frames_room;
	uint32_t *funcs = follow(thread, ky_json_tree_get(tree, 0, "funcTable"), "name",
				 thread->strings, thread->strings_count, &funcs_count, &funcs_room);
	uint32_t *frames = follow(thread, ky_json_tree_get(tree, 0, "frameTable"), "func", funcs,
				  funcs_count, &frames_count, &frames_room);
	const uint32_t stacks = ky_json_tree_get(tree, 0, "stackTable");
	struct gecko_column prefix = column_of(tree, stacks, "prefix"),
			    frame = column_of(tree, stacks, "frame");
	uint32_t node;

	while ((node = take(tree, &frame)) != KY_JSON_NO_NODE) {
		const uint32_t name = item_of(tree, node, frames, frames_count, 0);
		const uint32_t parent = item_of(tree, take(tree, &prefix), thread->callsites,
						thread->callsites_count, KY_NONE);
		if (!append(thread->json, &thread->callsites, &thread->callsites_count,
			    &thread->callsites_room,
			    ky_callsite(trace, parent, ky_frame(trace, KY_NONE, 0, name, 0, 0))))
			break;
	}
	KY_ARRAY_FREE(funcs, funcs_room);
	KY_ARRAY_FREE(frames, frames_room);
}

static void read_samples(struct thread *thread)
{
	const struct ky_json_tree *tree = thread->tree;
	const uint32_t samples = ky_json_tree_get(tree, 0, "samples");
	struct gecko_column stack = column_of(tree, samples, "stack"),
			    time = column_of(tree, samples, "time"),
			    delta = column_of(tree, samples, "timeDeltas");
	const uint32_t what = ky_string_z(thread->json->trace, "gecko");
	int64_t ts = 0, step;
	uint32_t node;

	while ((node = take(tree, &stack)) != KY_JSON_NO_NODE) {
		if (time.end ? !time_of(tree, take(tree, &time), &ts)
			     : !time_of(tree, take(tree, &delta), &step))
			continue;
		if (!time.end && __builtin_add_overflow(ts, step, &ts))
			return;
		const uint32_t callsite =
			item_of(tree, node, thread->callsites, thread->callsites_count, KY_NONE);
		if (callsite != KY_NONE)
			ky_put_sample(thread->json->trace, ts, thread->thread, callsite, KY_NONE,
				      KY_CPU_MODE_UNKNOWN, 1, what);
	}
}

static void put_marker(struct thread *thread, int64_t phase, uint32_t begin, uint32_t end,
		       uint32_t category, uint32_t name, uint32_t args)
{
	struct ky_trace *trace = thread->json->trace;
	int64_t ts = 0, stop = 0;
	const bool has_begin = time_of(thread->tree, begin, &ts);
	const bool has_end = time_of(thread->tree, end, &stop);

	if (phase == 0 && has_begin)
		ky_put_instant(trace, ts, thread->track, category, name, args);
	else if (phase == 1 && has_begin && has_end && stop >= ts)
		ky_put_complete(trace, ts, stop - ts, thread->track, category, name, args);
	else if (phase == 2 && has_begin)
		ky_put_begin(trace, ts, thread->track, category, name, args);
	else if (phase == 3 && has_end)
		ky_put_end(trace, stop, thread->track, category, name, args);
	else
		ky_problem(trace, "gecko_marker_invalid", KY_ERROR, thread->json->input->position,
			   "a marker without a phase or the times that its phase needs");
}

static void read_markers(const struct gecko *gecko, struct thread *thread)
{
	const struct ky_json_tree *tree = thread->tree;
	const uint32_t markers = ky_json_tree_get(tree, 0, "markers");
	struct gecko_column name = column_of(tree, markers, "name"),
			    phase = column_of(tree, markers, "phase"),
			    begin = column_of(tree, markers, "startTime"),
			    end = column_of(tree, markers, "endTime"),
			    category = column_of(tree, markers, "category"),
			    data = column_of(tree, markers, "data");
	uint32_t node;

	while ((node = take(tree, &name)) != KY_JSON_NO_NODE) {
		const uint32_t text =
			item_of(tree, node, thread->strings, thread->strings_count, 0);
		const uint32_t group = item_of(tree, take(tree, &category), gecko->categories,
					       gecko->categories_count, 0);
		const uint32_t with = take(tree, &data);
		int64_t kind;
		if (!ky_json_tree_int(tree, take(tree, &phase), &kind))
			kind = -1;
		const uint32_t args =
			with ? ky_json_args(thread->json, tree->text + tree->nodes[with].at,
					    thread->json->input->end, thread->json->input->position)
			     : 0;
		const uint32_t from = take(tree, &begin), to = take(tree, &end);
		put_marker(thread, kind, from, to, group, text, args);
	}
}

static void read_thread(struct gecko *gecko)
{
	const struct ky_json_tree *tree = &gecko->tree;
	struct ky_trace *trace = gecko->json->trace;
	struct thread thread = {.json = gecko->json, .tree = tree};
	int64_t tid = 0, pid = 0;

	(void)ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "tid"), &tid);
	if (!ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "pid"), &pid))
		pid = tid;
	thread.thread = ky_thread(trace, ky_json_pid(pid), ky_json_pid(tid));
	thread.track = ky_track_of_thread(trace, thread.thread);
	ky_thread_name(trace, thread.thread,
		       ky_json_node_string(gecko->json, tree, ky_json_tree_get(tree, 0, "name")),
		       KY_NAME_TRACE);
	ky_process_name(
		trace, ky_process(trace, ky_json_pid(pid)),
		ky_json_node_string(gecko->json, tree, ky_json_tree_get(tree, 0, "processName")),
		KY_NAME_TRACE);
	read_strings(&thread);
	read_stacks(&thread);
	read_samples(&thread);
	read_markers(gecko, &thread);
	KY_ARRAY_FREE(thread.strings, thread.strings_room);
	KY_ARRAY_FREE(thread.callsites, thread.callsites_room);
}

/* meta.categories: markers name them by their place. */
static bool read_meta(struct gecko *gecko)
{
	struct ky_input *input = gecko->json->input;
	struct ky_json_tree *tree = &gecko->json->tree;
	const uint8_t *stop = ky_json_feed_value(input, NULL);
	uint32_t node;

	if (!stop)
		return false;
	if (ky_json_tree_parse(tree, input->at, input->end) == 0) {
		struct gecko_column column =
			column_of(tree, ky_json_tree_get(tree, 0, "categories"), NULL);
		while ((node = take(tree, &column)) != KY_JSON_NO_NODE)
			if (!append(gecko->json, &gecko->categories, &gecko->categories_count,
				    &gecko->categories_room,
				    ky_json_node_string(gecko->json, tree,
							member(tree, node, "name"))))
				break;
	}
	ky_input_skip(input, (size_t)(stop - input->at));
	return true;
}

static bool take_thread(void *context, const uint8_t *stop)
{
	struct gecko *gecko = context;
	const struct ky_input *input = gecko->json->input;
	(void)stop;
	if (*input->at == '{' && ky_json_tree_parse(&gecko->tree, input->at, input->end) == 0) {
		gecko->json->events++;
		read_thread(gecko);
	}
	return true;
}

static bool take_member(void *context, const char *key)
{
	struct gecko *gecko = context;
	struct ky_input *input = gecko->json->input;
	if (strcmp(key, "meta") == 0 && *input->at == '{')
		return read_meta(gecko);
	if (strcmp(key, "threads") == 0 && *input->at == '[')
		return ky_json_feed_elements(input, take_thread, gecko);
	return ky_json_feed_skip(input, NULL);
}

bool ky_json_gecko_read(struct ky_json *json)
{
	struct gecko gecko = {.json = json};
	const bool whole = ky_json_feed_members(json->input, take_member, &gecko);
	ky_json_tree_free(&gecko.tree);
	KY_ARRAY_FREE(gecko.categories, gecko.categories_room);
	return whole;
}
