/* SPDX-License-Identifier: MIT */
/*
 * api_event.c: references to events (EventRef), and api/event: the details of one. A struct event holds what all kinds have in
 * common, and facts, as keys and values for display, what only one has. api_slice.c adds what only slices have.
 */
#include "base/array.h"
#include "server/api.h"
#include "server/view_pyramids.h"

#include "model/index.h"
#include "model/quantity.h"
#include "query/filter.h"
#include "query/snapshot.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- facts ---- */

/* Return the value that many steps before or after on the same track, or KY_NONE. */
static uint32_t counter_beside(struct ky_trace *trace, uint32_t counter, int step)
{
	const struct ky_index_rows rows =
		ky_index_get(trace, KY_INDEX_COUNTER_TRACK, trace->counters.track[counter]);
	const uint32_t low = KY_ARRAY_SEARCH(0, rows.count, at, rows.rows[at] < counter);
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
	char label[KY_STATS_LABEL_BYTES];
	const struct ky_thread_states *const states = &trace->thread_states;
	const struct ky_index_rows rows = ky_index_get(trace, KY_INDEX_STATE_THREAD, thread);
	const uint32_t low = KY_ARRAY_SEARCH(0, rows.count, at, states->ts[rows.rows[at]] < ts);
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
			 ky_stats_label_thread(label, trace, states->waker[state]));
}

static void add_sched_facts(struct ky_json_out *json, const struct ky_view *view, uint32_t id)
{
	struct ky_trace *const trace = view->trace;
	const struct ky_sched *const sched = &trace->sched;
	add_fact(json, "CPU", "%" PRIu32, sched->cpu[id]);
	add_fact(json, "priority", "%" PRId32, sched->priority[id]);
	add_state(json, "then", trace, sched->end_state[id]);
	if (sched->thread[id] < trace->threads.rows.count)
		add_wakeup(json, trace, sched->thread[id], sched->ts[id]);
}

static void add_state_facts(struct ky_json_out *json, const struct ky_view *view, uint32_t id)
{
	const struct ky_trace *const trace = view->trace;
	char label[KY_STATS_LABEL_BYTES];
	const struct ky_thread_states *const states = &trace->thread_states;
	add_state(json, "state", trace, states->state[id]);
	if (states->cpu[id] != KY_NONE)
		add_fact(json, "CPU", "%" PRIu32, states->cpu[id]);
	if (states->waker[id] < trace->threads.rows.count)
		add_fact(json, "woken by", "%s",
			 ky_stats_label_thread(label, trace, states->waker[id]));
	if (states->io_wait[id] >= 0)
		add_fact(json, "waiting for I/O", "%s", states->io_wait[id] ? "yes" : "no");
	if (states->blocked_function[id])
		add_fact(json, "blocked in", "%.400s",
			 ky_text_of(trace, states->blocked_function[id]));
}

static void add_counter_facts(struct ky_json_out *json, const struct ky_view *view, uint32_t id)
{
	struct ky_trace *const trace = view->trace;
	char room[KY_ARG_ROOM];
	const struct ky_counters *const counters = &trace->counters;
	const uint32_t unit_string = trace->tracks.unit[counters->track[id]];
	const char *const unit = unit_string ? ky_text_of(trace, unit_string) : "";
	const char *const gap = *unit ? " " : "";
	const uint32_t before = counter_beside(trace, id, -1);
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

static void add_loss_facts(struct ky_json_out *json, const struct ky_view *view, uint32_t id)
{
	const struct ky_trace *const trace = view->trace;
	if (trace->losses.events[id])
		add_fact(json, "events lost", "%" PRIu64, trace->losses.events[id]);
	else
		add_fact(json, "events lost", "some, number unknown");
	if (trace->losses.cpu[id] != KY_NONE)
		add_fact(json, "CPU", "%" PRIu32, trace->losses.cpu[id]);
	if (trace->losses.ts[id] == KY_TIME_NONE)
		add_fact(json, "when", "unknown");
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

/* The frames of a snapshot's stack, which is a text. */
static void add_text_stack(struct ky_json_out *json, const char *stack)
{
	struct ky_snapshot_frame frame;
	while (ky_snapshot_frame(&stack, &frame)) {
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_string(json, "name", frame.name, frame.name_bytes);
		ky_json_out_string(json, "file", frame.file ? frame.file : "", frame.file_bytes);
		ky_json_out_uint(json, "line", frame.number);
		ky_json_out_string(json, "module", frame.module ? frame.module : "",
				   frame.module_bytes);
		ky_json_out_end(json, '}');
	}
}

static void add_stack(struct ky_json_out *json, const struct ky_view *view, enum ky_view_kind kind,
		      uint32_t id)
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
	const char *const text = kind == KY_VIEW_SLICES && ky_snapshot_is(trace, id)
					 ? ky_snapshot_text(trace, id, "stack")
					 : NULL;
	if (text)
		add_text_stack(json, text);
	ky_json_out_end(json, ']');
}

/* ---- all kinds ---- */

struct event {
	const struct ky_view *view;
	enum ky_view_kind kind;
	uint32_t id;
	int64_t ts, dur;
	uint32_t name; /* string */
	uint32_t process, thread;
	struct ky_view_place place;
	bool shown;
};

static void read_slice(struct event *event, struct ky_trace *trace)
{
	const uint32_t track = trace->slices.track[event->id];
	event->ts = trace->slices.ts[event->id];
	event->dur = trace->slices.dur[event->id];
	event->name = trace->slices.name[event->id];
	event->thread = ky_track_thread(trace, track);
	event->process = ky_track_process(trace, track);
}

/* A value holds until the next one. */
static void read_counter(struct event *event, struct ky_trace *trace)
{
	const struct ky_counters *const counters = &trace->counters;
	const uint32_t track = counters->track[event->id];
	const uint32_t next = counter_beside(trace, event->id, 1);
	event->ts = counters->ts[event->id];
	event->dur =
		ky_sub_clamped(next == KY_NONE ? trace->end_ns : counters->ts[next], event->ts);
	event->name = trace->tracks.name[track];
	event->thread = ky_track_thread(trace, track);
	event->process = ky_track_process(trace, track);
}

static void read_of_thread(struct event *event, const struct ky_trace *trace, uint32_t thread)
{
	event->thread = thread;
	if (thread < trace->threads.rows.count)
		event->process = trace->threads.process[thread];
}

static void read_sample(struct event *event, struct ky_trace *trace)
{
	const struct ky_sample_spans *const spans = &event->view->sample_spans;
	const uint32_t frame = spans->frame[event->id];
	event->ts = spans->ts[event->id];
	event->dur = spans->dur[event->id];
	if (frame < trace->frames.rows.count)
		event->name = trace->frames.name[frame];
	read_of_thread(event, trace, spans->thread[event->id]);
}

static void read_loss(struct event *event, struct ky_trace *trace)
{
	const struct ky_losses *const losses = &trace->losses;
	event->ts = losses->ts[event->id] == KY_TIME_NONE ? trace->begin_ns : losses->ts[event->id];
	event->name = losses->what[event->id];
	read_of_thread(event, trace, losses->thread[event->id]);
}

static void read_sched(struct event *event, struct ky_trace *trace)
{
	event->ts = trace->sched.ts[event->id];
	event->dur = trace->sched.dur[event->id];
	read_of_thread(event, trace, trace->sched.thread[event->id]);
	if (event->thread < trace->threads.rows.count)
		event->name = trace->threads.name[event->thread];
}

static void read_state(struct event *event, struct ky_trace *trace)
{
	event->ts = trace->thread_states.ts[event->id];
	event->dur = trace->thread_states.dur[event->id];
	event->name = trace->thread_states.state[event->id];
	read_of_thread(event, trace, trace->thread_states.thread[event->id]);
}

static const struct kind {
	const char *name;
	void (*read)(struct event *event, struct ky_trace *trace);
	/* Add what only this kind has; NULL: nothing. */
	void (*add_facts)(struct ky_json_out *json, const struct ky_view *view, uint32_t id);
} kinds[KY_VIEW_KINDS] = {
	[KY_VIEW_GROUP] = {"group", NULL, NULL},
	[KY_VIEW_SLICES] = {"slices", read_slice, NULL},
	[KY_VIEW_COUNTER] = {"counter", read_counter, add_counter_facts},
	[KY_VIEW_SCHED] = {"sched", read_sched, add_sched_facts},
	[KY_VIEW_STATE] = {"state", read_state, add_state_facts},
	[KY_VIEW_SAMPLES] = {"samples", read_sample, add_sample_facts},
	[KY_VIEW_LOSS] = {"loss", read_loss, add_loss_facts},
};

const char *ky_api_event_kind(enum ky_view_kind kind)
{
	return kinds[kind].name;
}

static struct event read_event(const struct ky_view *view, enum ky_view_kind kind, uint32_t id)
{
	struct event event = {
		.view = view, .kind = kind, .id = id, .process = KY_NONE, .thread = KY_NONE};
	kinds[kind].read(&event, view->trace);
	event.shown = ky_view_place(view, kind, id, &event.place);
	return event;
}

/* What a CPU runs has the label of its thread, which may have no name. */
static void add_name(struct ky_json_out *json, const struct event *event)
{
	char label[KY_STATS_LABEL_BYTES];
	const struct ky_trace *const trace = event->view->trace;
	if (event->kind == KY_VIEW_SCHED)
		ky_json_out_text(json, "name", ky_stats_label_thread(label, trace, event->thread));
	else
		ky_api_text_name(json, "name", trace, event->name);
}

/* Add the members of an EventRef, without its brackets. */
static void add_event(struct ky_json_out *json, const struct ky_api *api, const struct event *event)
{
	ky_json_out_text(json, "kind", kinds[event->kind].name);
	ky_json_out_uint(json, "id", event->id);
	add_name(json, event);
	ky_json_out_int(json, "ts", ky_api_time(api, event->ts));
	ky_json_out_int(json, "dur", event->dur < 0 ? -1 : event->dur);
	ky_json_out_int(json, "track", event->shown ? (int64_t)event->place.track : -1);
	ky_json_out_int(json, "row", event->shown ? event->place.row : 0);
}

void ky_api_event_ref(struct ky_json_out *json, const char *key, const struct ky_api *api,
		      enum ky_view_kind kind, uint32_t id)
{
	const struct event event = read_event(api->view, kind, id);
	ky_json_out_begin(json, key, '{');
	add_event(json, api, &event);
	ky_json_out_end(json, '}');
}

/* ---- when ---- */

bool ky_api_event_wall(const struct ky_api *api, int64_t ns, int64_t *wall_ns)
{
	const uint32_t low = KY_ARRAY_SEARCH(0, api->wall_count, at, api->wall[at].from_ns <= ns);
	if (!api->wall_count)
		return false;
	*wall_ns = ky_add_clamped(ns, api->wall[low ? low - 1 : 0].offset_ns);
	return true;
}

static void add_wall(struct ky_json_out *json, const struct ky_api *api, int64_t ns)
{
	char text[KY_QUANTITY_DATE_BYTES];
	int64_t wall;
	if (ky_api_event_wall(api, ns, &wall))
		ky_json_out_text(json, "wall", ky_quantity_date(text, wall));
	else
		ky_json_out_null(json, "wall");
}

/* ---- api/event ---- */

/* Add, empty, what only slices have. */
static void add_nothing(struct ky_json_out *json)
{
	static const char *const empty[] = {"args", "parents", "children", "flowsIn", "flowsOut"};
	ky_json_out_null(json, "self");
	ky_json_out_null(json, "source");
	ky_json_out_int(json, "childrenCount", 0);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		ky_json_out_begin(json, empty[i], '[');
		ky_json_out_end(json, ']');
	}
}

static void add_details(struct ky_json_out *json, const struct ky_api *api,
			const struct event *event)
{
	char label[KY_STATS_LABEL_BYTES];
	const struct ky_trace *const trace = api->view->trace;
	const bool slice = event->kind == KY_VIEW_SLICES;
	ky_json_out_begin(json, NULL, '{');
	add_event(json, api, event);
	ky_api_text(json, "category", trace, slice ? trace->slices.category[event->id] : 0);
	ky_json_out_bool(json, "instant",
			 slice ? trace->slices.kind[event->id] == KY_SLICE_INSTANT
			       : event->kind == KY_VIEW_LOSS);
	ky_json_out_digits(json, "absolute", event->ts);
	add_wall(json, api, event->ts);
	ky_json_out_text(json, "process", ky_stats_label_process(label, trace, event->process));
	ky_json_out_text(json, "thread", ky_stats_label_thread(label, trace, event->thread));
	if (slice)
		ky_api_slice(json, api, event->id);
	else
		add_nothing(json);
	add_stack(json, api->view, event->kind, event->id);
	ky_json_out_begin(json, "facts", '[');
	if (event->dur < 0)
		add_fact(json, "end", "never ended in this trace");
	if (kinds[event->kind].add_facts)
		kinds[event->kind].add_facts(json, api->view, event->id);
	ky_json_out_end(json, ']');
	ky_json_out_end(json, '}');
}

static bool find_kind(const char *name, enum ky_view_kind *kind)
{
	for (*kind = KY_VIEW_SLICES; name && *kind < KY_VIEW_KINDS; (*kind)++) {
		if (strcmp(kinds[*kind].name, name) == 0)
			return true;
	}
	return false;
}

void ky_api_event(struct ky_api *api, const struct ky_api_request *request,
		  struct ky_api_response *response)
{
	enum ky_view_kind kind;
	int64_t id;
	if (!find_kind(ky_api_parameter_text(request, "kind"), &kind)) {
		ky_api_fail(response, 400,
			    "kind is unknown: use slices, counter, sched, state, samples or loss");
		return;
	}
	if (!ky_api_parameter_number(request, "id", &id, response))
		return;
	/* Rows have other numbers in another generation. g is optional. */
	if (ky_api_parameter_text(request, "g") &&
	    !ky_api_parameter_generation(api, request, response))
		return;
	if (id < 0 || id >= api->view->tables[kind].count) {
		ky_api_fail(response, 404, "no event %lld of kind %s in this trace", (long long)id,
			    kinds[kind].name);
		return;
	}
	const struct event event = read_event(api->view, kind, (uint32_t)id);
	add_details(&response->json, api, &event);
}

/* ---- the next one ---- */

/* Return the row of a pyramid behind or before that moment and event (-1: none of that moment was seen), or KY_NONE. */
static uint32_t beyond(const struct ky_view_table *table, const struct ky_view_pyramid *pyramid,
		       int64_t ts, int64_t id, bool forward)
{
	const uint32_t *const order = table->order + pyramid->first;
	const int64_t last = id < 0 ? (forward ? -1 : INT64_MAX) : (forward ? id : id - 1);
	const uint32_t seen = KY_ARRAY_SEARCH(
		0, pyramid->count, at,
		table->ts[order[at]] < ts || (table->ts[order[at]] == ts && order[at] <= last));
	if (forward)
		return seen < pyramid->count ? order[seen] : KY_NONE;
	return seen ? order[seen - 1] : KY_NONE;
}

void ky_api_neighbour(struct ky_api *api, const struct ky_api_request *request,
		      struct ky_api_response *response)
{
	const struct ky_view *const view = api->view;
	int64_t number = -1, row = 0, ts, id = -1, forward = 1;
	if (!ky_api_parameter_generation(api, request, response) ||
	    !ky_api_parameter_number(request, "ts", &ts, response) ||
	    !ky_api_parameter_number(request, "track", &number, response) ||
	    !ky_api_parameter_bounded(request, "row", 0, UINT16_MAX, &row, response) ||
	    !ky_api_parameter_bounded(request, "id", -1, UINT32_MAX, &id, response) ||
	    !ky_api_parameter_bounded(request, "forward", 0, 1, &forward, response))
		return;
	if (number < 0 || number >= view->tracks_count) {
		ky_api_fail(response, 404, "no track %lld in this trace", (long long)number);
		return;
	}
	const struct ky_view_track *const track = &view->tracks[number];
	uint32_t found = KY_NONE;
	if (row < track->pyramids)
		found = beyond(&view->tables[track->kind],
			       &view->pyramids[track->pyramids_at + (uint32_t)row],
			       ky_add_clamped(view->base_ns, ts), id, forward);
	ky_json_out_begin(&response->json, NULL, '{');
	if (found == KY_NONE)
		ky_json_out_null(&response->json, "event");
	else
		ky_api_event_ref(&response->json, "event", api, track->kind, found);
	ky_json_out_end(&response->json, '}');
}
