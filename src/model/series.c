/* SPDX-License-Identifier: MIT */
/*
 * series.c: kernel events that depend on those before them: counters of the thread that has a tid at that time, sums
 * over all events so far, and spans that take a free track while they last.
 */
#include "base/array.h"
#include "model/kernel_state.h"

/* ---- lanes of asynchronous spans ---- */

/*
 * Tracks for async spans of one name and process, which may overlap. Each name has a set of lanes: a cookie
 * that begins takes a free lane or a new one, and frees it when it ends. So there are as many tracks as spans that
 * were open at once, not as many as cookies.
 *
 *   set "load" ─▶ free: lane 2 ─▶ lane 0        held: (set, cookie) ─▶ lane
 */

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

/* ---- putting ---- */

void ky_put_tid_counter(struct ky_trace *trace, int64_t ts, int32_t tid, enum ky_track_kind kind,
			uint32_t name, double value, uint32_t args)
{
	const uint64_t bits = ky_real_bits(value);
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TID_COUNTER, KY_TWO_WORDS(bits), (uint32_t)tid,
		      (uint32_t)kind, name, args);
}

void ky_put_sum(struct ky_trace *trace, int64_t ts, uint32_t track, uint64_t add, uint32_t unit,
		uint32_t args)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_SUM, KY_TWO_WORDS(add), track, unit, args);
}

void ky_put_counter_since(struct ky_trace *trace, int64_t ts, uint32_t track, double value)
{
	const uint64_t bits = ky_real_bits(value);
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_SINCE, KY_TWO_WORDS(bits), track);
}

void ky_put_lane(struct ky_trace *trace, int64_t ts, bool begins, const struct ky_lane_span *span)
{
	const uint64_t cookie = (uint64_t)span->cookie;
	KY_PUT_KERNEL(trace, ts, begins ? KY_KERNEL_LANE_BEGIN : KY_KERNEL_LANE_END,
		      KY_TWO_WORDS(cookie), span->type, span->track, span->category, span->name,
		      span->args, span->latency);
}

/* ---- applying ---- */

static void apply_counter(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	uint32_t owner = ky_kernel_thread(trace, (int32_t)words[2]);
	enum ky_track_kind kind = (enum ky_track_kind)words[3];
	const double value = ky_words_real(words);
	if (owner == KY_NONE)
		return;
	if (kind == KY_TRACK_PROCESS_COUNTER && trace->threads.process[owner] != KY_NONE)
		owner = trace->threads.process[owner];
	else
		kind = KY_TRACK_THREAD_COUNTER;
	ky_build_counter(trace, ts, ky_track_counter(trace, kind, owner, words[4]), value,
			 words[5]);
}

static void apply_sum(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	bool made;
	uint64_t *sum = ky_pair_map_add(&trace->build->kernel->sums, words[2], 0, &made);
	if (!sum) {
		ky_trace_no_memory(trace);
		return;
	}
	*sum += ky_words_u64(words);
	/* Whole units, as in Perfetto. */
	const uint64_t units = *sum / (words[3] ? words[3] : 1);
	ky_build_counter(trace, ts, words[2], (double)units, words[4]);
}

static void apply_since(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	bool made;
	uint64_t *last = ky_pair_map_add(&trace->build->kernel->sums, words[2], 1, &made);
	if (!last) {
		ky_trace_no_memory(trace);
		return;
	}
	if (*last)
		trace->counters.value[*last - 1] = ky_words_real(words);
	const uint32_t rows = trace->counters.rows.count;
	ky_build_counter(trace, ts, words[2], 0, 0);
	if (trace->counters.rows.count > rows)
		*last = (uint64_t)rows + 1;
}

static void apply_lane(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words)
{
	const struct ky_lane_key key = {
		.type = words[2],
		.process = KY_NONE,
		.name = words[3],
		.cookie = (int64_t)ky_words_u64(words),
	};
	struct ky_lane *lane =
		sub == KY_KERNEL_LANE_BEGIN ? ky_lane_begin(trace, &key) : ky_lane_end(trace, &key);
	if (lane && sub == KY_KERNEL_LANE_BEGIN) {
		lane->begins = words[7] != 0;
		lane->last_begin_ts = ts;
		ky_build_begin(trace, ts, lane->track, words[4], words[5], words[6]);
	} else if (lane) {
		ky_build_end(trace, ts, lane->track, words[4], words[5], words[6]);
		if (lane->begins && words[7])
			ky_build_counter(trace, ts, words[7] - 1,
					 (double)(ts - lane->last_begin_ts), 0);
	} else if (sub == KY_KERNEL_LANE_END) {
		ky_problem(trace, "misplaced_end_event", KY_DATA_LOSS, KY_NO_PLACE,
			   "a span of a device ends that did not begin");
	}
}

void ky_series_apply(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words)
{
	if (sub == KY_KERNEL_TID_COUNTER)
		apply_counter(trace, ts, words);
	else if (sub == KY_KERNEL_SUM)
		apply_sum(trace, ts, words);
	else if (sub == KY_KERNEL_SINCE)
		apply_since(trace, ts, words);
	else
		apply_lane(trace, ts, sub, words);
}
