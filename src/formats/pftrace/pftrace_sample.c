/* SPDX-License-Identifier: MIT */
/*
 * pftrace_sample.c: sampled callstacks: of perf events, of Chrome's own sampler (streaming profiles), and in the
 * form common to all sources. The count of a perf event is a counter of its CPU as well.
 *
 * A callstack names frames, a frame names a mapping and texts, all by iids that may be defined after their users:
 * so they are kept as they come, and become rows of the model when a sample first needs them.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <errno.h>
#include <stdlib.h>

/* ---- interned callstacks ---- */

/* Return a copy that outlives the packet. */
static struct ky_proto_view copy_of(struct ky_pf *pf, struct ky_proto_view message)
{
	uint8_t *copy = malloc(message.bytes ? message.bytes : 1);
	if (!copy) {
		pf->trace->error = -ENOMEM;
		return (struct ky_proto_view){NULL, 0};
	}
	if (message.bytes)
		memcpy(copy, message.data, message.bytes);
	return (struct ky_proto_view){copy, message.bytes};
}

void ky_pf_sample_intern_mapping(struct ky_pf *pf, struct ky_pf_iids *map,
				 struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	uint32_t *row = KY_PF_GROW(pf, mappings) ? ky_pf_sequence_new_row(map, message) : NULL;
	if (!row)
		return;
	ky_pf_ftrace_take_apart(message, &parts);
	*row = pf->mappings_count;
	pf->mappings[pf->mappings_count++] = (struct ky_pf_mapping){
		.build_id_iid = parts.values[KY_PF_MAPPING_BUILD_ID],
		.offset = parts.values[ky_pf_has(&parts, KY_PF_MAPPING_EXACT_OFFSET)
					       ? KY_PF_MAPPING_EXACT_OFFSET
					       : KY_PF_MAPPING_START_OFFSET],
		.start = parts.values[KY_PF_MAPPING_START],
		.end = parts.values[KY_PF_MAPPING_END],
		.load_bias = parts.values[KY_PF_MAPPING_LOAD_BIAS],
		.paths = copy_of(pf, message),
		.row = KY_NONE,
	};
}

void ky_pf_sample_intern_frame(struct ky_pf *pf, struct ky_pf_iids *map,
			       struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	uint32_t *row = KY_PF_GROW(pf, frames) ? ky_pf_sequence_new_row(map, message) : NULL;
	if (!row)
		return;
	ky_pf_ftrace_take_apart(message, &parts);
	*row = pf->frames_count;
	pf->frames[pf->frames_count++] = (struct ky_pf_frame){
		.function_iid = parts.values[KY_PF_FRAME_FUNCTION_NAME_ID],
		.mapping_iid = parts.values[KY_PF_FRAME_MAPPING_ID],
		.rel_pc = parts.values[KY_PF_FRAME_REL_PC],
		.source_iid = parts.values[KY_PF_FRAME_SOURCE_PATH_IID],
		.line = (uint32_t)parts.values[KY_PF_FRAME_LINE_NUMBER],
		.row = KY_NONE,
	};
}

void ky_pf_sample_intern_callstack(struct ky_pf *pf, struct ky_pf_iids *map,
				   struct ky_proto_view message)
{
	uint32_t *row = KY_PF_GROW(pf, callstacks) ? ky_pf_sequence_new_row(map, message) : NULL;
	if (!row)
		return;
	*row = pf->callstacks_count;
	pf->callstacks[pf->callstacks_count++] =
		(struct ky_pf_callstack){.frames = copy_of(pf, message), .row = KY_NONE};
}

/* Join the components of a path, each after a slash. */
static uint32_t mapping_path(struct ky_pf *pf, struct ky_proto_view message)
{
	uint64_t iid;
	pf->text.bytes = 0;
	KY_PROTO_EACH(field, message) {
		struct ky_proto_items items = ky_proto_items(&field, false);
		while (field.id == KY_PF_MAPPING_PATH_STRING_IDS && ky_proto_item(&items, &iid)) {
			const uint32_t part = ky_pf_text(pf->sequence, KY_PF_MAPPING_PATHS, iid);
			if (!part)
				continue;
			ky_buffer_add(&pf->text, "/", 1);
			ky_buffer_add(&pf->text, ky_text_of(pf->trace, part),
				      ky_strings_bytes(&pf->trace->strings, part));
		}
	}
	return ky_pf_buffer_string(pf, &pf->text);
}

static uint32_t mapping_of(struct ky_pf *pf, uint64_t iid)
{
	const uint32_t *row = ky_pf_message(pf->sequence, KY_PF_MAPPINGS, iid);
	if (!row)
		return KY_NONE;
	struct ky_pf_mapping *mapping = &pf->mappings[*row];
	if (mapping->row == KY_NONE) {
		const struct ky_mapping_spec spec = {
			.build_id =
				ky_pf_text(pf->sequence, KY_PF_BUILD_IDS, mapping->build_id_iid),
			.name = mapping_path(pf, mapping->paths),
			.start = mapping->start,
			.end = mapping->end,
			.offset = mapping->offset,
			.load_bias = mapping->load_bias,
		};
		mapping->row = ky_mapping(pf->trace, &spec);
	}
	return mapping->row;
}

static uint32_t frame_of(struct ky_pf *pf, uint64_t iid)
{
	const uint32_t *row = ky_pf_message(pf->sequence, KY_PF_FRAMES, iid);
	if (!row)
		return KY_NONE;
	struct ky_pf_frame *frame = &pf->frames[*row];
	if (frame->row == KY_NONE)
		frame->row =
			ky_frame(pf->trace, mapping_of(pf, frame->mapping_iid), frame->rel_pc,
				 ky_pf_text(pf->sequence, KY_PF_FUNCTIONS, frame->function_iid),
				 ky_pf_text(pf->sequence, KY_PF_SOURCE_PATHS, frame->source_iid),
				 frame->line);
	return frame->row;
}

/* Frames are outermost first. An unknown frame makes the whole callstack unknown. */
static uint32_t make_callsite(struct ky_pf *pf, struct ky_proto_view message)
{
	uint32_t callsite = KY_NONE;
	uint64_t iid;
	KY_PROTO_EACH(field, message) {
		struct ky_proto_items items = ky_proto_items(&field, false);
		while (field.id == KY_PF_CALLSTACK_FRAME_IDS && ky_proto_item(&items, &iid)) {
			const uint32_t frame = frame_of(pf, iid);
			if (frame == KY_NONE)
				return KY_NONE;
			callsite = ky_callsite(pf->trace, callsite, frame);
		}
	}
	return callsite;
}

/* Return the callsite of an interned callstack, or KY_NONE. */
static uint32_t callsite_of(struct ky_pf *pf, uint64_t iid)
{
	const uint32_t *row = ky_pf_message(pf->sequence, KY_PF_CALLSTACKS, iid);
	if (!row) {
		ky_problem(pf->trace, "stackprofile_invalid_callstack_id", KY_ERROR, pf->at,
			   "callstack %llu is not defined", (unsigned long long)iid);
		return KY_NONE;
	}
	struct ky_pf_callstack *callstack = &pf->callstacks[*row];
	if (!callstack->done) {
		callstack->done = true;
		callstack->row = make_callsite(pf, callstack->frames);
	}
	return callstack->row;
}

/* ---- defaults ---- */

static const char *counter_name(uint64_t counter)
{
	static const char *const names[] = {"",
					    "cpu-clock",
					    "page-faults",
					    "task-clock",
					    "context-switches",
					    "cpu-migrations",
					    "minor-faults",
					    "major-faults",
					    "alignment-faults",
					    "emulation-faults",
					    "cpu-cycles",
					    "instructions",
					    "cache-references",
					    "cache-misses",
					    "branch-instructions",
					    "branch-misses",
					    "bus-cycles",
					    "stalled-cycles-frontend",
					    "stalled-cycles-backend",
					    "ref-cycles",
					    "dummy"};
	return counter < sizeof(names) / sizeof(*names) ? names[counter] : "";
}

/* Return the name of a timebase's event: its own, or that of the counter or tracepoint. */
static uint32_t event_name(struct ky_pf *pf, struct ky_proto_view timebase)
{
	struct ky_proto_field field;
	if (ky_proto_find(timebase, KY_PF_TIMEBASE_NAME, &field))
		return ky_pf_string(pf, field.view);
	if (ky_proto_find(timebase, KY_PF_TIMEBASE_COUNTER, &field) && *counter_name(field.value))
		return ky_string_z(pf->trace, counter_name(field.value));
	if (ky_proto_find(timebase, KY_PF_TIMEBASE_TRACEPOINT, &field) &&
	    ky_proto_find(field.view, KY_PF_TRACEPOINT_NAME, &field))
		return ky_pf_string(pf, field.view);
	return 0;
}

void ky_pf_sample_perf_defaults(struct ky_pf *pf, struct ky_proto_view defaults)
{
	struct ky_proto_field timebase;
	if (ky_proto_find(defaults, KY_PF_PERF_SAMPLE_DEFAULTS_TIMEBASE, &timebase) &&
	    timebase.wire == KY_PROTO_BYTES)
		pf->sequence->sample_event = event_name(pf, timebase.view);
}

void ky_pf_sample_stack_defaults(struct ky_pf *pf, struct ky_proto_view defaults)
{
	struct ky_proto_field counter, name;
	if (ky_proto_find(defaults, KY_PF_STACK_SAMPLE_DEFAULTS_PRIMARY_DESCRIPTOR, &counter) &&
	    ky_proto_find(counter.view, KY_PF_STACK_SAMPLE_COUNTER_DESCRIPTOR_NAME, &name))
		pf->sequence->sample_event = ky_pf_string(pf, name.view);
}

/* ---- perf samples ---- */

struct perf_sample {
	uint32_t cpu;
	int32_t pid, tid;
	uint64_t callstack_iid;
	uint64_t count;
	uint64_t lost;
	enum ky_cpu_mode mode;
	bool has_cpu, has_callstack, has_count, producer_event;
};

static void read_perf(struct ky_proto_view message, struct perf_sample *sample)
{
	*sample = (struct perf_sample){0};
	KY_PROTO_EACH(field, message) {
		if (field.id == KY_PF_PERF_SAMPLE_CPU) {
			sample->cpu = (uint32_t)field.value;
			sample->has_cpu = true;
		} else if (field.id == KY_PF_PERF_SAMPLE_PID) {
			sample->pid = (int32_t)field.value;
		} else if (field.id == KY_PF_PERF_SAMPLE_TID) {
			sample->tid = (int32_t)field.value;
		} else if (field.id == KY_PF_PERF_SAMPLE_CALLSTACK_IID) {
			sample->callstack_iid = field.value;
			sample->has_callstack = true;
		} else if (field.id == KY_PF_PERF_SAMPLE_CPU_MODE &&
			   field.value <= KY_CPU_MODE_GUEST_USER) {
			sample->mode = (enum ky_cpu_mode)field.value;
		} else if (field.id == KY_PF_PERF_SAMPLE_TIMEBASE_COUNT) {
			sample->count = field.value;
			sample->has_count = true;
		} else if (field.id == KY_PF_PERF_SAMPLE_KERNEL_RECORDS_LOST) {
			sample->lost = field.value;
		} else if (field.id == KY_PF_PERF_SAMPLE_PRODUCER_EVENT) {
			sample->producer_event = true;
		}
	}
}

void ky_pf_sample_perf(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_trace *trace = pf->trace;
	struct perf_sample sample;
	read_perf(message, &sample);
	if (sample.lost) {
		ky_put_lost(trace, ts, KY_NONE, sample.cpu, sample.lost, KY_LOSS_PERF_OVERRUN);
		return;
	}
	if (sample.producer_event)
		return;
	const uint32_t event = pf->sequence->sample_event;
	const uint32_t track = ky_track_counter(trace, KY_TRACK_CPU_COUNTER, sample.cpu, event);
	if (sample.has_count)
		ky_put_counter(trace, ts, track, (double)sample.count);
	const uint32_t thread = ky_thread(trace, sample.pid, sample.tid);
	const uint32_t callsite =
		sample.has_callstack ? callsite_of(pf, sample.callstack_iid) : KY_NONE;
	ky_put_sample(trace, ts, thread, callsite, sample.has_cpu ? sample.cpu : KY_NONE,
		      sample.mode, 1, event);
}

/* ---- streaming profiles ---- */

/* Return the next item of all fields with that number. */
static bool next_item(struct ky_proto_in *in, struct ky_proto_items *items, uint32_t id,
		      uint64_t *value)
{
	struct ky_proto_field field;
	while (!ky_proto_item(items, value)) {
		do {
			if (!ky_proto_next(in, &field))
				return false;
		} while (field.id != id);
		*items = ky_proto_items(&field, false);
	}
	return true;
}

static int64_t plus_us(int64_t ns, uint64_t us)
{
	int64_t more, sum;
	if (__builtin_mul_overflow((int64_t)us, 1000, &more) ||
	    __builtin_add_overflow(ns, more, &sum))
		return (int64_t)us < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

void ky_pf_sample_streaming(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_sequence *const sequence = pf->sequence;
	struct ky_proto_in stacks = ky_proto_open(message), times = stacks;
	struct ky_proto_items stack = {0}, time = {0};
	uint64_t iid, delta;
	if (!sequence->times_valid) {
		ky_problem(pf->trace, "stackprofile_parser_error", KY_ERROR, pf->at,
			   "a streaming profile before any thread descriptor");
		return;
	}
	int64_t ts = ky_pf_clock_time(pf, KY_CLOCK_MONOTONIC, sequence->time_ns);
	const uint32_t thread = ky_thread(pf->trace, sequence->pid, sequence->tid);
	while (next_item(&times, &time, KY_PF_STREAMING_PROFILE_PACKET_TIMESTAMP_DELTA_US,
			 &delta)) {
		sequence->time_ns = plus_us(sequence->time_ns, delta);
		ts = plus_us(ts, delta);
		if (sequence->time_ns < 0)
			return;
		if (!next_item(&stacks, &stack, KY_PF_STREAMING_PROFILE_PACKET_CALLSTACK_IID, &iid))
			continue;
		const uint32_t callsite = callsite_of(pf, iid);
		if (callsite != KY_NONE)
			ky_put_sample(pf->trace, ts, thread, callsite, KY_NONE, KY_CPU_MODE_UNKNOWN,
				      1, 0);
	}
}

/* ---- stack samples ---- */

static uint32_t inline_callsite(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_pf_parts parts;
	uint32_t callsite = KY_NONE;
	while (ky_pf_ftrace_next_parts(&in, KY_PF_INLINE_CALLSTACK_FRAMES, &parts)) {
		const uint32_t function = ky_pf_string_if(
			pf, parts.texts[KY_PF_INLINE_CALLSTACK_FRAME_FUNCTION_NAME]);
		const uint32_t file =
			ky_pf_string_if(pf, parts.texts[KY_PF_INLINE_CALLSTACK_FRAME_SOURCE_FILE]);
		const uint32_t line =
			(uint32_t)parts.values[KY_PF_INLINE_CALLSTACK_FRAME_LINE_NUMBER];
		callsite = ky_callsite(pf->trace, callsite,
				       ky_frame(pf->trace, KY_NONE, 0, function, file, line));
	}
	return callsite;
}

/* Stack samples number the CPU modes differently. */
static enum ky_cpu_mode stack_mode(uint64_t mode)
{
	static const enum ky_cpu_mode modes[] = {KY_CPU_MODE_UNKNOWN,    KY_CPU_MODE_USER,
						 KY_CPU_MODE_KERNEL,     KY_CPU_MODE_HYPERVISOR,
						 KY_CPU_MODE_GUEST_USER, KY_CPU_MODE_GUEST_KERNEL};
	return mode < sizeof(modes) / sizeof(*modes) ? modes[mode] : KY_CPU_MODE_UNKNOWN;
}

struct stack_sample {
	int64_t pid, tid;
	uint32_t cpu;
	enum ky_cpu_mode mode;
	uint32_t callsite;
	double weight;
};

static void read_task(struct stack_sample *sample, struct ky_proto_view message)
{
	struct ky_proto_field field;
	if (ky_proto_find(message, KY_PF_STACK_SAMPLE_TASK_CONTEXT_PID, &field))
		sample->pid = (int32_t)field.value;
	if (ky_proto_find(message, KY_PF_STACK_SAMPLE_TASK_CONTEXT_TID, &field))
		sample->tid = (int32_t)field.value;
}

static void read_execution(struct stack_sample *sample, struct ky_proto_view message)
{
	struct ky_proto_field field;
	if (ky_proto_find(message, KY_PF_STACK_SAMPLE_EXECUTION_CONTEXT_CPU, &field))
		sample->cpu = (uint32_t)field.value;
	if (ky_proto_find(message, KY_PF_STACK_SAMPLE_EXECUTION_CONTEXT_MODE, &field))
		sample->mode = stack_mode(field.value);
}

/* Return an interned context, which is kept as a message. */
static struct ky_proto_view context_of(const struct ky_pf *pf, enum ky_pf_messages of, uint64_t iid)
{
	const uint32_t *row = ky_pf_message(pf->sequence, of, iid);
	return row ? pf->callstacks[*row].frames : (struct ky_proto_view){NULL, 0};
}

void ky_pf_sample_stack(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct stack_sample sample = {.cpu = KY_NONE, .callsite = KY_NONE, .weight = 1, .tid = -1};
	KY_PROTO_EACH(field, message) {
		if (field.id == KY_PF_STACK_SAMPLE_TASK_CONTEXT)
			read_task(&sample, field.view);
		else if (field.id == KY_PF_STACK_SAMPLE_TASK_CONTEXT_IID)
			read_task(&sample, context_of(pf, KY_PF_TASK_CONTEXTS, field.value));
		else if (field.id == KY_PF_STACK_SAMPLE_EXECUTION_CONTEXT)
			read_execution(&sample, field.view);
		else if (field.id == KY_PF_STACK_SAMPLE_EXECUTION_CONTEXT_IID)
			read_execution(&sample,
				       context_of(pf, KY_PF_EXECUTION_CONTEXTS, field.value));
		else if (field.id == KY_PF_STACK_SAMPLE_CALLSTACK)
			sample.callsite = inline_callsite(pf, field.view);
		else if (field.id == KY_PF_STACK_SAMPLE_CALLSTACK_IID)
			sample.callsite = callsite_of(pf, field.value);
		else if (field.id == KY_PF_STACK_SAMPLE_PRIMARY_WEIGHT)
			sample.weight = (double)field.value;
	}
	if (sample.tid < 0)
		return;
	ky_put_sample(pf->trace, ts, ky_thread(pf->trace, sample.pid, sample.tid), sample.callsite,
		      sample.cpu, sample.mode, sample.weight, pf->sequence->sample_event);
}
