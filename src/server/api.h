/* SPDX-License-Identifier: MIT */
/*
 * response.h: what the page asks, answered from a view: JSON as viewer/src/protocol.ts declares it, and tiles. Knows
 * nothing of HTTP, so that tests and the fuzzer request it directly. Parameters are hostile.
 */
#ifndef KY_SERVER_ANSWER_H
#define KY_SERVER_ANSWER_H

#include "base/json_out.h"
#include "server/view.h"

struct ky_api_parameter {
	const char *key, *value; /* decoded, zero-ended */
};

struct ky_api_request {
	const char *path; /* behind the token: "api/trace" */
	const struct ky_api_parameter *parameters;
	uint32_t parameters_count;
	const char *body; /* of a POST, zero-ended; NULL: a GET */
	size_t body_bytes;
};

struct ky_api_response {
	int status;       /* of HTTP */
	const char *type; /* static */
	struct ky_buffer body;
	struct ky_json_out json; /* writes body */
};

struct ky_api; /* what answering keeps: SQL's connection, the last searches */

/* One for each view; closed before it. 0 or -ENOMEM. */
int ky_api_open(struct ky_api **api, struct ky_view *view);
void ky_api_close(struct ky_api **api);

/*
 * Answers; any thread. What is asked wrongly is an response too: status 400 or 404 and {"error": "..."}, in one
 * sentence with the remedy. Without memory 503.
 */
void ky_api_respond(struct ky_api *api, const struct ky_api_request *request,
		    struct ky_api_response *response);
/* Ends what takes long (SQL, a search), from any thread: for a server that is about to stop. */
void ky_api_interrupt(struct ky_api *api);

#endif
