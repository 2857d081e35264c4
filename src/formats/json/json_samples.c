/* SPDX-License-Identifier: MIT */
/*
 * json_samples.c: call stacks in JSON traces, in two forms.
 *
 * The top-level values stackFrames (frames by id, each with its parent) and samples (a time, a thread and the id of a
 * frame). Either may come first, so both are kept until all is read. Perfetto leaves them out; catapult and speedscope
 * show them.
 *
 * V8's CPU profiles, which come in pieces as P events of the same id:
 *
 *   Profile       args.data.startTime                                          µs
 *   ProfileChunk  args.data.cpuProfile.nodes: {id, parent, callFrame}, .samples: node ids
 *                 args.data.timeDeltas: µs from the sample before
 *
 * or whole as args.data.cpuProfile in one. A node is a callsite; one whose parent is not known is left out. As in
 * Perfetto, samples are of the thread whose event carries them. A profile's start may come behind its chunks: until all
 * is read, samples are kept with their times since the start.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"

#include <errno.h>
#include <stdlib.h>

/* ---- stackFrames and samples ---- */

#define DEPTH_MAX 512u /* of a stack; also what ends a circle of parents */

struct frame {
	uint64_t parent; /* hash of its id, 0: none */
	uint32_t name;
	uint32_t callsite; /* + 1, 0: not made yet */
};

struct sample {
	int64_t ts, pid, tid;
	uint64_t frame;
	double weight;
	uint64_t position;
	uint32_t name;
	uint32_t cpu;
	bool has_pid;
};

struct ky_json_stacks {
	struct ky_pair_map by_id; /* hash of the id to its frame */
	struct frame *frames;
	uint64_t frames_count, frames_room;
	struct sample *samples;
	uint64_t samples_count, samples_room;
};

static struct ky_json_stacks *stacks_of(struct ky_json *json)
{
	if (!json->stacks)
		json->stacks = calloc(1, sizeof(*json->stacks));
	if (!json->stacks)
		json->trace->error = -ENOMEM;
	return json->stacks;
}

/* Ids are strings where they are keys and may be numbers elsewhere: the digits are the same. */
static uint64_t id_of(const struct ky_json_tree *tree, uint32_t node)
{
	const struct ky_json_node *n = &tree->nodes[node];
	if (node == KY_JSON_NO_NODE || n->type < KY_JSON_NUMBER || n->type > KY_JSON_STRING)
		return 0;
	return ky_json_hash(tree->text + n->at, n->bytes) | 1;
}

static void add_frame(struct ky_json *json, struct ky_json_stacks *stacks, uint64_t id)
{
	const struct ky_json_tree *tree = &json->tree;
	bool made;
	uint64_t *index = ky_pair_map_add(&stacks->by_id, id, 0, &made);

	if (!index ||
	    !KY_ARRAY_GROW_ZERO(stacks->frames, stacks->frames_room, stacks->frames_count + 1)) {
		json->trace->error = -ENOMEM;
		return;
	}
	if (made)
		*index = stacks->frames_count++;
	stacks->frames[*index] = (struct frame){
		.parent = id_of(tree, ky_json_tree_get(tree, 0, "parent")),
		.name = ky_json_node_string(json, tree, ky_json_tree_get(tree, 0, "name")),
	};
}

static bool take_frame(void *context, const char *key)
{
	struct ky_json *json = context;
	const uint8_t *stop = ky_json_feed_value(json->input, NULL);
	if (!stop)
		return false;
	if (ky_json_object(json))
		add_frame(json, json->stacks, ky_json_hash((const uint8_t *)key, strlen(key)) | 1);
	ky_input_skip(json->input, (size_t)(stop - json->input->at));
	return true;
}

bool ky_json_stack_frames_read(struct ky_json *json)
{
	if (!stacks_of(json) || *json->input->at != '{')
		return ky_json_feed_skip(json->input, NULL);
	ky_input_skip(json->input, 1);
	return ky_json_feed_members(json->input, take_frame, json);
}

static void add_sample(struct ky_json *json, struct ky_json_stacks *stacks)
{
	const struct ky_json_tree *tree = &json->tree;
	struct ky_json_number number;
	struct sample sample = {.weight = 1, .cpu = KY_NONE, .position = json->input->position};
	int64_t cpu;

	if (!ky_json_tree_decimal(tree, ky_json_tree_get(tree, 0, "ts"), 3, &sample.ts) ||
	    sample.ts < 0 ||
	    !ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "tid"), &sample.tid)) {
		ky_problem(json->trace, "json_sample_invalid", KY_ERROR, sample.position,
			   "a sample needs ts and tid");
		return;
	}
	sample.has_pid = ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "pid"), &sample.pid);
	sample.frame = id_of(tree, ky_json_tree_get(tree, 0, "sf"));
	sample.name = ky_json_node_string(json, tree, ky_json_tree_get(tree, 0, "name"));
	if (ky_json_tree_number(tree, ky_json_tree_get(tree, 0, "weight"), &number))
		sample.weight = number.d;
	if (ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "cpu"), &cpu) && cpu >= 0 &&
	    cpu < 65536)
		sample.cpu = (uint32_t)cpu;
	if (!KY_ARRAY_GROW_ZERO(stacks->samples, stacks->samples_room, stacks->samples_count + 1))
		json->trace->error = -ENOMEM;
	else
		stacks->samples[stacks->samples_count++] = sample;
}

static bool take_sample(void *context, const uint8_t *stop)
{
	struct ky_json *json = context;
	(void)stop;
	if (ky_json_object(json))
		add_sample(json, json->stacks);
	return true;
}

bool ky_json_samples_read(struct ky_json *json)
{
	if (!stacks_of(json) || *json->input->at != '[')
		return ky_json_feed_skip(json->input, NULL);
	return ky_json_feed_elements(json->input, take_sample, json);
}

/* Return the callsite of a frame; its parents are made first, from the outermost unknown one on. */
static uint32_t callsite_of(struct ky_json *json, struct ky_json_stacks *stacks, uint64_t id)
{
	uint64_t chain[DEPTH_MAX];
	uint32_t depth = 0, callsite = KY_NONE;

	while (id && depth < DEPTH_MAX) {
		const uint64_t *index = ky_pair_map_find(&stacks->by_id, id, 0);
		if (!index)
			break;
		const struct frame *frame = &stacks->frames[*index];
		if (frame->callsite) {
			callsite = frame->callsite - 1;
			break;
		}
		chain[depth++] = *index;
		id = frame->parent;
	}
	while (depth > 0) {
		struct frame *frame = &stacks->frames[chain[--depth]];
		callsite = ky_callsite(json->trace, callsite,
				       ky_frame(json->trace, KY_NONE, 0, frame->name, 0, 0));
		frame->callsite = callsite + 1;
	}
	return callsite;
}

static void put_sample(struct ky_json *json, struct ky_json_stacks *stacks,
		       const struct sample *sample)
{
	struct ky_trace *trace = json->trace;
	const int64_t tid = ky_json_pid(sample->tid), pid = ky_json_pid(sample->pid);
	const uint32_t thread = sample->has_pid ? ky_thread(trace, pid, tid ? tid : pid)
						: ky_thread_by_tid(trace, tid);
	const uint32_t callsite = callsite_of(json, stacks, sample->frame);

	if (callsite == KY_NONE)
		ky_problem(trace, "json_sample_without_frame", KY_ERROR, sample->position,
			   "a sample whose frame is not in stackFrames");
	ky_put_sample(trace, sample->ts, thread, callsite, sample->cpu, KY_CPU_MODE_UNKNOWN,
		      sample->weight, sample->name);
}

void ky_json_stacks_finish(struct ky_json *json)
{
	struct ky_json_stacks *stacks = json->stacks;

	if (!stacks)
		return;
	for (uint64_t i = 0; i < stacks->samples_count; i++)
		put_sample(json, stacks, &stacks->samples[i]);
	ky_pair_map_free(&stacks->by_id);
	KY_ARRAY_FREE(stacks->frames, stacks->frames_room);
	KY_ARRAY_FREE(stacks->samples, stacks->samples_room);
	free(stacks);
	json->stacks = NULL;
}

/* ---- CPU profiles ---- */

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

/* Return the number of the profile with that process and id, or KY_NONE. */
static uint32_t profile_of(struct ky_json *json, int64_t pid, uint64_t id, uint64_t position)
{
	bool made;
	uint64_t *number = ky_pair_map_add(&json->profile_by_id, (uint64_t)pid, id, &made);

	if (!number || !KY_ARRAY_GROW_ZERO(json->profiles, json->profiles_room,
					   (uint64_t)json->profiles_count + 1)) {
		json->trace->error = -ENOMEM;
		return KY_NONE;
	}
	if (made) {
		*number = json->profiles_count;
		json->profiles[json->profiles_count++] = (struct ky_json_profile){-1, 0, position};
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

/* A node names its children in files, its parent in events. Keep the callsite above each child. */
static void add_children(struct ky_json *json, uint32_t profile, uint32_t node, uint32_t callsite)
{
	const struct ky_json_tree *tree = &json->tree;
	const uint32_t children = member(tree, node, "children");
	int64_t id;
	bool made;

	if (!children || tree->nodes[children].type != KY_JSON_ARRAY)
		return;
	for (uint32_t child = children + 1; child < tree->nodes[children].next;
	     child = tree->nodes[child].next) {
		if (!ky_json_tree_int(tree, child, &id))
			continue;
		uint64_t *above =
			ky_pair_map_add(&json->profile_parents, profile, (uint64_t)id, &made);
		if (above)
			*above = callsite;
		else
			json->trace->error = -ENOMEM;
	}
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
		} else {
			const uint64_t *known =
				ky_pair_map_find(&json->profile_parents, profile, (uint64_t)id);
			above = known ? (uint32_t)*known : KY_NONE;
		}
		const uint32_t frame = frame_of(json, member(tree, node, "callFrame"));
		uint64_t *callsite =
			ky_pair_map_add(&json->profile_nodes, profile, (uint64_t)id, &made);
		if (!callsite) {
			json->trace->error = -ENOMEM;
			return;
		}
		*callsite = ky_callsite(json->trace, above, frame);
		add_children(json, profile, node, (uint32_t)*callsite);
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

static void add_samples(struct ky_json *json, uint32_t profile, uint32_t thread, uint32_t samples,
			uint32_t deltas)
{
	const struct ky_json_tree *tree = &json->tree;
	int64_t *last = &json->profiles[profile].last;
	uint32_t delta = deltas + 1;
	int64_t id, ns;

	for (uint32_t at = samples + 1;
	     at < tree->nodes[samples].next && delta < tree->nodes[deltas].next;
	     at = tree->nodes[at].next, delta = tree->nodes[delta].next) {
		if (!ky_json_tree_int(tree, at, &id) ||
		    !ky_json_tree_decimal(tree, delta, 3, &ns) ||
		    __builtin_add_overflow(*last, ns, last))
			continue;
		const uint64_t *callsite =
			ky_pair_map_find(&json->profile_nodes, profile, (uint64_t)id);
		if (callsite)
			keep_sample(json, &(struct ky_json_sample){*last, profile, thread,
								   (uint32_t)*callsite});
		else
			ky_problem(json->trace, "legacy_v8_cpu_profile_invalid_sample", KY_ERROR,
				   json->profiles[profile].position,
				   "a sample of an unknown node %lld", (long long)id);
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
				      KY_CPU_MODE_UNKNOWN, 1, what);
		else
			ky_problem(json->trace, "legacy_v8_cpu_profile_invalid_sample", KY_ERROR,
				   profile->position, "a sample of a profile without a start");
	}
	KY_ARRAY_FREE(json->profiles, json->profiles_room);
	KY_ARRAY_FREE(json->profile_samples, json->profile_samples_room);
	ky_pair_map_free(&json->profile_by_id);
	ky_pair_map_free(&json->profile_nodes);
	ky_pair_map_free(&json->profile_parents);
}

/* Add a piece of a profile: data and the profile are its objects, which share the members. */
static void add_piece(struct ky_json *json, uint32_t number, uint32_t thread, uint32_t data,
		      uint32_t profile)
{
	const struct ky_json_tree *tree = &json->tree;
	int64_t start;

	if (number == KY_NONE)
		return;
	if ((ky_json_tree_decimal(tree, ky_json_tree_get(tree, data, "startTime"), 3, &start) ||
	     ky_json_tree_decimal(tree, ky_json_tree_get(tree, profile, "startTime"), 3, &start)) &&
	    start >= 0)
		json->profiles[number].start = start;
	const uint32_t nodes = ky_json_tree_get(tree, profile, "nodes");
	if (nodes && tree->nodes[nodes].type == KY_JSON_ARRAY)
		add_nodes(json, number, nodes, json->profiles[number].position);
	const uint32_t samples = ky_json_tree_get(tree, profile, "samples");
	uint32_t deltas = ky_json_tree_get(tree, data, "timeDeltas");
	if (!deltas)
		deltas = ky_json_tree_get(tree, profile, "timeDeltas");
	if (samples && deltas && tree->nodes[samples].type == KY_JSON_ARRAY &&
	    tree->nodes[deltas].type == KY_JSON_ARRAY)
		add_samples(json, number, thread, samples, deltas);
}

void ky_json_profile_put(struct ky_json *json, const struct ky_json_event *event,
			 const uint8_t *end)
{
	struct ky_json_tree *tree = &json->tree;

	(void)ky_json_thread_of(json, event);
	if (!(event->has & KY_JSON_HAS_ID) || !event->args || *event->args != '{')
		return;
	if (ky_json_tree_parse(tree, event->args, end) != 0) {
		ky_json_fail(json, event, "its arguments are no JSON");
		return;
	}
	const uint32_t data = ky_json_tree_get(tree, 0, "data");
	const uint64_t id = ky_json_hash(event->id.at, event->id.bytes);
	if (data)
		add_piece(json, profile_of(json, ky_json_pid(event->pid), id, event->position),
			  ky_json_thread_of(json, event), data, member(tree, data, "cpuProfile"));
}

bool ky_json_cpuprofile_read(struct ky_json *json)
{
	struct ky_input *input = json->input;
	const uint8_t *stop = ky_json_feed_value(input, NULL);

	if (!stop || ky_json_tree_parse(&json->tree, input->at, input->end) != 0)
		return false;
	const uint32_t thread = ky_thread(json->trace, 1, 1);
	add_piece(json, profile_of(json, 1, 0, input->position), thread, 0, 0);
	ky_input_skip(input, (size_t)(stop - input->at));
	return true;
}
