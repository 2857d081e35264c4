/* SPDX-License-Identifier: MIT */
/*
 * perf_script_read.c: reads the text of `perf script`: samples with or without stacks, branches as slices, and
 * tracepoints as raw events with their text. As in Perfetto, functions differ by name and file, not by
 * address.
 */
#include "base/array.h"
#include "formats/input.h"
#include "formats/perf/perf_script.h"
#include "model/kernel.h"

#include <errno.h>

#define STACK_MAX 65536u

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

static uint32_t frame_of(struct ky_perf_script *script, const struct ky_perf_script_frame *frame)
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

static void add_frame(struct ky_perf_script *script, const struct ky_perf_script_frame *frame)
{
	if (script->frames_count >= STACK_MAX ||
	    !KY_ARRAY_GROW_ZERO(script->frames, script->frames_room, script->frames_count + 1ull))
		return;
	if (!script->frames_count)
		script->mode = mode_of(frame);
	script->frames[script->frames_count++] = frame_of(script, frame);
}

/* The sample that waits is complete. */
static void finish_sample(struct ky_perf_script *script)
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

static bool put_tracepoint(struct ky_perf_script *script, const struct ky_perf_script_head *head)
{
	struct ky_trace *trace = script->trace;
	const uint32_t name = tracepoint_of(trace, &head->event);
	if (!name)
		return false;
	ky_args_begin(trace);
	ky_arg_string(trace, ky_string_z(trace, "text"),
		      ky_string(trace, head->rest.text, head->rest.bytes));
	const uint32_t args = ky_args_end(trace);
	ky_put_raw(trace, head->time_ns, head->cpu < 0 ? KY_NONE : (uint32_t)head->cpu,
		   (int32_t)head->tid, name, args);
	return true;
}

/* A branch is no sample; a head with a frame behind it, or with a text, is one that is complete. */
static void take_head(struct ky_perf_script *script, const struct ky_perf_script_head *head)
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
		ky_perf_script_branched(script, &branch);
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

static void take_line(struct ky_perf_script *script, const char *line, size_t bytes, uint64_t at)
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
		ky_put_lost(script->trace, KY_TIME_NONE, KY_NONE, KY_NONE, 0,
			    "perf: instruction trace error");
	} else if (!(script->open && blanks)) {
		/* Indented lines inside a stack are source lines and similar. */
		ky_problem(script->trace, "perf_script_line", KY_DATA_LOSS, at,
			   "expected a sample, a line of its stack or an empty line");
	}
}

static int read_trace(struct ky_load *load)
{
	struct ky_perf_script script = {
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
	ky_perf_script_branches_free(&script);
	if (load->input->error && load->input->error != -EBADMSG)
		return load->input->error;
	if (!script.samples)
		return ky_load_fail(load, 0, "no sample in it: expected comm pid time: event:");
	return 0;
}

const struct ky_reader ky_reader_perf_script = {
	.name = "perf-script",
	.title = "perf script text",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
