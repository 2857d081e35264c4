/* SPDX-License-Identifier: MIT */
/*
 * perf_script_read.c: reads the text of `perf script`: samples with or without stacks, branches as slices, and
 * tracepoints as raw events with their text. As in Perfetto, functions differ by name and file, not by
 * address.
 */
#include "formats/perf/perf_script.h"

#include "base/array.h"
#include "base/map.h"
#include "formats/load.h"
#include "model/kernel.h"

#include <errno.h>
#include <stdlib.h>

#define STACK_MAX 65536u
#define DEPTH_MAX 512u

/* The functions that a thread is in, by its branches. */
struct branch_stack {
	uint32_t track;
	uint32_t depth;
	uint32_t names[DEPTH_MAX];
};

struct script {
	struct ky_trace *trace;
	bool open;                       /* a sample waits for its stack */
	struct ky_perf_script_head head; /* of it, only its numbers */
	uint32_t thread;
	uint32_t event;
	uint32_t *frames; /* of it, the innermost first */
	uint32_t frames_count;
	uint64_t frames_room;
	enum ky_cpu_mode mode;
	uint64_t samples;
	struct ky_u64_map stack_of; /* thread */
	struct branch_stack **stacks;
	uint32_t stacks_count;
	uint64_t stacks_room;
	uint32_t category;
};

/* ---- branches ---- */

/*
 * Branches of a thread (Intel PT, magic-trace) as slices: a call begins the function it goes
 * to, a return ends it, and a jump to the start of another function is a tail call. Returns from functions
 * that were entered before the trace began are ignored. Where the trace pauses (errors, filters), what was
 * entered stays open, as the trace goes on inside of it.
 */

static struct branch_stack *stack_of(struct script *script)
{
	bool made;
	uint32_t *number = ky_u64_map_add(&script->stack_of, script->thread, &made);
	if (!number)
		return NULL;
	if (made) {
		struct branch_stack *stack = calloc(1, sizeof(*stack));
		*number = KY_NONE;
		if (!stack || !KY_ARRAY_GROW_ZERO(script->stacks, script->stacks_room,
						  script->stacks_count + 1ull)) {
			free(stack);
			script->trace->error = -ENOMEM;
			return NULL;
		}
		stack->track = ky_track_of_thread(script->trace, script->thread);
		script->stacks[script->stacks_count] = stack;
		*number = script->stacks_count++;
	}
	return *number == KY_NONE ? NULL : script->stacks[*number];
}

static void free_branches(struct script *script)
{
	for (uint32_t i = 0; i < script->stacks_count; i++)
		free(script->stacks[i]);
	KY_ARRAY_FREE(script->stacks, script->stacks_room);
	ky_u64_map_free(&script->stack_of);
}

static bool begins_with(const struct ky_perf_text *text, const char *with)
{
	const size_t bytes = strlen(with);
	return text->bytes >= bytes && memcmp(text->text, with, bytes) == 0;
}

static void enter(struct script *script, struct branch_stack *stack, uint32_t name)
{
	if (stack->depth == DEPTH_MAX) {
		ky_problem(script->trace, "perf_script_too_deep", KY_DATA_LOSS, KY_NO_PLACE,
			   "calls are nested deeper than %u", DEPTH_MAX);
		return;
	}
	stack->names[stack->depth++] = name;
	ky_put_begin(script->trace, script->head.time_ns, stack->track, script->category, name, 0);
}

static void leave(struct script *script, struct branch_stack *stack)
{
	if (!stack->depth)
		return;
	stack->depth--;
	ky_put_end(script->trace, script->head.time_ns, stack->track, 0, 0, 0);
}

/* The thread's function changed. */
static void take_branch(struct script *script, const struct ky_perf_script_branch *branch)
{
	struct branch_stack *stack = stack_of(script);
	const struct ky_perf_text *kind = &branch->kind;
	if (!stack)
		return;
	const uint32_t to =
		ky_string(script->trace, branch->to.symbol.text, branch->to.symbol.bytes);
	const uint32_t top = stack->depth ? stack->names[stack->depth - 1] : 0;
	if (begins_with(kind, "tr strt")) {
		if (top != to)
			enter(script, stack, to);
	} else if (begins_with(kind, "tr end")) {
		return;
	} else if (begins_with(kind, "call") || begins_with(kind, "syscall") ||
		   begins_with(kind, "int") || begins_with(kind, "hw int")) {
		enter(script, stack, to);
	} else if (begins_with(kind, "return") || begins_with(kind, "sysret") ||
		   begins_with(kind, "iret")) {
		leave(script, stack);
	} else if ((begins_with(kind, "jmp") || begins_with(kind, "jcc")) && top && top != to &&
		   branch->to.offset == 0) {
		leave(script, stack);
		enter(script, stack, to);
	}
}

/* ---- recognising ---- */

/* The first line that is not empty and no comment must be a head. */
static bool probe(const struct ky_probe *probe)
{
	const char *at = (const char *)probe->data;
	const char *end = at + probe->bytes;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		struct ky_perf_script_head head;
		if (stop > at && stop[-1] == '\r')
			stop--;
		if (stop > at && *at != '#')
			return ky_perf_script_head(at, (size_t)(stop - at), &head);
		if (!newline)
			break;
		at = newline + 1;
	}
	return false;
}

/* ---- samples ---- */

static uint32_t frame_of(struct script *script, const struct ky_perf_script_frame *frame)
{
	struct ky_trace *trace = script->trace;
	static const char unknown[] = "[unknown]";
	const struct ky_mapping_spec spec = {
		.name = frame->file.bytes ? ky_string(trace, frame->file.text, frame->file.bytes)
					  : ky_string_z(trace, unknown),
		.end = UINT64_MAX,
	};
	const uint32_t name = frame->symbol.bytes
				      ? ky_string(trace, frame->symbol.text, frame->symbol.bytes)
				      : ky_string_z(trace, unknown);
	return ky_frame(trace, ky_mapping(trace, &spec), 0, name, 0, 0);
}

static enum ky_cpu_mode mode_of(const struct ky_perf_script_frame *frame)
{
	static const char kernel[] = "[kernel.";
	const struct ky_perf_text *file = &frame->file;
	if (file->bytes >= sizeof(kernel) - 1 &&
	    memcmp(file->text, kernel, sizeof(kernel) - 1) == 0)
		return KY_CPU_MODE_KERNEL;
	if (file->bytes > 3 && memcmp(file->text + file->bytes - 3, ".ko", 3) == 0)
		return KY_CPU_MODE_KERNEL;
	return KY_CPU_MODE_USER;
}

static void add_frame(struct script *script, const struct ky_perf_script_frame *frame)
{
	if (script->frames_count >= STACK_MAX ||
	    !KY_ARRAY_GROW_ZERO(script->frames, script->frames_room, script->frames_count + 1ull))
		return;
	if (!script->frames_count)
		script->mode = mode_of(frame);
	script->frames[script->frames_count++] = frame_of(script, frame);
}

/* The sample that waits is complete. */
static void finish_sample(struct script *script)
{
	uint32_t callsite = KY_NONE;
	if (!script->open)
		return;
	script->open = false;
	for (uint32_t i = script->frames_count; i-- > 0;)
		callsite = ky_callsite(script->trace, callsite, script->frames[i]);
	const struct ky_perf_script_head *head = &script->head;
	ky_put_sample(script->trace, head->time_ns, script->thread, callsite,
		      head->cpu < 0 ? KY_NONE : (uint32_t)head->cpu, script->mode,
		      head->period ? (double)head->period : 1, script->event);
	script->frames_count = 0;
}

static uint32_t thread_of(struct ky_trace *trace, const struct ky_perf_script_head *head)
{
	if (head->tid < 0)
		return KY_NONE;
	const uint32_t thread = head->pid >= 0 ? ky_thread(trace, head->pid, head->tid)
					       : ky_thread_by_tid(trace, head->tid);
	if (head->comm.bytes) {
		const uint32_t comm = ky_string(trace, head->comm.text, head->comm.bytes);
		ky_thread_name(trace, thread, comm, KY_NAME_KERNEL);
		if (head->pid == head->tid)
			ky_process_name(trace, ky_process(trace, head->pid), comm, KY_NAME_SYSTEM);
	}
	return thread;
}

/* Return the event without its system ("sched:sched_switch"); 0 when it is not one of the kernel's. */
static uint32_t tracepoint_of(struct ky_trace *trace, const struct ky_perf_text *event)
{
	const char *colon = memchr(event->text, ':', event->bytes);
	const char *end = event->text + event->bytes;
	/* "cycles:ppp" has modifiers there, which are letters of a few kinds. */
	if (!colon || end - colon < 4 ||
	    strspn(colon + 1, "ukhGHIpPSDe") >= (size_t)(end - colon - 1))
		return 0;
	return ky_string(trace, colon + 1, (size_t)(end - colon - 1));
}

static bool put_tracepoint(struct script *script, const struct ky_perf_script_head *head)
{
	struct ky_trace *trace = script->trace;
	const uint32_t name = tracepoint_of(trace, &head->event);
	if (!name)
		return false;
	const uint32_t text = ky_string(trace, head->rest.text, head->rest.bytes);
	const uint32_t args = ky_args_one(trace, ky_string_z(trace, "text"), KY_ARG_STRING, text);
	ky_put_raw(trace, head->time_ns, head->cpu < 0 ? KY_NONE : (uint32_t)head->cpu,
		   (int32_t)head->tid, name, args);
	return true;
}

/* A branch is no sample; a head with a frame behind it, or with a text, is one that is complete. */
static void take_head(struct script *script, const struct ky_perf_script_head *head)
{
	struct ky_perf_script_branch branch;
	struct ky_perf_script_frame frame;
	finish_sample(script);
	script->head = *head;
	script->thread = thread_of(script->trace, head);
	script->event = ky_string(script->trace, head->event.text, head->event.bytes);
	script->mode = KY_CPU_MODE_UNKNOWN;
	script->samples++;
	if (head->rest.bytes && script->thread != KY_NONE &&
	    ky_perf_script_branch(head->rest.text, head->rest.bytes, &branch)) {
		take_branch(script, &branch);
		return;
	}
	script->open = true;
	if (!head->rest.bytes)
		return;
	if (ky_perf_script_frame(head->rest.text, head->rest.bytes, &frame))
		add_frame(script, &frame);
	else
		(void)put_tracepoint(script, head);
}

static bool starts_with(const char *line, size_t bytes, const char *with)
{
	return bytes >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

static void take_line(struct script *script, const char *line, size_t bytes, uint64_t at)
{
	struct ky_perf_script_head head;
	struct ky_perf_script_frame frame;
	size_t blanks = 0;
	while (blanks < bytes && (line[blanks] == ' ' || line[blanks] == '\t'))
		blanks++;
	if (blanks == bytes) {
		finish_sample(script);
	} else if (line[0] == '#') {
		return;
	} else if (script->open && blanks && ky_perf_script_frame(line, bytes, &frame) &&
		   !(frame.file.bytes == 0 && ky_perf_script_head(line, bytes, &head))) {
		add_frame(script, &frame);
	} else if (ky_perf_script_head(line, bytes, &head)) {
		take_head(script, &head);
	} else if (starts_with(line + blanks, bytes - blanks, "instruction trace error")) {
		ky_put_lost(script->trace, KY_TIME_NONE, KY_NONE, KY_NONE, 0, KY_LOSS_PERF_DECODER);
	} else if (!(script->open && blanks)) {
		/* Indented lines inside a stack are source lines and similar. */
		ky_problem(script->trace, "perf_script_line", KY_DATA_LOSS, at,
			   "expected a sample, a line of its stack or an empty line");
	}
}

static int read_trace(struct ky_load *load)
{
	struct script script = {
		.trace = load->trace,
		.category = ky_string_z(load->trace, "branch"),
	};
	const char *line;
	size_t bytes;
	uint64_t at;
	load->trace->clock = KY_CLOCK_MONOTONIC;
	while (ky_input_line(load->input, &line, &bytes, &at))
		take_line(&script, line, bytes, at);
	finish_sample(&script);
	KY_ARRAY_FREE(script.frames, script.frames_room);
	free_branches(&script);
	if (load->input->error && load->input->error != -EBADMSG)
		return load->input->error;
	if (!script.samples)
		return ky_load_fail(load, 0, "no sample in it: expected comm pid time: event:");
	return 0;
}

const struct ky_reader ky_reader_perf_script = {
	.name = "perf-script",
	.title = "perf script text",
	.probe = probe,
	.read = read_trace,
};
