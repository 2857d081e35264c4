/* SPDX-License-Identifier: MIT */
/* answer.c: who answers what, and what all of them need: parameters, errors, opening and closing. See answer.h. */
#include "server/answer_parts.h"

#include "query/filter.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILES_MAX 256
#define WALL_STEPS_MAX (1u << 20)

/* ---- opening and closing ---- */

static bool add_step(struct ky_answers *answers, int64_t from_ns, int64_t offset_ns)
{
	const uint32_t count = answers->wall_count;
	if ((count & (count - 1)) == 0) {
		const size_t room = count ? (size_t)count * 2 : 1;
		void *const grown = realloc(answers->wall, room * sizeof(*answers->wall));
		if (!grown)
			return false;
		answers->wall = grown;
	}
	answers->wall[answers->wall_count++] = (struct ky_wall_step){from_ns, offset_ns};
	return true;
}

/* Converting changes what clocks remember, so it is done once, here, while there is one thread. */
static int find_wall(struct ky_answers *answers)
{
	const struct ky_trace *const trace = answers->view->trace;
	int64_t ns = trace->begin_ns, offset, first, last;
	if (!trace->clocks || (!trace->begin_ns && !trace->end_ns))
		return 0;
	while (answers->wall_count < WALL_STEPS_MAX &&
	       ky_clocks_convert_range(trace->clocks, trace->clock, KY_CLOCK_REALTIME, ns, &offset,
				       &first, &last)) {
		if (!add_step(answers, ns, offset))
			return -ENOMEM;
		if (last >= trace->end_ns || last == INT64_MAX)
			break;
		ns = last + 1;
	}
	return 0;
}

int ky_answers_open(struct ky_answers **out, struct ky_view *view)
{
	struct ky_answers *answers = calloc(1, sizeof(*answers));
	*out = NULL;
	if (!answers)
		return -ENOMEM;
	answers->view = view;
	pthread_mutex_init(&answers->once, NULL);
	pthread_mutex_init(&answers->searches.lock, NULL);
	pthread_mutex_init(&answers->sql.lock, NULL);
	if (find_wall(answers) != 0) {
		ky_answers_close(&answers);
		return -ENOMEM;
	}
	*out = answers;
	return 0;
}

void ky_answers_close(struct ky_answers **out)
{
	struct ky_answers *const answers = *out;
	if (!answers)
		return;
	for (uint32_t i = 0; i < KY_SEARCHES_KEPT; i++)
		ky_search_free(&answers->searches.kept[i]);
	free(answers->searches.order);
	free(answers->searches.order_ts);
	ky_answer_sql_close(answers);
	ky_reach_free(&answers->reach);
	ky_buffer_free(&answers->trace);
	pthread_mutex_destroy(&answers->once);
	pthread_mutex_destroy(&answers->searches.lock);
	pthread_mutex_destroy(&answers->sql.lock);
	free(answers->wall);
	free(answers);
	*out = NULL;
}

void ky_answers_interrupt(struct ky_answers *answers)
{
	__atomic_store_n(&answers->stopping, 1, __ATOMIC_RELAXED);
	ky_answer_sql_interrupt(answers);
}

/* ---- errors ---- */

void ky_answer_fail(struct ky_answer *answer, int status, const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	ky_buffer_free(&answer->body);
	answer->status = status;
	answer->type = KY_TYPE_JSON;
	ky_json_begin(&answer->body, '{');
	ky_json_key(&answer->body, "error");
	ky_json_text(&answer->body, message);
	ky_json_end(&answer->body, '}');
}

/* ---- parameters ---- */

const char *ky_ask_text(const struct ky_ask *ask, const char *key)
{
	for (uint32_t i = 0; i < ask->parameters_count; i++) {
		if (strcmp(ask->parameters[i].key, key) == 0)
			return ask->parameters[i].value ? ask->parameters[i].value : "";
	}
	return NULL;
}

/* A page's numbers may have a fraction, or be so large that they have an exponent. */
static bool parse_number(const char *text, int64_t *value)
{
	char *end;
	if (!strchr("+-.0123456789", text[0]) || !text[0] || strpbrk(text, "xXpP"))
		return false;
	errno = 0;
	const long long whole = strtoll(text, &end, 10);
	if (end != text && !*end && !errno) {
		*value = whole;
		return true;
	}
	const double real = strtod(text, &end);
	if (end == text || *end || !isfinite(real))
		return false;
	*value = real >= 0x1p63 ? INT64_MAX : real < -0x1p63 ? INT64_MIN : (int64_t)floor(real);
	return true;
}

bool ky_ask_number(const struct ky_ask *ask, const char *key, int64_t *value,
		   struct ky_answer *answer)
{
	const char *const text = ky_ask_text(ask, key);
	if (text && parse_number(text, value))
		return true;
	if (text)
		ky_answer_fail(answer, 400, "%s=%.100s is no number: give digits", key, text);
	else
		ky_answer_fail(answer, 400, "%s is missing: add %s=NUMBER to the address", key,
			       key);
	return false;
}

bool ky_ask_bounded(const struct ky_ask *ask, const char *key, int64_t min, int64_t max,
		    int64_t *value, struct ky_answer *answer)
{
	if (!ky_ask_text(ask, key))
		return true;
	if (!ky_ask_number(ask, key, value, answer))
		return false;
	if (*value >= min && *value <= max)
		return true;
	ky_answer_fail(answer, 400, "%s is out of bounds: it may be %lld to %lld", key,
		       (long long)min, (long long)max);
	return false;
}

/* One number of a list, and where the next is; NULL: it is none. */
static const char *parse_track(const char *text, uint32_t tracks, uint32_t *track)
{
	uint64_t value = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9' && value < UINT32_MAX; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (at == text || (*at && *at != ',') || value >= tracks)
		return NULL;
	*track = (uint32_t)value;
	return *at ? at + 1 : at;
}

bool ky_ask_tracks(const struct ky_answers *answers, const struct ky_ask *ask, uint32_t **tracks,
		   uint32_t *count, struct ky_answer *answer)
{
	const char *at = ky_ask_text(ask, "tracks");
	const uint32_t all = answers->view->tracks_count;
	*tracks = NULL;
	*count = 0;
	if (!at)
		return true;
	*tracks = malloc(((size_t)all + 1) * sizeof(**tracks));
	if (!*tracks) {
		ky_answer_fail(answer, 503, "out of memory: ask for less, or try again");
		return false;
	}
	while (at && *at && *count < all)
		at = parse_track(at, all, &(*tracks)[(*count)++]);
	if (at && !*at)
		return true;
	free(*tracks);
	*tracks = NULL;
	ky_answer_fail(
		answer, 400,
		"tracks is no list of the trace's tracks: give numbers below %u with commas, "
		"each once",
		all);
	return false;
}

bool ky_ask_generation(const struct ky_answers *answers, const struct ky_ask *ask,
		       struct ky_answer *answer)
{
	int64_t generation;
	if (!ky_ask_number(ask, "g", &generation, answer))
		return false;
	if (generation == answers->view->generation)
		return true;
	ky_answer_fail(answer, 409, "the trace has changed: ask api/trace again");
	return false;
}

int64_t ky_answer_time(const struct ky_answers *answers, int64_t ns)
{
	return ky_sub_clamped(ns, answers->view->base_ns);
}

/* ---- tiles ---- */

static bool ask_tiles(struct ky_answers *answers, const struct ky_ask *ask, struct ky_tiles *tiles,
		      uint32_t **tracks, struct ky_answer *answer)
{
	int64_t level, first, count = 1;
	if (!ky_ask_generation(answers, ask, answer) ||
	    !ky_ask_number(ask, "level", &level, answer) ||
	    !ky_ask_number(ask, "first", &first, answer) ||
	    !ky_ask_bounded(ask, "count", 1, TILES_MAX, &count, answer) ||
	    !ky_ask_tracks(answers, ask, tracks, &tiles->tracks_count, answer))
		return false;
	tiles->level = level < 0 || level > UINT32_MAX ? UINT32_MAX : (uint32_t)level;
	tiles->first = first;
	tiles->count = (uint32_t)count;
	tiles->tracks = *tracks;
	return true;
}

static void answer_tiles(struct ky_answers *answers, const struct ky_ask *ask,
			 struct ky_answer *answer)
{
	struct ky_tiles tiles = {0};
	uint32_t *tracks = NULL;
	if (!ask_tiles(answers, ask, &tiles, &tracks, answer))
		return;
	answer->type = KY_TYPE_BYTES;
	const int error = tracks ? ky_view_tiles(answers->view, &tiles, &answer->body) : 0;
	if (!tracks)
		ky_answer_fail(answer, 400, "tracks is missing: say which, as in tracks=1,2");
	else if (error == -E2BIG)
		ky_answer_fail(answer, 413, "this is too much at once: ask for fewer tiles");
	else if (error)
		ky_answer_fail(answer, 400,
			       "there are no such tiles: a track is a group, level or first are "
			       "beyond what there is, or they are more than %u at once",
			       KY_TILES_SECTIONS_MAX);
	free(tracks);
}

/* ---- who answers what ---- */

static const struct {
	const char *path;
	ky_answer_fn *answer;
	bool post;
} paths[] = {
	{"api/tiles", answer_tiles, false},      {"api/trace", ky_answer_trace, false},
	{"api/event", ky_answer_event, false},   {"api/range", ky_answer_range, false},
	{"api/flame", ky_answer_flame, false},   {"api/search", ky_answer_search, false},
	{"api/sql", ky_answer_run_sql, true},    {"api/cancel", ky_answer_cancel, true},
	{"api/tables", ky_answer_tables, false},
};

static void dispatch(struct ky_answers *answers, const struct ky_ask *ask, struct ky_answer *answer)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(ask->path, paths[i].path) != 0)
			continue;
		if (paths[i].post == (ask->body != NULL))
			paths[i].answer(answers, ask, answer);
		else
			ky_answer_fail(answer, 405, "%s is asked with %s", paths[i].path,
				       paths[i].post ? "POST" : "GET");
		return;
	}
	ky_answer_fail(answer, 404,
		       "there is no such thing to ask: viewer/src/protocol.ts lists "
		       "what there is");
}

void ky_answer(struct ky_answers *answers, const struct ky_ask *ask, struct ky_answer *answer)
{
	*answer = (struct ky_answer){.status = 200, .type = KY_TYPE_JSON};
	dispatch(answers, ask, answer);
	if (answer->body.failed)
		ky_answer_fail(answer, 503, "out of memory: ask for less, or try again");
}
