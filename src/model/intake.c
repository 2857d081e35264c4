/* SPDX-License-Identifier: MIT */
/*
 * intake.c: events into the stage, and back out of it in the order of time. With ky_trace_in_order() they are
 * built at once instead.
 */
#include "base/array.h"
#include "model/build.h"

#include "model/kernel_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t ky_string_format(struct ky_trace *trace, const char *format, ...)
{
	char text[2048];
	va_list list;
	va_start(list, format);
	const int bytes = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	return bytes < 0 ? 0 : ky_string_z(trace, text);
}

void ky_build_counter(struct ky_trace *trace, int64_t ts, uint32_t track, double value,
		      uint32_t args)
{
	struct ky_counters *counters = &trace->counters;
	const uint32_t row = ky_append(trace, counters);
	if (row == KY_NONE)
		return;
	counters->ts[row] = ts;
	counters->value[row] = value;
	counters->track[row] = track;
	counters->args[row] = args;
}

void ky_build_log(struct ky_trace *trace, int64_t ts, uint32_t thread, uint8_t priority,
		  uint32_t tag, uint32_t message)
{
	struct ky_logs *logs = &trace->logs;
	const uint32_t row = ky_append(trace, logs);
	if (row == KY_NONE)
		return;
	logs->ts[row] = ts;
	logs->thread[row] = thread;
	logs->priority[row] = priority;
	logs->tag[row] = tag;
	logs->message[row] = message;
}

void ky_build_record(void *context, int64_t ts, enum ky_record_kind kind, uint32_t track,
		     const uint32_t *w)
{
	struct ky_trace *trace = context;
	switch (kind) {
	case KY_REC_BEGIN:
		ky_build_begin(trace, ts, track, w[0], w[1], w[2]);
		break;
	case KY_REC_BEGIN_PLAIN:
		ky_build_begin(trace, ts, track, w[0], w[1], 0);
		break;
	case KY_REC_END:
	case KY_REC_END_FIRST:
		ky_build_end(trace, ts, track, w[0], w[1], w[2]);
		break;
	case KY_REC_END_PLAIN:
		ky_build_end(trace, ts, track, 0, 0, 0);
		break;
	case KY_REC_COMPLETE:
	case KY_REC_COMPLETE_LONGEST:
		ky_build_complete(trace, ts, (int64_t)ky_words_u64(w), track, w[2], w[3], w[4]);
		break;
	case KY_REC_INSTANT:
		ky_build_instant(trace, ts, track, w[0], w[1], w[2]);
		break;
	case KY_REC_COUNTER:
		ky_build_counter(trace, ts, track, ky_words_real(w), 0);
		break;
	case KY_REC_COUNTER_ARGS:
		ky_build_counter(trace, ts, track, ky_words_real(w), w[2]);
		break;
	case KY_REC_FLOW:
		ky_build_flow(trace, track, (enum ky_flow_step)(w[0] & 0xff),
			      (enum ky_flow_bind)(w[0] >> 8), ky_words_u64(w + 1));
		break;
	case KY_REC_FLOW_LONGEST:
		ky_build_flow(trace, track, (enum ky_flow_step)(w[2] & 0xff),
			      (enum ky_flow_bind)(w[2] >> 8), ky_words_u64(w + 3));
		break;
	case KY_REC_LOG:
		ky_build_log(trace, ts, w[0], (uint8_t)w[1], w[2], w[3]);
		break;
	case KY_REC_SAMPLE:
		ky_build_sample(trace, ts, w[0], w[1], w[2], (uint8_t)w[3], ky_words_real(w + 5),
				w[4]);
		break;
	default:
		ky_kernel_apply(trace, ts, track, w);
	}
}

void ky_trace_in_order(struct ky_trace *trace)
{
	trace->build->in_order = true;
}

static int64_t moved_time(struct ky_trace *trace, int64_t ts)
{
	const struct ky_build *build = trace->build;
	ky_problem(trace, "event_out_of_order", KY_INFO, KY_NO_PLACE,
		   "an event was %lld ns earlier than the one before it",
		   (long long)(build->last_ts - ts));
	return build->last_ts;
}

/* An event that is earlier than the last one, though built in order, moves to the time of the last one. */
static inline int64_t in_order_time(struct ky_trace *trace, int64_t ts)
{
	struct ky_build *build = trace->build;
	if (__builtin_expect(ts >= build->last_ts, 1))
		return build->last_ts = ts;
	return moved_time(trace, ts);
}

static void put(struct ky_trace *trace, int64_t ts, enum ky_record_kind kind, uint32_t track,
		const uint32_t *words)
{
	trace->events++;
	if (trace->build->in_order)
		ky_build_record(trace, in_order_time(trace, ts), kind, track, words);
	else if (!ky_stage_put(&trace->build->stage, ts, kind, track, words))
		ky_trace_no_memory(trace);
}

void ky_put_begin(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		  uint32_t name, uint32_t args)
{
	if (trace->build->in_order) {
		trace->events++;
		ky_build_begin(trace, in_order_time(trace, ts), track, category, name, args);
		return;
	}
	const uint32_t words[] = {category, name, args};
	put(trace, ts, args ? KY_REC_BEGIN : KY_REC_BEGIN_PLAIN, track, words);
}

void ky_put_end(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		uint32_t name, uint32_t args)
{
	if (trace->build->in_order) {
		trace->events++;
		ky_build_end(trace, in_order_time(trace, ts), track, category, name, args);
		return;
	}
	const uint32_t words[] = {category, name, args};
	put(trace, ts, category | name | args ? KY_REC_END : KY_REC_END_PLAIN, track, words);
}

void ky_put_end_late(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		     uint32_t name)
{
	const uint32_t words[] = {category, name, 0};
	if (trace->build->in_order)
		ky_build_end(trace, ts, track, category, name, 0);
	else if (!ky_stage_put(&trace->build->stage, ts,
			       category | name ? KY_REC_END : KY_REC_END_PLAIN, track, words))
		ky_trace_no_memory(trace);
}

void ky_put_end_first(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		      uint32_t name, uint32_t args)
{
	const uint32_t words[] = {category, name, args};
	put(trace, ts, KY_REC_END_FIRST, track, words);
}

static void put_complete(struct ky_trace *trace, int64_t ts, int64_t dur, enum ky_record_kind kind,
			 uint32_t track, uint32_t category, uint32_t name, uint32_t args)
{
	const uint32_t words[] = {KY_TWO_WORDS(dur), category, name, args};
	put(trace, ts, kind, track, words);
}

void ky_put_complete(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
		     uint32_t category, uint32_t name, uint32_t args)
{
	put_complete(trace, ts, dur, KY_REC_COMPLETE, track, category, name, args);
}

void ky_put_complete_longest(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
			     uint32_t category, uint32_t name, uint32_t args)
{
	put_complete(trace, ts, dur, KY_REC_COMPLETE_LONGEST, track, category, name, args);
}

void ky_put_instant(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		    uint32_t name, uint32_t args)
{
	const uint32_t words[] = {category, name, args};
	put(trace, ts, KY_REC_INSTANT, track, words);
}

void ky_put_counter(struct ky_trace *trace, int64_t ts, uint32_t track, double value)
{
	ky_put_counter_args(trace, ts, track, value, 0);
}

void ky_put_counter_args(struct ky_trace *trace, int64_t ts, uint32_t track, double value,
			 uint32_t args)
{
	const uint64_t bits = ky_real_bits(value);
	const uint32_t words[] = {KY_TWO_WORDS(bits), args};
	put(trace, ts, args ? KY_REC_COUNTER_ARGS : KY_REC_COUNTER, track, words);
}

void ky_put_flow(struct ky_trace *trace, int64_t ts, uint32_t track, enum ky_flow_step step,
		 enum ky_flow_bind bind, uint64_t id)
{
	const uint32_t words[] = {(uint32_t)step | (uint32_t)bind << 8, KY_TWO_WORDS(id)};
	put(trace, ts, KY_REC_FLOW, track, words);
}

void ky_put_flow_longest(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
			 enum ky_flow_step step, uint64_t id)
{
	const uint32_t words[] = {KY_TWO_WORDS(dur), (uint32_t)step | (uint32_t)KY_BIND_LAST << 8,
				  KY_TWO_WORDS(id)};
	put(trace, ts, KY_REC_FLOW_LONGEST, track, words);
}

void ky_put_log(struct ky_trace *trace, int64_t ts, uint32_t thread, uint8_t priority, uint32_t tag,
		uint32_t message)
{
	const uint32_t words[] = {thread, priority, tag, message};
	put(trace, ts, KY_REC_LOG, 0, words);
}

void ky_put_sample(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t callsite,
		   uint32_t cpu, enum ky_cpu_mode mode, double weight, uint32_t event)
{
	const uint64_t bits = ky_real_bits(weight);
	const uint32_t words[] = {thread, callsite, cpu, (uint32_t)mode, event, KY_TWO_WORDS(bits)};
	put(trace, ts, KY_REC_SAMPLE, 0, words);
}

void ky_stage_kernel(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words,
		     uint32_t count)
{
	if (!trace->build->windows_count || ky_window_wants(trace, ts, sub))
		put(trace, ts, (enum ky_record_kind)(KY_REC_KERNEL + count), sub, words);
}

void ky_put_clocks(struct ky_trace *trace, int64_t ts, const struct ky_clock_reading *readings,
		   uint32_t count)
{
	struct ky_clock_rows *rows = &trace->clock_rows;
	const uint32_t snapshot = trace->build->snapshots++;
	if (ky_clocks_add(trace->clocks, readings, count) != 0)
		ky_trace_no_memory(trace);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t row = ky_append(trace, rows);
		if (row == KY_NONE)
			return;
		rows->snapshot[row] = snapshot;
		rows->ts[row] = ts;
		rows->clock[row] = readings[i].clock;
		rows->value[row] = readings[i].ns;
		rows->machine[row] = trace->build->machine;
	}
}

static void put_metadata(struct ky_trace *trace, const char *key, uint32_t text, int64_t number)
{
	struct ky_metadata *metadata = &trace->metadata;
	const uint32_t row = ky_append(trace, metadata);
	if (row == KY_NONE)
		return;
	metadata->key[row] = ky_string_z(trace, key);
	metadata->text[row] = text;
	metadata->number[row] = number;
}

void ky_put_metadata(struct ky_trace *trace, const char *key, uint32_t text)
{
	put_metadata(trace, key, text, 0);
}

void ky_put_metadata_number(struct ky_trace *trace, const char *key, int64_t number)
{
	put_metadata(trace, key, 0, number);
}

/* ---- problems: a row for each kind, with their number and the first place ---- */

/* Return the row of a kind, made on first use with number 0; KY_NONE without memory. */
static uint32_t row_of(struct ky_trace *trace, const char *name, enum ky_severity severity,
		       uint64_t at)
{
	struct ky_problems *problems = &trace->problems;
	const uint32_t input = trace->build ? trace->build->input : 0;
	const uint32_t number = ky_string_z(trace, name);
	for (uint32_t i = 0; i < problems->rows.count; i++)
		if (problems->name[i] == number && problems->input[i] == input)
			return i;
	const uint32_t row = ky_append(trace, problems);
	if (row == KY_NONE)
		return KY_NONE;
	problems->name[row] = number;
	problems->severity[row] = (uint8_t)severity;
	problems->number[row] = 0;
	problems->first_at[row] = at;
	problems->first[row] = 0;
	problems->input[row] = input;
	return row;
}

void ky_problem(struct ky_trace *trace, const char *name, enum ky_severity severity, uint64_t at,
		const char *format, ...)
{
	const uint32_t row = row_of(trace, name, severity, at);
	if (row == KY_NONE || trace->problems.number[row]++ != 0)
		return;
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	trace->problems.first[row] = ky_string_z(trace, text);
}

void ky_problems(struct ky_trace *trace, const char *name, enum ky_severity severity, uint64_t at,
		 uint64_t number)
{
	const uint32_t row = number ? row_of(trace, name, severity, at) : KY_NONE;
	if (row != KY_NONE)
		trace->problems.number[row] += number;
}

/* ---- windows of a flight recorder ---- */

/*
 * The stretches of time that a flight recorder kept. Between two of them kernel events are missing: it is
 * unknown what ran and ended there.
 *
 *   ┌ window ────────┐                ┌ window ───
 *   │ a runs ────────┤                │  ... switched away from b
 *   └────────────────┘                └───────────
 *                    ▲ everything open ends here, by a gap record staged one nanosecond later, so that it follows the
 *                      window's last events
 */

/* A file may have any number of windows and threads: the limit of rows visited at the ends of windows. */
#define GAP_ROWS_MAX (UINT64_C(1) << 28)

const struct ky_window *ky_window_of(const struct ky_window *windows, uint32_t count, int64_t ts)
{
	const uint32_t low = KY_ARRAY_SEARCH(0, count, at, windows[at].to_ns < ts);
	return low < count ? &windows[low] : NULL;
}

void ky_trace_windows(struct ky_trace *trace, const struct ky_window *windows, uint32_t count)
{
	struct ky_build *build = trace->build;
	build->windows = count ? malloc(count * sizeof(*windows)) : NULL;
	if (count && !build->windows) {
		ky_trace_no_memory(trace);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		build->windows[i] = windows[i];
		if (windows[i].to_ns == INT64_MAX)
			continue;
		KY_PUT_KERNEL(trace, windows[i].to_ns + 1, KY_KERNEL_GAP, 0);
		trace->events--; /* it is no event */
	}
	build->windows_count = count;
}

bool ky_window_wants(const struct ky_trace *trace, int64_t ts, uint32_t sub)
{
	const struct ky_build *build = trace->build;
	/* The identity of a task is valid in all windows. */
	if (sub >= KY_KERNEL_TASK_NEW && sub <= KY_KERNEL_TASK_HINT)
		return true;
	const struct ky_window *window = ky_window_of(build->windows, build->windows_count, ts);
	return window && window->from_ns <= ts;
}

static void end_cpus(struct ky_trace *trace, int64_t ts)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	for (uint64_t i = 0; i < state->cpus_room; i++) {
		struct ky_cpu_state *cpu = &state->cpus[i];
		if (cpu->slice)
			trace->sched.dur[cpu->slice - 1] = ts - trace->sched.ts[cpu->slice - 1];
		cpu->slice = 0;
	}
}

static void end_states(struct ky_trace *trace, int64_t ts)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	for (uint64_t i = 0; i < state->threads_room; i++) {
		ky_sched_close_state(trace, ts, &state->threads[i]);
		state->threads[i] = (struct ky_thread_rows){0};
	}
}

/* End the spans of threads and CPUs; those with an id may reach into another window. */
static void end_spans(struct ky_trace *trace, int64_t ts)
{
	struct ky_build *build = trace->build;
	for (uint32_t i = 0; i < build->states_room && i < trace->tracks.rows.count; i++) {
		const uint8_t kind = trace->tracks.kind[i];
		if ((kind != KY_TRACK_THREAD && kind != KY_TRACK_CPU) || build->states[i].finite)
			continue;
		for (uint32_t open = build->states[i].depth; open; open--)
			(void)ky_build_end(trace, ts, i, 0, 0, 0);
	}
}

void ky_window_end(struct ky_trace *trace, int64_t ts)
{
	struct ky_kernel_state *state = trace->build->kernel;
	state->gap_rows += state->cpus_room + state->threads_room + trace->build->states_room;
	if (state->gap_rows > GAP_ROWS_MAX)
		return;
	end_cpus(trace, ts);
	end_states(trace, ts);
	end_spans(trace, ts);
}
