/* SPDX-License-Identifier: MIT */
/*
 * json_event_array.c: the array of events. Its end may be missing: the file of a program that was killed
 * is as good as any in the array form. Malformed elements are counted and skipped.
 */
#include "formats/json/json_reader.h"

#include "formats/json/json_scan.h"

static uint64_t position_of(const struct ky_json *json, const uint8_t *at)
{
	return json->input->position + (uint64_t)(at - json->input->at);
}

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
		event.position = position_of(json, at);
		ky_json_event_put(json, &event, end);
		json->elements++;
		at = stop;
	}
	move_to(json, at);
	return at < end ? *at : 0;
}

static void tell_cut(struct ky_json *json, bool object, bool inside)
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

bool ky_json_events_read(struct ky_json *json, bool object)
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
			tell_cut(json, object, c != 0);
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
