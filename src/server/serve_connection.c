/* SPDX-License-Identifier: MIT */
/* serve_connection.c: see serve_connection.h. */
#include "server/serve_connection.h"

const char *ky_connection_header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

struct ky_client *ky_connection_client(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *const info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

void ky_connection_came_or_went(void *clients, struct MHD_Connection *connection, void **client,
				enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *const info =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		*client = info ? ky_clients_add(clients, info->connect_fd) : NULL;
	} else {
		ky_clients_remove(clients, *client);
		*client = NULL;
	}
}
