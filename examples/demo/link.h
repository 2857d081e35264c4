/* SPDX-License-Identifier: MIT */
/* link.h: how clients and the server talk: packets over a pair of sockets; see link.c. */
#ifndef DEMO_LINK_H
#define DEMO_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world.h"

/* The first packet, from the server: requests are welcome. */
struct link_hello {
	uint64_t session;
};

/* From a client. The id is unique among all clients: a trace of both sides shows one request. */
struct link_request {
	uint64_t id;
	uint32_t verb; /* enum world_verb */
	uint32_t pad;
	int64_t args[WORLD_ARGS_MAX];
};

/* From the server, in any order. */
struct link_reply {
	uint64_t id;
	int64_t result;
};

enum link_status { LINK_OK, LINK_NOTHING, LINK_CLOSED };

/* Makes both ends. Exits when the system has no sockets left. */
void link_pair(int *server, int *client);

/* Sends a packet; returns false when the other side is gone. */
bool link_send(int link, const void *packet, size_t bytes);

/* Waits at most timeout_ms (-1: for ever) and takes one packet of exactly that many bytes. */
enum link_status link_receive(int link, void *packet, size_t bytes, int timeout_ms);

#endif /* DEMO_LINK_H */
