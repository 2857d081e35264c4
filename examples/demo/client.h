/* SPDX-License-Identifier: MIT */
/* client.h: somebody who asks for things; see client.c. */
#ifndef DEMO_CLIENT_H
#define DEMO_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct client {
	int link;
	int number;        /* among all clients */
	uint64_t count;    /* requests to send */
	int64_t spread_ns; /* and over how much time */
	uint64_t random;
	uint64_t sent;
	uint64_t received;
	pthread_t thread;
};

/* Prepares a client. The link stays the caller's, but for the shutdown at the end of the work. */
void client_init(struct client *client, int link, int number, uint64_t count, double seconds,
		 uint64_t seed);

/* Waits until the server is there; returns false when it never came. */
bool client_wait_for_server(const struct client *client);

/* Sends all requests, waits for all replies, hangs up. Returns whether they all came. */
bool client_work(struct client *client);

/* The same in a thread of its own. */
void client_start(struct client *client);
void client_join(struct client *client);

#endif /* DEMO_CLIENT_H */
