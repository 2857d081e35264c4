/* SPDX-License-Identifier: MIT */
/*
 * api.h: answers the requests of the page from a view: JSON as declared in viewer/src/protocol.ts, and tiles. Knows nothing of
 * HTTP, so that tests and the fuzzer call it directly. Parameters may be hostile.
 */
#ifndef KY_SERVER_API_H
#define KY_SERVER_API_H

#include "base/json_out.h"
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

#endif
