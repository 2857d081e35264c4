/* SPDX-License-Identifier: MIT */
/* asking.h: a trace of JSON text made a view, questions to it as a page asks them, and the answers parsed again. */
#ifndef KY_TESTS_SERVER_ASKING_H
#define KY_TESTS_SERVER_ASKING_H

#include "formats/json/json_tree.h"
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

/* generation 7. */
void asking_open(struct asking *asking, const char *json);
void asking_open_trace(struct asking *asking, struct ky_trace *trace);
void asking_close(struct asking *asking);

/* query is "key=value&key=value", not escaped; body NULL is a GET. */
void ask(struct asking *asking, const char *path, const char *query, const char *body,
	 struct reply *reply);
void reply_free(struct reply *reply);

/* Values by their place: "tracks.2.name". What is not there fails the test. */
uint32_t reply_node(const struct reply *reply, const char *place);
int64_t reply_int(const struct reply *reply, const char *place);
double reply_real(const struct reply *reply, const char *place);
bool reply_is_null(const struct reply *reply, const char *place);
bool reply_bool(const struct reply *reply, const char *place);
uint32_t reply_length(const struct reply *reply, const char *place);
void reply_text_is(const struct reply *reply, const char *place, const char *text);
/* The element of an array whose member is that text; fails when there is none. */
uint32_t reply_find(const struct reply *reply, const char *array, const char *member,
		    const char *text);

/* Asks, and wants an error of that status that says something. */
void refuses(struct asking *asking, const char *path, const char *query, const char *body,
	     int status);

#endif
