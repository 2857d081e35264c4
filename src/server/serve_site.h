/* SPDX-License-Identifier: MIT */
/*
 * serve_site.h: whether a request may be answered at all, decided from its head alone and without a socket, so
 * that tests and the fuzzer ask directly.
 *
 * What is refused, and why:
 *   Host     is no address of ours: a foreign web page made its own name point here (DNS rebinding)
 *   Origin   is there and not ours: a foreign web page asks
 *   token    is not in the path: somebody who was not given the address, as another user of the machine
 * All three look alike from outside: 403.
 */
#ifndef KY_SERVER_SERVE_CHECK_H
#define KY_SERVER_SERVE_CHECK_H

#include "server/serve.h"

#include <stdbool.h>
#include <stdint.h>

#define KY_SERVE_SITE_TOKEN_BYTES 32 /* hexadecimal digits of 128 bits */
#define KY_SERVE_SITE_NAMES_MAX 6
#define KY_SERVE_SITE_NAME_BYTES 256

/* What a server is to its clients. */
struct ky_serve_site {
	char token[KY_SERVE_SITE_TOKEN_BYTES + 1];
	uint16_t port;
	bool every; /* listens on every address of the machine: Host may be any of them */
	char names[KY_SERVE_SITE_NAMES_MAX]
		  [KY_SERVE_SITE_NAME_BYTES]; /* in Host, without the port */
	uint32_t names_count;
};

/* The head of a request; what it does not have is NULL. */
struct ky_serve_head {
	const char *method;
	const char *target; /* "/TOKEN/api/event?id=1", as it came */
	const char *host, *origin;
	uint32_t hosts; /* how many Host there were */
};

/* A token of the kernel's random bits. 0 or -errno. */
int ky_serve_site_make_token(struct ky_serve_site *site);
void ky_serve_site_add_name(struct ky_serve_site *site, const char *name);

/* Names of hosts and headers are the same in capitals. */
bool ky_serve_site_same_name(const char *a, const char *b);
/* "127.0.0.1:1234", "[::1]:1234", "localhost:1234". */
bool ky_serve_site_is_host(const struct ky_serve_site *site, const char *host);
/* "http://127.0.0.1:1234" */
bool ky_serve_site_is_origin(const struct ky_serve_site *site, const char *origin);

/* What comes behind "/TOKEN" in a target, or NULL; takes as long for a wrong token as for the right one. */
const char *ky_serve_site_after_token(const struct ky_serve_site *site, const char *target);

/* 0: may be answered, and behind is what comes behind the token; else a status of HTTP: 403 or 405. */
int ky_serve_site_check(const struct ky_serve_site *site, const struct ky_serve_head *head,
			const char **behind);

/* ---- listening ---- */

struct ky_serve_listen {
	int fd;
	bool loopback;                       /* nobody but this machine reaches it */
	char host[KY_SERVE_SITE_NAME_BYTES]; /* for an address: "127.0.0.1", "[::1]" */
};

/* Fills the site's port and names. 0, or -errno and a line in message. */
int ky_serve_site_open(struct ky_serve_listen *listen, struct ky_serve_site *site,
		       const struct ky_serve_options *options,
		       char message[KY_SERVE_MESSAGE_BYTES]);

#endif
