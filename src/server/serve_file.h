/* SPDX-License-Identifier: MIT */
/*
 * serve_file.h: serves one file to one foreign web page: ui.perfetto.dev fetches a trace from the local machine in this way.
 * That page may only ask 127.0.0.1:9001, and identifies itself by Origin; CORS lets it in, and no other. The token is in the
 * path here too.
 */
#ifndef KY_SERVER_SERVE_FILE_H
#define KY_SERVER_SERVE_FILE_H

#include "server/serve.h"

struct ky_serve_file_options {
	int fd;             /* stays open, owned by the caller */
	const char *name;   /* in the URL; special characters are replaced */
	const char *origin; /* "https://ui.perfetto.dev" */
	uint16_t port;
};

struct ky_serve_file;

/* Return 0, or -errno and a line in message. */
int ky_serve_file_open(struct ky_serve_file **serve, const struct ky_serve_file_options *options,
		       char message[KY_SERVE_MESSAGE_BYTES]);
void ky_serve_file_close(struct ky_serve_file **serve);
/* "http://127.0.0.1:9001/TOKEN/NAME" */
const char *ky_serve_file_address(const struct ky_serve_file *serve);

#endif
