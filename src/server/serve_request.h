/* SPDX-License-Identifier: MIT */
/*
 * serve_request.h: parses a request, from the part of its target after the token and its body, into a struct ky_api_request.
 * Needs no socket.
 *
 *   /api/event?kind=slices&id=7   ─▶  path "api/event", parameters kind: "slices", id: "7"
 *
 * Only parameters are decoded (%41, +): no path of ours needs it.
 */
#ifndef KY_SERVER_SERVE_REQUEST_H
#define KY_SERVER_SERVE_REQUEST_H

#include "server/api.h"

#define KY_SERVE_REQUEST_PARAMETERS_MAX 32
#define KY_SERVE_REQUEST_BODY_MAX (1u << 20)

struct ky_serve_request {
	char *text; /* holds all texts of api */
	struct ky_api_parameter parameters[KY_SERVE_REQUEST_PARAMETERS_MAX];
	struct ky_api_request api;
};

/*
 * Parse a request. target: from ky_serve_site_check(). body: of a POST, with a NUL at its end, owned by the caller; else
 * NULL. Return 0, or an HTTP status and why in one sentence: 400, 413, 503.
 */
int ky_serve_request_open(struct ky_serve_request *request, const char *target, const char *body,
			  size_t body_bytes, const char **why);
void ky_serve_request_close(struct ky_serve_request *request);

/* Return the value of a parameter, or NULL. */
const char *ky_serve_request_parameter(const struct ky_serve_request *request, const char *key);

#endif
