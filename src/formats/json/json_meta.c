/* SPDX-License-Identifier: MIT */
/*
 * json_meta.c: the phases whose arguments are not just arguments: C, whose members are counters; M, which names and
 * orders processes and threads; and T as Perfetto uses it, a state of a thread with its duration. States are kept until
 * all is read, since the tables of states are in the order of time, and then put.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"

#include <errno.h>
#include <stdlib.h>

/* Return the track of "NAME[ id: ID] SERIES". */
static uint32_t counter_track(struct ky_json *json, const struct ky_json_event *event,
			      uint32_t process, uint32_t series)
{
	struct ky_strings *strings = &json->trace->strings;
	const bool with_id = (event->has & KY_JSON_HAS_ID) && event->id.string && event->id.bytes;
	const size_t bytes = (size_t)ky_strings_bytes(strings, event->name) +
			     ky_strings_bytes(strings, series) + event->id.bytes + 8;
	char *text = ky_json_scratch(json, bytes);
	char *to = text;
	bool made;

	if (!text)
		return KY_NONE;
	if (event->name)
		to = mempcpy(to, ky_strings_text(strings, event->name),
			     ky_strings_bytes(strings, event->name));
	if (with_id) {
		to = mempcpy(to, " id: ", 5);
		to = mempcpy(to, event->id.at, event->id.bytes);
	}
	*to++ = ' ';
	if (series)
		to = mempcpy(to, ky_strings_text(strings, series),
			     ky_strings_bytes(strings, series));
	const uint32_t name = ky_json_string_of(json, (uint8_t *)text, (size_t)(to - text));
	uint64_t *track = ky_pair_map_add(&json->counter_tracks, process, name, &made);
	if (!track)
		return KY_NONE;
	if (made) {
		const struct ky_track_spec spec = {
			.kind = KY_TRACK_PROCESS_COUNTER,
			.owner = process,
			.name = name,
			.type = ky_string_z(json->trace, "json_counter"),
		};
		*track = ky_track(json->trace, &spec);
	}
	return (uint32_t)*track;
}

void ky_json_counters_put(struct ky_json *json, const struct ky_json_event *event,
			  const uint8_t *end)
{
	struct ky_json_tree *tree = &json->tree;
	const uint32_t thread = ky_json_thread_of(json, event);
	const uint32_t process = json->trace->threads.process[thread];
	struct ky_json_number number;

	if (!event->args || *event->args != '{' ||
	    ky_json_tree_parse(tree, event->args, end) != 0) {
		ky_json_fail(json, event, "a counter needs args");
		return;
	}
	for (uint32_t key = 1; key + 1 < ky_json_tree_end(tree, 0);
	     key = tree->nodes[key + 1].next) {
		if (!ky_json_tree_number(tree, key + 1, &number)) {
			ky_json_fail(json, event, "a value that is no number");
			continue;
		}
		const uint32_t series = ky_json_node_string(json, tree, key);
		const uint32_t track = counter_track(json, event, process, series);
		if (track != KY_NONE)
			ky_put_counter(json->trace, event->ts, track, number.d);
	}
}

static int32_t clamp32(int64_t value)
{
	if (value > INT32_MAX)
		return INT32_MAX;
	return value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

/*
 * One moment in three clocks, which kymo's recorder writes beside the name of the process (docs/formats/json.md). Of a
 * file that was put together from several, the first holds for all: others may be of another machine.
 */
static void put_clocks(struct ky_json *json)
{
	static const char *const keys[] = {"boottime_ns", "monotonic_ns", "realtime_ns"};
	struct ky_clock_reading readings[] = {{.clock = KY_CLOCK_BOOTTIME},
					      {.clock = KY_CLOCK_MONOTONIC},
					      {.clock = KY_CLOCK_REALTIME}};
	if (json->trace->clock != KY_CLOCK_BOOTTIME ||
	    ky_clocks_known(json->trace->clocks, KY_CLOCK_REALTIME))
		return;
	for (unsigned i = 0; i < 3; i++) {
		const uint32_t node = ky_json_tree_get(&json->tree, 0, keys[i]);
		if (!ky_json_tree_int(&json->tree, node, &readings[i].ns) || readings[i].ns < 0)
			return;
	}
	ky_put_clocks(json->trace, readings[0].ns, readings, 3);
}

void ky_json_metadata_put(struct ky_json *json, const struct ky_json_event *event,
			  const uint8_t *end)
{
	struct ky_trace *trace = json->trace;
	struct ky_json_tree *tree = &json->tree;
	const char *name = event->name ? ky_text_of(trace, event->name) : "";
	int64_t index;

	if (!event->args || *event->args != '{' || ky_json_tree_parse(tree, event->args, end) != 0)
		return;
	const uint32_t index_node = ky_json_tree_get(tree, 0, "sort_index");
	const uint32_t name_node = ky_json_tree_get(tree, 0, "name");
	if (strcmp(name, KY_JSON_PROCESS_NAME) == 0) {
		const uint32_t text = ky_json_node_string(json, tree, name_node);
		if (text)
			ky_process_name(trace, ky_process(trace, ky_json_pid(event->pid)), text,
					KY_NAME_TRACE);
		else
			ky_json_fail(json, event, "process_name without a name");
		put_clocks(json);
	} else if (strcmp(name, KY_JSON_THREAD_NAME) == 0) {
		const uint32_t text = ky_json_node_string(json, tree, name_node);
		if (text)
			ky_thread_name(trace, ky_json_thread_of(json, event), text, KY_NAME_TRACE);
		else
			ky_json_fail(json, event, "thread_name without a name");
	} else if (strcmp(name, KY_JSON_PROCESS_SORT_INDEX) == 0) {
		const uint32_t process = ky_process(trace, ky_json_pid(event->pid));
		if (ky_json_tree_int(tree, index_node, &index))
			trace->processes.sort_index[process] = clamp32(index);
	} else if (strcmp(name, KY_JSON_THREAD_SORT_INDEX) == 0) {
		const uint32_t thread = ky_json_thread_of(json, event);
		if (ky_json_tree_int(tree, index_node, &index))
			trace->threads.sort_index[thread] = clamp32(index);
	} else {
		(void)ky_json_thread_of(json, event);
	}
}

/* ---- states of threads ---- */

void ky_json_state_put(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end)
{
	struct ky_json_tree *tree = &json->tree;
	struct ky_state_span span = {
		.thread = ky_json_thread_of(json, event),
		.ts = event->ts,
		.dur = event->dur,
		.state = event->name,
		.cpu = KY_NONE,
		.io_wait = -1,
	};
	int64_t number;

	if (!(event->has & KY_JSON_HAS_DUR) || event->dur < 0) {
		ky_json_fail(json, event, "a thread state needs a dur");
		return;
	}
	if (event->args && *event->args == '{' && ky_json_tree_parse(tree, event->args, end) == 0) {
		if (ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "cpu"), &number) &&
		    number >= 0 && number < 65536)
			span.cpu = (uint32_t)number;
		if (ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "io_wait"), &number))
			span.io_wait = number != 0;
		span.blocked_function = ky_json_node_string(
			json, tree, ky_json_tree_get(tree, 0, "blocked_function"));
	}
	if (!KY_ARRAY_GROW_ZERO(json->states, json->states_room, json->states_count + 1)) {
		json->trace->error = -ENOMEM;
		return;
	}
	span.order = json->states_count;
	json->states[json->states_count++] = span;
}

static int compare(const void *a, const void *b)
{
	const struct ky_state_span *first = a, *second = b;
	if (first->ts != second->ts)
		return first->ts < second->ts ? -1 : 1;
	return first->order < second->order ? -1 : 1;
}

void ky_json_states_finish(struct ky_json *json)
{
	if (json->states_count)
		qsort(json->states, (size_t)json->states_count, sizeof(*json->states), compare);
	for (uint64_t i = 0; i < json->states_count; i++)
		ky_put_state_span(json->trace, &json->states[i]);
	KY_ARRAY_FREE(json->states, json->states_room);
}
