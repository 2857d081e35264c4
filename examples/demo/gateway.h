/* SPDX-License-Identifier: MIT */
/* gateway.h: where requests come in; see gateway.c. */
#ifndef DEMO_GATEWAY_H
#define DEMO_GATEWAY_H

#include <pthread.h>
#include <stdint.h>

#include "scheduler.h"

#define GATEWAY_LINKS_MAX 8

struct gateway {
	struct scheduler *scheduler;
	pthread_t thread;
	int links_count;
	int links[GATEWAY_LINKS_MAX];
	uint64_t requests; /* accepted so far; also the last task's id */
	uint64_t refused;
};

/* Says hello on every link and starts the thread that serves them. The links stay the caller's. */
void gateway_open(struct gateway *gateway, struct scheduler *scheduler, const int *links,
		  int count);

/* Waits until every client has gone. */
void gateway_close(struct gateway *gateway);

#endif /* DEMO_GATEWAY_H */
