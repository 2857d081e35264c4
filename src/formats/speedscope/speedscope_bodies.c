/* SPDX-License-Identifier: MIT */
/*
 * speedscope_bodies.c: the second pass over a speedscope file: the events and samples of each
 * profile. A profile is a thread: events are its slices, samples its samples, which lie one behind
 * the other by their weights.
 */
#include "formats/speedscope/speedscope.h"

#include <errno.h>
#include <math.h>

#include "formats/json/json_scan.h"

static void fail(struct ky_speedscope *file, const char *what)
{
	ky_problem(file->trace, "speedscope_entry_invalid", KY_ERROR, file->input->position, "%s",
		   what);
}

static bool time_of(const struct ky_speedscope_profile *profile, double value, int64_t *ns)
{
	const double scaled = round(value * profile->ns_per_unit);
	if (!(scaled >= 0 && scaled < 9.2e18))
		return false;
	*ns = (int64_t)scaled;
	return true;
}

static const struct ky_speedscope_frame *frame_of(struct ky_speedscope *file, uint32_t node)
{
	int64_t index;
	if (!ky_json_tree_int(&file->tree, node, &index) || index < 0 ||
	    (uint64_t)index >= file->frames_count)
		return NULL;
	return &file->frames[index];
}

static void put_event(struct ky_speedscope *file, const struct ky_speedscope_profile *profile)
{
	const struct ky_json_tree *tree = &file->tree;
	const struct ky_speedscope_frame *frame =
		frame_of(file, ky_json_tree_get(tree, 0, "frame"));
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

static void put_sample(struct ky_speedscope *file, const struct ky_speedscope_profile *profile,
		       uint64_t number, double *at)
{
	const struct ky_json_tree *tree = &file->tree;
	const double weight =
		number < profile->weights_count ? file->weights[profile->weights_at + number] : 1;
	uint32_t callsite = KY_NONE;
	int64_t ts;

	for (uint32_t node = 1; node < tree->nodes[0].next; node = tree->nodes[node].next) {
		const struct ky_speedscope_frame *frame = frame_of(file, node);
		if (frame)
			callsite = ky_callsite(file->trace, callsite, frame->frame);
		else
			fail(file, "a sample of a frame that there is not");
	}
	if (!time_of(profile, *at, &ts))
		fail(file, "a sample at a time below 0");
	else
		ky_put_sample(file->trace, ts, file->thread, callsite, KY_NONE, KY_CPU_MODE_UNKNOWN,
			      weight * profile->ns_per_unit, file->event);
	*at += weight;
}

static bool read_entries(struct ky_speedscope *file, const struct ky_speedscope_profile *profile,
			 bool samples)
{
	struct ky_input *input = file->input;
	enum ky_json_fault fault;
	uint64_t number = 0;
	double at = profile->start;
	int more;

	ky_input_skip(input, 1);
	while ((more = ky_json_feed_element(input, &fault)) > 0) {
		const uint8_t *stop = ky_json_feed_value(input, &fault);
		if (!stop)
			return false;
		const bool right = *input->at == (samples ? '[' : '{') &&
				   ky_json_tree_parse(&file->tree, input->at, input->end) == 0;
		if (!right)
			fail(file, "expected an event or a sample");
		else if (samples)
			put_sample(file, profile, number, &at);
		else
			put_event(file, profile);
		number++;
		ky_input_skip(input, (size_t)(stop - input->at));
	}
	return more == 0;
}

static bool read_profile(struct ky_speedscope *file)
{
	struct ky_input *input = file->input;
	struct ky_trace *trace = file->trace;
	const struct ky_speedscope_profile *profile = &file->profiles[file->profile];
	char key[KY_JSON_KEY_BYTES];
	enum ky_json_fault fault;
	bool whole = true;
	int more = 0;

	file->thread = ky_thread(trace, 1, (int64_t)file->profile + 1);
	ky_thread_name(trace, file->thread, profile->name, KY_NAME_TRACE);
	file->track = ky_track_of_thread(trace, file->thread);
	file->event = ky_string_z(trace, profile->timed ? "time" : "weight");
	ky_input_skip(input, 1);
	while (whole && (more = ky_json_feed_key(input, key, &fault)) > 0) {
		const bool samples = strcmp(key, "samples") == 0;
		if (*input->at == '[' && (samples || strcmp(key, "events") == 0))
			whole = read_entries(file, profile, samples);
		else
			whole = ky_json_feed_skip(input, &fault);
	}
	return whole && more == 0;
}

bool ky_speedscope_bodies(struct ky_speedscope *file)
{
	struct ky_input *input = file->input;
	enum ky_json_fault fault;
	int more;

	if (*input->at != '[')
		return ky_json_feed_skip(input, &fault);
	ky_input_skip(input, 1);
	while ((more = ky_json_feed_element(input, &fault)) > 0) {
		if (*input->at != '{') {
			if (!ky_json_feed_skip(input, &fault))
				return false;
			continue;
		}
		if (file->profile >= file->profiles_count || !read_profile(file))
			return false;
		file->profile++;
	}
	return more == 0;
}
