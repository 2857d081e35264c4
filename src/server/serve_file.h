/* SPDX-License-Identifier: MIT */
/*
 * serve_file.h: one file, served to one web page elsewhere: the way ui.perfetto.dev fetches a trace from the machine
 * it runs on. That page may ask 127.0.0.1:9001 alone, and says who it is in Origin; it is let in by CORS, and nobody
 * else. The token is in the path here too.
 */
#ifndef KY_SERVER_SERVE_FILE_H
#define KY_SERVER_SERVE_FILE_H

#include "server/serve.h"

struct ky_serve_file_options {
	int fd;             /* stays the caller's, open until it is closed */
	const char *name;   /* in the address; what does not belong there is replaced */
	const char *origin; /* "https://ui.perfetto.dev" */
	uint16_t port;
};

struct ky_serve_file;

/* 0, or -errno and a line in message. */
int ky_serve_file_open(struct ky_serve_file **serve, const struct ky_serve_file_options *options,
		       char message[KY_SERVE_MESSAGE_BYTES]);
void ky_serve_file_close(struct ky_serve_file **serve);
/* "http://127.0.0.1:9001/TOKEN/NAME" */
const char *ky_serve_file_address(const struct ky_serve_file *serve);

#endif
