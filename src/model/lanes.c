/* SPDX-License-Identifier: MIT */
/*
 * lanes.c: tracks for async spans of one name and process, which may overlap. Each name has a set of lanes: a cookie
 * that begins takes a free lane or a new one, and frees it when it ends. So there are as many tracks as spans that
 * were open at once, not as many as cookies.
 *
 *   set "load" ─▶ free: lane 2 ─▶ lane 0        held: (set, cookie) ─▶ lane
 */
#include "base/array.h"
#include "model/kernel_state.h"

/* Return the set of a key, made on first use; KY_NONE without memory. */
static uint32_t set_of(struct ky_lanes *lanes, const struct ky_lane_key *key)
{
	bool made;
	uint64_t *slot = ky_pair_map_add(&lanes->sets, (uint64_t)key->type << 32 | key->process,
					 key->name, &made);
	if (!slot)
		return KY_NONE;
	if (made) {
		if (!KY_ARRAY_GROW_ZERO(lanes->free, lanes->free_room,
					(uint64_t)lanes->sets_count + 1))
			return KY_NONE;
		*slot = lanes->sets_count++;
	}
	return (uint32_t)*slot;
}

static struct ky_lane *new_lane(struct ky_trace *trace, const struct ky_lane_key *key)
{
	struct ky_lanes *lanes = &trace->build->kernel->lanes;
	if (!KY_ARRAY_GROW_ZERO(lanes->lanes, lanes->lanes_room, (uint64_t)lanes->lanes_count + 1))
		return NULL;
	const struct ky_track_spec spec = {
		.kind = key->process == KY_NONE ? KY_TRACK_GLOBAL : KY_TRACK_PROCESS,
		.flags = KY_TRACK_ASYNC,
		.owner = key->process,
		.name = key->name,
		.type = key->type,
		.id = lanes->lanes_count,
	};
	struct ky_lane *lane = &lanes->lanes[lanes->lanes_count++];
	*lane = (struct ky_lane){.track = ky_track_new(trace, &spec)};
	return lane;
}

/* Take a lane of the set where nothing is open. */
static struct ky_lane *take_lane(struct ky_trace *trace, const struct ky_lane_key *key,
				 uint32_t set)
{
	struct ky_lanes *lanes = &trace->build->kernel->lanes;
	if (!lanes->free[set])
		return new_lane(trace, key);
	struct ky_lane *lane = &lanes->lanes[lanes->free[set] - 1];
	lanes->free[set] = lane->next;
	return lane;
}

struct ky_lane *ky_lane_begin(struct ky_trace *trace, const struct ky_lane_key *key)
{
	struct ky_lanes *lanes = &trace->build->kernel->lanes;
	bool made;
	uint32_t set = set_of(lanes, key);
	uint64_t *held = set == KY_NONE
				 ? NULL
				 : ky_pair_map_add(&lanes->held, set, (uint64_t)key->cookie, &made);
	if (!held) {
		ky_trace_no_memory(trace);
		return NULL;
	}
	if (!made && *held) {
		struct ky_lane *lane = &lanes->lanes[*held - 1];
		lane->open++;
		return lane;
	}
	struct ky_lane *lane = take_lane(trace, key, set);
	if (!lane) {
		ky_trace_no_memory(trace);
		return NULL;
	}
	lane->open = 1;
	lane->begins = 0;
	*held = (uint64_t)(lane - lanes->lanes) + 1;
	return lane;
}

struct ky_lane *ky_lane_end(struct ky_trace *trace, const struct ky_lane_key *key)
{
	struct ky_lanes *lanes = &trace->build->kernel->lanes;
	uint32_t set = set_of(lanes, key);
	const uint64_t *held =
		set == KY_NONE ? NULL : ky_pair_map_find(&lanes->held, set, (uint64_t)key->cookie);
	if (!held || !*held)
		return NULL;
	uint32_t number = (uint32_t)*held;
	struct ky_lane *lane = &lanes->lanes[number - 1];
	if (--lane->open == 0) {
		lane->next = lanes->free[set];
		lanes->free[set] = number;
		ky_pair_map_remove(&lanes->held, set, (uint64_t)key->cookie);
	}
	return lane;
}

void ky_lanes_free(struct ky_lanes *lanes)
{
	KY_ARRAY_FREE(lanes->lanes, lanes->lanes_room);
	KY_ARRAY_FREE(lanes->free, lanes->free_room);
	ky_pair_map_free(&lanes->sets);
	ky_pair_map_free(&lanes->held);
}
