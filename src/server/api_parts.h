/* SPDX-License-Identifier: MIT */
/*
 * answer_parts.h: what the files of answering share.
 *
 *   response.c          which path is whose, parameters, errors
 *   api_event.c    what an event is, as others refer to it: name, times, place
 *   api_facts.c    its details, of each kind but slices
 *   api_slice.c    details of a slice: arguments, source, relatives, flows
 *   api_range.c    api/range and api/flame
 *   api_search.c      api/search (search.h)
 *   api_sql.c      api/sql, api/cancel, api/tables
 *   api_text.c     names, labels and arguments as texts
 *   api_trace.c    api/trace
 *
 * An response fails by ky_api_fail(), which replaces what has been written of it; who writes one checks memory
 * nowhere: ky_api_respond() looks at the json in the end.
 */
#ifndef KY_SERVER_ANSWER_PARTS_H
#define KY_SERVER_ANSWER_PARTS_H

#include "query/reach.h"
#include "server/api.h"
#include "server/search.h"

#define KY_API_JSON "application/json"
#define KY_API_BYTES "application/octet-stream"

/* No text of a trace is longer in an response: a hostile one may have megabytes of name in each event. */
#define KY_NAME_BYTES_MAX 4096u
#define KY_LABEL_BYTES 160
/* Lists end there: a small file may have one long name in each of thousands of rows. */
#define KY_LIST_BYTES_MAX (32u << 20)

/* From here on times of the trace's clock are so much less than those of REALTIME. */
struct ky_wall_step {
	int64_t from_ns, offset_ns;
};

struct ky_api_sql {
	pthread_mutex_t lock; /* of the connection: held while SQL runs */
	struct ky_sql
		*sql; /* NULL: not opened yet; atomic, because cancel reads it without the lock */
	int cancel;   /* atomic */
	int64_t deadline_ns; /* of CLOCK_MONOTONIC */
};

struct ky_api {
	struct ky_view *view;
	struct ky_wall_step *wall; /* NULL: REALTIME is not known */
	uint32_t wall_count;
	pthread_mutex_t once; /* of what is made when it is first asked for */
	struct ky_reach reach;
	struct ky_buffer trace; /* the response to api/trace, which is always the same */
	struct ky_searches searches;
	struct ky_api_sql sql;
	int stopping; /* atomic */
};

/* ---- response.c ---- */

void ky_api_fail(struct ky_api_response *response, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static inline bool ky_api_stopping(const struct ky_api *api)
{
	return __atomic_load_n(&api->stopping, __ATOMIC_RELAXED) != 0;
}

/* Whether g is the view's generation; false after a failure. */
bool ky_api_parameter_generation(const struct ky_api *api, const struct ky_api_request *request,
				 struct ky_api_response *response);
/* NULL: it was not given. */
const char *ky_api_parameter_text(const struct ky_api_request *request, const char *key);
/* A number, cut to what is whole; false after a failure that says what is wrong. */
bool ky_api_parameter_number(const struct ky_api_request *request, const char *key, int64_t *value,
			     struct ky_api_response *response);
/* The same between bounds; without the key it is what *value has. */
bool ky_api_parameter_bounded(const struct ky_api_request *request, const char *key, int64_t min,
			      int64_t max, int64_t *value, struct ky_api_response *response);
/* "1,2,3" as tracks of the view, to be freed; *tracks stays NULL when it was not given. */
bool ky_api_parameter_tracks(const struct ky_api *api, const struct ky_api_request *request,
			     uint32_t **tracks, uint32_t *count, struct ky_api_response *response);

/* A time as the page has it: since the view's base. */
int64_t ky_api_time(const struct ky_api *api, int64_t ns);

/* ---- texts ---- */

/* A text of the trace, cut when it is very long; 0 is "". */
void ky_api_text(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
		 uint32_t string);
/* The same of names: what has none is "(no name)". */
void ky_api_text_name(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
		      uint32_t string);
const char *ky_api_text_thread(char label[KY_LABEL_BYTES], const struct ky_trace *trace,
			       uint32_t thread);
const char *ky_api_text_process(char label[KY_LABEL_BYTES], const struct ky_trace *trace,
				uint32_t process);

/* An argument's key without what only says from which kind of file it is. */
const char *ky_api_text_arg_key(const struct ky_trace *trace, uint32_t arg);
#define KY_ARG_ROOM 40
/* The shortest text that reads back as the same number. */
const char *ky_api_text_real(double value, char room[KY_ARG_ROOM]);
/* The value's text; of numbers in room. */
const char *ky_api_text_arg(const struct ky_trace *trace, uint32_t arg, char room[KY_ARG_ROOM],
			    size_t *bytes);
/* Where the source is: file, line, function. They are no arguments to people. */
bool ky_api_text_is_source(const char *plain_key);

/* ---- events ---- */

extern const char *const ky_api_event_kinds[];

/* ns of REALTIME; false when it is not known. */
bool ky_api_event_wall(const struct ky_api *api, int64_t ns, int64_t *wall_ns);

/* False: there is no such event. */
bool ky_api_event_exists(const struct ky_view *view, enum ky_view_kind kind, int64_t id);
/* A whole EventRef. */
void ky_api_event_ref(struct ky_json_out *json, const char *key, const struct ky_api *api,
		      enum ky_view_kind kind, uint32_t id);
/* "facts" and "stack" of Details. */
void ky_api_facts(struct ky_json_out *json, const struct ky_view *view, enum ky_view_kind kind,
		  uint32_t id, bool endless);
void ky_api_facts_stack(struct ky_json_out *json, const struct ky_view *view,
			enum ky_view_kind kind, uint32_t id);
/* Its neighbour on the same track, so many steps before or after it; or KY_NONE. */
uint32_t ky_api_facts_counter_beside(struct ky_trace *trace, uint32_t counter, int steps);
/* What Details has of a slice alone, from "self" on. */
void ky_api_slice(struct ky_json_out *json, const struct ky_api *api, uint32_t slice);

/* ---- what the paths call ---- */

typedef void ky_api_fn(struct ky_api *api, const struct ky_api_request *request,
		       struct ky_api_response *response);
ky_api_fn ky_api_trace, ky_api_event, ky_api_range, ky_api_range_flame, ky_api_search,
	ky_api_sql_run, ky_api_sql_cancel, ky_api_sql_tables;

void ky_api_sql_close(struct ky_api *api);
void ky_api_sql_interrupt(struct ky_api *api);

#endif
