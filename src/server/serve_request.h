/* SPDX-License-Identifier: MIT */
/*
 * serve_request.h: what a request asks, out of the part of its target that is behind the token, and its body:
 * a struct ky_api_request of plain texts. No socket is needed for it.
 *
 *   /api/event?kind=slices&id=7   ─▶  path "api/event", parameters kind: "slices", id: "7"
 *
 * Only parameters are decoded (%41, +). A path that would need it is none that we have.
 */
#ifndef KY_SERVER_SERVE_REQUEST_H
#define KY_SERVER_SERVE_REQUEST_H

#include "server/api.h"

#define KY_SERVE_REQUEST_PARAMETERS_MAX 32
#define KY_SERVE_REQUEST_BODY_MAX (1u << 20)

struct ky_serve_request {
	char *text; /* all texts of the ask are in it */
	struct ky_api_parameter parameters[KY_SERVE_REQUEST_PARAMETERS_MAX];
	struct ky_api_request api;
};

/*
 * behind as ky_serve_site_check() returns it. body: of a POST, zero-ended, stays the caller's; NULL of others. 0, or a
 * status of HTTP and why in one sentence: 400, 413, 503.
 */
int ky_serve_request_open(struct ky_serve_request *request, const char *behind, const char *body,
			  size_t body_bytes, const char **why);
void ky_serve_request_close(struct ky_serve_request *request);

/* The value of a parameter, or NULL. */
const char *ky_serve_request_parameter(const struct ky_serve_request *request, const char *key);

#endif
