/* SPDX-License-Identifier: MIT */
/*
 * serve_clients.h: the connections of a server. Those that only wait cannot keep others out.
 *
 * A connection waits while its request is incomplete and while its reply is not fetched. When there are many, each new one
 * ends the one that has waited longest: a client that opens hundreds and says nothing loses these, and a page gets its
 * reply. Browsers reopen a connection that ended between two requests.
 */
#ifndef KY_SERVER_SERVE_CLIENTS_H
#define KY_SERVER_SERVE_CLIENTS_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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

/* ---- connections of libmicrohttpd ---- */

/* Return the value of a header, or NULL. */
const char *ky_serve_clients_header(struct MHD_Connection *connection, const char *name);
/* Return the client of a connection, or NULL. */
struct ky_serve_client *ky_serve_clients_find(struct MHD_Connection *connection);
/* The callback for MHD_OPTION_NOTIFY_CONNECTION; its context is the struct ky_serve_clients. */
void ky_serve_clients_notify(void *clients, struct MHD_Connection *connection, void **client,
			     enum MHD_ConnectionNotificationCode code);

#endif
