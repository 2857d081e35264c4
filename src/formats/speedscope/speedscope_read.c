/* SPDX-License-Identifier: MIT */
/*
 * speedscope_read.c: reads speedscope's own JSON. Members come in any order (many writers sort
 * them), and events need the frames and the unit, so the file is passed over twice: speedscope.h.
 */
#include "base/array.h"
#include "formats/speedscope/speedscope.h"

#include <errno.h>

#include "formats/json/json_scan.h"

/* Return what a top-level key shows: 1 it is speedscope, -1 it is not, 0 neither. */
static int verdict(const struct ky_json_text *key, const uint8_t *value, const uint8_t *end)
{
	const size_t bytes = (size_t)(end - value);
	const uint8_t *stop;
	struct ky_json_text text;

	if (ky_json_is(key, "$schema") && *value == '"') {
		stop = ky_json_scan_string(value + 1, end, &text);
		return stop && memmem(text.at, text.bytes, "speedscope.app", 14) ? 1 : -1;
	}
	if (ky_json_is(key, "traceEvents"))
		return -1;
	if (ky_json_is(key, "profiles") && *value == '[')
		return memmem(value, bytes, "\"evented\"", 9) ||
				       memmem(value, bytes, "\"sampled\"", 9)
			       ? 1
			       : 0;
	if (ky_json_is(key, "shared") && *value == '{')
		return memmem(value, bytes < 64 ? bytes : 64, "\"frames\"", 8) ? 1 : 0;
	return 0;
}

static bool probe(const struct ky_probe *probe)
{
	const uint8_t *end = probe->data + probe->bytes;
	const uint8_t *at = probe->data;
	struct ky_json_text key;
	enum ky_json_fault fault;

	if (probe->bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	at = ky_json_space(at);
	if (at >= end || *at != '{')
		return false;
	for (at = ky_json_space(at + 1); at < end && *at == '"';) {
		at = ky_json_scan_string(at + 1, end, &key);
		if (!at || *(at = ky_json_space(at)) != ':')
			return false;
		at = ky_json_space(at + 1);
		const int known = at < end ? verdict(&key, at, end) : -1;
		if (known)
			return known > 0;
		at = ky_json_skip(at, end, &fault);
		if (!at)
			return false;
		at = ky_json_space(at);
		if (*at == ',')
			at = ky_json_space(at + 1);
	}
	return false;
}

static bool read_name(struct ky_speedscope *file)
{
	struct ky_input *input = file->input;
	struct ky_json_text text;
	enum ky_json_fault fault;
	const uint8_t *stop = ky_json_feed_value(input, &fault);

	if (!stop)
		return false;
	if (*input->at == '"' && ky_json_scan_string(input->at + 1, input->end, &text) &&
	    text.bytes)
		ky_process_name(file->trace, ky_process(file->trace, 1),
				ky_string(file->trace, (const char *)text.at, text.bytes),
				KY_NAME_TRACE);
	ky_input_skip(input, (size_t)(stop - input->at));
	return true;
}

static bool read_member(struct ky_speedscope *file, const char *key, bool second)
{
	enum ky_json_fault fault;

	if (strcmp(key, "profiles") == 0)
		return second ? ky_speedscope_bodies(file) : ky_speedscope_heads(file);
	if (!second && strcmp(key, "shared") == 0)
		return ky_speedscope_shared(file);
	if (!second && strcmp(key, "name") == 0)
		return read_name(file);
	return ky_json_feed_skip(file->input, &fault);
}

/* False when the input ends early. */
static bool pass(struct ky_speedscope *file, bool second)
{
	struct ky_input *input = file->input;
	char key[KY_JSON_KEY_BYTES];
	enum ky_json_fault fault;
	int more;

	if (ky_input_need(input, 3) && memcmp(input->at, "\xef\xbb\xbf", 3) == 0)
		ky_input_skip(input, 3);
	if (!ky_json_feed_take(input, '{'))
		return false;
	while ((more = ky_json_feed_key(input, key, &fault)) > 0)
		if (!read_member(file, key, second))
			return false;
	return more == 0;
}

static int read_all(struct ky_speedscope *file)
{
	int error = ky_input_remember(file->input);

	if (error)
		return error;
	if (!pass(file, false))
		ky_problem(file->trace, "json_truncated", KY_DATA_LOSS, file->input->position,
			   "the input ends before its outermost object does");
	if (file->profiles_count == 0)
		return ky_load_fail(file->load, 0, "expected profiles: it has none");
	if (file->frames_count == 0)
		ky_problem(file->trace, "speedscope_no_frames", KY_ERROR, KY_NO_PLACE,
			   "shared.frames is missing or empty");
	error = ky_input_rewind(file->input);
	if (error)
		return error;
	(void)pass(file, true);
	return 0;
}

static int read_trace(struct ky_load *load)
{
	struct ky_speedscope file = {.load = load, .trace = load->trace, .input = load->input};
	const int error = read_all(&file);

	ky_json_tree_free(&file.tree);
	KY_ARRAY_FREE(file.frames, file.frames_room);
	KY_ARRAY_FREE(file.profiles, file.profiles_room);
	KY_ARRAY_FREE(file.weights, file.weights_room);
	KY_ARRAY_FREE(file.scratch, file.scratch_room);
	return error;
}

const struct ky_reader ky_reader_speedscope = {
	.name = "speedscope",
	.title = "speedscope",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
