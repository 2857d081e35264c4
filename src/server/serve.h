/* SPDX-License-Identifier: MIT */
/*
 * serve.h: the HTTP server of the viewer (libmicrohttpd).
 *
 *   http://127.0.0.1:PORT/TOKEN/          the page
 *                         /TOKEN/api/...  its requests (api.h)
 *
 * Everything is behind the token: 128 random bits known only to those who were given the address. Host must be an address
 * that the server listens on, and Origin, if present, the server itself, so that no other web page can read the trace, not
 * even through a name that it makes point here. All other requests are refused without revealing anything.
 *
 * Each connection has a thread, so that a slow client or a long query delays no one else. Limits on the number of
 * connections, the size of a request and its duration bound the cost.
 */
#ifndef KY_SERVER_SERVE_H
#define KY_SERVER_SERVE_H

#include "base/fail.h"
#include "server/api.h"

struct ky_serve_options {
	const char *bind; /* address; NULL: 127.0.0.1 */
	uint16_t port;    /* 0: a free one */
};

struct ky_serve;

/* Listen; replies are 503 until there is a view. Return 0, or -errno and a line in message. */
int ky_serve_open(struct ky_serve **serve, const struct ky_serve_options *options,
		  char message[KY_MESSAGE_BYTES]);
/* Interrupt running requests, wait for them, and close. */
void ky_serve_close(struct ky_serve **serve);
/* Return "http://127.0.0.1:1234/TOKEN/", valid as long as the server. */
const char *ky_serve_address(const struct ky_serve *serve);
/* Show a view from now on, and take it. The previous one is closed once no request uses it. Return 0 or -ENOMEM. */
int ky_serve_show(struct ky_serve *serve, struct ky_view *view);
/* Note the progress of loading, for the page. */
void ky_serve_progress(struct ky_serve *serve, const char *stage, uint64_t done, uint64_t all);

/* The page, one HTML file; 0 bytes if kymo was built without it. */
extern const char ky_page[];
extern const size_t ky_page_bytes;

/* ---- one file for one foreign page (serve_file.c) ---- */

/*
 * ui.perfetto.dev fetches a trace from the local machine in this way. That page may only ask 127.0.0.1:9001, and identifies
 * itself by Origin; CORS lets it in, and no other. The token is in the path here too.
 */

struct ky_serve_file_options {
	int fd;             /* stays open, owned by the caller */
	const char *name;   /* in the URL; special characters are replaced */
	const char *origin; /* "https://ui.perfetto.dev" */
	uint16_t port;
};

struct ky_serve_file;

/* Return 0, or -errno and a line in message. */
int ky_serve_file_open(struct ky_serve_file **serve, const struct ky_serve_file_options *options,
		       char message[KY_MESSAGE_BYTES]);
void ky_serve_file_close(struct ky_serve_file **serve);
/* "http://127.0.0.1:9001/TOKEN/NAME" */
const char *ky_serve_file_address(const struct ky_serve_file *serve);

#endif
