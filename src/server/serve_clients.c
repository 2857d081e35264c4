/* SPDX-License-Identifier: MIT */
/* serve_clients.c: see serve_clients.h. */
#include "server/serve_clients.h"

#include "server/serve_clients.h"

#include <stdlib.h>
#include <sys/socket.h>

void ky_serve_clients_open(struct ky_serve_clients *clients)
{
	*clients = (struct ky_serve_clients){0};
	pthread_mutex_init(&clients->mutex, NULL);
	clients->waiting.before = clients->waiting.next = &clients->waiting;
}

void ky_serve_clients_close(struct ky_serve_clients *clients)
{
	pthread_mutex_destroy(&clients->mutex);
}

static void put_last(struct ky_serve_clients *clients, struct ky_serve_client *client)
{
	struct ky_serve_client *const head = &clients->waiting;
	client->before = head->before;
	client->next = head;
	head->before->next = client;
	head->before = client;
	client->waits = true;
}

static void take_out(struct ky_serve_client *client)
{
	if (!client->waits)
		return;
	client->before->next = client->next;
	client->next->before = client->before;
	client->waits = false;
}

/* End the oldest: its own thread closes the connection. */
static void end_oldest(struct ky_serve_clients *clients)
{
	struct ky_serve_client *const oldest = clients->waiting.next;
	if (oldest == &clients->waiting)
		return;
	take_out(oldest);
	oldest->ended = true;
	clients->count--;
	shutdown(oldest->fd, SHUT_RDWR);
}

struct ky_serve_client *ky_serve_clients_add(struct ky_serve_clients *clients, int fd)
{
	struct ky_serve_client *const client = calloc(1, sizeof(*client));
	if (!client)
		return NULL;
	client->fd = fd;
	pthread_mutex_lock(&clients->mutex);
	if (++clients->count > KY_SERVE_CLIENTS_MANY)
		end_oldest(clients);
	put_last(clients, client);
	pthread_mutex_unlock(&clients->mutex);
	return client;
}

void ky_serve_clients_remove(struct ky_serve_clients *clients, struct ky_serve_client *client)
{
	if (!client)
		return;
	pthread_mutex_lock(&clients->mutex);
	take_out(client);
	clients->count -= !client->ended;
	pthread_mutex_unlock(&clients->mutex);
	free(client);
}

void ky_serve_clients_wait(struct ky_serve_clients *clients, struct ky_serve_client *client,
			   bool waits)
{
	if (!client)
		return;
	pthread_mutex_lock(&clients->mutex);
	take_out(client);
	if (waits && !client->ended)
		put_last(clients, client);
	pthread_mutex_unlock(&clients->mutex);
}

/* ---- connections of libmicrohttpd ---- */

const char *ky_serve_clients_header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

struct ky_serve_client *ky_serve_clients_find(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *const info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

void ky_serve_clients_notify(void *clients, struct MHD_Connection *connection, void **client,
			     enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *const info =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		*client = info ? ky_serve_clients_add(clients, info->connect_fd) : NULL;
	} else {
		ky_serve_clients_remove(clients, *client);
		*client = NULL;
	}
}
