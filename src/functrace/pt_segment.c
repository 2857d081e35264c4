/* SPDX-License-Identifier: MIT */
/* pt_segment.c: see pt_segment.h. */
#include "functrace/pt_segment.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void ky_pt_segment_open(struct ky_pt_segment *segment, const struct ky_pt_calls *calls,
			uint64_t since)
{
	*segment = (struct ky_pt_segment){.calls = calls, .since = since, .passed = since == 0};
}

static void forget_marks(struct ky_pt_segment *segment)
{
	for (uint32_t i = 0; i < segment->count; i++)
		if (segment->marks[i].kind == KY_PT_INSTANT)
			free(segment->marks[i].text);
	segment->count = 0;
	segment->lost_count = 0;
}

void ky_pt_segment_close(struct ky_pt_segment *segment)
{
	forget_marks(segment);
	ky_array_release(segment->marks);
	ky_array_release(segment->lost);
	ky_array_release(segment->held);
	*segment = (struct ky_pt_segment){0};
}

/* Return false without memory. */
static bool put(struct ky_pt_mark **marks, uint32_t *count, uint32_t *room,
		const struct ky_pt_mark *mark)
{
	return KY_ARRAY_ADD(*marks, *count, *room, *mark);
}

static bool add(struct ky_pt_segment *segment, const struct ky_pt_mark *mark)
{
	if (!segment->failed && !put(&segment->marks, &segment->count, &segment->room, mark))
		segment->failed = true;
	return !segment->failed;
}

void ky_pt_segment_begin(struct ky_pt_segment *segment, uint64_t ns, uint64_t start)
{
	add(segment, &(struct ky_pt_mark){.ns = ns, .start = start, .kind = KY_PT_BEGIN});
}

void ky_pt_segment_lost(struct ky_pt_segment *segment, uint64_t start)
{
	const struct ky_pt_mark mark = {.start = start, .kind = KY_PT_BEGIN, .lost = true};
	if (!segment->failed &&
	    !put(&segment->lost, &segment->lost_count, &segment->lost_room, &mark))
		segment->failed = true;
}

void ky_pt_segment_gap(struct ky_pt_segment *segment, uint64_t ns, const char *what)
{
	add(segment, &(struct ky_pt_mark){.ns = ns, .what = what, .kind = KY_PT_GAP});
}

void ky_pt_segment_gap_end(struct ky_pt_segment *segment, uint64_t ns)
{
	add(segment, &(struct ky_pt_mark){.ns = ns, .kind = KY_PT_GAP_END});
}

void ky_pt_segment_end(struct ky_pt_segment *segment, uint64_t ns)
{
	add(segment, &(struct ky_pt_mark){.ns = ns, .kind = KY_PT_END});
}

void ky_pt_segment_instant(struct ky_pt_segment *segment, uint64_t ns, const char *text)
{
	char *copy = strdup(text);
	if (!copy ||
	    !add(segment, &(struct ky_pt_mark){.ns = ns, .text = copy, .kind = KY_PT_INSTANT})) {
		segment->failed = true;
		free(copy);
	}
}

/* Spread marks of the same time, up to the next known time: see the head. */
static void spread(struct ky_pt_mark *marks, uint32_t count)
{
	for (uint32_t from = 0, to; from < count; from = to) {
		const uint64_t ns = marks[from].ns;
		for (to = from + 1; to < count && marks[to].ns == ns; to++)
			;
		if (to == count || marks[to].kind == KY_PT_GAP_END)
			continue;
		const double step = (double)(marks[to].ns - ns) / (double)(to - from);
		for (uint32_t i = from; i < to; i++)
			marks[i].ns = ns + (uint64_t)(step * (double)(i - from));
	}
}

static void say(const struct ky_pt_segment *segment, const struct ky_pt_mark *mark, uint64_t ns,
		bool lost)
{
	const struct ky_pt_calls *calls = segment->calls;
	switch ((enum ky_pt_mark_kind)mark->kind) {
	case KY_PT_BEGIN:
		calls->begin(calls->context, ns, mark->start, lost);
		break;
	case KY_PT_GAP:
		calls->gap(calls->context, ns, mark->what);
		break;
	case KY_PT_END:
	case KY_PT_GAP_END:
		calls->end(calls->context, ns);
		break;
	case KY_PT_INSTANT:
		calls->instant(calls->context, ns, mark->text);
		break;
	}
}

/* Hold an open mark. Before since only open ones are kept: they are passed on when since comes. */
static void hold(struct ky_pt_segment *segment, const struct ky_pt_mark *mark)
{
	if (mark->kind == KY_PT_BEGIN || mark->kind == KY_PT_GAP) {
		if (!put(&segment->held, &segment->held_count, &segment->held_room, mark))
			segment->failed = true;
	} else if (mark->kind != KY_PT_INSTANT && segment->held_count) {
		segment->held_count--;
	}
}

static void tell(struct ky_pt_segment *segment, const struct ky_pt_mark *mark, uint64_t ns)
{
	if (!segment->passed && ns < segment->since) {
		hold(segment, mark);
		return;
	}
	if (!segment->passed) {
		segment->passed = true;
		for (uint32_t i = 0; i < segment->held_count; i++)
			say(segment, &segment->held[i], segment->since, true);
	}
	say(segment, mark, ns, mark->lost);
}

void ky_pt_segment_flush(struct ky_pt_segment *segment, uint64_t ns)
{
	if (!segment->failed) {
		spread(segment->marks, segment->count);
		for (uint32_t i = segment->lost_count; i > 0; i--)
			tell(segment, &segment->lost[i - 1], segment->began_ns);
		for (uint32_t i = 0; i < segment->count; i++)
			tell(segment, &segment->marks[i], segment->marks[i].ns);
	}
	forget_marks(segment);
	segment->began_ns = ns;
}
