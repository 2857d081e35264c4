/* SPDX-License-Identifier: MIT */
/*
 * answer_parts.h: what the files of answering share.
 *
 *   answer.c          which path is whose, parameters, errors
 *   answer_event.c    what an event is, as others refer to it: name, times, place
 *   answer_facts.c    its details, of each kind but slices
 *   answer_slice.c    details of a slice: arguments, source, relatives, flows
 *   answer_range.c    api/range and api/flame
 *   answer_search.c   api/search; search.c finds, search_order.c numbers, hits.c keeps what was found
 *   answer_sql.c      api/sql, api/cancel, api/tables
 *   answer_text.c     names, labels and arguments as texts
 *   answer_trace.c    api/trace
 *
 * An answer fails by ky_answer_fail(), which replaces what has been written of it; who writes one checks memory
 * nowhere: ky_answer() looks at the buffer in the end.
 */
#ifndef KY_SERVER_ANSWER_PARTS_H
#define KY_SERVER_ANSWER_PARTS_H

#include "query/reach.h"
#include "server/answer.h"
#include "server/hits.h"

#include <pthread.h>

#define KY_TYPE_JSON "application/json"
#define KY_TYPE_BYTES "application/octet-stream"

/* No text of a trace is longer in an answer: a hostile one may have megabytes of name in each event. */
#define KY_NAME_BYTES_MAX 4096u
#define KY_LABEL_BYTES 160
/* Lists end there: a small file may have one long name in each of thousands of rows. */
#define KY_LIST_BYTES_MAX (32u << 20)

/* From here on times of the trace's clock are so much less than those of REALTIME. */
struct ky_wall_step {
	int64_t from_ns, offset_ns;
};

#define KY_SEARCHES_KEPT 4u

/* What a search found. */
struct ky_search {
	char *text;    /* NULL: none yet */
	uint64_t used; /* when, by searches->asked */
	struct ky_hits slices, spans;
	uint32_t *names; /* strings that match as names */
	uint32_t names_count;
	struct ky_search_track {
		uint32_t track;
		uint64_t count, first;
	} * tracks;
	uint32_t tracks_count;
};

struct ky_searches {
	pthread_mutex_t lock;
	struct ky_search kept[KY_SEARCHES_KEPT];
	uint64_t asked;
	uint32_t *order;   /* of view->sample_spans by time; NULL: not made yet */
	int64_t *order_ts; /* their times */
};

struct ky_answer_sql {
	pthread_mutex_t lock; /* of the connection: held while SQL runs */
	struct ky_sql
		*sql; /* NULL: not opened yet; atomic, because cancel reads it without the lock */
	int cancel;   /* atomic */
	int64_t deadline_ns; /* of CLOCK_MONOTONIC */
};

struct ky_answers {
	struct ky_view *view;
	struct ky_wall_step *wall; /* NULL: REALTIME is not known */
	uint32_t wall_count;
	pthread_mutex_t once; /* of what is made when it is first asked for */
	struct ky_reach reach;
	struct ky_buffer trace; /* the answer to api/trace, which is always the same */
	struct ky_searches searches;
	struct ky_answer_sql sql;
	int stopping; /* atomic */
};

/* ---- answer.c ---- */

void ky_answer_fail(struct ky_answer *answer, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static inline bool ky_answers_stopping(const struct ky_answers *answers)
{
	return __atomic_load_n(&answers->stopping, __ATOMIC_RELAXED) != 0;
}

/* Whether g is the view's generation; false after a failure. */
bool ky_ask_generation(const struct ky_answers *answers, const struct ky_ask *ask,
		       struct ky_answer *answer);
/* NULL: it was not given. */
const char *ky_ask_text(const struct ky_ask *ask, const char *key);
/* A number, cut to what is whole; false after a failure that says what is wrong. */
bool ky_ask_number(const struct ky_ask *ask, const char *key, int64_t *value,
		   struct ky_answer *answer);
/* The same between bounds; without the key it is what *value has. */
bool ky_ask_bounded(const struct ky_ask *ask, const char *key, int64_t min, int64_t max,
		    int64_t *value, struct ky_answer *answer);
/* "1,2,3" as tracks of the view, to be freed; *tracks stays NULL when it was not given. */
bool ky_ask_tracks(const struct ky_answers *answers, const struct ky_ask *ask, uint32_t **tracks,
		   uint32_t *count, struct ky_answer *answer);

/* A time as the page has it: since the view's base. */
int64_t ky_answer_time(const struct ky_answers *answers, int64_t ns);

/* ---- texts ---- */

/* A text of the trace, cut when it is very long; 0 is "". */
void ky_json_trace_text(struct ky_buffer *buffer, const struct ky_trace *trace, uint32_t string);
/* The same of names: what has none is "(no name)". */
void ky_json_name(struct ky_buffer *buffer, const struct ky_trace *trace, uint32_t string);
const char *ky_label_thread(char label[KY_LABEL_BYTES], const struct ky_trace *trace,
			    uint32_t thread);
const char *ky_label_process(char label[KY_LABEL_BYTES], const struct ky_trace *trace,
			     uint32_t process);

/* An argument's key without what only says from which kind of file it is. */
const char *ky_arg_plain_key(const struct ky_trace *trace, uint32_t arg);
#define KY_ARG_ROOM 40
/* The shortest text that reads back as the same number. */
const char *ky_real_text(double value, char room[KY_ARG_ROOM]);
/* The value's text; of numbers in room. */
const char *ky_arg_text(const struct ky_trace *trace, uint32_t arg, char room[KY_ARG_ROOM],
			size_t *bytes);
/* Where the source is: file, line, function. They are no arguments to people. */
bool ky_arg_is_source(const char *plain_key);

/* ---- events ---- */

extern const char *const ky_kind_names[];

/* ns of REALTIME; false when it is not known. */
bool ky_answer_wall(const struct ky_answers *answers, int64_t ns, int64_t *wall_ns);

/* False: there is no such event. */
bool ky_event_exists(const struct ky_view *view, enum ky_view_kind kind, int64_t id);
/* A whole EventRef. */
void ky_json_event(struct ky_buffer *buffer, const struct ky_answers *answers,
		   enum ky_view_kind kind, uint32_t id);
/* "facts" and "stack" of Details. */
void ky_json_facts(struct ky_buffer *buffer, const struct ky_view *view, enum ky_view_kind kind,
		   uint32_t id, bool endless);
void ky_json_stack(struct ky_buffer *buffer, const struct ky_view *view, enum ky_view_kind kind,
		   uint32_t id);
/* Its neighbour on the same track, so many steps before or after it; or KY_NONE. */
uint32_t ky_counter_beside(struct ky_trace *trace, uint32_t counter, int steps);
/* What Details has of a slice alone, from "self" on. */
void ky_json_slice(struct ky_buffer *buffer, const struct ky_answers *answers, uint32_t slice);

/* ---- search.c, search_order.c ---- */

/* 0, -ENOMEM, or -EINTR when answering is about to stop. */
int ky_search_run(struct ky_search *search, struct ky_answers *answers, const char *text);
void ky_search_free(struct ky_search *search);
/* How many there are in all. */
uint64_t ky_search_count(const struct ky_search *search);
/* The number of the first match at that time or later. */
uint64_t ky_search_at(const struct ky_search *search, const struct ky_answers *answers, int64_t ts);
/* The number of a match that begins there: of a slice, or of a span by its place in searches->order. */
uint64_t ky_search_number(const struct ky_search *search, const struct ky_answers *answers,
			  enum ky_view_kind kind, uint32_t at);
/* Makes searches->order; the lock is held. 0 or -ENOMEM. */
int ky_search_order(struct ky_answers *answers);
/* The match of that number, which there is. */
void ky_search_get(const struct ky_search *search, const struct ky_answers *answers,
		   uint64_t number, enum ky_view_kind *kind, uint32_t *event);

/* ---- what the paths call ---- */

typedef void ky_answer_fn(struct ky_answers *answers, const struct ky_ask *ask,
			  struct ky_answer *answer);
ky_answer_fn ky_answer_trace, ky_answer_event, ky_answer_range, ky_answer_flame, ky_answer_search,
	ky_answer_run_sql, ky_answer_cancel, ky_answer_tables;

void ky_answer_sql_close(struct ky_answers *answers);
void ky_answer_sql_interrupt(struct ky_answers *answers);

#endif
