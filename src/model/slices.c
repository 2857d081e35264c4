/* SPDX-License-Identifier: MIT */
/*
 * slices.c: slices from begin, end, complete and instant events in the order of time, by the rules of Perfetto's slice
 * tracker.
 *
 * A track's stack holds the slices that may still get children: open ones, and those whose end is known but not yet
 * reached. Before an event at time t those that ended by then are popped:
 *
 *   ┌──────── A (open) ────────           stack: A C
 *   │ ┌─ B ─┐   ┌──── C ────┐             B ended before t, C will end after it
 *   └─┴─────┴───┴──── t ────┴──
 *
 * An end that fits a slice further down ends that one; the open ones above it end with it once time has passed
 * it.
 */
#include "base/array.h"
#include "model/build.h"

/*
 * How many slices are in each other at most: as many as Perfetto takes when more than a few of them have a known end,
 * which are looked at with each event; otherwise as many as a recursive function has.
 */
#define FINITE_FEW 2u
#define FINITE_DEPTH_MAX 512u
#define DEPTH_MAX 32768u
/*
 * How many tracks are tried, in order, for a slice that overlaps others, before it gets one to
 * itself.
 */
#define CHAIN_MAX 32u

struct ky_track_state *ky_track_state_make(struct ky_trace *trace, uint32_t track)
{
	struct ky_build *build = trace->build;
	const uint64_t had = build->states_room;
	if (!KY_ARRAY_GROW_ZERO(build->states, build->states_room, (uint64_t)track + 1)) {
		ky_trace_no_memory(trace);
		return NULL;
	}
	for (uint64_t i = had; i < build->states_room; i++)
		build->states[i] = (struct ky_track_state){
			.last = KY_NONE, .overflow = KY_NONE, .pending = KY_NONE};
	return &build->states[track];
}

static inline bool push(struct ky_trace *trace, struct ky_track_state *state, uint32_t slice)
{
	if (!KY_ARRAY_ADD(state->stack, state->depth, state->room, slice)) {
		ky_trace_no_memory(trace);
		return false;
	}
	return true;
}

/* Return the end of a slice that has one, saturated. */
static int64_t end_of(const struct ky_slices *slices, uint32_t slice)
{
	int64_t end;
	return __builtin_add_overflow(slices->ts[slice], slices->dur[slice], &end) ? INT64_MAX
										   : end;
}

/* End the slices above one that ended, at its end, and pop them all. */
static void truncate_above(struct ky_trace *trace, struct ky_track_state *state, uint32_t at)
{
	struct ky_slices *slices = &trace->slices;
	const int64_t end = end_of(slices, state->stack[at]);
	ky_problem(trace, "misplaced_end_event", KY_DATA_LOSS, KY_NO_PLACE,
		   "a slice ended before one that began in it");
	while (state->depth > at + 1) {
		const uint32_t child = state->stack[--state->depth];
		/*
		 * The ended slice may have begun later: the innermost is popped first, whichever
		 * ended.
		 */
		slices->dur[child] = end > slices->ts[child] ? end - slices->ts[child] : 0;
	}
	state->depth = at;
	state->finite = 0;
	for (uint32_t i = 0; i < at; i++)
		state->finite += slices->dur[state->stack[i]] >= 0;
}

/*
 * Pop what ended by ts. moment: the next slice has no duration, and nests in one without duration
 * at ts.
 */
static void close_finite(struct ky_trace *trace, struct ky_track_state *state, int64_t ts,
			 bool moment)
{
	const struct ky_slices *slices = &trace->slices;
	bool open_above = false;
	for (uint32_t i = state->depth; state->finite && i-- > 0;) {
		const uint32_t slice = state->stack[i];
		if (slices->dur[slice] < 0) {
			open_above = true;
			continue;
		}
		const int64_t end = end_of(slices, slice);
		if (open_above) {
			if (ts > end) {
				truncate_above(trace, state, i);
				open_above = false;
			}
		} else if (end < ts || (end == ts && !(moment && slices->dur[slice] == 0))) {
			/* The innermost is popped, as in Perfetto, whichever of them ended. */
			state->depth--;
			state->finite--;
		}
	}
}

/* With begins and ends alone, as in most traces, there is nothing to pop. */
static inline void close_ended(struct ky_trace *trace, struct ky_track_state *state, int64_t ts,
			       bool moment)
{
	if (state->finite)
		close_finite(trace, state, ts, moment);
}

static uint32_t start(struct ky_trace *trace, struct ky_track_state *state, int64_t ts, int64_t dur,
		      uint32_t track, uint32_t category, uint32_t name, uint32_t args, uint8_t kind)
{
	struct ky_slices *slices = &trace->slices;
	const uint32_t most = state->finite > FINITE_FEW ? FINITE_DEPTH_MAX : DEPTH_MAX;
	if (state->depth >= most) {
		ky_problem(trace, "slice_too_deep", KY_DATA_LOSS, KY_NO_PLACE,
			   "more than %u slices in each other", most);
		return KY_NONE;
	}
	const uint32_t slice = ky_append(trace, slices);
	if (slice == KY_NONE)
		return KY_NONE;
	slices->ts[slice] = ts;
	slices->dur[slice] = dur;
	slices->track[slice] = track;
	slices->category[slice] = category;
	slices->name[slice] = name;
	slices->args[slice] = args;
	slices->depth[slice] = (uint16_t)state->depth;
	slices->parent[slice] = state->depth ? state->stack[state->depth - 1] : KY_NONE;
	slices->kind[slice] = kind;
	state->last = slice;
	if (push(trace, state, slice))
		state->finite += dur >= 0;
	if (__builtin_expect(state->pending != KY_NONE, 0))
		ky_flows_begun(trace, state, slice);
	return slice;
}

uint32_t ky_build_begin(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
			uint32_t name, uint32_t args)
{
	struct ky_track_state *state = ky_track_state(trace, track);
	if (!state)
		return KY_NONE;
	close_ended(trace, state, ts, false);
	return start(trace, state, ts, -1, track, category, name, args, KY_SLICE_SPAN);
}

/* Report whether a slice that begins now would outlast the one around it. */
static bool escapes(const struct ky_slices *slices, const struct ky_track_state *state, int64_t ts,
		    int64_t dur)
{
	if (!state->depth)
		return false;
	const uint32_t top = state->stack[state->depth - 1];
	int64_t end;
	if (__builtin_add_overflow(ts, dur, &end))
		end = INT64_MAX;
	return slices->dur[top] >= 0 && end > end_of(slices, top);
}

/* Return a track beside this one where the slice overlaps nothing; KY_NONE without memory. */
static uint32_t track_beside(struct ky_trace *trace, uint32_t track, int64_t ts, int64_t dur)
{
	uint32_t at = track;
	for (uint32_t tries = 0; tries < CHAIN_MAX; tries++) {
		uint32_t next = ky_track_state(trace, at)->overflow;
		if (next == KY_NONE) {
			next = ky_overflow_track(trace, at);
			ky_track_state(trace, at)->overflow = next;
		}
		at = next;
		struct ky_track_state *state = ky_track_state(trace, at);
		if (!state || trace->error)
			return KY_NONE;
		close_ended(trace, state, ts, dur == 0);
		if (!escapes(&trace->slices, state, ts, dur))
			return at;
	}
	at = ky_overflow_crowd(trace, at, ts, dur);
	struct ky_track_state *state = ky_track_state(trace, at);
	if (state)
		close_ended(trace, state, ts, dur == 0);
	return state && !trace->error ? at : KY_NONE;
}

/* The thread's flows bind to the slice as if it were on the thread's track. */
static uint32_t start_beside(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
			     uint32_t category, uint32_t name, uint32_t args)
{
	ky_problem(trace, "slice_overlap", KY_INFO, KY_NO_PLACE,
		   "slices of one thread overlap: the later is on a track of its own");
	const uint32_t beside = track_beside(trace, track, ts, dur);
	if (beside == KY_NONE)
		return KY_NONE;
	const uint32_t slice = start(trace, ky_track_state(trace, beside), ts, dur, beside,
				     category, name, args, KY_SLICE_SPAN);
	struct ky_track_state *own = ky_track_state(trace, track);
	if (slice == KY_NONE || !own)
		return slice;
	own->last = slice;
	if (own->pending != KY_NONE)
		ky_flows_begun(trace, own, slice);
	return slice;
}

uint32_t ky_build_complete(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
			   uint32_t category, uint32_t name, uint32_t args)
{
	struct ky_track_state *state = ky_track_state(trace, track);
	if (!state)
		return KY_NONE;
	if (dur < 0) {
		ky_problem(trace, "slice_negative_duration", KY_DATA_LOSS, KY_NO_PLACE,
			   "a slice of %lld ns", (long long)dur);
		return KY_NONE;
	}
	close_ended(trace, state, ts, dur == 0);
	if (escapes(&trace->slices, state, ts, dur))
		return start_beside(trace, ts, dur, track, category, name, args);
	return start(trace, state, ts, dur, track, category, name, args, KY_SLICE_SPAN);
}

uint32_t ky_build_instant(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
			  uint32_t name, uint32_t args)
{
	struct ky_track_state *state = ky_track_state(trace, track);
	if (!state)
		return KY_NONE;
	close_ended(trace, state, ts, true);
	if (state->depth >= FINITE_DEPTH_MAX)
		close_ended(trace, state, ts, false);
	return start(trace, state, ts, 0, track, category, name, args, KY_SLICE_INSTANT);
}

/* Return the stack position of the innermost open slice that fits, or KY_NONE. */
static uint32_t find_open(const struct ky_slices *slices, const struct ky_track_state *state,
			  uint32_t category, uint32_t name)
{
	for (uint32_t i = state->depth; i-- > 0;) {
		const uint32_t slice = state->stack[i];
		if (slices->dur[slice] < 0 && (!category || slices->category[slice] == category) &&
		    (!name || !slices->name[slice] || slices->name[slice] == name))
			return i;
	}
	return KY_NONE;
}

uint32_t ky_build_end(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		      uint32_t name, uint32_t args)
{
	struct ky_slices *slices = &trace->slices;
	struct ky_track_state *state = ky_track_state(trace, track);
	if (!state)
		return KY_NONE;
	close_ended(trace, state, ts, false);
	const uint32_t at = find_open(slices, state, category, name);
	if (at == KY_NONE) {
		ky_problem(trace, "end_without_begin", KY_INFO, KY_NO_PLACE,
			   "an end of a slice that is not open");
		return KY_NONE;
	}
	const uint32_t slice = state->stack[at];
	int64_t dur;
	if (__builtin_sub_overflow(ts, slices->ts[slice], &dur))
		dur = INT64_MAX;
	slices->dur[slice] = dur < 0 ? 0 : dur;
	if (args)
		slices->args[slice] =
			slices->args[slice] ? ky_args_join(trace, slices->args[slice], args) : args;
	if (at + 1 == state->depth)
		state->depth--;
	else
		state->finite++;
	return slice;
}
