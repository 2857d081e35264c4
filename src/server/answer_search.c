/* SPDX-License-Identifier: MIT */
/* answer_search.c: api/search. The last few searches are kept: going from match to match asks for the same again. */
#include "server/answer_parts.h"

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

static bool ask_place(struct place *place, const struct ky_answers *answers,
		      const struct ky_ask *ask, struct ky_answer *answer)
{
	*place = (struct place){.at = -1, .forward = 1};
	place->has_near = ky_ask_text(ask, "near") != NULL;
	if (place->has_near && !ky_ask_number(ask, "near", &place->near, answer))
		return false;
	place->near = ky_add_clamped(answers->view->base_ns, place->near);
	return ky_ask_bounded(ask, "at", -1, INT64_MAX, &place->at, answer) &&
	       ky_ask_bounded(ask, "forward", 0, 1, &place->forward, answer);
}

/* The number of the match, or -1. */
static int64_t choose(const struct place *place, const struct ky_search *search,
		      const struct ky_answers *answers)
{
	const int64_t count = (int64_t)ky_search_count(search);
	int64_t at = place->at;
	if (place->has_near)
		at = (int64_t)ky_search_at(search, answers, place->near) - (place->forward ? 0 : 1);
	return at < count ? at : -1;
}

static void add_search(struct ky_buffer *buffer, const struct ky_answers *answers,
		       const struct ky_search *search, int64_t at)
{
	ky_json_begin(buffer, '{');
	ky_json_key(buffer, "count");
	ky_json_uint(buffer, ky_search_count(search));
	add_tracks(buffer, search);
	add_names(buffer, search);
	ky_json_key(buffer, "at");
	ky_json_int(buffer, at);
	ky_json_key(buffer, "event");
	if (at >= 0) {
		enum ky_view_kind kind;
		uint32_t event;
		ky_search_get(search, answers, (uint64_t)at, &kind, &event);
		ky_json_event(buffer, answers, kind, event);
	} else {
		ky_json_null(buffer);
	}
	ky_json_end(buffer, '}');
}

void ky_answer_search(struct ky_answers *answers, const struct ky_ask *ask,
		      struct ky_answer *answer)
{
	struct ky_searches *const searches = &answers->searches;
	const char *const text = ky_ask_text(ask, "q");
	struct place place;
	if (!text) {
		ky_answer_fail(answer, 400, "q is missing: say what to look for, as in q=TEXT");
		return;
	}
	if (!ask_place(&place, answers, ask, answer))
		return;
	pthread_mutex_lock(&searches->lock);
	struct ky_search *const search = find(searches, text);
	const int error = search->text ? 0 : ky_search_run(search, answers, text);
	search->used = ++searches->asked;
	if (!error)
		add_search(&answer->body, answers, search, choose(&place, search, answers));
	pthread_mutex_unlock(&searches->lock);
	if (error == -EINTR)
		ky_answer_fail(answer, 503, "the search was ended: search again");
	else if (error)
		answer->body.failed = true;
}
