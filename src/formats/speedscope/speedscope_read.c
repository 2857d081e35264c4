/* SPDX-License-Identifier: MIT */
/*
 * speedscope_read.c: reads speedscope's own JSON. Members come in any order (many writers sort them), and events need
 * the frames and the unit, so the file is passed over twice:
 *
 *   pass 1: shared.frames, and of each profile its name, unit, start and weights
 *   pass 2: of each profile its events or samples, which mean something only with these
 *
 * A profile is a thread: events are its slices, samples its samples, which lie one behind the other by their weights.
 */
#include "base/array.h"
#include "formats/json/json_scan.h"
#include "formats/load.h"

#include <errno.h>
#include <math.h>

struct frame {
	uint32_t name;
	uint32_t frame; /* of the trace */
	uint32_t args;  /* set: file, line and column, 0: none */
};

struct profile {
	uint32_t name;
	double ns_per_unit;
	double start;
	uint64_t weights_at; /* the first in weights */
	uint64_t weights_count;
	bool timed; /* the unit is one of time */
};

struct speedscope {
	struct ky_load *load;
	struct ky_trace *trace;
	struct ky_input *input;
	struct ky_json_tree tree;
	struct frame *frames;
	uint64_t frames_count, frames_room;
	struct profile *profiles;
	uint64_t profiles_count, profiles_room;
	double *weights;
	uint64_t weights_count, weights_room;
	char *scratch;
	uint64_t scratch_room;
	bool second;      /* the pass */
	uint64_t profile; /* the current one */
	uint32_t thread, track, event;
	bool samples;   /* its list is of samples, else of events */
	uint64_t entry; /* number in the list */
	double at;      /* time of the next sample */
};

/* ---- pass 1 ---- */

/* Return a string of the tree; 0 when it is not a string. */
static uint32_t string_of(struct speedscope *file, uint32_t node)
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

static void add_frame(struct speedscope *file)
{
	struct ky_trace *trace = file->trace;
	const struct ky_json_tree *tree = &file->tree;
	struct frame frame = {0};
	int64_t line = 0, column = 0;

	frame.name = string_of(file, ky_json_tree_get(tree, 0, "name"));
	const uint32_t path = string_of(file, ky_json_tree_get(tree, 0, "file"));
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

static bool take_frame(void *context, const uint8_t *stop)
{
	struct speedscope *file = context;
	(void)stop;
	/* A malformed frame keeps its number, since the others are found by theirs. */
	if (ky_json_tree_parse(&file->tree, file->input->at, file->input->end) != 0)
		return false;
	add_frame(file);
	return true;
}

static bool take_shared(void *context, const char *key)
{
	struct speedscope *file = context;
	if (strcmp(key, "frames") == 0 && *file->input->at == '[')
		return ky_json_feed_elements(file->input, take_frame, file);
	return ky_json_feed_skip(file->input, NULL);
}

static void set_unit(struct profile *profile, const struct ky_json_text *unit)
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

static bool take_weight(void *context, const uint8_t *stop)
{
	struct speedscope *file = context;
	struct ky_json_number number;
	if (!ky_json_number_text(file->input->at, (size_t)(stop - file->input->at), &number))
		number.d = 0;
	if (!KY_ARRAY_ADD(file->weights, file->weights_count, file->weights_room, number.d)) {
		file->trace->error = -ENOMEM;
		return false;
	}
	file->profiles[file->profile].weights_count++;
	return true;
}

/* Read a member that is short: the name, the unit, the start. */
static bool read_head(struct speedscope *file, struct profile *profile, const char *key)
{
	struct ky_input *input = file->input;
	struct ky_json_text text;
	struct ky_json_number number;
	const uint8_t *stop = ky_json_feed_value(input, NULL);

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

static bool take_head_member(void *context, const char *key)
{
	struct speedscope *file = context;
	struct profile *profile = &file->profiles[file->profile];
	if (strcmp(key, "unit") == 0 || strcmp(key, "name") == 0 || strcmp(key, "startValue") == 0)
		return read_head(file, profile, key);
	if (strcmp(key, "weights") != 0 || *file->input->at != '[')
		return ky_json_feed_skip(file->input, NULL);
	profile->weights_at = file->weights_count;
	return ky_json_feed_elements(file->input, take_weight, file);
}

static bool read_profile_head(struct speedscope *file)
{
	const struct profile profile = {.ns_per_unit = 1};
	if (!KY_ARRAY_ADD(file->profiles, file->profiles_count, file->profiles_room, profile)) {
		file->trace->error = -ENOMEM;
		return false;
	}
	return ky_json_feed_members(file->input, take_head_member, file);
}

/* ---- pass 2 ---- */

static void fail(struct speedscope *file, const char *what)
{
	ky_problem(file->trace, "speedscope_entry_invalid", KY_ERROR, file->input->position, "%s",
		   what);
}

static bool time_of(const struct profile *profile, double value, int64_t *ns)
{
	const double scaled = round(value * profile->ns_per_unit);
	if (!(scaled >= 0 && scaled < 9.2e18))
		return false;
	*ns = (int64_t)scaled;
	return true;
}

static const struct frame *frame_of(struct speedscope *file, uint32_t node)
{
	int64_t index;
	if (!ky_json_tree_int(&file->tree, node, &index) || index < 0 ||
	    (uint64_t)index >= file->frames_count)
		return NULL;
	return &file->frames[index];
}

static void put_event(struct speedscope *file, const struct profile *profile)
{
	const struct ky_json_tree *tree = &file->tree;
	const struct frame *frame = frame_of(file, ky_json_tree_get(tree, 0, "frame"));
	struct ky_json_number at;
	struct ky_json_text type;
	int64_t ts;

	if (!frame || !ky_json_tree_number(tree, ky_json_tree_get(tree, 0, "at"), &at) ||
	    !time_of(profile, at.d, &ts) ||
	    !ky_json_tree_text(tree, ky_json_tree_get(tree, 0, "type"), &type)) {
		fail(file, "an event needs type, a frame that there is, and at, not below 0");
		return;
	}
	if (ky_json_is(&type, "O"))
		ky_put_begin(file->trace, ts, file->track, 0, frame->name, frame->args);
	else if (ky_json_is(&type, "C"))
		ky_put_end(file->trace, ts, file->track, 0, frame->name, 0);
	else
		fail(file, "the type of an event is O or C");
}

static void put_sample(struct speedscope *file, const struct profile *profile)
{
	const struct ky_json_tree *tree = &file->tree;
	const double weight = file->entry < profile->weights_count
				      ? file->weights[profile->weights_at + file->entry]
				      : 1;
	uint32_t callsite = KY_NONE;
	int64_t ts;

	for (uint32_t node = 1; node < tree->nodes[0].next; node = tree->nodes[node].next) {
		const struct frame *frame = frame_of(file, node);
		if (frame)
			callsite = ky_callsite(file->trace, callsite, frame->frame);
		else
			fail(file, "a sample of a frame that there is not");
	}
	if (!time_of(profile, file->at, &ts))
		fail(file, "a sample at a time below 0");
	else
		ky_put_sample(file->trace, ts, file->thread, callsite, KY_NONE, KY_CPU_MODE_UNKNOWN,
			      weight * profile->ns_per_unit, file->event);
	file->at += weight;
}

/* Take an event or a sample, by what the list that it is in has. */
static bool take_entry(void *context, const uint8_t *stop)
{
	struct speedscope *file = context;
	const struct ky_input *input = file->input;
	(void)stop;
	if (*input->at != (file->samples ? '[' : '{') ||
	    ky_json_tree_parse(&file->tree, input->at, input->end) != 0)
		fail(file, "expected an event or a sample");
	else if (file->samples)
		put_sample(file, &file->profiles[file->profile]);
	else
		put_event(file, &file->profiles[file->profile]);
	file->entry++;
	return true;
}

static bool take_body_member(void *context, const char *key)
{
	struct speedscope *file = context;
	file->samples = strcmp(key, "samples") == 0;
	if (*file->input->at != '[' || (!file->samples && strcmp(key, "events") != 0))
		return ky_json_feed_skip(file->input, NULL);
	file->entry = 0;
	file->at = file->profiles[file->profile].start;
	return ky_json_feed_elements(file->input, take_entry, file);
}

static bool read_profile_body(struct speedscope *file)
{
	struct ky_trace *trace = file->trace;
	if (file->profile >= file->profiles_count)
		return false;
	const struct profile *profile = &file->profiles[file->profile];
	file->thread = ky_thread(trace, 1, (int64_t)file->profile + 1);
	ky_thread_name(trace, file->thread, profile->name, KY_NAME_TRACE);
	file->track = ky_track_of_thread(trace, file->thread);
	file->event = ky_string_z(trace, profile->timed ? "time" : "weight");
	return ky_json_feed_members(file->input, take_body_member, file);
}

/* ---- the file ---- */

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

static bool read_name(struct speedscope *file)
{
	struct ky_input *input = file->input;
	struct ky_json_text text;
	const uint8_t *stop = ky_json_feed_value(input, NULL);

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

static bool read_profiles(struct speedscope *file)
{
	struct ky_input *input = file->input;
	int more;

	ky_input_skip(input, 1);
	while ((more = ky_json_feed_element(input)) > 0) {
		if (*input->at != '{') {
			if (!ky_json_feed_skip(input, NULL))
				return false;
			continue;
		}
		ky_input_skip(input, 1);
		if (file->second ? !read_profile_body(file) : !read_profile_head(file))
			return false;
		file->profile++;
	}
	return more == 0;
}

static bool take_member(void *context, const char *key)
{
	struct speedscope *file = context;
	const uint8_t first = *file->input->at;
	if (strcmp(key, "profiles") == 0 && first == '[')
		return read_profiles(file);
	if (!file->second && strcmp(key, "shared") == 0 && first == '{') {
		ky_input_skip(file->input, 1);
		return ky_json_feed_members(file->input, take_shared, file);
	}
	if (!file->second && strcmp(key, "name") == 0)
		return read_name(file);
	return ky_json_feed_skip(file->input, NULL);
}

/* False when the input ends early. */
static bool pass(struct speedscope *file, bool second)
{
	struct ky_input *input = file->input;
	file->second = second;
	file->profile = 0;
	if (ky_input_need(input, 3) && memcmp(input->at, "\xef\xbb\xbf", 3) == 0)
		ky_input_skip(input, 3);
	return ky_json_feed_take(input, '{') && ky_json_feed_members(input, take_member, file);
}

static int read_all(struct speedscope *file)
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
	struct speedscope file = {.load = load, .trace = load->trace, .input = load->input};
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
