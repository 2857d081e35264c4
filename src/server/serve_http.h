/* SPDX-License-Identifier: MIT */
/*
 * serve_http.h: what the servers need of HTTP beside libmicrohttpd: the connections that wait, requests taken apart, replies.
 */
#ifndef KY_SERVER_SERVE_HTTP_H
#define KY_SERVER_SERVE_HTTP_H

#include "base/buffer.h"
#include "server/api.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- clients: the connections of a server; those that only wait cannot keep others out ---- */

/*
 * A connection waits while its request is incomplete and while its reply is not fetched. When there are many, each new one
 * ends the one that has waited longest: a client that opens hundreds and says nothing loses these, and a page gets its
 * reply. Browsers reopen a connection that ended between two requests.
 */

/*
 * From MANY on, each new connection ends a waiting one; more than MAX are refused. The difference allows for ended ones that
 * are not closed yet. MAX is below 1024, the usual limit of descriptors.
 */
#define KY_SERVE_CLIENTS_MANY 256
#define KY_SERVE_CLIENTS_MAX 800

struct ky_serve_client {
	struct ky_serve_client *before, *next; /* in the order of waiting */
	int fd;
	bool waits, ended;
};

struct ky_serve_clients {
	pthread_mutex_t mutex;
	struct ky_serve_client waiting; /* head of a ring */
	uint32_t count;                 /* without those already ended */
};

void ky_serve_clients_open(struct ky_serve_clients *clients);
void ky_serve_clients_close(struct ky_serve_clients *clients);
/* Add a connection; fd stays open until ky_serve_clients_remove(). Return NULL without memory. */
struct ky_serve_client *ky_serve_clients_add(struct ky_serve_clients *clients, int fd);
void ky_serve_clients_remove(struct ky_serve_clients *clients, struct ky_serve_client *client);
/* Note whether a connection waits. client may be NULL. */
void ky_serve_clients_wait(struct ky_serve_clients *clients, struct ky_serve_client *client,
			   bool waits);

/* Return the value of a header, or NULL. */
const char *ky_serve_clients_header(struct MHD_Connection *connection, const char *name);
/* Return the client of a connection, or NULL. */
struct ky_serve_client *ky_serve_clients_find(struct MHD_Connection *connection);
/* The callback for MHD_OPTION_NOTIFY_CONNECTION; its context is the struct ky_serve_clients. */
void ky_serve_clients_notify(void *clients, struct MHD_Connection *connection, void **client,
			     enum MHD_ConnectionNotificationCode code);

/* ---- requests: from the target after the token and the body to a struct ky_api_request; needs no socket ---- */

/*
 *   /api/event?kind=slices&id=7   ─▶  path "api/event", parameters kind: "slices", id: "7"
 *
 * Only parameters are decoded (%41, +): no path of ours needs it.
 */

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

/* ---- replies: with headers that keep the content from other sites, errors as JSON, and gzip where it pays ---- */

struct ky_serve_reply {
	unsigned status;
	const char *type;
	struct ky_buffer body; /* taken */
	bool pack;             /* with gzip, if the client accepts it and it gets smaller */
};

enum MHD_Result ky_serve_reply_send(struct MHD_Connection *connection,
				    struct ky_serve_reply *reply);
/* Send the page, which is static. */
enum MHD_Result ky_serve_reply_page(struct MHD_Connection *connection, const char *page,
				    size_t bytes, bool pack);
/* Send {"error": why}. */
enum MHD_Result ky_serve_reply_error(struct MHD_Connection *connection, unsigned status,
				     const char *why);
enum MHD_Result ky_serve_reply_redirect(struct MHD_Connection *connection, const char *to);

#endif
