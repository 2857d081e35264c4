/* SPDX-License-Identifier: MIT */
/*
 * serve.h: the HTTP server of the viewer (libmicrohttpd).
 *
 *   http://127.0.0.1:PORT/TOKEN/          the page
 *                         /TOKEN/api/...  answers (api.h)
 *
 * Everything is behind the token: 128 random bits that only who was given the address knows. Host must be an
 * address that this server was asked to listen on, and Origin, where there is one, the server itself: so no other
 * web page reads the trace, also not by a name that it makes point here. All else is refused without a word of
 * what there is.
 *
 * One thread a connection, so that a slow client or a long query holds up nobody; limits on their number, on the
 * size of a request and on how long one may take bound what they cost.
 */
#ifndef KY_SERVER_SERVE_H
#define KY_SERVER_SERVE_H

#include "server/api.h"

#define KY_SERVE_MESSAGE_BYTES 256

struct ky_serve_options {
	const char *bind; /* address, NULL: 127.0.0.1 */
	uint16_t port;    /* 0: a free one */
};

struct ky_serve;

/* Listens, and answers 503 until there is a view. On failure a line in message. 0 or -errno. */
int ky_serve_open(struct ky_serve **serve, const struct ky_serve_options *options,
		  char message[KY_SERVE_MESSAGE_BYTES]);
/* Waits for answers that are being made, which are interrupted. */
void ky_serve_close(struct ky_serve **serve);
/* "http://127.0.0.1:1234/TOKEN/"; lives as long as the server. */
const char *ky_serve_address(const struct ky_serve *serve);
/* Shows this from now on; takes it. The one before is closed when nobody uses it any more. 0 or -ENOMEM. */
int ky_serve_show(struct ky_serve *serve, struct ky_view *view);
/* What is being done while there is no view, for the page: a stage, done of all. */
void ky_serve_progress(struct ky_serve *serve, const char *stage, uint64_t done, uint64_t all);

/* The page, one HTML file; bytes 0 when kymo was built without it. */
extern const char ky_page[];
extern const size_t ky_page_bytes;

#endif
