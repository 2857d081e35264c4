/* SPDX-License-Identifier: MIT */
/*
 * serve_site.h: the identity of a server (address, names, token), and whether a request may be served: decided from its
 * headers alone, without a socket, so that tests and the fuzzer call it directly.
 *
 * Refused are requests in which
 *   Host     is not an address of ours: a foreign web page made its own name point here (DNS rebinding)
 *   Origin   is present and not ours: a foreign web page is asking
 *   Sec-Fetch-Site  is present and neither "same-origin" nor "none": the same, in requests without Origin
 *   token    is not in the path: a client without the address, such as another user of the machine
 * All get the same reply: 403.
 */
#ifndef KY_SERVER_SERVE_CHECK_H
#define KY_SERVER_SERVE_CHECK_H

#include "server/serve.h"

#include <stdbool.h>
#include <stdint.h>

#define KY_SERVE_SITE_TOKEN_BYTES 32 /* hexadecimal digits of 128 bits */
#define KY_SERVE_SITE_NAMES_MAX 6
#define KY_SERVE_SITE_NAME_BYTES 256

struct ky_serve_site {
	char token[KY_SERVE_SITE_TOKEN_BYTES + 1];
	uint16_t port;
	bool every; /* listens on every address of the machine */
	char names[KY_SERVE_SITE_NAMES_MAX]
		  [KY_SERVE_SITE_NAME_BYTES]; /* in Host, without the port */
	uint32_t names_count;
};

/* The headers of a request; missing ones are NULL. */
struct ky_serve_head {
	const char *method;
	const char *target; /* "/TOKEN/api/event?id=1", as received */
	const char *host, *origin;
	const char *fetch_site; /* Sec-Fetch-Site */
	uint32_t hosts;         /* number of Host headers */
};

/* Make a token of the kernel's random bits. Return 0 or -errno. */
int ky_serve_site_make_token(struct ky_serve_site *site);
void ky_serve_site_add_name(struct ky_serve_site *site, const char *name);

/* Compare names of hosts or headers, ignoring case. */
bool ky_serve_site_same_name(const char *a, const char *b);
/* Check a host: "127.0.0.1:1234", "[::1]:1234", "localhost:1234". */
bool ky_serve_site_is_host(const struct ky_serve_site *site, const char *host);
/* Check an origin: "http://127.0.0.1:1234". */
bool ky_serve_site_is_origin(const struct ky_serve_site *site, const char *origin);

/* Return what follows "/TOKEN" in a target, or NULL, in constant time. */
const char *ky_serve_site_after_token(const struct ky_serve_site *site, const char *target);

/* Return 0 and what follows the token, or the HTTP status of the refusal: 403 or 405. */
int ky_serve_site_check(const struct ky_serve_site *site, const struct ky_serve_head *head,
			const char **after);

/* ---- listening ---- */

struct ky_serve_listen {
	int fd;
	bool loopback;                       /* reachable from this machine only */
	char host[KY_SERVE_SITE_NAME_BYTES]; /* for URLs: "127.0.0.1", "[::1]" */
};

/* Listen, and set the site's port and names. Return 0, or -errno and a line in message. */
int ky_serve_site_open(struct ky_serve_listen *listen, struct ky_serve_site *site,
		       const struct ky_serve_options *options, char message[KY_MESSAGE_BYTES]);

#endif
