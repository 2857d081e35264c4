/* SPDX-License-Identifier: MIT */
/*
 * api.h: answers the requests of the page from a view: JSON as declared in viewer/src/protocol.ts, and tiles. Knows nothing of
 * HTTP, so that tests and the fuzzer call it directly. Parameters may be hostile.
 *
 *   api.c          routing, parameters, errors, api/tiles; names, labels and arguments as texts
 *   api_event.c    references to events: name, times, place; api/event
 *   api_range.c    api/range and api/flame
 *   api_search.c   api/search (search.h)
 *   api_slice.c    details of a slice: arguments, source, relatives, flows
 *   api_sql.c      api/sql, api/cancel, api/tables
 *   api_trace.c    api/trace
 */
#ifndef KY_SERVER_API_H
#define KY_SERVER_API_H

#include "base/json_out.h"
#include "query/filter.h"
#include "server/search.h"
#include "server/view.h"

struct ky_api_parameter {
	const char *key, *value; /* decoded */
};

struct ky_api_request {
	const char *path; /* after the token: "api/trace" */
	const struct ky_api_parameter *parameters;
	uint32_t parameters_count;
	const char *body; /* of a POST, with a NUL at its end; NULL: a GET */
	size_t body_bytes;
};

struct ky_api_response {
	int status;       /* of HTTP */
	const char *type; /* static */
	struct ky_buffer body;
	struct ky_json_out json; /* writes body */
};

struct ky_api; /* the state beside the view: SQL connection, last searches */

/* Open the API of a view; close it before the view. Return 0 or -ENOMEM. */
int ky_api_open(struct ky_api **api, struct ky_view *view);
void ky_api_close(struct ky_api **api);

/*
 * Respond to a request, in any thread. A bad request gets status 400 or 404 and {"error": "..."}, one sentence with the
 * remedy. Without memory the status is 503.
 */
void ky_api_respond(struct ky_api *api, const struct ky_api_request *request,
		    struct ky_api_response *response);
/* Interrupt SQL and searches, from any thread, because the server is about to stop. */
void ky_api_interrupt(struct ky_api *api);

/* ---- private: what the files of the API share ---- */

/*
 * ky_api_fail() replaces what was written of a response. Writers do not check for memory: ky_api_respond() checks the buffer
 * at the end.
 */

#define KY_API_JSON "application/json"
#define KY_API_BYTES "application/octet-stream"

/* Texts are cut: a hostile trace may have a name of megabytes in each event. */
#define KY_NAME_BYTES_MAX 4096u
/* Lists end there: a small file may repeat a long name in thousands of rows. */
#define KY_LIST_BYTES_MAX (32u << 20)

/* From from_ns on, REALTIME is offset_ns ahead of the trace's clock. */
struct ky_wall_step {
	int64_t from_ns, offset_ns;
};

struct ky_api_sql {
	pthread_mutex_t lock; /* of the connection: held while SQL runs */
	/* NULL: not opened yet. Atomic: cancelling reads it without the lock. */
	struct ky_sql *sql;
	int cancel;          /* atomic */
	int64_t deadline_ns; /* of CLOCK_MONOTONIC */
};

struct ky_api {
	struct ky_view *view;
	struct ky_wall_step *wall; /* NULL: REALTIME is unknown */
	uint32_t wall_count, wall_room;
	pthread_mutex_t once; /* guards what is made on first use */
	struct ky_filter_ends slice_ends;
	struct ky_buffer trace; /* the response to api/trace, once made */
	struct ky_searches searches;
	struct ky_api_sql sql;
	int stopping; /* atomic */
};

void ky_api_fail(struct ky_api_response *response, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static inline bool ky_api_stopping(const struct ky_api *api)
{
	return __atomic_load_n(&api->stopping, __ATOMIC_RELAXED) != 0;
}

/* Read parameters. Those that return a bool return false after ky_api_fail(). */

/* Check that g is the view's generation. */
bool ky_api_parameter_generation(const struct ky_api *api, const struct ky_api_request *request,
				 struct ky_api_response *response);
/* Return a parameter, or NULL. */
const char *ky_api_parameter_text(const struct ky_api_request *request, const char *key);
/* Read a number, without its fraction. */
bool ky_api_parameter_number(const struct ky_api_request *request, const char *key, int64_t *value,
			     struct ky_api_response *response);
/* Read an optional number in [min, max]. */
bool ky_api_parameter_bounded(const struct ky_api_request *request, const char *key, int64_t min,
			      int64_t max, int64_t *value, struct ky_api_response *response);
/* Read the optional list "1,2,3" of tracks of the view; free *tracks, which may be NULL. */
bool ky_api_parameter_tracks(const struct ky_api *api, const struct ky_api_request *request,
			     uint32_t **tracks, uint32_t *count, struct ky_api_response *response);

/* Return a time relative to the view's base, as the page has it. */
int64_t ky_api_time(const struct ky_api *api, int64_t ns);

/* ---- texts ---- */

/* Write a text of the trace, cut to KY_NAME_BYTES_MAX. */
void ky_api_text(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
		 uint32_t string);
/* Write a name; an empty one as "(no name)". */
void ky_api_text_name(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
		      uint32_t string);

/* Return an argument's key without the prefix that only names the kind of file. */
const char *ky_api_text_arg_key(const struct ky_trace *trace, uint32_t arg);
#define KY_ARG_ROOM 40
/* Format a number as the shortest text that reads back the same. */
const char *ky_api_text_real(double value, char room[KY_ARG_ROOM]);
/* Return the text of a value; numbers are formatted in room. */
const char *ky_api_text_arg(const struct ky_trace *trace, uint32_t arg, char room[KY_ARG_ROOM],
			    size_t *bytes);
/* Report whether a key is part of a source location, which is not shown as an argument. */
bool ky_api_text_is_source(const char *plain_key);

/* ---- events ---- */

/* Return the name of a kind of event or track in viewer/src/protocol.ts. */
const char *ky_api_event_kind(enum ky_view_kind kind);

/* Convert to REALTIME. Return false if that is unknown. */
bool ky_api_event_wall(const struct ky_api *api, int64_t ns, int64_t *wall_ns);

/* Write an EventRef. */
void ky_api_event_ref(struct ky_json_out *json, const char *key, const struct ky_api *api,
		      enum ky_view_kind kind, uint32_t id);
/* Write what Details has only for slices, from "self" on. */
void ky_api_slice(struct ky_json_out *json, const struct ky_api *api, uint32_t slice);

/* ---- the handlers of the paths ---- */

typedef void ky_api_fn(struct ky_api *api, const struct ky_api_request *request,
		       struct ky_api_response *response);
ky_api_fn ky_api_trace, ky_api_event, ky_api_neighbour, ky_api_range, ky_api_range_flame,
	ky_api_search, ky_api_sql_run, ky_api_sql_cancel, ky_api_sql_tables;

void ky_api_sql_close(struct ky_api *api);
void ky_api_sql_interrupt(struct ky_api *api);

#endif
