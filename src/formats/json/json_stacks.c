/* SPDX-License-Identifier: MIT */
/*
 * json_stacks.c: the top-level values stackFrames (frames by id, each with its parent) and samples
 * (a time, a thread and the id of a frame). Either may come first, so both are kept until all is
 * read. Perfetto leaves them out; catapult and speedscope show them.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/json/json_scan.h"

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

bool ky_json_stack_frames_read(struct ky_json *json)
{
	struct ky_input *input = json->input;
	struct ky_json_stacks *stacks = stacks_of(json);
	char key[KY_JSON_KEY_BYTES];
	enum ky_json_fault fault;
	int more;

	if (!stacks || *input->at != '{')
		return ky_json_feed_skip(input, &fault);
	ky_input_skip(input, 1);
	while ((more = ky_json_feed_key(input, key, &fault)) > 0) {
		const uint8_t *stop = ky_json_feed_value(input, &fault);
		if (!stop)
			return false;
		if (*input->at == '{' &&
		    ky_json_tree_parse(&json->tree, input->at, input->end) == 0)
			add_frame(json, stacks, ky_json_hash((uint8_t *)key, strlen(key)) | 1);
		ky_input_skip(input, (size_t)(stop - input->at));
	}
	return more == 0;
}

static void add_sample(struct ky_json *json, struct ky_json_stacks *stacks)
{
	const struct ky_json_tree *tree = &json->tree;
	struct ky_json_number number;
	struct sample sample = {.weight = 1, .cpu = KY_NONE, .position = json->input->position};
	int64_t cpu;

	if (!ky_json_tree_number(tree, ky_json_tree_get(tree, 0, "ts"), &number) ||
	    !(number.d >= 0 && number.d < 9e15) ||
	    !ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "tid"), &sample.tid)) {
		ky_problem(json->trace, "json_sample_invalid", KY_ERROR, sample.position,
			   "a sample needs ts and tid");
		return;
	}
	sample.ts = number.integer ? number.i * 1000 : (int64_t)(number.d * 1000 + 0.5);
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

bool ky_json_samples_read(struct ky_json *json)
{
	struct ky_input *input = json->input;
	struct ky_json_stacks *stacks = stacks_of(json);
	enum ky_json_fault fault;
	int more;

	if (!stacks || *input->at != '[')
		return ky_json_feed_skip(input, &fault);
	ky_input_skip(input, 1);
	while ((more = ky_json_feed_element(input, &fault)) > 0) {
		const uint8_t *stop = ky_json_feed_value(input, &fault);
		if (!stop)
			return false;
		if (*input->at == '{' &&
		    ky_json_tree_parse(&json->tree, input->at, input->end) == 0)
			add_sample(json, stacks);
		ky_input_skip(input, (size_t)(stop - input->at));
	}
	return more == 0;
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
