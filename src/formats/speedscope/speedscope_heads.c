/* SPDX-License-Identifier: MIT */
/* speedscope_heads.c: the first pass over a speedscope file: frames, and the head of each profile. */
#include "base/array.h"
#include "formats/speedscope/speedscope.h"

#include <errno.h>

#include "formats/json/json_scan.h"

uint32_t ky_speedscope_string(struct ky_speedscope *file, uint32_t node)
{
	struct ky_json_text text;

	if (!ky_json_tree_text(&file->tree, node, &text))
		return 0;
	if (!text.escapes)
		return ky_string(file->trace, (const char *)text.at, text.bytes);
	if (!KY_ARRAY_GROW(file->scratch, file->scratch_room, text.bytes)) {
		file->trace->error = -ENOMEM;
		return 0;
	}
	return ky_string(file->trace, file->scratch, ky_json_unescape(&text, file->scratch));
}

static void add_frame(struct ky_speedscope *file)
{
	struct ky_trace *trace = file->trace;
	const struct ky_json_tree *tree = &file->tree;
	struct ky_speedscope_frame frame = {0};
	int64_t line = 0, column = 0;

	frame.name = ky_speedscope_string(file, ky_json_tree_get(tree, 0, "name"));
	const uint32_t path = ky_speedscope_string(file, ky_json_tree_get(tree, 0, "file"));
	const bool has_line = ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "line"), &line) &&
			      line >= 0 && line <= UINT32_MAX;
	frame.frame = ky_frame(trace, KY_NONE, 0, frame.name, path, has_line ? (uint32_t)line : 0);
	ky_args_begin(trace);
	if (path)
		ky_arg_string(trace, ky_string_z(trace, "file"), path);
	if (has_line)
		ky_arg_int(trace, ky_string_z(trace, "line"), line);
	if (ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "col"), &column))
		ky_arg_int(trace, ky_string_z(trace, "col"), column);
	frame.args = ky_args_end(trace);
	if (KY_ARRAY_GROW_ZERO(file->frames, file->frames_room, file->frames_count + 1))
		file->frames[file->frames_count++] = frame;
	else
		trace->error = -ENOMEM;
}

static bool read_frames(struct ky_speedscope *file)
{
	struct ky_input *input = file->input;
	enum ky_json_fault fault;
	int more;

	ky_input_skip(input, 1);
	while ((more = ky_json_feed_element(input, &fault)) > 0) {
		const uint8_t *stop = ky_json_feed_value(input, &fault);
		if (!stop)
			return false;
		/* A malformed frame keeps its number, since the others are found by theirs. */
		if (ky_json_tree_parse(&file->tree, input->at, input->end) != 0)
			return false;
		add_frame(file);
		ky_input_skip(input, (size_t)(stop - input->at));
	}
	return more == 0;
}

bool ky_speedscope_shared(struct ky_speedscope *file)
{
	struct ky_input *input = file->input;
	char key[KY_JSON_KEY_BYTES];
	enum ky_json_fault fault;
	int more;

	if (*input->at != '{')
		return ky_json_feed_skip(input, &fault);
	ky_input_skip(input, 1);
	while ((more = ky_json_feed_key(input, key, &fault)) > 0) {
		const bool frames = strcmp(key, "frames") == 0 && *input->at == '[';
		if (frames ? !read_frames(file) : !ky_json_feed_skip(input, &fault))
			return false;
	}
	return more == 0;
}

static void set_unit(struct ky_speedscope_profile *profile, const struct ky_json_text *unit)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6}, {"seconds", 1e9}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (ky_json_is(unit, units[i].name)) {
			profile->ns_per_unit = units[i].ns;
			profile->timed = true;
		}
}

static bool read_weights(struct ky_speedscope *file, struct ky_speedscope_profile *profile)
{
	struct ky_input *input = file->input;
	struct ky_json_number number;
	enum ky_json_fault fault;
	int more;

	profile->weights_at = file->weights_count;
	ky_input_skip(input, 1);
	while ((more = ky_json_feed_element(input, &fault)) > 0) {
		const uint8_t *stop = ky_json_feed_value(input, &fault);
		if (!stop)
			return false;
		if (!ky_json_number_text(input->at, (size_t)(stop - input->at), &number))
			number.d = 0;
		if (!KY_ARRAY_GROW_ZERO(file->weights, file->weights_room,
					file->weights_count + 1)) {
			file->trace->error = -ENOMEM;
			return false;
		}
		file->weights[file->weights_count++] = number.d;
		profile->weights_count++;
		ky_input_skip(input, (size_t)(stop - input->at));
	}
	return more == 0;
}

/* A member that is short: the name, the unit, the start. */
static bool read_head(struct ky_speedscope *file, struct ky_speedscope_profile *profile,
		      const char *key)
{
	struct ky_input *input = file->input;
	enum ky_json_fault fault;
	struct ky_json_text text;
	struct ky_json_number number;
	const uint8_t *stop = ky_json_feed_value(input, &fault);

	if (!stop)
		return false;
	if (*input->at == '"' && ky_json_scan_string(input->at + 1, input->end, &text)) {
		if (strcmp(key, "unit") == 0)
			set_unit(profile, &text);
		else if (strcmp(key, "name") == 0 && text.bytes < sizeof(file->load->message))
			profile->name = ky_string(file->trace, (const char *)text.at, text.bytes);
	} else if (strcmp(key, "startValue") == 0 &&
		   ky_json_number_text(input->at, (size_t)(stop - input->at), &number)) {
		profile->start = number.d;
	}
	ky_input_skip(input, (size_t)(stop - input->at));
	return true;
}

static bool is_head(const char *key)
{
	return strcmp(key, "unit") == 0 || strcmp(key, "name") == 0 ||
	       strcmp(key, "startValue") == 0;
}

static bool read_profile(struct ky_speedscope *file)
{
	struct ky_input *input = file->input;
	struct ky_speedscope_profile profile = {.ns_per_unit = 1};
	char key[KY_JSON_KEY_BYTES];
	enum ky_json_fault fault;
	bool whole = true;
	int more = 0;

	ky_input_skip(input, 1);
	while (whole && (more = ky_json_feed_key(input, key, &fault)) > 0) {
		if (is_head(key))
			whole = read_head(file, &profile, key);
		else if (strcmp(key, "weights") == 0 && *input->at == '[')
			whole = read_weights(file, &profile);
		else
			whole = ky_json_feed_skip(input, &fault);
	}
	if (KY_ARRAY_GROW_ZERO(file->profiles, file->profiles_room, file->profiles_count + 1))
		file->profiles[file->profiles_count++] = profile;
	else
		file->trace->error = -ENOMEM;
	return whole && more == 0;
}

bool ky_speedscope_heads(struct ky_speedscope *file)
{
	struct ky_input *input = file->input;
	enum ky_json_fault fault;
	int more;

	if (*input->at != '[')
		return ky_json_feed_skip(input, &fault);
	ky_input_skip(input, 1);
	while ((more = ky_json_feed_element(input, &fault)) > 0) {
		const bool object = *input->at == '{';
		if (object ? !read_profile(file) : !ky_json_feed_skip(input, &fault))
			return false;
	}
	return more == 0;
}
