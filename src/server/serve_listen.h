/* SPDX-License-Identifier: MIT */
/*
 * serve_listen.h: the socket that a server listens on, and by which names its clients may call it.
 */
#ifndef KY_SERVER_SERVE_LISTEN_H
#define KY_SERVER_SERVE_LISTEN_H

#include "server/serve.h"
#include "server/serve_check.h"

struct ky_listen {
	int fd;
	bool loopback;                 /* nobody but this machine reaches it */
	char host[KY_SITE_NAME_BYTES]; /* for an address: "127.0.0.1", "[::1]" */
};

/* Fills the site's port and names. 0, or -errno and a line in message. */
int ky_listen_open(struct ky_listen *listen, struct ky_site *site,
		   const struct ky_serve_options *options, char message[KY_SERVE_MESSAGE_BYTES]);

#endif
