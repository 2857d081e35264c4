/* SPDX-License-Identifier: MIT */
/*
 * serve_clients.h: the connections of a server, so that those which only wait cannot keep others out.
 *
 * A connection waits while its request is not whole, and while what was answered is not fetched. When there are
 * many, each new one ends the one that has waited longest: who opens hundreds and says nothing loses these, and a
 * page that asks gets its answer. Browsers open a connection again that ended between two requests.
 */
#ifndef KY_SERVER_SERVE_CLIENTS_H
#define KY_SERVER_SERVE_CLIENTS_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * From so many on, one ends for each that comes; more than the most are not let in. It takes a moment until one that
 * was ended is gone: hence the distance between them. Below 1024, the usual limit of descriptors.
 */
#define KY_SERVE_CLIENTS_MANY 256
#define KY_SERVE_CLIENTS_MAX 800

struct ky_serve_client {
	struct ky_serve_client *before, *next; /* in the order in which they began to wait */
	int fd;
	bool waits, ended;
};

struct ky_serve_clients {
	pthread_mutex_t mutex;
	struct ky_serve_client waiting; /* head of a ring */
	uint32_t
		count; /* without those that were ended: that they are slow to go is no reason to end more */
};

void ky_serve_clients_open(struct ky_serve_clients *clients);
void ky_serve_clients_close(struct ky_serve_clients *clients);
/* fd stays open until ky_serve_clients_remove(). NULL without memory: then it is not ended. */
struct ky_serve_client *ky_serve_clients_add(struct ky_serve_clients *clients, int fd);
void ky_serve_clients_remove(struct ky_serve_clients *clients, struct ky_serve_client *client);
/* An answer is being made, or it waits (again). client may be NULL. */
void ky_serve_clients_wait(struct ky_serve_clients *clients, struct ky_serve_client *client,
			   bool waits);

/* The value of a header, or NULL. */
const char *ky_serve_clients_header(struct MHD_Connection *connection, const char *name);
/* Who is at its other end, or NULL. */
struct ky_serve_client *ky_serve_clients_find(struct MHD_Connection *connection);
/* For MHD_OPTION_NOTIFY_CONNECTION; the context is the struct ky_serve_clients. */
void ky_serve_clients_notify(void *clients, struct MHD_Connection *connection, void **client,
			     enum MHD_ConnectionNotificationCode code);

#endif
