/* SPDX-License-Identifier: MIT */
/* api_search.c: api/search. The last few searches are kept: going from match to match asks for the same again. */
#include "server/api_parts.h"

#include "query/filter.h"

#include <errno.h>
#include <string.h>

/* The search that was kept, or the place for a new one: the one that was not used for longest. */
static struct ky_search *find(struct ky_searches *searches, const char *text)
{
	struct ky_search *oldest = &searches->kept[0];
	for (uint32_t i = 0; i < KY_SEARCHES_KEPT; i++) {
		struct ky_search *const search = &searches->kept[i];
		if (search->text && strcmp(search->text, text) == 0)
			return search;
		if (search->used < oldest->used)
			oldest = search;
	}
	ky_search_free(oldest);
	return oldest;
}

static void add_tracks(struct ky_buffer *buffer, const struct ky_search *search)
{
	ky_json_key(buffer, "tracks");
	ky_json_begin(buffer, '[');
	for (uint32_t i = 0; i < search->tracks_count; i++) {
		ky_json_begin(buffer, '{');
		ky_json_key(buffer, "track");
		ky_json_uint(buffer, search->tracks[i].track);
		ky_json_key(buffer, "count");
		ky_json_uint(buffer, search->tracks[i].count);
		ky_json_key(buffer, "first");
		ky_json_uint(buffer, search->tracks[i].first);
		ky_json_end(buffer, '}');
	}
	ky_json_end(buffer, ']');
}

static void add_names(struct ky_buffer *buffer, const struct ky_search *search)
{
	ky_json_key(buffer, "names");
	ky_json_begin(buffer, '[');
	for (uint32_t i = 0; i < search->names_count; i++)
		ky_json_uint(buffer, search->names[i]);
	ky_json_end(buffer, ']');
}

/* Which match of a search is asked for. */
struct place {
	int64_t at, near;
	int64_t forward;
	bool has_near;
};

static bool ask_place(struct place *place, const struct ky_api *api,
		      const struct ky_api_request *request, struct ky_api_response *response)
{
	*place = (struct place){.at = -1, .forward = 1};
	place->has_near = ky_api_parameter_text(request, "near") != NULL;
	if (place->has_near && !ky_api_parameter_number(request, "near", &place->near, response))
		return false;
	place->near = ky_add_clamped(api->view->base_ns, place->near);
	return ky_api_parameter_bounded(request, "at", -1, INT64_MAX, &place->at, response) &&
	       ky_api_parameter_bounded(request, "forward", 0, 1, &place->forward, response);
}

/* The number of the match, or -1. */
static int64_t choose(const struct place *place, const struct ky_search *search,
		      const struct ky_api *api)
{
	const int64_t count = (int64_t)ky_search_hits_count(search);
	int64_t at = place->at;
	if (place->has_near)
		at = (int64_t)ky_search_hits_at(search, api, place->near) -
		     (place->forward ? 0 : 1);
	return at < count ? at : -1;
}

static void add_search(struct ky_buffer *buffer, const struct ky_api *api,
		       const struct ky_search *search, int64_t at)
{
	ky_json_begin(buffer, '{');
	ky_json_key(buffer, "count");
	ky_json_uint(buffer, ky_search_hits_count(search));
	add_tracks(buffer, search);
	add_names(buffer, search);
	ky_json_key(buffer, "at");
	ky_json_int(buffer, at);
	ky_json_key(buffer, "event");
	if (at >= 0) {
		enum ky_view_kind kind;
		uint32_t event;
		ky_search_hits_match(search, api, (uint64_t)at, &kind, &event);
		ky_api_event_ref(buffer, api, kind, event);
	} else {
		ky_json_null(buffer);
	}
	ky_json_end(buffer, '}');
}

void ky_api_search(struct ky_api *api, const struct ky_api_request *request,
		   struct ky_api_response *response)
{
	struct ky_searches *const searches = &api->searches;
	const char *const text = ky_api_parameter_text(request, "q");
	struct place place;
	if (!text) {
		ky_api_fail(response, 400, "q is missing: say what to look for, as in q=TEXT");
		return;
	}
	if (!ask_place(&place, api, request, response))
		return;
	pthread_mutex_lock(&searches->lock);
	struct ky_search *const search = find(searches, text);
	const int error = search->text ? 0 : ky_search_run(search, api, text);
	search->used = ++searches->asked;
	if (!error)
		add_search(&response->body, api, search, choose(&place, search, api));
	pthread_mutex_unlock(&searches->lock);
	if (error == -EINTR)
		ky_api_fail(response, 503, "the search was ended: search again");
	else if (error)
		response->body.failed = true;
}
