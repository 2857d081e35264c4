/* SPDX-License-Identifier: MIT */
/* pt_stack.c: see pt_stack.h. */
#include "functrace/pt_stack.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* ---- a stretch of trace ---- */

static void forget_marks(struct ky_pt_segment *segment)
{
	for (uint32_t i = 0; i < segment->count; i++)
		if (segment->marks[i].kind == KY_PT_INSTANT)
			free(segment->marks[i].text);
	segment->count = 0;
	segment->lost_count = 0;
}

static void segment_close(struct ky_pt_segment *segment)
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

static void segment_lost(struct ky_pt_segment *segment, uint64_t start)
{
	const struct ky_pt_mark mark = {.start = start, .kind = KY_PT_BEGIN, .lost = true};
	if (!segment->failed &&
	    !put(&segment->lost, &segment->lost_count, &segment->lost_room, &mark))
		segment->failed = true;
}

void ky_pt_segment_instant(struct ky_pt_segment *segment, uint64_t ns, const char *text)
{
	char *copy = strdup(text);
	if (!copy ||
	    !add(segment, &(struct ky_pt_mark){.ns = ns, .text = copy, .kind = KY_PT_INSTANT})) {
		segment->failed = true;
		free(copy);
	}
} /* NOLINT(clang-analyzer-unix.Malloc): the mark has it */

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

static void pass_on(const struct ky_pt_segment *segment, const struct ky_pt_mark *mark, uint64_t ns,
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

static void pass_or_hold(struct ky_pt_segment *segment, const struct ky_pt_mark *mark, uint64_t ns)
{
	if (!segment->passed && ns < segment->since) {
		hold(segment, mark);
		return;
	}
	if (!segment->passed) {
		segment->passed = true;
		for (uint32_t i = 0; i < segment->held_count; i++)
			pass_on(segment, &segment->held[i], segment->since, true);
	}
	pass_on(segment, mark, ns, mark->lost);
}

/* Pass all of it on. Everything in it has ended. The next one begins at ns. */
static void segment_flush(struct ky_pt_segment *segment, uint64_t ns)
{
	if (!segment->failed) {
		spread(segment->marks, segment->count);
		for (uint32_t i = segment->lost_count; i > 0; i--)
			pass_or_hold(segment, &segment->lost[i - 1], segment->began_ns);
		for (uint32_t i = 0; i < segment->count; i++)
			pass_or_hold(segment, &segment->marks[i], segment->marks[i].ns);
	}
	forget_marks(segment);
	segment->began_ns = ns;
}

/* ---- the functions that are running ---- */

#define INSTRUCTION_MAX 15u
#define LOOK_BACK 1024u /* frames: packets can cause a search of all of them at every branch */

void ky_pt_stack_open(struct ky_pt_stack *stack, const struct ky_pt_calls *calls, uint64_t since)
{
	*stack = (struct ky_pt_stack){
		.segment = {.calls = calls, .since = since, .passed = since == 0}};
}

void ky_pt_stack_close(struct ky_pt_stack *stack)
{
	segment_close(&stack->segment);
	KY_ARRAY_FREE(stack->frames, stack->room);
	*stack = (struct ky_pt_stack){0};
}

/* ---- frames ---- */

static struct ky_pt_frame frame_at(const struct ky_pt_stack *stack, uint64_t address)
{
	const struct ky_pt_calls *calls = stack->segment.calls;
	struct ky_pt_frame frame = {0};
	frame.known = calls->function(calls->context, address, &frame.function);
	if (!frame.known)
		frame.function =
			(struct ky_pt_function){.start = address, .shown = frame.function.shown};
	return frame;
}

static struct ky_pt_frame *top(const struct ky_pt_stack *stack)
{
	return stack->count ? &stack->frames[stack->count - 1] : NULL;
}

/* End frames until this many are left. */
static void end_to(struct ky_pt_stack *stack, uint64_t ns, uint32_t left)
{
	while (stack->count > left)
		if (stack->frames[--stack->count].function.shown)
			add(&stack->segment, &(struct ky_pt_mark){.ns = ns, .kind = KY_PT_END});
}

/* End a stretch that has become long; running functions go on in the next. */
static void cut(struct ky_pt_stack *stack, uint64_t ns)
{
	const uint32_t count = stack->count;
	end_to(stack, ns, 0);
	segment_flush(&stack->segment, ns);
	for (uint32_t i = count; i > 0; i--)
		if (stack->frames[i - 1].function.shown)
			segment_lost(&stack->segment, stack->frames[i - 1].function.start);
	stack->count = count;
}

static bool has_room(struct ky_pt_stack *stack, uint64_t ns)
{
	if (stack->segment.count >= KY_PT_MARKS_MAX)
		cut(stack, ns);
	if (stack->count < KY_PT_FRAMES_MAX &&
	    KY_ARRAY_GROW(stack->frames, stack->room, stack->count + 1))
		return true;
	ky_pt_stack_reset(stack, ns);
	ky_pt_segment_instant(&stack->segment, ns, "[calls are too deep]");
	return stack->room > 0;
}

static void push(struct ky_pt_stack *stack, uint64_t ns, const struct ky_pt_frame *frame, bool lost)
{
	if (!has_room(stack, ns))
		return;
	if (frame->function.shown && lost)
		segment_lost(&stack->segment, frame->function.start);
	else if (frame->function.shown)
		add(&stack->segment, &(struct ky_pt_mark){.ns = ns,
							  .start = frame->function.start,
							  .kind = KY_PT_BEGIN});
	stack->frames[stack->count++] = *frame;
}

/* Make a tail call: it returns to where the one before it would have. */
static void replace(struct ky_pt_stack *stack, uint64_t ns, struct ky_pt_frame frame)
{
	const struct ky_pt_frame *before = top(stack);
	frame.called_at = before->called_at;
	frame.resume = before->resume;
	end_to(stack, ns, stack->count - 1);
	push(stack, ns, &frame, false);
}

static bool is_behind(uint64_t address, uint64_t instruction)
{
	return instruction && address - instruction <= INSTRUCTION_MAX;
}

/* Return how many of the frames are not searched. */
static uint32_t far_frames(const struct ky_pt_stack *stack)
{
	return stack->count > LOOK_BACK ? stack->count - LOOK_BACK : 0;
}

/* Find the innermost frame of a function below the top. Return its index, or count. */
static uint32_t find_running(const struct ky_pt_stack *stack, const struct ky_pt_frame *frame)
{
	for (uint32_t i = stack->count - 1; frame->known && i > far_frames(stack); i--)
		if (stack->frames[i - 1].known &&
		    stack->frames[i - 1].function.start == frame->function.start)
			return i - 1;
	return stack->count;
}

/* Find the innermost frame whose call a return to that address ends; count: none. */
static uint32_t find_called(const struct ky_pt_stack *stack, uint64_t to)
{
	for (uint32_t i = stack->count; i > far_frames(stack); i--)
		if (to != stack->frames[i - 1].called_at &&
		    is_behind(to, stack->frames[i - 1].called_at))
			return i - 1;
	return stack->count;
}

/* Find the innermost frame of a handler that came there; count: none. */
static uint32_t find_handler(const struct ky_pt_stack *stack, uint64_t to)
{
	for (uint32_t i = stack->count; i > far_frames(stack); i--)
		if (is_behind(to, stack->frames[i - 1].resume))
			return i - 1;
	return stack->count;
}

/* ---- branches ---- */

void ky_pt_stack_at(struct ky_pt_stack *stack, uint64_t ns, uint64_t address)
{
	if (stack->count)
		return;
	/* A new stretch: functions that turn out to be around it were running when it began. */
	ky_pt_stack_reset(stack, ns);
	const struct ky_pt_frame frame = frame_at(stack, address);
	push(stack, ns, &frame, true);
}

void ky_pt_stack_call(struct ky_pt_stack *stack, uint64_t ns, uint64_t from, uint64_t to)
{
	struct ky_pt_frame frame = frame_at(stack, to);
	/* A call of the next instruction reads the instruction pointer. */
	if (is_behind(to, from) && !(frame.known && frame.function.start == to))
		return;
	frame.called_at = from;
	push(stack, ns, &frame, false);
}

static void leave(struct ky_pt_stack *stack, uint64_t ns, const struct ky_pt_frame *frame)
{
	const uint32_t running = find_running(stack, frame);
	if (running < stack->count) {
		end_to(stack, ns, running + 1);
		return;
	}
	end_to(stack, ns, 0);
	push(stack, ns, frame, true);
}

void ky_pt_stack_return(struct ky_pt_stack *stack, uint64_t ns, uint64_t to)
{
	const uint32_t called = find_called(stack, to);
	const bool found = called < stack->count;
	end_to(stack, ns, called);
	if (found && stack->count)
		return;
	const struct ky_pt_frame frame = frame_at(stack, to);
	if (!stack->count)
		push(stack, ns, &frame, true);
	else if (top(stack)->resume || (frame.known && frame.function.start == to))
		/* A handler's way back to the kernel; a return that is used as a jump (retpolines). */
		replace(stack, ns, frame);
	else
		leave(stack, ns, &frame);
}

void ky_pt_stack_jump(struct ky_pt_stack *stack, uint64_t ns, uint64_t to)
{
	const struct ky_pt_frame *in = top(stack);
	if (!in) {
		ky_pt_stack_at(stack, ns, to);
		return;
	}
	if (to != in->function.start && to >= in->function.from && to < in->function.to)
		return;
	const struct ky_pt_frame frame = frame_at(stack, to);
	/* A part of it without a name, or a stub on the way to another function. */
	if (!frame.known)
		return;
	/* A loop's head can be the function's start: a tail call to the same function looks alike. */
	if (in->known && frame.function.start == in->function.start)
		return;
	const uint32_t running = find_running(stack, &frame);
	if (running < stack->count && frame.function.start != to)
		end_to(stack, ns, running + 1);
	else
		replace(stack, ns, frame);
}

void ky_pt_stack_stop(struct ky_pt_stack *stack, uint64_t ns, const char *what, uint64_t at)
{
	if (stack->stopped)
		return;
	add(&stack->segment, &(struct ky_pt_mark){.ns = ns, .what = what, .kind = KY_PT_GAP});
	stack->stopped = true;
	stack->stopped_at = at;
}

/* Go on elsewhere than it stopped. */
static void go_elsewhere(struct ky_pt_stack *stack, uint64_t ns, uint64_t to)
{
	const uint32_t handler = find_handler(stack, to);
	if (handler < stack->count) {
		end_to(stack, ns, handler);
		return;
	}
	struct ky_pt_frame frame = frame_at(stack, to);
	if (frame.known && frame.function.start == to) {
		frame.resume = stack->stopped_at;
	} else if (top(stack)->known && frame.known &&
		   top(stack)->function.start == frame.function.start) {
		return;
	} else {
		const uint32_t running = find_running(stack, &frame);
		end_to(stack, ns, running < stack->count ? running + 1 : 0);
		if (stack->count)
			return;
	}
	push(stack, ns, &frame, false);
}

static void end_gap(struct ky_pt_stack *stack, uint64_t ns)
{
	if (stack->stopped)
		add(&stack->segment, &(struct ky_pt_mark){.ns = ns, .kind = KY_PT_GAP_END});
	stack->stopped = false;
}

void ky_pt_stack_go(struct ky_pt_stack *stack, uint64_t ns, uint64_t to, bool resumed)
{
	end_gap(stack, ns);
	if (!stack->count)
		ky_pt_stack_at(stack, ns, to);
	else if (!resumed && !is_behind(to, stack->stopped_at))
		go_elsewhere(stack, ns, to);
}

void ky_pt_stack_interrupt(struct ky_pt_stack *stack, uint64_t ns, uint64_t from, uint64_t to)
{
	stack->stopped_at = from;
	if (stack->count)
		go_elsewhere(stack, ns, to);
	else
		ky_pt_stack_at(stack, ns, to);
}

void ky_pt_stack_reset(struct ky_pt_stack *stack, uint64_t ns)
{
	end_gap(stack, ns);
	stack->stopped_at = 0;
	end_to(stack, ns, 0);
	segment_flush(&stack->segment, ns);
}
