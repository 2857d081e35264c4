/* SPDX-License-Identifier: MIT */
/*
 * json_profile.c: V8's CPU profiles, which come in pieces as P events of the same id:
 *
 *   Profile       args.data.startTime                                          µs
 *   ProfileChunk  args.data.cpuProfile.nodes: {id, parent, callFrame}, .samples: node ids
 *                 args.data.timeDeltas: µs from the sample before
 *
 * or whole as args.data.cpuProfile in one. A node is a callsite; one whose parent is not known is
 * left out. As in Perfetto, samples are of the thread whose event carries them. A profile's start
 * may come behind its chunks: until all is read, samples are kept with their times since the start.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"

#include <errno.h>

/* The value of a key, none when there is no object. */
static uint32_t member(const struct ky_json_tree *tree, uint32_t object, const char *key)
{
	return object == KY_JSON_NO_NODE ? KY_JSON_NO_NODE : ky_json_tree_get(tree, object, key);
}

struct ky_json_profile {
	int64_t start; /* ns, -1: not known yet */
	int64_t last;  /* time of the last sample, since the start */
	uint64_t position;
};

struct ky_json_sample {
	int64_t after; /* the start */
	uint32_t profile;
	uint32_t thread;
	uint32_t callsite;
};

/* The number of the profile that the event is of, or KY_NONE. */
static uint32_t profile_of(struct ky_json *json, const struct ky_json_event *event)
{
	const uint64_t id = ky_json_hash(event->id.at, event->id.bytes);
	bool made;
	uint64_t *number =
		ky_pair_map_add(&json->profile_by_id, (uint64_t)ky_json_pid(event->pid), id, &made);

	if (!number || !KY_ARRAY_GROW_ZERO(json->profiles, json->profiles_room,
					   (uint64_t)json->profiles_count + 1)) {
		json->trace->error = -ENOMEM;
		return KY_NONE;
	}
	if (made) {
		*number = json->profiles_count;
		json->profiles[json->profiles_count++] =
			(struct ky_json_profile){-1, 0, event->position};
	}
	return (uint32_t)*number;
}

static uint32_t frame_of(struct ky_json *json, uint32_t call)
{
	const struct ky_json_tree *tree = &json->tree;
	int64_t line = -1;
	uint32_t name = ky_json_node_string(json, tree, member(tree, call, "functionName"));
	const uint32_t file = ky_json_node_string(json, tree, member(tree, call, "url"));

	if (!name)
		name = ky_string_z(json->trace, "(anonymous)");
	if (!ky_json_tree_int(tree, member(tree, call, "lineNumber"), &line) || line < -1 ||
	    line >= UINT32_MAX)
		line = -1;
	return ky_frame(json->trace, KY_NONE, 0, name, file, (uint32_t)(line + 1));
}

static void add_nodes(struct ky_json *json, uint32_t profile, uint32_t nodes, uint64_t position)
{
	const struct ky_json_tree *tree = &json->tree;
	int64_t id, parent;

	for (uint32_t node = nodes + 1; node < tree->nodes[nodes].next;
	     node = tree->nodes[node].next) {
		uint32_t above = KY_NONE;
		bool made;
		if (!ky_json_tree_int(tree, member(tree, node, "id"), &id))
			continue;
		if (ky_json_tree_int(tree, member(tree, node, "parent"), &parent)) {
			const uint64_t *known =
				ky_pair_map_find(&json->profile_nodes, profile, (uint64_t)parent);
			if (!known) {
				ky_problem(json->trace, "legacy_v8_cpu_profile_invalid_callsite",
					   KY_ERROR, position, "node %lld: no parent %lld",
					   (long long)id, (long long)parent);
				continue;
			}
			above = (uint32_t)*known;
		}
		const uint32_t frame = frame_of(json, member(tree, node, "callFrame"));
		uint64_t *callsite =
			ky_pair_map_add(&json->profile_nodes, profile, (uint64_t)id, &made);
		if (callsite)
			*callsite = ky_callsite(json->trace, above, frame);
		else
			json->trace->error = -ENOMEM;
	}
}

static void keep_sample(struct ky_json *json, const struct ky_json_sample *sample)
{
	if (KY_ARRAY_GROW_ZERO(json->profile_samples, json->profile_samples_room,
			       json->profile_samples_count + 1))
		json->profile_samples[json->profile_samples_count++] = *sample;
	else
		json->trace->error = -ENOMEM;
}

static void add_samples(struct ky_json *json, const struct ky_json_event *event, uint32_t profile,
			uint32_t samples, uint32_t deltas)
{
	const struct ky_json_tree *tree = &json->tree;
	const uint32_t thread = ky_json_thread_of(json, event);
	int64_t *last = &json->profiles[profile].last;
	uint32_t delta = deltas + 1;
	int64_t id, micros, ns;

	for (uint32_t at = samples + 1;
	     at < tree->nodes[samples].next && delta < tree->nodes[deltas].next;
	     at = tree->nodes[at].next, delta = tree->nodes[delta].next) {
		if (!ky_json_tree_int(tree, at, &id) || !ky_json_tree_int(tree, delta, &micros) ||
		    __builtin_mul_overflow(micros, 1000, &ns) ||
		    __builtin_add_overflow(*last, ns, last))
			continue;
		const uint64_t *callsite =
			ky_pair_map_find(&json->profile_nodes, profile, (uint64_t)id);
		if (callsite)
			keep_sample(json, &(struct ky_json_sample){*last, profile, thread,
								   (uint32_t)*callsite});
		else
			ky_problem(json->trace, "legacy_v8_cpu_profile_invalid_sample", KY_ERROR,
				   event->position, "a sample of an unknown node %lld",
				   (long long)id);
	}
}

void ky_json_profiles_finish(struct ky_json *json)
{
	const uint32_t what =
		json->profiles_count ? ky_string_z(json->trace, "v8.cpu_profiler") : 0;
	int64_t ts;

	for (uint64_t i = 0; i < json->profile_samples_count; i++) {
		const struct ky_json_sample *sample = &json->profile_samples[i];
		const struct ky_json_profile *profile = &json->profiles[sample->profile];
		if (profile->start >= 0 &&
		    !__builtin_add_overflow(profile->start, sample->after, &ts) && ts >= 0)
			ky_put_sample(json->trace, ts, sample->thread, sample->callsite, KY_NONE,
				      KY_CPU_MODE_USER, 1, what);
		else
			ky_problem(json->trace, "legacy_v8_cpu_profile_invalid_sample", KY_ERROR,
				   profile->position, "a sample of a profile without a start");
	}
	KY_ARRAY_FREE(json->profiles, json->profiles_room);
	KY_ARRAY_FREE(json->profile_samples, json->profile_samples_room);
	ky_pair_map_free(&json->profile_by_id);
	ky_pair_map_free(&json->profile_nodes);
}

void ky_json_profile_put(struct ky_json *json, const struct ky_json_event *event,
			 const uint8_t *end)
{
	struct ky_json_tree *tree = &json->tree;
	int64_t start;

	(void)ky_json_thread_of(json, event);
	if (!(event->has & KY_JSON_HAS_ID) || !event->args || *event->args != '{')
		return;
	if (ky_json_tree_parse(tree, event->args, end) != 0) {
		ky_json_fail(json, event, "its arguments are no JSON");
		return;
	}
	const uint32_t data = ky_json_tree_get(tree, 0, "data");
	const uint32_t profile = member(tree, data, "cpuProfile");
	const uint32_t number = data ? profile_of(json, event) : KY_NONE;
	if (number == KY_NONE)
		return;
	if ((ky_json_tree_int(tree, member(tree, data, "startTime"), &start) ||
	     ky_json_tree_int(tree, member(tree, profile, "startTime"), &start)) &&
	    start >= 0 && start < INT64_MAX / 1000)
		json->profiles[number].start = start * 1000;
	const uint32_t nodes = member(tree, profile, "nodes");
	if (nodes && tree->nodes[nodes].type == KY_JSON_ARRAY)
		add_nodes(json, number, nodes, event->position);
	const uint32_t samples = member(tree, profile, "samples");
	uint32_t deltas = member(tree, data, "timeDeltas");
	if (!deltas)
		deltas = member(tree, profile, "timeDeltas");
	if (samples && deltas && tree->nodes[samples].type == KY_JSON_ARRAY &&
	    tree->nodes[deltas].type == KY_JSON_ARRAY)
		add_samples(json, event, number, samples, deltas);
}
