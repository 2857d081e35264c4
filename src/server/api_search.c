/* SPDX-License-Identifier: MIT */
/* api_search.c: api/search. Keeps the last few searches: stepping from match to match repeats the same one. */
#include "server/api.h"

#include "query/filter.h"

#include <errno.h>
#include <string.h>

/* Return the kept search, or the place for a new one: the least recently used. */
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

static void add_tracks(struct ky_json_out *json, const struct ky_search *search)
{
	ky_json_out_begin(json, "tracks", '[');
	for (uint32_t i = 0; i < search->tracks_count; i++) {
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_uint(json, "track", search->tracks[i].track);
		ky_json_out_uint(json, "count", search->tracks[i].count);
		ky_json_out_uint(json, "first", search->tracks[i].first);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void add_names(struct ky_json_out *json, const struct ky_search *search)
{
	ky_json_out_begin(json, "names", '[');
	for (uint32_t i = 0; i < search->names_count; i++)
		ky_json_out_uint(json, NULL, search->names[i]);
	ky_json_out_end(json, ']');
}

/* The requested match of a search. */
struct place {
	int64_t at, near;
	int64_t forward;
	bool has_near;
};

static bool read_place(struct place *place, const struct ky_api *api,
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

/* Return the number of the match, or -1. */
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

static void add_search(struct ky_json_out *json, const struct ky_api *api,
		       const struct ky_search *search, int64_t at)
{
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_uint(json, "count", ky_search_hits_count(search));
	add_tracks(json, search);
	add_names(json, search);
	ky_json_out_int(json, "at", at);
	if (at >= 0) {
		enum ky_view_kind kind;
		uint32_t event;
		ky_search_hits_match(search, api, (uint64_t)at, &kind, &event);
		ky_api_event_ref(json, "event", api, kind, event);
	} else {
		ky_json_out_null(json, "event");
	}
	ky_json_out_end(json, '}');
}

void ky_api_search(struct ky_api *api, const struct ky_api_request *request,
		   struct ky_api_response *response)
{
	struct ky_searches *const searches = &api->searches;
	const char *const text = ky_api_parameter_text(request, "q");
	struct place place;
	if (!text) {
		ky_api_fail(response, 400, "q is missing: use q=TEXT");
		return;
	}
	if (!read_place(&place, api, request, response))
		return;
	pthread_mutex_lock(&searches->lock);
	struct ky_search *const search = find(searches, text);
	const int error = search->text ? 0 : ky_search_run(search, api, text);
	search->used = ++searches->asked;
	if (!error)
		add_search(&response->json, api, search, choose(&place, search, api));
	pthread_mutex_unlock(&searches->lock);
	if (error == -EINTR)
		ky_api_fail(response, 503, "the search was interrupted: search again");
	else if (error)
		response->body.failed = true;
}
