/* SPDX-License-Identifier: MIT */
/*
 * flows.c: arrows between slices from flow events, by the rules of Perfetto's flow tracker: an id is open at the
 * slice of its last event; each further event makes an arrow from there. Arrows point forward in time.
 */
#include "base/array.h"
#include "model/build.h"

#include <stdlib.h>

#define ARRIVED (UINT64_C(1) << 32)  /* flag beside the slice that a flow is at: it has an arrow */
#define KEY_MADE (UINT64_C(1) << 63) /* a key of ky_flow_key(): an index of flow_parts */

uint64_t ky_flow_key(struct ky_trace *trace, uint64_t id, uint32_t category, uint32_t name,
		     uint64_t scope)
{
	struct ky_build *build = trace->build;
	bool made;
	uint64_t *key = ky_pair_map_add(&build->flow_keys, ky_hash_pair(id, scope),
					(uint64_t)category << 32 | name, &made);
	if (!key || !KY_ARRAY_GROW_ZERO(build->flow_parts, build->flow_parts_room,
					build->flow_parts_count + 1)) {
		ky_trace_no_memory(trace);
		return id;
	}
	if (made) {
		build->flow_parts[build->flow_parts_count] =
			(struct ky_flow_parts){id, category, name};
		*key = build->flow_parts_count++;
	}
	return *key | KEY_MADE;
}

/* Return the parts of a key, as in the file. */
static struct ky_flow_parts parts_of(const struct ky_trace *trace, uint64_t id)
{
	const struct ky_build *build = trace->build;
	if (id & KEY_MADE && (id & ~KEY_MADE) < build->flow_parts_count)
		return build->flow_parts[id & ~KEY_MADE];
	return (struct ky_flow_parts){id, 0, 0};
}

static void add_end(struct ky_trace *trace, uint64_t id, uint32_t slice, bool arrives)
{
	struct ky_flow_ends *ends = &trace->flow_ends;
	const struct ky_flow_parts parts = parts_of(trace, id);
	const uint32_t row = ky_append(trace, ends);
	if (row == KY_NONE)
		return;
	ends->slice[row] = slice;
	ends->id[row] = parts.id;
	ends->name[row] = parts.name;
	ends->category[row] = parts.category;
	ends->arrives[row] = arrives;
}

void ky_flows_add(struct ky_trace *trace, uint32_t out, uint32_t in, struct ky_flow_parts parts)
{
	struct ky_flows *flows = &trace->flows;
	const uint32_t row = ky_append(trace, flows);
	if (row == KY_NONE)
		return;
	flows->out[row] = out;
	flows->in[row] = in;
	flows->id[row] = parts.id;
	flows->name[row] = parts.name;
	flows->category[row] = parts.category;
}

static void add_arrow(struct ky_trace *trace, uint64_t id, uint32_t out, uint32_t in)
{
	const bool backward = trace->slices.ts[out] > trace->slices.ts[in];
	ky_flows_add(trace, backward ? in : out, backward ? out : in, parts_of(trace, id));
}

static void begin(struct ky_trace *trace, uint64_t id, uint32_t slice)
{
	bool made;
	uint64_t *at = ky_pair_map_add(&trace->build->flow_open, id, 0, &made);
	if (!at)
		ky_trace_no_memory(trace);
	else if (made)
		*at = slice;
	else
		ky_problem(trace, "flow_duplicate_id", KY_INFO, KY_NO_PLACE,
			   "a flow begins again before it ended");
}

/* Add an arrow from the flow's slice to this one. */
static void arrive(struct ky_trace *trace, uint64_t id, uint32_t slice, enum ky_flow_step step)
{
	uint64_t *at = ky_pair_map_find(&trace->build->flow_open, id, 0);
	if (!at) {
		ky_problem(trace,
			   step == KY_FLOW_STEP ? "flow_step_without_start"
						: "flow_end_without_start",
			   KY_INFO, KY_NO_PLACE, "a flow that did not begin");
		add_end(trace, id, slice, true);
		return;
	}
	add_arrow(trace, id, (uint32_t)*at, slice);
	if (step == KY_FLOW_STEP)
		*at = slice;
	*at |= ARRIVED;
	if (step == KY_FLOW_ANY_END)
		ky_pair_map_remove(&trace->build->flow_open, id, 0);
}

static void apply(struct ky_trace *trace, uint64_t id, uint32_t slice, enum ky_flow_step step)
{
	if (step == KY_FLOW_BEGIN)
		begin(trace, id, slice);
	else if (step != KY_FLOW_ANY)
		arrive(trace, id, slice, step);
	else if (ky_pair_map_find(&trace->build->flow_open, id, 0))
		arrive(trace, id, slice, KY_FLOW_STEP);
	else
		begin(trace, id, slice);
}

static int by_slice(const void *left, const void *right)
{
	const struct ky_pair_slot *a = *(const struct ky_pair_slot *const *)left;
	const struct ky_pair_slot *b = *(const struct ky_pair_slot *const *)right;
	return KY_COMPARE_THEN(a->value, b->value, KY_COMPARE(a->a, b->a));
}

/* The map's order differs in every run: rows are in the order of the slices. */
void ky_flows_finish(struct ky_trace *trace)
{
	const struct ky_pair_map *open = &trace->build->flow_open;
	if (!open->table.count)
		return;
	const struct ky_pair_slot **ends = malloc(open->table.count * sizeof(*ends));
	if (!ends) {
		ky_trace_no_memory(trace);
		return;
	}
	uint32_t count = 0, at = 0;
	for (const struct ky_pair_slot *slot; (slot = ky_pair_map_next(open, &at));)
		if (!(slot->value & ARRIVED))
			ends[count++] = slot;
	qsort(ends, count, sizeof(*ends), by_slice);
	for (uint32_t i = 0; i < count; i++)
		add_end(trace, ends[i]->a, (uint32_t)ends[i]->value, false);
	free(ends);
}

/* Make a flow wait for the next slice of the track. */
static void wait_for_next(struct ky_trace *trace, struct ky_track_state *state, uint64_t id)
{
	struct ky_build *build = trace->build;
	if (build->pending_count >= KY_NONE ||
	    !KY_ARRAY_GROW_ZERO(build->pending_flows, build->pending_room,
				build->pending_count + 1)) {
		ky_trace_no_memory(trace);
		return;
	}
	build->pending_flows[build->pending_count] = (struct ky_pending_flow){id, state->pending};
	state->pending = (uint32_t)build->pending_count++;
}

void ky_flows_begun(struct ky_trace *trace, struct ky_track_state *state, uint32_t slice)
{
	const struct ky_build *build = trace->build;
	uint32_t at = state->pending;
	state->pending = KY_NONE;
	while (at != KY_NONE) {
		arrive(trace, build->pending_flows[at].id, slice, KY_FLOW_END);
		at = build->pending_flows[at].next;
	}
}

void ky_build_flow(struct ky_trace *trace, uint32_t track, enum ky_flow_step step,
		   enum ky_flow_bind bind, uint64_t id)
{
	struct ky_track_state *state = ky_track_state(trace, track);
	if (!state)
		return;
	if (bind == KY_BIND_NEXT) {
		wait_for_next(trace, state, id);
		return;
	}
	uint32_t slice = state->last;
	if (bind == KY_BIND_ENCLOSING)
		slice = state->depth ? state->stack[state->depth - 1] : KY_NONE;
	if (slice == KY_NONE)
		ky_problem(trace, "flow_no_enclosing_slice", KY_INFO, KY_NO_PLACE,
			   "a flow event outside of any slice");
	else
		apply(trace, id, slice, step);
}
