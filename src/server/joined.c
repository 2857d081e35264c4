/* SPDX-License-Identifier: MIT */
/*
 * joined.c: samples joined to spans, as a flame chart shows them.
 *
 *   samples of a thread    │ main    │ main    │ main    │         │ main
 *                          │ read    │ read    │ write   │         │ read
 *   spans                  ├─ main ──┬─────────┬────────┤          ├─ main ─┤
 *                          ├─ read ────────────┤├ write ┤          ├─ read ─┤
 *
 * A callsite is a frame with all that called it, so samples that have the same callsite at a depth share all above it
 * too. A span lasts until the sample that does not share it; when the next one is more than GAP_MAX times the
 * usual distance away, the thread did not run in between, and the span lasts for one usual distance.
 *
 * Stacks that have nothing in common make many spans of few samples: DEPTH_MAX and SPANS_A_SAMPLE bound that. What is
 * left out then are the innermost frames; each sample still has them.
 */
#include "server/view_parts.h"

#include <errno.h>
#include <stdlib.h>

#define GAP_MAX 4
#define DEPTH_MAX 128u
#define SPANS_A_SAMPLE 24u
#define SPANS_MIN 65536u
#define DISTANCES_MAX 65536u /* that the usual one is taken from */

/* What is open of a thread. */
struct stack {
	uint32_t *spans; /* outermost first */
	uint32_t depth, room;
	int64_t last_ts;
	bool begun;
};

struct joiner {
	struct ky_joined *joined;
	const struct ky_trace *trace;
	struct stack *stacks; /* by thread */
	uint64_t rooms[7];    /* of the columns */
	int64_t usual_ns;
	uint64_t samples;
	uint32_t *shallow; /* by callsite: itself, or the one above it that is not too deep */
	uint32_t path[DEPTH_MAX]; /* callsites of a sample, outermost first */
};

/* ---- the usual distance ---- */

static int compare_distances(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return left < right ? -1 : left > right;
}

/* The median of what is between two samples of a thread. */
static int find_usual(struct joiner *joiner)
{
	const struct ky_samples *const samples = &joiner->trace->samples;
	int64_t *const distances = malloc(DISTANCES_MAX * sizeof(*distances));
	uint32_t count = 0;
	if (!distances)
		return -ENOMEM;
	for (uint32_t i = 0; i < samples->rows.count && count < DISTANCES_MAX; i++) {
		if (samples->thread[i] == KY_NONE)
			continue;
		struct stack *const stack = &joiner->stacks[samples->thread[i]];
		int64_t distance;
		if (stack->begun &&
		    !__builtin_sub_overflow(samples->ts[i], stack->last_ts, &distance) &&
		    distance > 0)
			distances[count++] = distance;
		stack->begun = true;
		stack->last_ts = samples->ts[i];
	}
	qsort(distances, count, sizeof(*distances), compare_distances);
	joiner->usual_ns = count ? distances[count / 2] : 0;
	free(distances);
	for (uint32_t i = 0; i < joiner->trace->threads.rows.count; i++)
		joiner->stacks[i].begun = false;
	return 0;
}

/*
 * Callers come before those that they call. Made once: a file may have one stack of millions of frames that
 * millions of samples share.
 */
static int find_shallow(struct joiner *joiner)
{
	const struct ky_callsites *const callsites = &joiner->trace->callsites;
	const uint32_t count = callsites->rows.count;
	joiner->shallow = malloc(((size_t)count + 1) * sizeof(*joiner->shallow));
	if (!joiner->shallow)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		joiner->shallow[i] =
			callsites->depth[i] < DEPTH_MAX ? i : joiner->shallow[callsites->parent[i]];
	return 0;
}

/* ---- spans ---- */

static bool make_room(struct joiner *joiner)
{
	struct ky_joined *const j = joiner->joined;
	const uint64_t need = (uint64_t)j->count + 1;
	uint64_t *const rooms = joiner->rooms;
	return need < KY_NONE &&
	       ky_array_grow_raw((void **)&j->ts, &rooms[0], sizeof(*j->ts), need) &&
	       ky_array_grow_raw((void **)&j->dur, &rooms[1], sizeof(*j->dur), need) &&
	       ky_array_grow_raw((void **)&j->frame, &rooms[2], sizeof(*j->frame), need) &&
	       ky_array_grow_raw((void **)&j->callsite, &rooms[3], sizeof(*j->callsite), need) &&
	       ky_array_grow_raw((void **)&j->thread, &rooms[4], sizeof(*j->thread), need) &&
	       ky_array_grow_raw((void **)&j->samples, &rooms[5], sizeof(*j->samples), need) &&
	       ky_array_grow_raw((void **)&j->depth, &rooms[6], sizeof(*j->depth), need);
}

static bool push(struct stack *stack, uint32_t span)
{
	if (stack->depth == stack->room) {
		const uint32_t room = stack->room ? stack->room * 2 : 16;
		uint32_t *const spans = realloc(stack->spans, room * sizeof(*spans));
		if (!spans)
			return false;
		stack->spans = spans;
		stack->room = room;
	}
	stack->spans[stack->depth++] = span;
	return true;
}

static bool begin_span(struct joiner *joiner, struct stack *stack, uint32_t sample,
		       uint32_t callsite)
{
	struct ky_joined *const joined = joiner->joined;
	if (!make_room(joiner) || !push(stack, joined->count))
		return false;
	const uint32_t span = joined->count++;
	joined->ts[span] = joiner->trace->samples.ts[sample];
	joined->dur[span] = 0;
	joined->frame[span] = joiner->trace->callsites.frame[callsite];
	joined->callsite[span] = callsite;
	joined->thread[span] = joiner->trace->samples.thread[sample];
	joined->samples[span] = 1;
	joined->depth[span] = (uint16_t)(stack->depth - 1);
	return true;
}

/* Ends what is open below that depth. */
static void end_spans(struct ky_joined *joined, struct stack *stack, uint32_t depth, int64_t ts)
{
	while (stack->depth > depth) {
		const uint32_t span = stack->spans[--stack->depth];
		int64_t dur;
		joined->dur[span] =
			__builtin_sub_overflow(ts, joined->ts[span], &dur) ? INT64_MAX : dur;
	}
}

/* When what is open ends if no sample follows. */
static int64_t natural_end(const struct joiner *joiner, const struct stack *stack)
{
	int64_t end;
	return __builtin_add_overflow(stack->last_ts, joiner->usual_ns, &end) ? INT64_MAX : end;
}

/* The callsites from the outermost on; returns how many. Deeper ones than there is room for are passed over. */
static uint32_t find_path(struct joiner *joiner, uint32_t callsite)
{
	const struct ky_callsites *const callsites = &joiner->trace->callsites;
	uint32_t depth = 0;
	if (callsite != KY_NONE) {
		callsite = joiner->shallow[callsite];
		depth = callsites->depth[callsite] + 1;
	}
	for (uint32_t i = depth; i-- > 0 && callsite != KY_NONE;
	     callsite = callsites->parent[callsite])
		joiner->path[i] = callsite;
	return depth;
}

static uint32_t shared_depth(const struct joiner *joiner, const struct stack *stack, uint32_t depth)
{
	uint32_t shared = 0;
	while (shared < depth && shared < stack->depth &&
	       joiner->joined->callsite[stack->spans[shared]] == joiner->path[shared])
		shared++;
	return shared;
}

static bool take_sample(struct joiner *joiner, uint32_t sample)
{
	const struct ky_samples *const samples = &joiner->trace->samples;
	struct stack *const stack = &joiner->stacks[samples->thread[sample]];
	const int64_t ts = samples->ts[sample];
	int64_t distance;
	if (stack->depth && (__builtin_sub_overflow(ts, stack->last_ts, &distance) ||
			     distance / GAP_MAX > joiner->usual_ns))
		end_spans(joiner->joined, stack, 0, natural_end(joiner, stack));
	uint32_t depth = find_path(joiner, samples->callsite[sample]);
	const uint32_t shared = shared_depth(joiner, stack, depth);
	end_spans(joiner->joined, stack, shared, ts);
	for (uint32_t i = 0; i < shared; i++)
		joiner->joined->samples[stack->spans[i]]++;
	if (joiner->joined->count > SPANS_MIN + SPANS_A_SAMPLE * ++joiner->samples &&
	    depth > shared)
		depth = shared + 1;
	stack->last_ts = ts;
	for (uint32_t i = shared; i < depth; i++)
		if (!begin_span(joiner, stack, sample, joiner->path[i]))
			return false;
	return true;
}

static int join(struct joiner *joiner)
{
	const struct ky_trace *const trace = joiner->trace;
	for (uint32_t i = 0; i < trace->samples.rows.count; i++)
		if (trace->samples.thread[i] != KY_NONE && !take_sample(joiner, i))
			return -ENOMEM;
	for (uint32_t i = 0; i < trace->threads.rows.count; i++) {
		struct stack *const stack = &joiner->stacks[i];
		int64_t end = natural_end(joiner, stack);
		if (end > trace->end_ns)
			end = trace->end_ns > stack->last_ts ? trace->end_ns : stack->last_ts;
		end_spans(joiner->joined, stack, 0, end);
	}
	return 0;
}

int ky_joined_open(struct ky_view *view)
{
	const uint32_t threads = view->trace->threads.rows.count;
	struct joiner *const joiner = calloc(1, sizeof(*joiner));
	int error = joiner ? 0 : -ENOMEM;
	if (!error) {
		joiner->joined = &view->joined;
		joiner->trace = view->trace;
		joiner->stacks = calloc((size_t)threads + 1, sizeof(*joiner->stacks));
		error = joiner->stacks ? 0 : -ENOMEM;
	}
	if (!error && view->trace->samples.rows.count) {
		error = find_usual(joiner);
		if (!error)
			error = find_shallow(joiner);
		if (!error)
			error = join(joiner);
	}
	for (uint32_t i = 0; joiner && joiner->stacks && i < threads; i++)
		free(joiner->stacks[i].spans);
	if (joiner) {
		free(joiner->stacks);
		free(joiner->shallow);
	}
	free(joiner);
	return error;
}

void ky_joined_close(struct ky_joined *joined)
{
	uint64_t room = 0;
	ky_array_free((void **)&joined->ts, &room);
	ky_array_free((void **)&joined->dur, &room);
	ky_array_free((void **)&joined->frame, &room);
	ky_array_free((void **)&joined->callsite, &room);
	ky_array_free((void **)&joined->thread, &room);
	ky_array_free((void **)&joined->samples, &room);
	ky_array_free((void **)&joined->depth, &room);
	joined->count = 0;
}
