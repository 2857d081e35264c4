/* SPDX-License-Identifier: MIT */
/* serve_clients.c: see serve_clients.h. */
#include "server/serve_clients.h"

#include <stdlib.h>
#include <sys/socket.h>

void ky_clients_open(struct ky_clients *clients)
{
	*clients = (struct ky_clients){0};
	pthread_mutex_init(&clients->mutex, NULL);
	clients->waiting.before = clients->waiting.next = &clients->waiting;
}

void ky_clients_close(struct ky_clients *clients)
{
	pthread_mutex_destroy(&clients->mutex);
}

static void put_last(struct ky_clients *clients, struct ky_client *client)
{
	struct ky_client *const head = &clients->waiting;
	client->before = head->before;
	client->next = head;
	head->before->next = client;
	head->before = client;
	client->waits = true;
}

static void take_out(struct ky_client *client)
{
	if (!client->waits)
		return;
	client->before->next = client->next;
	client->next->before = client->before;
	client->waits = false;
}

/* Its thread finds the connection ended, and closes it. */
static void end_oldest(struct ky_clients *clients)
{
	struct ky_client *const oldest = clients->waiting.next;
	if (oldest == &clients->waiting)
		return;
	take_out(oldest);
	oldest->ended = true;
	clients->count--;
	shutdown(oldest->fd, SHUT_RDWR);
}

struct ky_client *ky_clients_add(struct ky_clients *clients, int fd)
{
	struct ky_client *const client = calloc(1, sizeof(*client));
	if (!client)
		return NULL;
	client->fd = fd;
	pthread_mutex_lock(&clients->mutex);
	if (++clients->count > KY_CLIENTS_MANY)
		end_oldest(clients);
	put_last(clients, client);
	pthread_mutex_unlock(&clients->mutex);
	return client;
}

void ky_clients_remove(struct ky_clients *clients, struct ky_client *client)
{
	if (!client)
		return;
	pthread_mutex_lock(&clients->mutex);
	take_out(client);
	clients->count -= !client->ended;
	pthread_mutex_unlock(&clients->mutex);
	free(client);
}

void ky_clients_wait(struct ky_clients *clients, struct ky_client *client, bool waits)
{
	if (!client)
		return;
	pthread_mutex_lock(&clients->mutex);
	take_out(client);
	if (waits && !client->ended)
		put_last(clients, client);
	pthread_mutex_unlock(&clients->mutex);
}
