/* SPDX-License-Identifier: MIT */
/* serve_connection.h: what both servers (serve.c, serve_file.c) ask libmicrohttpd of a connection. */
#ifndef KY_SERVER_SERVE_CONNECTION_H
#define KY_SERVER_SERVE_CONNECTION_H

#include "server/serve_clients.h"

#include <microhttpd.h>

/* The value of a header, or NULL. */
const char *ky_connection_header(struct MHD_Connection *connection, const char *name);
/* Who is at its other end, or NULL. */
struct ky_client *ky_connection_client(struct MHD_Connection *connection);
/* For MHD_OPTION_NOTIFY_CONNECTION; the context is the struct ky_clients. */
void ky_connection_came_or_went(void *clients, struct MHD_Connection *connection, void **client,
				enum MHD_ConnectionNotificationCode code);

#endif
