/* SPDX-License-Identifier: MIT */
/*
 * pftrace_samples.c: callstacks that were sampled: by perf events, by Chrome's own sampler (streaming
 * profiles), and in the form that is the same for all sources. What a perf event had counted is a
 * counter of its CPU as well.
 */
#include "formats/pftrace/pftrace_reader.h"

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

/* The event's own name, or that of what is counted. Of a timebase or of a counter's descriptor. */
static uint32_t event_name(struct ky_pf *pf, struct ky_proto_view timebase)
{
	struct ky_proto_field field;
	if (ky_proto_find(timebase, 10, &field))
		return ky_pf_string(pf, field.view);
	if (ky_proto_find(timebase, 4, &field) && *counter_name(field.value))
		return ky_string_z(pf->trace, counter_name(field.value));
	if (ky_proto_find(timebase, 3, &field) && ky_proto_find(field.view, 1, &field))
		return ky_pf_string(pf, field.view);
	return 0;
}

void ky_pf_perf_defaults(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			 struct ky_proto_view defaults)
{
	struct ky_proto_field timebase;
	if (ky_proto_find(defaults, 1, &timebase) && timebase.wire == KY_PROTO_BYTES)
		sequence->sample_event = event_name(pf, timebase.view);
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
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	*sample = (struct perf_sample){0};
	while (ky_proto_next(&in, &field)) {
		if (field.id == 1) {
			sample->cpu = (uint32_t)field.value;
			sample->has_cpu = true;
		} else if (field.id == 2) {
			sample->pid = (int32_t)field.value;
		} else if (field.id == 3) {
			sample->tid = (int32_t)field.value;
		} else if (field.id == 4) {
			sample->callstack_iid = field.value;
			sample->has_callstack = true;
		} else if (field.id == 5 && field.value <= KY_CPU_MODE_GUEST_USER) {
			sample->mode = (enum ky_cpu_mode)field.value;
		} else if (field.id == 6) {
			sample->count = field.value;
			sample->has_count = true;
		} else if (field.id == 17) {
			sample->lost = field.value;
		} else if (field.id == 19) {
			sample->producer_event = true;
		}
	}
}

void ky_pf_perf_sample(struct ky_pf *pf, struct ky_pf_sequence *sequence, int64_t ts,
		       struct ky_proto_view message)
{
	struct ky_trace *trace = pf->trace;
	struct perf_sample sample;
	read_perf(message, &sample);
	if (sample.lost) {
		ky_put_lost(trace, ts, KY_NONE, sample.cpu, sample.lost,
			    "perf ring buffer overrun");
		return;
	}
	if (sample.producer_event)
		return;
	const uint32_t event = sequence->sample_event;
	const uint32_t track = ky_track_counter(trace, KY_TRACK_CPU_COUNTER, sample.cpu, event);
	if (sample.has_count)
		ky_put_counter(trace, ts, track, (double)sample.count);
	const uint32_t thread = ky_thread(trace, sample.pid, sample.tid);
	const uint32_t callsite =
		sample.has_callstack ? ky_pf_callsite(pf, sequence, sample.callstack_iid) : KY_NONE;
	ky_put_sample(trace, ts, thread, callsite, sample.has_cpu ? sample.cpu : KY_NONE,
		      sample.mode, 1, event);
}

/* ---- streaming profiles ---- */

/* The next of the items of all fields of that number. */
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

void ky_pf_streaming_profile(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			     struct ky_proto_view message)
{
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
	while (next_item(&times, &time, 2, &delta)) {
		sequence->time_ns = plus_us(sequence->time_ns, delta);
		ts = plus_us(ts, delta);
		if (sequence->time_ns < 0)
			return;
		if (!next_item(&stacks, &stack, 1, &iid))
			continue;
		const uint32_t callsite = ky_pf_callsite(pf, sequence, iid);
		if (callsite != KY_NONE)
			ky_put_sample(pf->trace, ts, thread, callsite, KY_NONE, KY_CPU_MODE_UNKNOWN,
				      1, 0);
	}
}

/* ---- stack samples ---- */

static uint32_t inline_callsite(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field, part;
	uint32_t callsite = KY_NONE;
	while (ky_proto_next(&in, &field)) {
		uint32_t function = 0, file = 0, line = 0;
		struct ky_proto_in parts = ky_proto_open(field.view);
		while (field.id == 1 && ky_proto_next(&parts, &part)) {
			if (part.id == 1)
				function = ky_pf_string(pf, part.view);
			else if (part.id == 2)
				file = ky_pf_string(pf, part.view);
			else if (part.id == 3)
				line = (uint32_t)part.value;
		}
		if (field.id == 1)
			callsite =
				ky_callsite(pf->trace, callsite,
					    ky_frame(pf->trace, KY_NONE, 0, function, file, line));
	}
	return callsite;
}

/* The modes of stack samples have numbers of their own. */
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
	if (ky_proto_find(message, 2, &field))
		sample->pid = (int32_t)field.value;
	if (ky_proto_find(message, 3, &field))
		sample->tid = (int32_t)field.value;
}

static void read_execution(struct stack_sample *sample, struct ky_proto_view message)
{
	struct ky_proto_field field;
	if (ky_proto_find(message, 2, &field))
		sample->cpu = (uint32_t)field.value;
	if (ky_proto_find(message, 3, &field))
		sample->mode = stack_mode(field.value);
}

/* An interned context is kept as the message it is. */
static struct ky_proto_view context_of(const struct ky_pf *pf,
				       const struct ky_pf_sequence *sequence,
				       enum ky_pf_messages of, uint64_t iid)
{
	const uint32_t *row = ky_pf_message(sequence, of, iid);
	return row ? pf->callstacks[*row].frames : (struct ky_proto_view){NULL, 0};
}

void ky_pf_stack_sample(struct ky_pf *pf, struct ky_pf_sequence *sequence, int64_t ts,
			struct ky_proto_view message)
{
	struct stack_sample sample = {.cpu = KY_NONE, .callsite = KY_NONE, .weight = 1, .tid = -1};
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	while (ky_proto_next(&in, &field)) {
		if (field.id == 1)
			read_task(&sample, field.view);
		else if (field.id == 2)
			read_task(&sample,
				  context_of(pf, sequence, KY_PF_TASK_CONTEXTS, field.value));
		else if (field.id == 3)
			read_execution(&sample, field.view);
		else if (field.id == 4)
			read_execution(&sample, context_of(pf, sequence, KY_PF_EXECUTION_CONTEXTS,
							   field.value));
		else if (field.id == 5)
			sample.callsite = inline_callsite(pf, field.view);
		else if (field.id == 6)
			sample.callsite = ky_pf_callsite(pf, sequence, field.value);
		else if (field.id == 11)
			sample.weight = (double)field.value;
	}
	if (sample.tid < 0)
		return;
	ky_put_sample(pf->trace, ts, ky_thread(pf->trace, sample.pid, sample.tid), sample.callsite,
		      sample.cpu, sample.mode, sample.weight, sequence->sample_event);
}
