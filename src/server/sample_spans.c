/* SPDX-License-Identifier: MIT */
/*
 * sample_spans.c: joins the samples of a trace into spans, as a flame chart shows them, by the rule of base/stack_join.h.
 *
 *   samples of a thread    │ main    │ main    │ main    │         │ main
 *                          │ read    │ read    │ write   │         │ read
 *   spans                  ├─ main ──────────────────────────┤     ├─ main ──┤
 *                          ├─ read ───────┬─ write ──────────┤     ├─ read ──┤
 *
 * A callsite is a frame with all its callers, so it identifies a frame as far as a trace does. When the next sample is more
 * than GAP_MAX times the usual distance away, the thread did not run in between, and its spans end one usual distance
 * after the last sample.
 *
 * Stacks that have nothing in common make many spans of few samples: DEPTH_MAX and SPANS_PER_SAMPLE bound that by
 * dropping the innermost frames. Each sample still has them.
 */
#include "base/array.h"
#include "server/view.h"

#include "base/stack_join.h"

#include <errno.h>
#include <stdlib.h>

#define GAP_MAX 4
#define DEPTH_MAX 128u
#define SPANS_PER_SAMPLE 24u
#define SPANS_MIN 65536u
#define DISTANCES_MAX 65536u /* the usual one is the median of these */

struct sampled_thread {
	struct ky_stack_join join;
	uint32_t open[DEPTH_MAX]; /* rows of the open spans, outermost first */
	uint32_t depth;
	int64_t last_ts;
	bool begun;
};

struct joiner {
	struct ky_sample_spans *spans;
	const struct ky_trace *trace;
	struct sampled_thread **threads; /* NULL: no sample yet */
	uint32_t thread;                 /* of the sample being joined */
	uint64_t rooms[7];               /* of the columns */
	int64_t usual_ns;
	uint64_t samples;
	uint32_t *shallow; /* by callsite: itself, or its nearest caller that is not too deep */
	bool no_memory;
	struct ky_stack_frame frames[DEPTH_MAX]; /* of a sample, outermost first */
};

/* The engine counts time without a sign; this keeps the order. */
static uint64_t to_join(int64_t ts)
{
	return (uint64_t)ts ^ (UINT64_C(1) << 63);
}

static int64_t from_join(uint64_t ns)
{
	return (int64_t)(ns ^ (UINT64_C(1) << 63));
}

/* ---- the usual distance ---- */

static struct sampled_thread *get_thread(struct joiner *joiner, uint32_t thread)
{
	if (!joiner->threads[thread])
		joiner->threads[thread] = calloc(1, sizeof(**joiner->threads));
	return joiner->threads[thread];
}

/* Find the median distance between two samples of a thread. */
static int find_usual(struct joiner *joiner)
{
	const struct ky_samples *const samples = &joiner->trace->samples;
	int64_t *const distances = malloc(DISTANCES_MAX * sizeof(*distances));
	uint32_t count = 0;
	bool enough = distances != NULL;
	for (uint32_t i = 0; enough && i < samples->rows.count && count < DISTANCES_MAX; i++) {
		if (samples->thread[i] == KY_NONE)
			continue;
		struct sampled_thread *const thread = get_thread(joiner, samples->thread[i]);
		int64_t distance;
		enough = thread != NULL;
		if (!enough)
			break;
		if (thread->begun &&
		    !__builtin_sub_overflow(samples->ts[i], thread->last_ts, &distance) &&
		    distance > 0)
			distances[count++] = distance;
		thread->begun = true;
		thread->last_ts = samples->ts[i];
	}
	if (enough) {
		qsort(distances, count, sizeof(*distances), ky_compare_i64);
		joiner->usual_ns = count ? distances[count / 2] : 0;
	}
	free(distances);
	for (uint32_t i = 0; i < joiner->trace->threads.rows.count; i++)
		if (joiner->threads[i])
			joiner->threads[i]->begun = false;
	return enough ? 0 : -ENOMEM;
}

/*
 * Callers come before callees. Made once: a file may have one stack of millions of frames that millions of samples
 * share.
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
	struct ky_sample_spans *const s = joiner->spans;
	const uint64_t need = (uint64_t)s->count + 1;
	uint64_t *const rooms = joiner->rooms;
	return need < KY_NONE && KY_ARRAY_GROW(s->ts, rooms[0], need) &&
	       KY_ARRAY_GROW(s->dur, rooms[1], need) && KY_ARRAY_GROW(s->frame, rooms[2], need) &&
	       KY_ARRAY_GROW(s->callsite, rooms[3], need) &&
	       KY_ARRAY_GROW(s->thread, rooms[4], need) &&
	       KY_ARRAY_GROW(s->samples, rooms[5], need) && KY_ARRAY_GROW(s->depth, rooms[6], need);
}

static void begin_span(void *context, uint64_t ns, uint32_t function)
{
	struct joiner *const joiner = context;
	struct ky_sample_spans *const spans = joiner->spans;
	struct sampled_thread *const thread = joiner->threads[joiner->thread];
	const uint32_t callsite = function - KY_STACK_FIRST;
	if (!make_room(joiner)) {
		joiner->no_memory = true;
		thread->open[thread->depth++] = KY_NONE;
		return;
	}
	const uint32_t span = spans->count++;
	spans->ts[span] = from_join(ns);
	spans->dur[span] = 0;
	spans->frame[span] = joiner->trace->callsites.frame[callsite];
	spans->callsite[span] = callsite;
	spans->thread[span] = joiner->thread;
	spans->samples[span] = 0;
	spans->depth[span] = (uint16_t)thread->depth;
	thread->open[thread->depth++] = span;
}

static void end_span(void *context, uint64_t ns)
{
	struct joiner *const joiner = context;
	struct sampled_thread *const thread = joiner->threads[joiner->thread];
	const uint32_t span = thread->open[--thread->depth];
	int64_t dur;
	if (span != KY_NONE)
		joiner->spans->dur[span] =
			__builtin_sub_overflow(from_join(ns), joiner->spans->ts[span], &dur)
				? INT64_MAX
				: dur;
}

/* ---- joining ---- */

/* Return when the open spans end if no sample follows. */
static int64_t natural_end(const struct joiner *joiner, const struct sampled_thread *thread)
{
	int64_t end;
	return __builtin_add_overflow(thread->last_ts, joiner->usual_ns, &end) ? INT64_MAX : end;
}

/* Fill joiner->frames, and return how many there are. */
static uint32_t find_frames(struct joiner *joiner, uint32_t callsite)
{
	const struct ky_callsites *const callsites = &joiner->trace->callsites;
	uint32_t depth = 0;
	if (callsite != KY_NONE) {
		callsite = joiner->shallow[callsite];
		depth = callsites->depth[callsite] + 1;
	}
	for (uint32_t i = depth; i-- > 0 && callsite != KY_NONE;
	     callsite = callsites->parent[callsite])
		joiner->frames[i].function = KY_STACK_FIRST + callsite;
	return depth;
}

static bool join_sample(struct joiner *joiner, uint32_t row, const struct ky_stack_sink *sink)
{
	const struct ky_samples *const samples = &joiner->trace->samples;
	const int64_t ts = samples->ts[row];
	struct sampled_thread *const thread = get_thread(joiner, samples->thread[row]);
	int64_t distance;
	if (!thread)
		return false;
	joiner->thread = samples->thread[row];
	if (thread->begun && (__builtin_sub_overflow(ts, thread->last_ts, &distance) ||
			      distance / GAP_MAX > joiner->usual_ns))
		ky_stack_join_end(&thread->join, to_join(natural_end(joiner, thread)), sink);
	struct ky_stack_sample sample = {.ns = to_join(ts),
					 .frames = joiner->frames,
					 .count = find_frames(joiner, samples->callsite[row]),
					 .whole = true};
	if (joiner->spans->count > SPANS_MIN + SPANS_PER_SAMPLE * ++joiner->samples) {
		const uint32_t kept = ky_stack_join_kept(&thread->join, &sample);
		sample.count = sample.count > kept ? kept + 1 : kept;
	}
	ky_stack_join_sample(&thread->join, &sample, sink);
	thread->begun = true;
	thread->last_ts = ts;
	if (joiner->no_memory || thread->join.left_out)
		return false;
	for (uint32_t i = 0; i < thread->depth; i++)
		joiner->spans->samples[thread->open[i]]++;
	return true;
}

static int join_all(struct joiner *joiner)
{
	const struct ky_trace *const trace = joiner->trace;
	const struct ky_stack_sink sink = {begin_span, end_span, joiner};
	for (uint32_t i = 0; i < trace->samples.rows.count; i++)
		if (trace->samples.thread[i] != KY_NONE && !join_sample(joiner, i, &sink))
			return -ENOMEM;
	for (uint32_t i = 0; i < trace->threads.rows.count; i++) {
		struct sampled_thread *const thread = joiner->threads[i];
		if (!thread)
			continue;
		int64_t end = natural_end(joiner, thread);
		if (end > trace->end_ns)
			end = trace->end_ns > thread->last_ts ? trace->end_ns : thread->last_ts;
		joiner->thread = i;
		ky_stack_join_end(&thread->join, to_join(end), &sink);
	}
	return 0;
}

int ky_sample_spans_open(struct ky_view *view)
{
	const uint32_t threads = view->trace->threads.rows.count;
	struct joiner *const joiner = calloc(1, sizeof(*joiner));
	if (joiner)
		joiner->threads = calloc((size_t)threads + 1, sizeof(*joiner->threads));
	int error = joiner && joiner->threads ? 0 : -ENOMEM;
	if (!error && view->trace->samples.rows.count) {
		joiner->spans = &view->sample_spans;
		joiner->trace = view->trace;
		error = find_usual(joiner);
		if (!error)
			error = find_shallow(joiner);
		if (!error)
			error = join_all(joiner);
	}
	for (uint32_t i = 0; joiner && joiner->threads && i < threads; i++)
		if (joiner->threads[i]) {
			ky_stack_join_free(&joiner->threads[i]->join);
			free(joiner->threads[i]);
		}
	if (joiner) {
		free(joiner->threads);
		free(joiner->shallow);
	}
	free(joiner);
	return error;
}

void ky_sample_spans_close(struct ky_sample_spans *spans)
{
	ky_array_release(spans->ts);
	ky_array_release(spans->dur);
	ky_array_release(spans->frame);
	ky_array_release(spans->callsite);
	ky_array_release(spans->thread);
	ky_array_release(spans->samples);
	ky_array_release(spans->depth);
	*spans = (struct ky_sample_spans){0};
}
