/* SPDX-License-Identifier: MIT */
/*
 * json_state.c: the phase T as Perfetto uses it: a state of a thread, with its duration. They are
 * kept until all is read, since the tables of states are in the order of time, and then put.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"

#include <errno.h>
#include <stdlib.h>

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
