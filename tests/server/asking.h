/* SPDX-License-Identifier: MIT */
/* asking.h: makes a view of a trace in JSON, sends it requests as the page does, and parses the responses. */
#ifndef KY_TESTS_SERVER_ASKING_H
#define KY_TESTS_SERVER_ASKING_H

#include "formats/json/json_scan.h"
#include "server/api.h"

struct asking {
	struct ky_view *view;
	struct ky_api *answers;
};

struct reply {
	int status;
	const char *type;
	struct ky_buffer body;
	struct ky_json_tree tree; /* of JSON */
};

/* Open a view of generation 7. */
void asking_open(struct asking *asking, const char *json);
void asking_open_trace(struct asking *asking, struct ky_trace *trace);
void asking_close(struct asking *asking);

/* Send a request. query is "key=value&key=value", not escaped; body NULL: a GET. */
void ask(struct asking *asking, const char *path, const char *query, const char *body,
	 struct reply *reply);
void reply_free(struct reply *reply);

/* Return values by their path: "tracks.2.name". A missing one fails the test. */
uint32_t reply_node(const struct reply *reply, const char *place);
int64_t reply_int(const struct reply *reply, const char *place);
double reply_real(const struct reply *reply, const char *place);
bool reply_is_null(const struct reply *reply, const char *place);
bool reply_bool(const struct reply *reply, const char *place);
uint32_t reply_length(const struct reply *reply, const char *place);
void reply_text_is(const struct reply *reply, const char *place, const char *text);
/* Return the element of an array that has a member with that text, or fail. */
uint32_t reply_find(const struct reply *reply, const char *array, const char *member,
		    const char *text);

/* Send a request, and expect an error of that status with a message. */
void refuses(struct asking *asking, const char *path, const char *query, const char *body,
	     int status);

#endif
