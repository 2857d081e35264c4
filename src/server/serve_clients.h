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

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * From so many on, one ends for each that comes; more than the most are not let in. It takes a moment until one that
 * was ended is gone: hence the distance between them. Below 1024, the usual limit of descriptors.
 */
#define KY_CLIENTS_MANY 256
#define KY_CLIENTS_MOST 800

struct ky_client {
	struct ky_client *before, *next; /* in the order in which they began to wait */
	int fd;
	bool waits, ended;
};

struct ky_clients {
	pthread_mutex_t mutex;
	struct ky_client waiting; /* head of a ring */
	uint32_t
		count; /* without those that were ended: that they are slow to go is no reason to end more */
};

void ky_clients_open(struct ky_clients *clients);
void ky_clients_close(struct ky_clients *clients);
/* fd stays open until ky_clients_remove(). NULL without memory: then it is not ended. */
struct ky_client *ky_clients_add(struct ky_clients *clients, int fd);
void ky_clients_remove(struct ky_clients *clients, struct ky_client *client);
/* An answer is being made, or it waits (again). client may be NULL. */
void ky_clients_wait(struct ky_clients *clients, struct ky_client *client, bool waits);

#endif
