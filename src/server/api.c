/* SPDX-License-Identifier: MIT */
/* api.c: routes the requests, and has what all of them need: texts, parameters, errors, opening and closing. See api.h. */
#include "server/api.h"

#include "base/array.h"
#include "base/chars.h"
#include "query/filter.h"
#include "server/tile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

void ky_api_text(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
		 uint32_t string)
{
	const uint32_t bytes = ky_strings_bytes(&trace->strings, string);
	const char *const text = string ? ky_text_of(trace, string) : "";
	ky_json_out_string(json, key, text, bytes < KY_NAME_BYTES_MAX ? bytes : KY_NAME_BYTES_MAX);
}

void ky_api_text_name(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
		      uint32_t string)
{
	if (ky_strings_bytes(&trace->strings, string))
		ky_api_text(json, key, trace, string);
	else
		ky_json_out_text(json, key, "(no name)");
}

/* ---- arguments ---- */

const char *ky_api_text_arg_key(const struct ky_trace *trace, uint32_t arg)
{
	const uint32_t string = trace->args.key[arg];
	const char *const key = string ? ky_text_of(trace, string) : "";
	if (strncmp(key, "args.", 5) == 0 && key[5])
		return key + 5;
	return strncmp(key, "debug.", 6) == 0 && key[6] ? key + 6 : key;
}

bool ky_api_text_is_source(const char *key)
{
	return strncmp(key, "source.", 7) == 0 || strncmp(key, "source_location.", 16) == 0;
}

const char *ky_api_text_real(double value, char room[KY_ARG_ROOM])
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(room, KY_ARG_ROOM, "%.*g", digits, value);
		if (strtod(room, NULL) == value)
			break;
	}
	return room;
}

static const char *plain_text(uint8_t type, uint64_t value, char room[KY_ARG_ROOM])
{
	double real;
	switch (type) {
	case KY_ARG_INT:
		snprintf(room, KY_ARG_ROOM, "%" PRId64, (int64_t)value);
		return room;
	case KY_ARG_UINT:
		snprintf(room, KY_ARG_ROOM, "%" PRIu64, value);
		return room;
	case KY_ARG_POINTER:
		snprintf(room, KY_ARG_ROOM, "0x%" PRIx64, value);
		return room;
	case KY_ARG_REAL:
		memcpy(&real, &value, sizeof(real));
		return ky_api_text_real(real, room);
	case KY_ARG_BOOL:
		return value ? "true" : "false";
	default:
		return "null";
	}
}

const char *ky_api_text_arg(const struct ky_trace *trace, uint32_t arg, char room[KY_ARG_ROOM],
			    size_t *bytes)
{
	const uint8_t type = trace->args.type[arg];
	const uint64_t value = trace->args.value[arg];
	if (type == KY_ARG_STRING || type == KY_ARG_JSON) {
		*bytes = ky_strings_bytes(&trace->strings, (uint32_t)value);
		return value ? ky_text_of(trace, (uint32_t)value) : "";
	}
	const char *const text = plain_text(type, value, room);
	*bytes = strlen(text);
	return text;
}

#define TILES_MAX 256
#define WALL_STEPS_MAX (1u << 20)

/* ---- opening and closing ---- */

/* Converting changes the state of the clocks, so it is done here, while there is one thread. */
static int find_wall(struct ky_api *api)
{
	const struct ky_trace *const trace = api->view->trace;
	int64_t ns = trace->begin_ns, offset, first, last;
	if (!trace->clocks || (!trace->begin_ns && !trace->end_ns))
		return 0;
	while (api->wall_count < WALL_STEPS_MAX &&
	       ky_clocks_convert_range(trace->clocks, trace->clock, KY_CLOCK_REALTIME, ns, &offset,
				       &first, &last)) {
		if (!KY_ARRAY_ADD(api->wall, api->wall_count, api->wall_room,
				  (struct ky_wall_step){ns, offset}))
			return -ENOMEM;
		if (last >= trace->end_ns || last == INT64_MAX)
			break;
		ns = last + 1;
	}
	return 0;
}

int ky_api_open(struct ky_api **out, struct ky_view *view)
{
	struct ky_api *api = calloc(1, sizeof(*api));
	*out = NULL;
	if (!api)
		return -ENOMEM;
	api->view = view;
	pthread_mutex_init(&api->once, NULL);
	pthread_mutex_init(&api->searches.lock, NULL);
	pthread_mutex_init(&api->sql.lock, NULL);
	if (find_wall(api) != 0) {
		ky_api_close(&api);
		return -ENOMEM;
	}
	*out = api;
	return 0;
}

void ky_api_close(struct ky_api **out)
{
	struct ky_api *const api = *out;
	if (!api)
		return;
	for (uint32_t i = 0; i < KY_SEARCHES_KEPT; i++)
		ky_search_free(&api->searches.kept[i]);
	free(api->searches.order);
	free(api->searches.order_ts);
	ky_api_sql_close(api);
	ky_filter_ends_free(&api->slice_ends);
	ky_buffer_free(&api->trace);
	pthread_mutex_destroy(&api->once);
	pthread_mutex_destroy(&api->searches.lock);
	pthread_mutex_destroy(&api->sql.lock);
	KY_ARRAY_FREE(api->wall, api->wall_room);
	free(api);
	*out = NULL;
}

void ky_api_interrupt(struct ky_api *api)
{
	__atomic_store_n(&api->stopping, 1, __ATOMIC_RELAXED);
	ky_api_sql_interrupt(api);
}

/* ---- errors ---- */

void ky_api_fail(struct ky_api_response *response, int status, const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	ky_buffer_free(&response->body);
	response->status = status;
	response->type = KY_API_JSON;
	response->json = (struct ky_json_out){.buffer = &response->body};
	ky_json_out_begin(&response->json, NULL, '{');
	ky_json_out_text(&response->json, "error", message);
	ky_json_out_end(&response->json, '}');
}

/* ---- parameters ---- */

const char *ky_api_parameter_text(const struct ky_api_request *request, const char *key)
{
	for (uint32_t i = 0; i < request->parameters_count; i++) {
		if (strcmp(request->parameters[i].key, key) == 0)
			return request->parameters[i].value ? request->parameters[i].value : "";
	}
	return NULL;
}

/* The page's numbers may have a fraction, or an exponent when they are large. */
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

bool ky_api_parameter_number(const struct ky_api_request *request, const char *key, int64_t *value,
			     struct ky_api_response *response)
{
	const char *const text = ky_api_parameter_text(request, key);
	if (text && parse_number(text, value))
		return true;
	if (text)
		ky_api_fail(response, 400, "%s=%.100s is not a number: use digits", key, text);
	else
		ky_api_fail(response, 400, "%s is missing: add %s=NUMBER to the address", key, key);
	return false;
}

bool ky_api_parameter_bounded(const struct ky_api_request *request, const char *key, int64_t min,
			      int64_t max, int64_t *value, struct ky_api_response *response)
{
	if (!ky_api_parameter_text(request, key))
		return true;
	if (!ky_api_parameter_number(request, key, value, response))
		return false;
	if (*value >= min && *value <= max)
		return true;
	ky_api_fail(response, 400, "%s is out of range: use %lld to %lld", key, (long long)min,
		    (long long)max);
	return false;
}

/* Parse one number of a list, and return where the next is; NULL if it is not a track. */
static const char *parse_track(const char *text, uint32_t tracks, uint32_t *track)
{
	uint64_t value;
	const char *const end = text + strcspn(text, ",");
	const char *const at = ky_chars_decimal(text, end, UINT32_MAX, &value);
	if (at != end || value >= tracks)
		return NULL;
	*track = (uint32_t)value;
	return *at ? at + 1 : at;
}

bool ky_api_parameter_tracks(const struct ky_api *api, const struct ky_api_request *request,
			     uint32_t **tracks, uint32_t *count, struct ky_api_response *response)
{
	const char *at = ky_api_parameter_text(request, "tracks");
	const uint32_t all = api->view->tracks_count;
	*tracks = NULL;
	*count = 0;
	if (!at)
		return true;
	*tracks = malloc(((size_t)all + 1) * sizeof(**tracks));
	if (!*tracks) {
		ky_api_fail(response, 503, "out of memory: request less, or try again");
		return false;
	}
	while (at && *at && *count < all)
		at = parse_track(at, all, &(*tracks)[(*count)++]);
	if (at && !*at)
		return true;
	free(*tracks);
	*tracks = NULL;
	ky_api_fail(response, 400,
		    "tracks is not a list of tracks: use numbers below %u with commas, "
		    "each once",
		    all);
	return false;
}

bool ky_api_parameter_generation(const struct ky_api *api, const struct ky_api_request *request,
				 struct ky_api_response *response)
{
	int64_t generation;
	if (!ky_api_parameter_number(request, "g", &generation, response))
		return false;
	if (generation == api->view->generation)
		return true;
	ky_api_fail(response, 409, "the trace has changed: request api/trace again");
	return false;
}

int64_t ky_api_time(const struct ky_api *api, int64_t ns)
{
	return ky_sub_clamped(ns, api->view->base_ns);
}

/* ---- tiles ---- */

static bool ask_tiles(struct ky_api *api, const struct ky_api_request *request,
		      struct ky_tile_range *tiles, uint32_t **tracks,
		      struct ky_api_response *response)
{
	int64_t level, first, count = 1;
	if (!ky_api_parameter_generation(api, request, response) ||
	    !ky_api_parameter_number(request, "level", &level, response) ||
	    !ky_api_parameter_number(request, "first", &first, response) ||
	    !ky_api_parameter_bounded(request, "count", 1, TILES_MAX, &count, response) ||
	    !ky_api_parameter_tracks(api, request, tracks, &tiles->tracks_count, response))
		return false;
	tiles->level = level < 0 || level > UINT32_MAX ? UINT32_MAX : (uint32_t)level;
	tiles->first = first;
	tiles->count = (uint32_t)count;
	tiles->tracks = *tracks;
	return true;
}

static void answer_tiles(struct ky_api *api, const struct ky_api_request *request,
			 struct ky_api_response *response)
{
	struct ky_tile_range tiles = {0};
	uint32_t *tracks = NULL;
	if (!ask_tiles(api, request, &tiles, &tracks, response))
		return;
	response->type = KY_API_BYTES;
	const int error = tracks ? ky_tile_append(api->view, &tiles, &response->body) : 0;
	if (!tracks)
		ky_api_fail(response, 400, "tracks is missing: use tracks=1,2");
	else if (error == -E2BIG)
		ky_api_fail(response, 413, "too much at once: request fewer tiles");
	else if (error)
		ky_api_fail(response, 400,
			    "no such tiles: a track is a group, level or first are out of "
			    "range, or there are more than %u at once",
			    KY_TILE_SECTIONS_MAX);
	free(tracks);
}

/* ---- routing ---- */

static const struct {
	const char *path;
	ky_api_fn *response;
	bool post;
} paths[] = {
	{"api/tiles", answer_tiles, false},       {"api/trace", ky_api_trace, false},
	{"api/event", ky_api_event, false},       {"api/range", ky_api_range, false},
	{"api/flame", ky_api_range_flame, false}, {"api/search", ky_api_search, false},
	{"api/sql", ky_api_sql_run, true},        {"api/cancel", ky_api_sql_cancel, true},
	{"api/tables", ky_api_sql_tables, false}, {"api/neighbour", ky_api_neighbour, false},
};

static void dispatch(struct ky_api *api, const struct ky_api_request *request,
		     struct ky_api_response *response)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(request->path, paths[i].path) != 0)
			continue;
		if (paths[i].post == (request->body != NULL))
			paths[i].response(api, request, response);
		else
			ky_api_fail(response, 405, "%s needs %s", paths[i].path,
				    paths[i].post ? "POST" : "GET");
		return;
	}
	ky_api_fail(response, 404, "unknown request: viewer/src/protocol.ts lists them");
}

void ky_api_respond(struct ky_api *api, const struct ky_api_request *request,
		    struct ky_api_response *response)
{
	*response = (struct ky_api_response){
		.status = 200, .type = KY_API_JSON, .json = {.buffer = &response->body}};
	dispatch(api, request, response);
	if (response->body.failed)
		ky_api_fail(response, 503, "out of memory: request less, or try again");
}
