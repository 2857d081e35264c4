/* SPDX-License-Identifier: MIT */
/*
 * gateway.c: one thread takes the requests of all clients and makes tasks of them. What comes over a
 * link is not trusted: a request for a verb that there is not is refused and counted.
 *
 * How it is traced. The flow "request" began in the client, perhaps in another process, and ends in
 * the span here; the task's own flow begins in the same span. Following the arrows leads from the
 * client through the gateway to the workers and back.
 */
#include "gateway.h"

#include <errno.h>
#include <poll.h>

#include "thread.h"

#include <kymo/kymo.h>

static void refuse(struct gateway *gateway, const struct link_request *request, int link)
{
	const struct link_reply reply = {request->id, -1};
	gateway->refused++;
	KYMO_INSTANT("gateway", "refused", "request", request->id, "verb", request->verb);
	link_send(link, &reply, sizeof(reply));
}

static void accept_request(struct gateway *gateway, const struct link_request *request, int link)
{
	KYMO_SCOPE("gateway", "accept", "request", request->id, "link", link);
	KYMO_FLOW_END("request", "request", request->id);
	struct task *task = NULL;
	if (request->verb < WORLD_VERBS)
		task = task_create(gateway->requests + 1, request, link);
	if (!task) {
		refuse(gateway, request, link);
		return;
	}
	gateway->requests++;
	scheduler_submit(gateway->scheduler, task);
}

/* Returns whether the client is still there. */
static bool serve(struct gateway *gateway, int link)
{
	struct link_request request;
	const enum link_status status = link_receive(link, &request, sizeof(request), 0);
	if (status == LINK_OK)
		accept_request(gateway, &request, link);
	return status != LINK_CLOSED;
}

static void *run_gateway(void *context)
{
	struct gateway *gateway = context;
	struct pollfd waiting[GATEWAY_LINKS_MAX];
	int open = gateway->links_count;
	kymo_thread_name("gateway");
	for (int i = 0; i < gateway->links_count; i++)
		waiting[i] = (struct pollfd){.fd = gateway->links[i], .events = POLLIN};
	while (open > 0) {
		if (poll(waiting, (nfds_t)gateway->links_count, -1) < 0)
			continue; /* a signal */
		for (int i = 0; i < gateway->links_count; i++) {
			if (!waiting[i].revents || serve(gateway, waiting[i].fd))
				continue;
			waiting[i].fd = -1; /* poll() leaves it out, and its revents are 0 */
			open--;
		}
	}
	return NULL;
}

void gateway_open(struct gateway *gateway, struct scheduler *scheduler, const int *links, int count)
{
	const struct link_hello hello = {1};
	*gateway = (struct gateway){.scheduler = scheduler, .links_count = count};
	for (int i = 0; i < count; i++) {
		gateway->links[i] = links[i];
		link_send(links[i], &hello, sizeof(hello));
	}
	thread_start(&gateway->thread, run_gateway, gateway);
}

void gateway_close(struct gateway *gateway)
{
	pthread_join(gateway->thread, NULL);
}
