/* SPDX-License-Identifier: MIT */
/*
 * json_read.c: reads Chrome Trace Event JSON: an array of events, or an object that has one beside other things; and
 * profiles of Firefox and V8 (.cpuprofile), which are JSON too. json_reader.h has the map of the parts. A truncated file is read up to its
 * end: the file of a program that was killed is as good as any in the array form. Malformed elements are counted and
 * skipped.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"
#include "formats/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the array of events ---- */

static void move_to(struct ky_json *json, const uint8_t *at)
{
	ky_input_skip(json->input, (size_t)(at - json->input->at));
}

/* An element that is no event. False: nothing behind it can be read. */
static bool pass_by(struct ky_json *json, const char *what)
{
	struct ky_input *input = json->input;
	enum ky_json_fault fault;

	ky_problem(json->trace, "json_tokenizer_failure", KY_ERROR, input->position,
		   "expected an event, found %s", what);
	if (ky_json_feed_skip(input, &fault))
		return true;
	if (fault == KY_JSON_BAD)
		ky_input_skip(input, 1);
	return fault == KY_JSON_BAD;
}

/* Events as long as they are whole in the buffer; 0 at the first thing that is not. */
static int events_of_buffer(struct ky_json *json, enum ky_json_fault *fault)
{
	const uint8_t *at = json->input->at, *end = json->input->end;
	struct ky_json_event event;

	for (;;) {
		while (*at == ',' || *at == '\n' || *at == ' ' || *at == '\r' || *at == '\t')
			at++;
		if (*at != '{')
			break;
		const uint8_t *stop = ky_json_event_parse(json, at, end, &event, fault);
		if (!stop) {
			move_to(json, at);
			return '{';
		}
		event.position = json->input->position + (uint64_t)(at - json->input->at);
		ky_json_event_put(json, &event, end);
		json->elements++;
		at = stop;
	}
	move_to(json, at);
	return at < end ? *at : 0;
}

static void report_cut(struct ky_json *json, bool object, bool inside)
{
	const uint64_t at = json->input->position;

	json->cut = inside || object;
	if (inside)
		ky_problem(json->trace, "json_truncated", KY_DATA_LOSS, at,
			   "the input ends in the middle of an event");
	else if (object)
		ky_problem(json->trace, "json_truncated", KY_DATA_LOSS, at,
			   "the input ends before the array of events does");
}

/*
 * The elements of an array, whose '[' was passed; object: it is in the object form, and must end.
 * False: there is nothing behind it, or nothing that can be read.
 */
static bool read_events(struct ky_json *json, bool object)
{
	struct ky_input *input = json->input;

	for (;;) {
		enum ky_json_fault fault = KY_JSON_CUT;
		const int c = events_of_buffer(json, &fault);
		if (c == ']') {
			ky_input_skip(input, 1);
			return true;
		}
		if (c == 0 || (c == '{' && fault == KY_JSON_CUT)) {
			if (ky_json_feed_grow(input))
				continue;
			report_cut(json, object, c != 0);
			return false;
		}
		/* The object around may end although the array does not. */
		if (c == '}' && object) {
			ky_problem(json->trace, "json_tokenizer_failure", KY_ERROR, input->position,
				   "expected an event or ']', found '}'");
			return true;
		}
		json->elements++;
		if (!pass_by(json,
			     c == '{' ? "an object that is not well-formed" : "something else"))
			return false;
	}
}

/* ---- the object around it ---- */

static const uint8_t *without_mark(const uint8_t *at, size_t bytes)
{
	return bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0 ? at + 3 : at;
}

/* '[' may also begin a line of collapsed stacks, and '{' anything: so a look at what follows. */
static bool probe(const struct ky_probe *probe)
{
	const uint8_t *end = probe->data + probe->bytes;
	const uint8_t *at = ky_json_space(without_mark(probe->data, probe->bytes));

	if (at >= end || (*at != '[' && *at != '{'))
		return false;
	const uint8_t first = *at;
	for (at++; at < end && (*at <= ' ' || *at == ','); at++)
		;
	if (at >= end)
		return true;
	return first == '{' ? *at == '"' || *at == '}' : *at == '{' || *at == ']';
}

static void put_metadata(struct ky_json *json, const char *prefix, uint32_t key, uint32_t value)
{
	const struct ky_json_tree *tree = &json->tree;
	const struct ky_json_node *node = &tree->nodes[value];
	struct ky_json_number number;
	char name[128];

	snprintf(name, sizeof(name), "%s.%.*s", prefix, (int)(tree->nodes[key].bytes % 96),
		 (const char *)tree->text + tree->nodes[key].at);
	if (node->type == KY_JSON_NULL)
		return;
	if (node->type == KY_JSON_NUMBER && ky_json_tree_number(tree, value, &number) &&
	    number.integer)
		ky_put_metadata_number(json->trace, name, number.i);
	else if (node->type == KY_JSON_STRING)
		ky_put_metadata(json->trace, name, ky_json_node_string(json, tree, value));
	else
		ky_put_metadata(json->trace, name,
				ky_json_string_of(json, tree->text + node->at, node->bytes));
}

/* Put the members of an object, each as metadata of its own. */
static bool read_metadata(struct ky_json *json, const char *prefix)
{
	struct ky_input *input = json->input;
	struct ky_json_tree *tree = &json->tree;
	const uint8_t *stop = ky_json_feed_value(input, NULL);

	if (!stop)
		return false;
	if (*input->at == '{' && ky_json_tree_parse(tree, input->at, input->end) == 0)
		for (uint32_t key = 1; key + 1 < tree->nodes[0].next;
		     key = tree->nodes[key + 1].next)
			put_metadata(json, prefix, key, key + 1);
	ky_input_skip(input, (size_t)(stop - input->at));
	return true;
}

/* Take a top-level number: the trace's zero by the clock on the wall. */
static bool read_base_time(struct ky_json *json)
{
	struct ky_input *input = json->input;
	struct ky_json_number number;
	const uint8_t *stop = ky_json_feed_value(input, NULL);

	if (!stop)
		return false;
	const bool quoted = *input->at == '"';
	if (ky_json_number_text(input->at + quoted, (size_t)(stop - input->at) - 2u * quoted,
				&number) &&
	    number.integer) {
		const struct ky_clock_reading readings[] = {{json->trace->clock, 0},
							    {KY_CLOCK_REALTIME, number.i}};
		ky_put_clocks(json->trace, 0, readings, 2);
		ky_put_metadata_number(json->trace, "baseTimeNanoseconds", number.i);
	}
	ky_input_skip(input, (size_t)(stop - input->at));
	return true;
}

static bool read_display_unit(struct ky_json *json)
{
	struct ky_input *input = json->input;
	const uint8_t *stop = ky_json_feed_value(input, NULL);

	if (!stop)
		return false;
	if (*input->at == '"')
		ky_put_metadata(
			json->trace, "displayTimeUnit",
			ky_json_string_of(json, input->at + 1, (size_t)(stop - input->at) - 2));
	ky_input_skip(input, (size_t)(stop - input->at));
	return true;
}

/* Read the value of a top-level key. *known: it is one that traces have. */
static bool read_member(struct ky_json *json, const char *key, bool *known)
{
	struct ky_input *input = json->input;

	*known = true;
	if (strcmp(key, "traceEvents") == 0 && *input->at == '[') {
		ky_input_skip(input, 1);
		return read_events(json, true);
	}
	if (strcmp(key, "systemTraceEvents") == 0)
		return ky_json_system_read(json);
	if (strcmp(key, "stackFrames") == 0)
		return ky_json_stack_frames_read(json);
	if (strcmp(key, "displayTimeUnit") == 0)
		return read_display_unit(json);
	*known = *input->at == '[';
	if (strcmp(key, "samples") == 0)
		return ky_json_samples_read(json);
	*known = false;
	if (strcmp(key, "metadata") == 0)
		return read_metadata(json, "json_metadata");
	if (strcmp(key, "otherData") == 0)
		return read_metadata(json, "otherData");
	if (strcmp(key, "baseTimeNanoseconds") == 0)
		return read_base_time(json);
	return ky_json_feed_skip(input, NULL);
}

/* Firefox's profiles begin with one of these, and nothing else does. */
static bool is_gecko(struct ky_input *input)
{
	static const char *const keys[] = {"\"meta\"", "\"libs\""};

	if (ky_json_feed_next(input) != '"' || !ky_input_need(input, 6))
		return false;
	return memcmp(input->at, keys[0], 6) == 0 || memcmp(input->at, keys[1], 6) == 0;
}

/* V8's profiles begin with their nodes. Seen from the '{'. */
static bool is_cpuprofile(struct ky_input *input)
{
	static const char key[] = "\"nodes\"";
	(void)ky_input_need(input, 64);
	for (const uint8_t *at = input->at + 1; at < input->end; at++)
		if (*at > ' ')
			return input->end - at >= (ptrdiff_t)sizeof(key) - 1 &&
			       memcmp(at, key, sizeof(key) - 1) == 0;
	return false;
}

static int read_object(struct ky_json *json)
{
	struct ky_input *input = json->input;
	char key[KY_JSON_KEY_BYTES];
	enum ky_json_fault fault = KY_JSON_CUT;
	bool any = false, known_any = false, known;
	int more;

	if (is_gecko(input)) {
		known_any = ky_json_gecko_read(json);
		more = known_any ? 0 : -1;
		known_any = json->events > 0;
		any = true;
	} else {
		while ((more = ky_json_feed_key(input, key, &fault)) > 0) {
			any = true;
			const bool whole = read_member(json, key, &known);
			known_any |= known;
			if (!whole) {
				more = -1;
				break;
			}
		}
	}
	if (any && !known_any)
		return ky_load_fail(
			json->load, 0,
			"JSON, but no trace: expected an object with traceEvents, or an "
			"array of events");
	if (more < 0 && !json->cut)
		ky_problem(json->trace, "json_truncated", KY_DATA_LOSS, input->position,
			   fault == KY_JSON_CUT ? "the input ends before its outermost object does"
						: "expected a key or '}'");
	return 0;
}

static int read_all(struct ky_json *json)
{
	struct ky_input *input = json->input;

	if (ky_input_need(input, 3) && without_mark(input->at, 3) != input->at)
		ky_input_skip(input, 3);
	const int first = ky_json_feed_next(input);
	if (first != '[' && first != '{')
		return ky_load_fail(json->load, input->position, "expected JSON: '[' or '{'");
	if (first == '{' && is_cpuprofile(input))
		return ky_json_cpuprofile_read(json)
			       ? 0
			       : ky_load_fail(json->load, input->position,
					      "begins as a V8 CPU profile, but is not whole JSON: "
					      "save it again");
	ky_input_skip(input, 1);
	if (first == '{')
		return read_object(json);
	(void)read_events(json, false);
	if (json->elements && !json->events)
		return ky_load_fail(
			json->load, 0,
			"JSON, but no trace: nothing in the array is an event with a ph");
	return 0;
}

static int read_trace(struct ky_load *load)
{
	struct ky_json *json = calloc(1, sizeof(*json));

	if (!json)
		return -ENOMEM;
	json->load = load;
	json->trace = load->trace;
	json->input = load->input;
	json->no_name = ky_string_z(load->trace, "[No name]");
	const int error = read_all(json);
	ky_json_stacks_finish(json);
	ky_json_profiles_finish(json);
	ky_json_states_finish(json);
	ky_json_losses_finish(json);
	ky_pair_map_free(&json->async_tracks);
	ky_pair_map_free(&json->counter_tracks);
	ky_json_tree_free(&json->tree);
	KY_ARRAY_FREE(json->scratch, json->scratch_room);
	free(json);
	return error;
}

const struct ky_reader ky_reader_json = {
	.name = "json",
	.title = "Chrome Trace Event JSON",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
