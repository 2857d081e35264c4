/* SPDX-License-Identifier: MIT */
/* api_trace.c: api/trace: what there is, and the tracks. Made once; nothing of it changes within a generation. */
#include "server/api_parts.h"

#include "query/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

/* A list of that many is enough for every eye; more would only make the page slow. */
#define LIST_MAX 10000u

static void add_head(struct ky_buffer *buffer, const struct ky_api *api)
{
	const struct ky_view *const view = api->view;
	const struct ky_trace *const trace = view->trace;
	const char *const clock = ky_clock_name(trace->clock);
	int64_t wall;
	ky_json_key(buffer, "generation");
	ky_json_uint(buffer, view->generation);
	ky_json_key(buffer, "name");
	ky_json_text(buffer, view->name ? view->name : "");
	ky_json_key(buffer, "format");
	ky_json_text(buffer, trace->format ? trace->format : "");
	ky_json_key(buffer, "base");
	ky_json_digits(buffer, view->base_ns);
	ky_json_key(buffer, "clock");
	ky_json_text(buffer, clock ? clock : "the trace's own clock");
	ky_json_key(buffer, "wall");
	if (ky_api_event_wall(api, view->base_ns, &wall))
		ky_json_digits(buffer, wall);
	else
		ky_json_null(buffer);
	ky_json_key(buffer, "begin");
	ky_json_int(buffer, ky_api_time(api, trace->begin_ns));
	ky_json_key(buffer, "end");
	ky_json_int(buffer, ky_api_time(api, trace->end_ns));
	ky_json_key(buffer, "live");
	ky_json_bool(buffer, view->live);
}

static uint64_t count_instants(const struct ky_trace *trace)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < trace->slices.rows.count; i++)
		count += trace->slices.kind[i] == KY_SLICE_INSTANT;
	return count;
}

static void add_counts(struct ky_buffer *buffer, const struct ky_trace *trace)
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
	ky_json_key(buffer, "counts");
	ky_json_begin(buffer, '{');
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		ky_json_key(buffer, counts[i].key);
		ky_json_uint(buffer, counts[i].count);
	}
	ky_json_end(buffer, '}');
}

/* Whose it is, as far as that is known. */
static void add_owner(struct ky_buffer *buffer, const struct ky_trace *trace,
		      const struct ky_view_track *track)
{
	if (track->process < trace->processes.rows.count) {
		ky_json_key(buffer, "pid");
		ky_json_int(buffer, trace->processes.pid[track->process]);
	}
	if (track->thread < trace->threads.rows.count) {
		ky_json_key(buffer, "tid");
		ky_json_int(buffer, trace->threads.tid[track->thread]);
	}
	if (track->cpu != KY_NONE) {
		ky_json_key(buffer, "cpu");
		ky_json_uint(buffer, track->cpu);
	}
}

static void add_track(struct ky_buffer *buffer, const struct ky_view *view, uint32_t id)
{
	const struct ky_view_track *const track = &view->tracks[id];
	ky_json_begin(buffer, '{');
	ky_json_key(buffer, "id");
	ky_json_uint(buffer, id);
	ky_json_key(buffer, "parent");
	ky_json_int(buffer, track->parent == KY_NONE ? -1 : (int64_t)track->parent);
	ky_json_key(buffer, "kind");
	ky_json_text(buffer, ky_api_event_kinds[track->kind]);
	ky_json_key(buffer, "key");
	ky_json_text(buffer, track->key);
	ky_json_key(buffer, "name");
	ky_json_text(buffer, track->name);
	ky_json_key(buffer, "rows");
	ky_json_uint(buffer, track->rows);
	ky_json_key(buffer, "events");
	ky_json_uint(buffer, track->events);
	add_owner(buffer, view->trace, track);
	if (track->kind == KY_VIEW_COUNTER) {
		ky_json_key(buffer, "unit");
		ky_api_text(buffer, view->trace, track->unit);
		ky_json_key(buffer, "min");
		ky_json_real(buffer, track->min);
		ky_json_key(buffer, "max");
		ky_json_real(buffer, track->max);
	}
	ky_json_end(buffer, '}');
}

static void add_tracks(struct ky_buffer *buffer, const struct ky_view *view)
{
	ky_json_key(buffer, "tracks");
	ky_json_begin(buffer, '[');
	for (uint32_t i = 0; i < view->tracks_count; i++)
		add_track(buffer, view, i);
	ky_json_end(buffer, ']');
}

static void add_snapshots(struct ky_buffer *buffer, const struct ky_api *api)
{
	const struct ky_trace *const trace = api->view->trace;
	uint32_t shown = 0;
	ky_json_key(buffer, "snapshots");
	ky_json_begin(buffer, '[');
	const size_t end = buffer->bytes + KY_LIST_BYTES_MAX;
	for (uint32_t i = ky_snapshot_next(trace, 0);
	     i != KY_NONE && shown < LIST_MAX && buffer->bytes < end;
	     i = ky_snapshot_next(trace, i + 1), shown++) {
		const char *const trigger = ky_snapshot_text(trace, i, "trigger");
		ky_json_begin(buffer, '{');
		ky_json_key(buffer, "ts");
		ky_json_int(buffer, ky_api_time(api, trace->slices.ts[i]));
		ky_json_key(buffer, "trigger");
		ky_json_text(buffer, trigger ? trigger : "");
		ky_json_key(buffer, "reason");
		ky_api_text(buffer, trace, trace->slices.name[i]);
		ky_json_key(buffer, "event");
		ky_json_uint(buffer, i);
		ky_json_end(buffer, '}');
	}
	ky_json_end(buffer, ']');
}

static void add_losses(struct ky_buffer *buffer, const struct ky_api *api)
{
	const struct ky_losses *const losses = &api->view->trace->losses;
	ky_json_key(buffer, "losses");
	ky_json_begin(buffer, '[');
	const size_t end = buffer->bytes + KY_LIST_BYTES_MAX;
	for (uint32_t i = 0; i < losses->rows.count && i < LIST_MAX && buffer->bytes < end; i++) {
		struct ky_view_place place;
		const bool shown = ky_view_place(api->view, KY_VIEW_LOSS, i, &place);
		ky_json_begin(buffer, '{');
		ky_json_key(buffer, "ts");
		if (losses->ts[i] == KY_TIME_NONE)
			ky_json_null(buffer);
		else
			ky_json_int(buffer, ky_api_time(api, losses->ts[i]));
		ky_json_key(buffer, "events");
		ky_json_uint(buffer, losses->events[i]);
		ky_json_key(buffer, "track");
		ky_json_int(buffer, shown ? (int64_t)place.track : -1);
		ky_json_key(buffer, "what");
		ky_api_text(buffer, api->view->trace, losses->what[i]);
		ky_json_end(buffer, '}');
	}
	ky_json_end(buffer, ']');
}

/* "at byte 120: ..." */
static void add_first(struct ky_buffer *buffer, const struct ky_trace *trace, uint32_t problem)
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
	ky_json_text(buffer, text);
}

static void add_problems(struct ky_buffer *buffer, const struct ky_trace *trace)
{
	static const char *const severities[] = {"info", "data loss", "error"};
	const struct ky_problems *const problems = &trace->problems;
	ky_json_key(buffer, "problems");
	ky_json_begin(buffer, '[');
	for (uint32_t i = 0; i < problems->rows.count && i < LIST_MAX; i++) {
		ky_json_begin(buffer, '{');
		ky_json_key(buffer, "severity");
		ky_json_text(buffer,
			     severities[problems->severity[i] <= KY_ERROR ? problems->severity[i]
									  : KY_ERROR]);
		ky_json_key(buffer, "name");
		ky_api_text(buffer, trace, problems->name[i]);
		ky_json_key(buffer, "count");
		ky_json_uint(buffer, problems->number[i]);
		ky_json_key(buffer, "first");
		add_first(buffer, trace, i);
		ky_json_end(buffer, '}');
	}
	ky_json_end(buffer, ']');
}

static void make(struct ky_buffer *buffer, const struct ky_api *api)
{
	ky_json_begin(buffer, '{');
	add_head(buffer, api);
	add_counts(buffer, api->view->trace);
	add_tracks(buffer, api->view);
	add_snapshots(buffer, api);
	add_losses(buffer, api);
	add_problems(buffer, api->view->trace);
	ky_json_end(buffer, '}');
}

void ky_api_trace(struct ky_api *api, const struct ky_api_request *request,
		  struct ky_api_response *response)
{
	(void)request;
	pthread_mutex_lock(&api->once);
	if (!api->trace.bytes)
		make(&api->trace, api);
	if (api->trace.failed) {
		ky_buffer_free(&api->trace);
		response->body.failed = true;
	}
	pthread_mutex_unlock(&api->once);
	/* From here on it is only read. */
	ky_buffer_add(&response->body, api->trace.data, api->trace.bytes);
}
