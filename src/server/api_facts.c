/* SPDX-License-Identifier: MIT */
/*
 * api_facts.c: the part of api/event that only one kind of event has, as keys and values for display; and the stack of a
 * sample.
 */
#include "server/api_parts.h"

#include "model/index.h"
#include "query/filter.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint32_t ky_api_facts_counter_beside(struct ky_trace *trace, uint32_t counter, int step)
{
	const struct ky_index_rows rows =
		ky_index_get(trace, KY_INDEX_COUNTER_TRACK, trace->counters.track[counter]);
	uint32_t low = 0, high = rows.count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (rows.rows[middle] < counter)
			low = middle + 1;
		else
			high = middle;
	}
	const int64_t at = (int64_t)low + step;
	return at >= 0 && at < rows.count ? rows.rows[at] : KY_NONE;
}

__attribute__((format(printf, 3, 4))) static void add_fact(struct ky_json_out *json,
							   const char *key, const char *format, ...)
{
	char value[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_text(json, "key", key);
	ky_json_out_text(json, "value", value);
	ky_json_out_end(json, '}');
}

/* Describe the kernel's state letters; others stay unchanged. */
static const char *state_words(const char *state)
{
	static const struct {
		const char *state, *words;
	} known[] = {
		{"Running", "running"},
		{"R", "runnable: waiting for a CPU"},
		{"R+", "runnable: preempted"},
		{"S", "sleeping"},
		{"D", "sleeping, uninterruptible"},
		{"T", "stopped"},
		{"t", "stopped by a debugger"},
		{"X", "dead"},
		{"Z", "zombie"},
		{"P", "parked"},
		{"I", "idle"},
		{"x", "dead"},
	};
	for (size_t i = 0; state && i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].state, state) == 0)
			return known[i].words;
	}
	return state ? state : "unknown";
}

static void add_state(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
		      uint32_t string)
{
	const char *const state = string ? ky_text_of(trace, string) : NULL;
	const char *const words = state_words(state);
	if (state && words != state)
		add_fact(json, key, "%s (%s)", words, state);
	else
		add_fact(json, key, "%s", words);
}

/* Add what the thread waited for before it ran: the state that ends where this begins. */
static void add_wakeup(struct ky_json_out *json, struct ky_trace *trace, uint32_t thread,
		       int64_t ts)
{
	char label[KY_LABEL_BYTES];
	const struct ky_thread_states *const states = &trace->thread_states;
	const struct ky_index_rows rows = ky_index_get(trace, KY_INDEX_STATE_THREAD, thread);
	uint32_t low = 0, high = rows.count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (states->ts[rows.rows[middle]] < ts)
			low = middle + 1;
		else
			high = middle;
	}
	const uint32_t state = low ? rows.rows[low - 1] : KY_NONE;
	const char *const text = state == KY_NONE || !states->state[state]
					 ? ""
					 : ky_text_of(trace, states->state[state]);
	if (text[0] != 'R' || strcmp(text, "Running") == 0 ||
	    ky_add_clamped(states->ts[state], states->dur[state]) != ts)
		return;
	add_fact(json, "waited for the CPU", "%" PRId64 " ns", states->dur[state]);
	if (states->waker[state] < trace->threads.rows.count)
		add_fact(json, "woken by", "%s",
			 ky_api_text_thread(label, trace, states->waker[state]));
}

static void add_sched_facts(struct ky_json_out *json, struct ky_trace *trace, uint32_t id)
{
	const struct ky_sched *const sched = &trace->sched;
	add_fact(json, "CPU", "%" PRIu32, sched->cpu[id]);
	add_fact(json, "priority", "%" PRId32, sched->priority[id]);
	add_state(json, "then", trace, sched->end_state[id]);
	if (sched->thread[id] < trace->threads.rows.count)
		add_wakeup(json, trace, sched->thread[id], sched->ts[id]);
}

static void add_state_facts(struct ky_json_out *json, const struct ky_trace *trace, uint32_t id)
{
	char label[KY_LABEL_BYTES];
	const struct ky_thread_states *const states = &trace->thread_states;
	add_state(json, "state", trace, states->state[id]);
	if (states->cpu[id] != KY_NONE)
		add_fact(json, "CPU", "%" PRIu32, states->cpu[id]);
	if (states->waker[id] < trace->threads.rows.count)
		add_fact(json, "woken by", "%s",
			 ky_api_text_thread(label, trace, states->waker[id]));
	if (states->io_wait[id] >= 0)
		add_fact(json, "waiting for I/O", "%s", states->io_wait[id] ? "yes" : "no");
	if (states->blocked_function[id])
		add_fact(json, "blocked in", "%.400s",
			 ky_text_of(trace, states->blocked_function[id]));
}

static void add_counter_facts(struct ky_json_out *json, struct ky_trace *trace, uint32_t id)
{
	char room[KY_ARG_ROOM];
	const struct ky_counters *const counters = &trace->counters;
	const uint32_t unit_string = trace->tracks.unit[counters->track[id]];
	const char *const unit = unit_string ? ky_text_of(trace, unit_string) : "";
	const char *const gap = *unit ? " " : "";
	const uint32_t before = ky_api_facts_counter_beside(trace, id, -1);
	add_fact(json, "value", "%s%s%.100s", ky_api_text_real(counters->value[id], room), gap,
		 unit);
	if (before == KY_NONE)
		return;
	const double change = counters->value[id] - counters->value[before];
	add_fact(json, "change", "%s%s%s%.100s", change > 0 ? "+" : "",
		 ky_api_text_real(change, room), gap, unit);
}

static void add_sample_facts(struct ky_json_out *json, const struct ky_view *view, uint32_t id)
{
	const struct ky_trace *const trace = view->trace;
	const uint32_t frame = view->sample_spans.frame[id];
	add_fact(json, "samples", "%" PRIu32, view->sample_spans.samples[id]);
	if (frame < trace->frames.rows.count)
		add_fact(json, "address", "0x%" PRIx64, trace->frames.rel_pc[frame]);
}

static void add_loss_facts(struct ky_json_out *json, const struct ky_trace *trace, uint32_t id)
{
	if (trace->losses.events[id])
		add_fact(json, "events lost", "%" PRIu64, trace->losses.events[id]);
	else
		add_fact(json, "events lost", "some, number unknown");
	if (trace->losses.cpu[id] != KY_NONE)
		add_fact(json, "CPU", "%" PRIu32, trace->losses.cpu[id]);
	if (trace->losses.ts[id] == KY_TIME_NONE)
		add_fact(json, "when", "unknown");
}

void ky_api_facts(struct ky_json_out *json, const struct ky_view *view, enum ky_view_kind kind,
		  uint32_t id, bool endless)
{
	ky_json_out_begin(json, "facts", '[');
	if (endless)
		add_fact(json, "end", "never ended in this trace");
	if (kind == KY_VIEW_SCHED)
		add_sched_facts(json, view->trace, id);
	else if (kind == KY_VIEW_STATE)
		add_state_facts(json, view->trace, id);
	else if (kind == KY_VIEW_COUNTER)
		add_counter_facts(json, view->trace, id);
	else if (kind == KY_VIEW_SAMPLES)
		add_sample_facts(json, view, id);
	else if (kind == KY_VIEW_LOSS)
		add_loss_facts(json, view->trace, id);
	ky_json_out_end(json, ']');
}

/* ---- stacks ---- */

#define FRAMES_MAX 1024u

static void add_frame(struct ky_json_out *json, const struct ky_trace *trace, uint32_t frame)
{
	const struct ky_frames *const frames = &trace->frames;
	const uint32_t mapping = frames->mapping[frame];
	ky_json_out_begin(json, NULL, '{');
	ky_api_text_name(json, "name", trace, frames->name[frame]);
	ky_api_text(json, "file", trace, frames->file[frame]);
	ky_json_out_uint(json, "line", frames->line[frame]);
	ky_api_text(json, "module", trace,
		    mapping < trace->mappings.rows.count ? trace->mappings.name[mapping] : 0);
	ky_json_out_end(json, '}');
}

void ky_api_facts_stack(struct ky_json_out *json, const struct ky_view *view,
			enum ky_view_kind kind, uint32_t id)
{
	const struct ky_trace *const trace = view->trace;
	const struct ky_callsites *const sites = &trace->callsites;
	uint32_t site = kind == KY_VIEW_SAMPLES ? view->sample_spans.callsite[id] : KY_NONE;
	ky_json_out_begin(json, "stack", '[');
	for (uint32_t i = 0; i < FRAMES_MAX && site < sites->rows.count; i++) {
		const uint32_t up = sites->parent[site];
		add_frame(json, trace, sites->frame[site]);
		site = up < site ? up : KY_NONE;
	}
	ky_json_out_end(json, ']');
}
