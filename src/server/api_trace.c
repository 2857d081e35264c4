/* SPDX-License-Identifier: MIT */
/* api_trace.c: api/trace: the description of the trace and its tracks. Made once per generation. */
#include "server/api.h"

#include "query/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

/* More would only make the page slow. */
#define LIST_MAX 10000u

static void add_head(struct ky_json_out *json, const struct ky_api *api)
{
	const struct ky_view *const view = api->view;
	const struct ky_trace *const trace = view->trace;
	const char *const clock = ky_clock_name(trace->clock);
	int64_t wall;
	ky_json_out_uint(json, "generation", view->generation);
	ky_json_out_text(json, "name", view->name ? view->name : "");
	ky_json_out_text(json, "format", trace->format ? trace->format : "");
	ky_json_out_digits(json, "base", view->base_ns);
	ky_json_out_text(json, "clock", clock ? clock : "the trace's own clock");
	if (ky_api_event_wall(api, view->base_ns, &wall))
		ky_json_out_digits(json, "wall", wall);
	else
		ky_json_out_null(json, "wall");
	ky_json_out_int(json, "begin", ky_api_time(api, trace->begin_ns));
	ky_json_out_int(json, "end", ky_api_time(api, trace->end_ns));
	ky_json_out_bool(json, "live", view->live);
}

static uint64_t count_instants(const struct ky_trace *trace)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < trace->slices.rows.count; i++)
		count += trace->slices.kind[i] == KY_SLICE_INSTANT;
	return count;
}

static void add_counts(struct ky_json_out *json, const struct ky_trace *trace)
{
	const uint64_t instants = count_instants(trace);
	const struct {
		const char *key;
		uint64_t count;
	} counts[] = {
		{"slices", trace->slices.rows.count - instants},
		{"instants", instants},
		{"counters", trace->counters.rows.count},
		{"flows", trace->flows.rows.count},
		{"samples", trace->samples.rows.count},
		{"sched", trace->sched.rows.count},
		{"logs", trace->logs.rows.count},
		{"lost", trace->lost},
	};
	ky_json_out_begin(json, "counts", '{');
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		ky_json_out_uint(json, counts[i].key, counts[i].count);
	ky_json_out_end(json, '}');
}

/* Add the process, thread and CPU of a track, as far as they are known. */
static void add_owner(struct ky_json_out *json, const struct ky_trace *trace,
		      const struct ky_view_track *track)
{
	if (track->process < trace->processes.rows.count)
		ky_json_out_int(json, "pid", trace->processes.pid[track->process]);
	if (track->thread < trace->threads.rows.count)
		ky_json_out_int(json, "tid", trace->threads.tid[track->thread]);
	if (track->cpu != KY_NONE)
		ky_json_out_uint(json, "cpu", track->cpu);
}

static void add_track(struct ky_json_out *json, const struct ky_view *view, uint32_t id)
{
	const struct ky_view_track *const track = &view->tracks[id];
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_uint(json, "id", id);
	ky_json_out_int(json, "parent", track->parent == KY_NONE ? -1 : (int64_t)track->parent);
	ky_json_out_text(json, "kind", ky_api_event_kind(track->kind));
	ky_json_out_text(json, "key", track->key);
	ky_json_out_text(json, "name", track->name);
	ky_json_out_uint(json, "rows", track->rows);
	ky_json_out_uint(json, "events", track->events);
	add_owner(json, view->trace, track);
	if (track->kind == KY_VIEW_COUNTER) {
		ky_api_text(json, "unit", view->trace, track->unit);
		ky_json_out_real(json, "min", track->min);
		ky_json_out_real(json, "max", track->max);
	}
	ky_json_out_end(json, '}');
}

static void add_tracks(struct ky_json_out *json, const struct ky_view *view)
{
	ky_json_out_begin(json, "tracks", '[');
	for (uint32_t i = 0; i < view->tracks_count; i++)
		add_track(json, view, i);
	ky_json_out_end(json, ']');
}

static void add_snapshots(struct ky_json_out *json, const struct ky_api *api)
{
	const struct ky_trace *const trace = api->view->trace;
	uint32_t shown = 0;
	ky_json_out_begin(json, "snapshots", '[');
	const size_t end = json->buffer->bytes + KY_LIST_BYTES_MAX;
	for (uint32_t i = ky_snapshot_next(trace, 0);
	     i != KY_NONE && shown < LIST_MAX && json->buffer->bytes < end;
	     i = ky_snapshot_next(trace, i + 1), shown++) {
		const char *const trigger = ky_snapshot_text(trace, i, "trigger");
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_int(json, "ts", ky_api_time(api, trace->slices.ts[i]));
		ky_json_out_text(json, "trigger", trigger ? trigger : "");
		ky_api_text(json, "reason", trace, trace->slices.name[i]);
		ky_json_out_uint(json, "event", i);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void add_losses(struct ky_json_out *json, const struct ky_api *api)
{
	const struct ky_losses *const losses = &api->view->trace->losses;
	ky_json_out_begin(json, "losses", '[');
	const size_t end = json->buffer->bytes + KY_LIST_BYTES_MAX;
	for (uint32_t i = 0; i < losses->rows.count && i < LIST_MAX && json->buffer->bytes < end;
	     i++) {
		struct ky_view_place place;
		const bool shown = ky_view_place(api->view, KY_VIEW_LOSS, i, &place);
		ky_json_out_begin(json, NULL, '{');
		if (losses->ts[i] == KY_TIME_NONE)
			ky_json_out_null(json, "ts");
		else
			ky_json_out_int(json, "ts", ky_api_time(api, losses->ts[i]));
		ky_json_out_uint(json, "events", losses->events[i]);
		ky_json_out_int(json, "track", shown ? (int64_t)place.track : -1);
		ky_api_text(json, "what", api->view->trace, losses->what[i]);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

/* Add the first case of a problem: "at byte 120: ..." */
static void add_first(struct ky_json_out *json, const struct ky_trace *trace, uint32_t problem)
{
	char text[1024];
	const struct ky_problems *const problems = &trace->problems;
	const uint64_t at = problems->first_at[problem];
	const char *const first =
		problems->first[problem] ? ky_text_of(trace, problems->first[problem]) : "";
	if (at == KY_NO_PLACE)
		snprintf(text, sizeof(text), "%s", first);
	else
		snprintf(text, sizeof(text), "at byte %" PRIu64 "%s%s", at, *first ? ": " : "",
			 first);
	ky_json_out_text(json, "first", text);
}

static void add_problems(struct ky_json_out *json, const struct ky_trace *trace)
{
	static const char *const severities[] = {"info", "data loss", "error"};
	const struct ky_problems *const problems = &trace->problems;
	ky_json_out_begin(json, "problems", '[');
	for (uint32_t i = 0; i < problems->rows.count && i < LIST_MAX; i++) {
		ky_json_out_begin(json, NULL, '{');
		const uint8_t severity = problems->severity[i];
		ky_json_out_text(json, "severity",
				 severities[severity <= KY_ERROR ? severity : KY_ERROR]);
		ky_api_text(json, "name", trace, problems->name[i]);
		ky_json_out_uint(json, "count", problems->number[i]);
		add_first(json, trace, i);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void make(struct ky_json_out *json, const struct ky_api *api)
{
	ky_json_out_begin(json, NULL, '{');
	add_head(json, api);
	add_counts(json, api->view->trace);
	add_tracks(json, api->view);
	add_snapshots(json, api);
	add_losses(json, api);
	add_problems(json, api->view->trace);
	ky_json_out_end(json, '}');
}

void ky_api_trace(struct ky_api *api, const struct ky_api_request *request,
		  struct ky_api_response *response)
{
	(void)request;
	pthread_mutex_lock(&api->once);
	if (!api->trace.bytes)
		make(&(struct ky_json_out){.buffer = &api->trace}, api);
	if (api->trace.failed) {
		ky_buffer_free(&api->trace);
		response->body.failed = true;
	}
	pthread_mutex_unlock(&api->once);
	/* Only read from here on. */
	ky_buffer_add(&response->body, api->trace.data, api->trace.bytes);
}
