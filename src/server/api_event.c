/* SPDX-License-Identifier: MIT */
/*
 * api_event.c: references to events (EventRef), and api/event: the details of one. A struct event holds what all kinds have
 * in common; api_facts.c and api_slice.c add what only some have.
 */
#include "server/api_parts.h"

#include "query/filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *const ky_api_event_kinds[] = {"group", "slices",  "counter", "sched",
					  "state", "samples", "loss",    NULL};

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

static uint32_t rows_of(const struct ky_view *view, enum ky_view_kind kind)
{
	const struct ky_trace *const trace = view->trace;
	switch (kind) {
	case KY_VIEW_SLICES:
		return trace->slices.rows.count;
	case KY_VIEW_COUNTER:
		return trace->counters.rows.count;
	case KY_VIEW_SCHED:
		return trace->sched.rows.count;
	case KY_VIEW_STATE:
		return trace->thread_states.rows.count;
	case KY_VIEW_SAMPLES:
		return view->sample_spans.count;
	case KY_VIEW_LOSS:
		return trace->losses.rows.count;
	case KY_VIEW_GROUP:
		break;
	}
	return 0;
}

static bool exists(const struct ky_view *view, enum ky_view_kind kind, int64_t id)
{
	return id >= 0 && id < rows_of(view, kind);
}

static void read_slice(struct event *event, const struct ky_trace *trace)
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
	const uint32_t next = ky_api_facts_counter_beside(trace, event->id, 1);
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

static void read_sample(struct event *event, const struct ky_trace *trace)
{
	const struct ky_sample_spans *const spans = &event->view->sample_spans;
	const uint32_t frame = spans->frame[event->id];
	event->ts = spans->ts[event->id];
	event->dur = spans->dur[event->id];
	if (frame < trace->frames.rows.count)
		event->name = trace->frames.name[frame];
	read_of_thread(event, trace, spans->thread[event->id]);
}

static void read_loss(struct event *event, const struct ky_trace *trace)
{
	const struct ky_losses *const losses = &trace->losses;
	event->ts = losses->ts[event->id] == KY_TIME_NONE ? trace->begin_ns : losses->ts[event->id];
	event->name = losses->what[event->id];
	read_of_thread(event, trace, losses->thread[event->id]);
}

static void read_scheduled(struct event *event, const struct ky_trace *trace)
{
	if (event->kind == KY_VIEW_SCHED) {
		event->ts = trace->sched.ts[event->id];
		event->dur = trace->sched.dur[event->id];
		read_of_thread(event, trace, trace->sched.thread[event->id]);
		if (event->thread < trace->threads.rows.count)
			event->name = trace->threads.name[event->thread];
	} else {
		event->ts = trace->thread_states.ts[event->id];
		event->dur = trace->thread_states.dur[event->id];
		event->name = trace->thread_states.state[event->id];
		read_of_thread(event, trace, trace->thread_states.thread[event->id]);
	}
}

static struct event read_event(const struct ky_view *view, enum ky_view_kind kind, uint32_t id)
{
	struct event event = {
		.view = view, .kind = kind, .id = id, .process = KY_NONE, .thread = KY_NONE};
	if (kind == KY_VIEW_SLICES)
		read_slice(&event, view->trace);
	else if (kind == KY_VIEW_COUNTER)
		read_counter(&event, view->trace);
	else if (kind == KY_VIEW_SAMPLES)
		read_sample(&event, view->trace);
	else if (kind == KY_VIEW_LOSS)
		read_loss(&event, view->trace);
	else
		read_scheduled(&event, view->trace);
	event.shown = kind == KY_VIEW_SLICES ? ky_view_place_slice(view, id, &event.place)
					     : ky_view_place(view, kind, id, &event.place);
	return event;
}

/* What a CPU runs has the label of its thread, which may have no name. */
static void add_name(struct ky_json_out *json, const struct event *event)
{
	char label[KY_LABEL_BYTES];
	const struct ky_trace *const trace = event->view->trace;
	if (event->kind == KY_VIEW_SCHED)
		ky_json_out_text(json, "name", ky_api_text_thread(label, trace, event->thread));
	else
		ky_api_text_name(json, "name", trace, event->name);
}

/* Add the members of an EventRef, without its brackets. */
static void add_event(struct ky_json_out *json, const struct ky_api *api, const struct event *event)
{
	ky_json_out_text(json, "kind", ky_api_event_kinds[event->kind]);
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
	uint32_t low = 0, high = api->wall_count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (api->wall[middle].from_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!api->wall_count)
		return false;
	*wall_ns = ky_add_clamped(ns, api->wall[low ? low - 1 : 0].offset_ns);
	return true;
}

/* "2026-11-15T18:21:23.517965760Z" */
static void add_wall(struct ky_json_out *json, const struct ky_api *api, int64_t ns)
{
	int64_t wall;
	char text[32], whole[80];
	struct tm tm;
	if (!ky_api_event_wall(api, ns, &wall)) {
		ky_json_out_null(json, "wall");
		return;
	}
	const int64_t below = wall % 1000000000 < 0 ? 1000000000 : 0;
	const int64_t rest = wall % 1000000000 + below;
	const time_t seconds = (time_t)(wall / 1000000000 - (below != 0));
	if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		snprintf(text, sizeof(text), "%" PRId64, (int64_t)seconds);
	snprintf(whole, sizeof(whole), "%s.%09" PRId64 "Z", text, rest);
	ky_json_out_text(json, "wall", whole);
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
	char label[KY_LABEL_BYTES];
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
	ky_json_out_text(json, "process", ky_api_text_process(label, trace, event->process));
	ky_json_out_text(json, "thread", ky_api_text_thread(label, trace, event->thread));
	if (slice)
		ky_api_slice(json, api, event->id);
	else
		add_nothing(json);
	ky_api_facts_stack(json, api->view, event->kind, event->id);
	ky_api_facts(json, api->view, event->kind, event->id, event->dur < 0);
	ky_json_out_end(json, '}');
}

static bool find_kind(const char *name, enum ky_view_kind *kind)
{
	for (unsigned i = KY_VIEW_SLICES; name && ky_api_event_kinds[i]; i++) {
		if (strcmp(ky_api_event_kinds[i], name) == 0) {
			*kind = (enum ky_view_kind)i;
			return true;
		}
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
	if (!exists(api->view, kind, id)) {
		ky_api_fail(response, 404, "no event %lld of kind %s in this trace", (long long)id,
			    ky_api_event_kinds[kind]);
		return;
	}
	const struct event event = read_event(api->view, kind, (uint32_t)id);
	add_details(&response->json, api, &event);
}
