/* SPDX-License-Identifier: MIT */
/*
 * json_args.c: the arguments of an event as one flat set, with Perfetto's keys: {"a": {"b": [7]}} is
 * "args.a.b[0]" = 7. Nulls, empty objects and empty arrays leave nothing.
 *
 * Keys at the top have a cache of their own, from the key as it is in the text to the full one. Deeper ones are put
 * together in json->path. Both depth and length are bounded: anything beyond is left out and counted.
 *
 * And the phases whose arguments are not just arguments: C, whose members are counters; M, which names and orders
 * processes and threads; and T as Perfetto uses it, a state of a thread with its duration. States are kept until all is
 * read, since the tables of states are in the order of time, and then put.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 48u
#define PATH_PLAIN 128u /* longer keys only as long as strings are in proportion to the input */
#define STRINGS_FREE (16u << 20)
#define STRINGS_PER_BYTE 8u

struct args_walk {
	struct ky_json *json;
	const uint8_t *end;
	uint64_t position;
};

static const uint8_t *value(struct args_walk *walk, const uint8_t *at, uint32_t path,
			    uint32_t depth, uint32_t key);

/* The number of the key whose path is there; made only now that there is a value for it. */
static uint32_t path_key(struct args_walk *walk, uint32_t path, uint32_t key)
{
	return key ? key : ky_json_string_of(walk->json, (const uint8_t *)walk->json->path, path);
}

/* Room for bytes more behind the path. */
static bool path_fits(struct args_walk *walk, uint32_t path, size_t bytes, uint32_t depth)
{
	const uint64_t used = walk->json->trace->strings.bytes_used;
	const bool small = path + bytes < PATH_PLAIN ||
			   used < STRINGS_FREE + walk->position * STRINGS_PER_BYTE;
	if (depth < DEPTH_MAX && bytes < KY_JSON_PATH_BYTES - path && small)
		return true;
	ky_problem(walk->json->trace, "json_args_too_deep", KY_DATA_LOSS, walk->position,
		   "arguments nested deeper than %u, or with a key longer than %u bytes, were left "
		   "out",
		   DEPTH_MAX, small ? KY_JSON_PATH_BYTES : PATH_PLAIN);
	return false;
}

/* "args.KEY" for a key at the top, without escapes. */
static uint32_t top_key(struct args_walk *walk, const struct ky_json_text *text)
{
	struct ky_json *json = walk->json;
	const uint64_t head = ky_json_head(text->at, text->bytes),
		       tail = ky_json_tail(text->at, text->bytes);
	struct ky_json_cached *slot =
		&json->keys[ky_json_slot(head, tail, text->bytes) % KY_JSON_KEYS];
	if (slot->string && slot->head == head && slot->tail == tail && slot->bytes == text->bytes)
		return slot->string;
	memcpy(json->path + 4, ".", 1);
	memcpy(json->path + 5, text->at, text->bytes);
	const uint32_t string =
		ky_json_string_of(json, (const uint8_t *)json->path, 5 + text->bytes);
	if (text->bytes <= 16)
		*slot = (struct ky_json_cached){head, tail, (uint32_t)text->bytes, string};
	return string;
}

static const uint8_t *member(struct args_walk *walk, const struct ky_json_text *text,
			     const uint8_t *at, uint32_t path, uint32_t depth)
{
	enum ky_json_fault fault;
	char *to = walk->json->path + path;

	if (!path_fits(walk, path, text->bytes + 1, depth))
		return ky_json_skip(at, walk->end, &fault);
	if (path == 4 && !text->escapes && *at != '{' && *at != '[')
		return value(walk, at, path, depth, *at == 'n' ? 0 : top_key(walk, text));
	*to++ = '.';
	size_t bytes = text->bytes;
	if (text->escapes)
		bytes = ky_json_unescape(text, to);
	else
		memcpy(to, text->at, bytes);
	return value(walk, at, path + 1 + (uint32_t)bytes, depth, 0);
}

static const uint8_t *object(struct args_walk *walk, const uint8_t *at, uint32_t path,
			     uint32_t depth)
{
	struct ky_json_text text;

	for (at++;;) {
		while (*at == ',' || (*at <= ' ' && at < walk->end))
			at++;
		if (*at == '}')
			return at + 1;
		if (*at != '"')
			return NULL;
		at = ky_json_scan_string(at + 1, walk->end, &text);
		if (!at)
			return NULL;
		if (*at != ':')
			at = ky_json_space(at);
		if (*at != ':')
			return NULL;
		at = ky_json_space(at + 1);
		at = member(walk, &text, at, path, depth);
		if (!at)
			return NULL;
	}
}

static const uint8_t *array(struct args_walk *walk, const uint8_t *at, uint32_t path,
			    uint32_t depth)
{
	enum ky_json_fault fault;
	uint32_t index = 0;

	for (at++;; index++) {
		while (*at == ',' || (*at <= ' ' && at < walk->end))
			at++;
		if (*at == ']')
			return at + 1;
		if (at >= walk->end)
			return NULL;
		if (path_fits(walk, path, 12, depth)) {
			const int bytes = snprintf(walk->json->path + path, 13, "[%u]", index);
			at = value(walk, at, path + (uint32_t)bytes, depth, 0);
		} else {
			at = ky_json_skip(at, walk->end, &fault);
		}
		if (!at)
			return NULL;
	}
}

static const uint8_t *string(struct args_walk *walk, const uint8_t *at, uint32_t key)
{
	struct ky_json_text text;
	struct ky_trace *trace = walk->json->trace;

	at = ky_json_scan_string(at + 1, walk->end, &text);
	if (!at)
		return NULL;
	uint32_t number = ky_json_text_string(walk->json, &text);
	if (!number)
		number = ky_json_string_of(walk->json, (const uint8_t *)"", 0);
	ky_arg_string(trace, key, number);
	return at;
}

static const uint8_t *scalar(struct args_walk *walk, const uint8_t *at, uint32_t key)
{
	struct ky_trace *trace = walk->json->trace;
	struct ky_json_number number;
	enum ky_json_fault fault;

	if (*at == 't' || *at == 'f') {
		ky_arg_bool(trace, key, *at == 't');
		return ky_json_skip(at, walk->end, &fault);
	}
	const uint8_t *stop = ky_json_number(at, walk->end, &number, &fault);
	if (!stop)
		return ky_json_skip(at, walk->end, &fault);
	if (number.integer)
		ky_arg_int(trace, key, number.i);
	else
		ky_arg_real(trace, key, number.d);
	return stop;
}

/* key is the number of the full key where that is known, else the path is. */
static const uint8_t *value(struct args_walk *walk, const uint8_t *at, uint32_t path,
			    uint32_t depth, uint32_t key)
{
	enum ky_json_fault fault;

	if (*at == '{')
		return object(walk, at, path, depth + 1);
	if (*at == '[')
		return array(walk, at, path, depth + 1);
	if (*at == 'n')
		return ky_json_skip(at, walk->end, &fault);
	if (*at == '"')
		return string(walk, at, path_key(walk, path, key));
	return scalar(walk, at, path_key(walk, path, key));
}

uint32_t ky_json_args(struct ky_json *json, const uint8_t *at, const uint8_t *end,
		      uint64_t position)
{
	struct args_walk walk = {json, end, position};

	if (!at || *at != '{' || ky_json_space(at + 1)[0] == '}')
		return 0;
	memcpy(json->path, "args", 4);
	ky_args_begin(json->trace);
	if (!object(&walk, at, 4, 0))
		ky_problem(json->trace, "json_parser_failure", KY_ERROR, position,
			   "the arguments of the event are no JSON");
	return ky_args_end(json->trace);
}

/* ---- counters and names ---- */

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
	static const char *const keys[] = {"boottime_ns", "realtime_ns", "monotonic_ns"};
	struct ky_clock_reading readings[] = {{.clock = KY_CLOCK_BOOTTIME},
					      {.clock = KY_CLOCK_REALTIME},
					      {.clock = KY_CLOCK_MONOTONIC}};
	uint32_t known = 0;
	if (json->trace->clock != KY_CLOCK_BOOTTIME ||
	    ky_clocks_known(json->trace->clocks, KY_CLOCK_REALTIME))
		return;
	for (; known < 3; known++) {
		const uint32_t node = ky_json_tree_get(&json->tree, 0, keys[known]);
		if (!ky_json_tree_int(&json->tree, node, &readings[known].ns) ||
		    readings[known].ns < 0)
			break;
	}
	/* A file that was made of another trace may not have the last. */
	if (known >= 2)
		ky_put_clocks(json->trace, readings[0].ns, readings, known);
}

/* Note the sum of losses, which kymo's recorder writes as a label: "N events lost". */
static void add_label(struct ky_json *json, uint32_t node)
{
	const uint32_t string = ky_json_node_string(json, &json->tree, node);
	const char *text = string ? ky_text_of(json->trace, string) : "";
	char *rest;
	const uint64_t events = *text >= '0' && *text <= '9' ? strtoull(text, &rest, 10) : 0;
	if (events && strcmp(rest, " " KY_LOSS_MARKER) == 0 &&
	    events <= UINT64_MAX - json->lost_labelled)
		json->lost_labelled += events;
}

void ky_json_losses_finish(struct ky_json *json)
{
	if (json->lost_labelled > json->lost_marked)
		ky_put_lost(json->trace, KY_TIME_NONE, KY_NONE, KY_NONE,
			    json->lost_labelled - json->lost_marked, KY_LOSS_NO_RING);
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
	} else if (strcmp(name, KY_JSON_PROCESS_LABELS) == 0) {
		add_label(json, ky_json_tree_get(tree, 0, "labels"));
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

KY_ORDER(compare, struct ky_state_span,
	 KY_COMPARE_THEN(a->ts, b->ts, KY_COMPARE(a->order, b->order)))

void ky_json_states_finish(struct ky_json *json)
{
	if (json->states_count)
		qsort(json->states, (size_t)json->states_count, sizeof(*json->states), compare);
	for (uint64_t i = 0; i < json->states_count; i++)
		ky_put_state_span(json->trace, &json->states[i]);
	KY_ARRAY_FREE(json->states, json->states_room);
}
