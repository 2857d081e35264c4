/* SPDX-License-Identifier: MIT */
/*
 * client.c: sends requests at an even pace, several on their way at once, and takes the replies in
 * whatever order they come. What it asks for depends on the seed alone.
 *
 * How it is traced. A request is an async span, by its id, from sending to the reply: many overlap.
 * The two ends of the way are short spans of this thread, and flows bind them to what the server
 * does. Ids are unique among all clients, so traces of several processes can be laid together.
 */
#include "client.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

#include "clock.h"
#include "link.h"
#include "prng.h"
#include "thread.h"

#include <kymo/kymo.h>

#define REQUESTS_OPEN_MAX 16

void client_init(struct client *client, int link, int number, uint64_t count, double seconds,
		 uint64_t seed)
{
	*client = (struct client){
		.link = link,
		.number = number,
		.count = count,
		.spread_ns = (int64_t)(seconds * NS_PER_S),
		.random = seed + (uint64_t)number,
	};
}

/* Most requests are small; one in fifty asks the oracle something hard. */
static struct link_request make_request(struct client *client)
{
	uint64_t *random = &client->random;
	struct link_request request = {
		.id = (uint64_t)(client->number + 1) << 32 | client->sent,
		.verb = (uint32_t)prng_below(random, WORLD_VERBS),
		.args = {prng_below(random, WORLD_PLAYERS), prng_below(random, WORLD_PLAYERS), 0},
	};
	switch (request.verb) {
	case WORLD_PAY:
		request.args[2] = 1 + prng_below(random, 20);
		break;
	case WORLD_WORK:
		request.args[1] = 1 + prng_below(random, 3);
		break;
	case WORLD_ASK:
		request.args[1] = prng_below(random, 10) == 0 ? 4000 : 50;
		break;
	case WORLD_AUDIT:
		request.args[0] = WORLD_PLAYERS;
		break;
	default:
		request.args[1]++;
	}
	return request;
}

static bool send_request(struct client *client)
{
	const struct link_request request = make_request(client);
	KYMO_SCOPE("client", "send", "request", request.id, "verb", request.verb);
	KYMO_ASYNC_BEGIN("request", "request", request.id, "verb", world_verb(request.verb)->name);
	KYMO_FLOW_BEGIN("request", "request", request.id);
	client->sent++;
	return link_send(client->link, &request, sizeof(request));
}

static void take_reply(struct client *client, const struct link_reply *reply)
{
	KYMO_SCOPE("client", "receive", "request", reply->id, "result", reply->result);
	KYMO_FLOW_END("request", "reply", reply->id);
	KYMO_ASYNC_END("request", "request", reply->id, "result", reply->result);
	client->received++;
}

/* How long to wait until the next request may be sent: 0 is now, -1 until a reply came. */
static int wait_ms(const struct client *client, int64_t start_ns)
{
	if (client->sent == client->count || client->sent - client->received >= REQUESTS_OPEN_MAX)
		return -1;
	const double part = (double)client->sent / (double)client->count;
	const int64_t due_ns = start_ns + (int64_t)(part * (double)client->spread_ns);
	const int64_t left_ns = due_ns - clock_now_ns();
	return left_ns > 0 ? (int)(left_ns / NS_PER_MS) + 1 : 0;
}

bool client_wait_for_server(const struct client *client)
{
	struct link_hello hello;
	enum link_status status;
	do {
		status = link_receive(client->link, &hello, sizeof(hello), -1);
	} while (status == LINK_NOTHING);
	return status == LINK_OK;
}

bool client_work(struct client *client)
{
	const int64_t start_ns = clock_now_ns();
	KYMO_PRINT("log", "client %d: %" PRIu64 " requests", client->number, client->count);
	bool connected = true;
	while (connected && client->received < client->count) {
		const int timeout_ms = wait_ms(client, start_ns);
		if (timeout_ms == 0 && !send_request(client))
			break;
		struct link_reply reply;
		const enum link_status status =
			link_receive(client->link, &reply, sizeof(reply), timeout_ms);
		if (status == LINK_OK)
			take_reply(client, &reply);
		connected = status != LINK_CLOSED;
	}
	shutdown(client->link, SHUT_RDWR);
	return client->received == client->count;
}

static void *run_client(void *context)
{
	struct client *client = context;
	char name[32];
	snprintf(name, sizeof(name), "client %d", client->number);
	kymo_thread_name(name);
	if (client_wait_for_server(client))
		client_work(client);
	return NULL;
}

void client_start(struct client *client)
{
	thread_start(&client->thread, run_client, client);
}

void client_join(struct client *client)
{
	pthread_join(client->thread, NULL);
}
