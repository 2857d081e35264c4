/* SPDX-License-Identifier: MIT */
/* stack_join.c: see stack_join.h. */
#include "base/stack_join.h"

#include "base/array.h"

#include <string.h>

void ky_stack_join_free(struct ky_stack_join *join)
{
	KY_ARRAY_FREE(join->open, join->room);
	*join = (struct ky_stack_join){0};
}

/* ---- spans, in time order ---- */

static void send_begin(struct ky_stack_join *join, uint64_t ns, uint32_t function,
		       const struct ky_stack_sink *sink)
{
	join->sent_ns = ns > join->sent_ns ? ns : join->sent_ns;
	sink->begin(sink->context, join->sent_ns, function);
}

static void send_end(struct ky_stack_join *join, uint64_t ns, const struct ky_stack_sink *sink)
{
	join->sent_ns = ns > join->sent_ns ? ns : join->sent_ns;
	sink->end(sink->context, join->sent_ns);
}

static void open_frame(struct ky_stack_join *join, uint64_t ns, const struct ky_stack_frame *frame,
		       const struct ky_stack_sink *sink)
{
	if (join->count >= KY_STACK_DEPTH_MAX ||
	    !KY_ARRAY_ADD(join->open, join->count, join->room, *frame)) {
		join->left_out++;
		return;
	}
	send_begin(join, ns, frame->function, sink);
}

static void close_frames(struct ky_stack_join *join, uint64_t ns, uint32_t kept,
			 const struct ky_stack_sink *sink)
{
	while (join->count > kept) {
		join->count--;
		send_end(join, ns, sink);
	}
}

/* ---- off the CPU ---- */

/* Times never go back, although records of several CPUs may arrive slightly out of order. */
static uint64_t not_before(const struct ky_stack_join *join, uint64_t ns)
{
	ns = ns > join->last_ns ? ns : join->last_ns;
	ns = ns > join->sent_ns ? ns : join->sent_ns;
	if (join->offs_count && ns < join->offs[join->offs_count - 1].to)
		ns = join->offs[join->offs_count - 1].to;
	return join->is_off && ns < join->off.from ? join->off.from : ns;
}

/* Send those that ended before a time: they lie in the frames that are open now. */
static void send_offs(struct ky_stack_join *join, uint64_t until_ns,
		      const struct ky_stack_sink *sink)
{
	uint32_t sent = 0;
	for (; sent < join->offs_count && join->offs[sent].to <= until_ns; sent++) {
		send_begin(join, join->offs[sent].from, join->offs[sent].function, sink);
		send_end(join, join->offs[sent].to, sink);
	}
	join->offs_count -= sent;
	memmove(join->offs, join->offs + sent, join->offs_count * sizeof(join->offs[0]));
}

static void flush_offs(struct ky_stack_join *join, const struct ky_stack_sink *sink)
{
	if (!join->offs_count)
		return;
	send_offs(join, UINT64_MAX, sink);
	if (join->last_ns < join->sent_ns)
		join->last_ns = join->sent_ns;
}

void ky_stack_join_off(struct ky_stack_join *join, uint64_t ns, uint32_t function,
		       const struct ky_stack_sink *sink)
{
	if (join->is_off)
		ky_stack_join_on(join, ns, sink);
	join->off = (struct ky_stack_off){.from = not_before(join, ns), .function = function};
	join->is_off = true;
	join->off_sent = false;
}

void ky_stack_join_on(struct ky_stack_join *join, uint64_t ns, const struct ky_stack_sink *sink)
{
	if (!join->is_off)
		return;
	ns = not_before(join, ns);
	join->is_off = false;
	if (join->off_sent) {
		send_end(join, ns, sink);
		join->last_ns = join->sent_ns;
		return;
	}
	if (join->offs_count == KY_STACK_OFFS_MAX)
		flush_offs(join, sink);
	join->off.to = ns;
	join->offs[join->offs_count++] = join->off;
}

void ky_stack_join_settle(struct ky_stack_join *join, const struct ky_stack_sink *sink)
{
	flush_offs(join, sink);
	if (!join->is_off || join->off_sent)
		return;
	join->off_sent = true;
	send_begin(join, join->off.from, join->off.function, sink);
}

/* Return the middle of the CPU time since the last sample: the thread was on the CPU then. */
static uint64_t middle(const struct ky_stack_join *join, uint64_t ns)
{
	uint64_t at = join->last_ns;
	uint64_t left = ns - join->last_ns;
	for (uint32_t i = 0; i < join->offs_count; i++)
		left -= join->offs[i].to - join->offs[i].from;
	left /= 2;
	for (uint32_t i = 0; i < join->offs_count; i++) {
		const uint64_t on = join->offs[i].from - at;
		if (left < on)
			break;
		left -= on;
		at = join->offs[i].to;
	}
	return at + left;
}

/* ---- which frames continue ---- */

static bool is_same(const struct ky_stack_frame *a, const struct ky_stack_frame *b)
{
	return a->function == b->function &&
	       (a->returns == b->returns || !a->returns || !b->returns) &&
	       (a->place == b->place || !a->place || !b->place);
}

/* Return how many frames from open[at] on are the same as in the sample. */
static uint32_t same_from(const struct ky_stack_join *join, uint32_t at,
			  const struct ky_stack_sample *sample)
{
	uint32_t count = 0;
	while (count < sample->count && at + count < join->count &&
	       is_same(&join->open[at + count], &sample->frames[count]))
		count++;
	return count;
}

/* Return where the outermost frame of a cut stack is open; join->count if nowhere. */
static uint32_t find_outermost(const struct ky_stack_join *join,
			       const struct ky_stack_sample *sample)
{
	uint32_t at = 0;
	while (at < join->count && !(sample->count && sample->frames[0].place &&
				     join->open[at].place == sample->frames[0].place &&
				     is_same(&join->open[at], &sample->frames[0])))
		at++;
	return at;
}

/* Return how many root frames lie outside the outermost known frame. */
static uint32_t root_around(const struct ky_stack_join *join, const struct ky_stack_sample *sample)
{
	const uint32_t most = join->root < join->count ? join->root : join->count;
	const uint64_t place = sample->count ? sample->frames[0].place : 0;
	uint32_t count = 0;
	while (count < most && join->open[count].place > place)
		count++;
	return count;
}

/* `kept` spans continue, and the frames from `from` on begin, under a new "[truncated]" or not. */
struct change {
	uint32_t kept, from;
	bool truncated;
};

uint32_t ky_stack_join_kept(const struct ky_stack_join *join, const struct ky_stack_sample *sample)
{
	return same_from(join, 0, sample);
}

static struct change change_whole(struct ky_stack_join *join, const struct ky_stack_sample *sample)
{
	const uint32_t kept = ky_stack_join_kept(join, sample);
	if (join->wholes == 1 || kept < join->root)
		join->root = kept;
	join->wholes += join->wholes < 2;
	return (struct change){.kept = kept, .from = kept};
}

static struct change change_cut(const struct ky_stack_join *join,
				const struct ky_stack_sample *sample)
{
	const uint32_t at = find_outermost(join, sample);
	if (at < join->count) {
		const uint32_t same = same_from(join, at, sample);
		return (struct change){.kept = at + same, .from = same};
	}
	const uint32_t root = root_around(join, sample);
	const bool there = root < join->count && join->open[root].function == KY_STACK_TRUNCATED;
	return (struct change){.kept = root + there, .truncated = !there};
}

/* Complete what was unknown of the open frames. */
static void learn(struct ky_stack_join *join, const struct change *change,
		  const struct ky_stack_sample *sample)
{
	for (uint32_t i = 0; i < change->from; i++) {
		struct ky_stack_frame *open = &join->open[change->kept - change->from + i];
		open->returns = open->returns ? open->returns : sample->frames[i].returns;
		open->place = open->place ? open->place : sample->frames[i].place;
	}
}

void ky_stack_join_begin(struct ky_stack_join *join, uint64_t ns)
{
	if (join->since)
		return;
	join->since = true;
	join->last_ns = not_before(join, ns);
}

void ky_stack_join_sample(struct ky_stack_join *join, const struct ky_stack_sample *sample,
			  const struct ky_stack_sink *sink)
{
	static const struct ky_stack_frame truncated = {.function = KY_STACK_TRUNCATED};
	const uint64_t ns = not_before(join, sample->ns);
	/* The record of its return to the CPU may be lost. */
	ky_stack_join_on(join, ns, sink);
	if (!join->since)
		flush_offs(join, sink);
	const uint64_t at = join->since ? middle(join, ns) : ns;
	const struct change change =
		sample->whole ? change_whole(join, sample) : change_cut(join, sample);
	learn(join, &change, sample);
	send_offs(join, at, sink);
	close_frames(join, at, change.kept, sink);
	if (change.truncated)
		open_frame(join, at, &truncated, sink);
	for (uint32_t i = change.from; i < sample->count; i++)
		open_frame(join, at, &sample->frames[i], sink);
	send_offs(join, UINT64_MAX, sink);
	join->since = true;
	join->last_ns = ns;
}

void ky_stack_join_end(struct ky_stack_join *join, uint64_t ns, const struct ky_stack_sink *sink)
{
	ky_stack_join_settle(join, sink);
	ky_stack_join_on(join, ns, sink);
	close_frames(join, ns, 0, sink);
	join->since = false;
	join->last_ns = join->sent_ns;
	join->root = join->wholes = 0;
}
