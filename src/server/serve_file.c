/* SPDX-License-Identifier: MIT */
/* serve_file.c: serves one file to one foreign web page. See serve.h. */
#include "server/serve.h"

#include "server/serve_http.h"
#include "server/serve_site.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES_MAX (32u << 10)
#define IDLE_SECONDS 30u
#define NAME_BYTES 128

struct ky_serve_file {
	struct MHD_Daemon *daemon;
	struct ky_serve_site site;
	struct ky_serve_listen listen;
	struct ky_serve_clients clients;
	int fd;
	uint64_t bytes;
	char name[NAME_BYTES];
	const char *origin;
	char address[KY_SERVE_SITE_NAME_BYTES + KY_SERVE_SITE_TOKEN_BYTES + NAME_BYTES + 32];
};

/* ---- replies ---- */

static enum MHD_Result reply(const struct ky_serve_file *serve, struct MHD_Connection *connection,
			     unsigned status, struct MHD_Response *response, bool allowed)
{
	if (!response)
		return MHD_NO;
	if (allowed) {
		MHD_add_response_header(response, "Access-Control-Allow-Origin", serve->origin);
		MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, HEAD");
		/* Browsers require it before a public page may access the local machine. */
		MHD_add_response_header(response, "Access-Control-Allow-Private-Network", "true");
	}
	MHD_add_response_header(response, "Vary", "Origin");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	const enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result reply_empty(const struct ky_serve_file *serve,
				   struct MHD_Connection *connection, unsigned status, bool allowed)
{
	struct MHD_Response *const response =
		MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	return reply(serve, connection, status, response, allowed);
}

/* The file may be large: a client that fetches it does not count as waiting. */
static enum MHD_Result reply_file(struct ky_serve_file *serve, struct MHD_Connection *connection,
				  bool allowed)
{
	const int fd = fcntl(serve->fd, F_DUPFD_CLOEXEC, 0);
	struct MHD_Response *const response =
		fd < 0 ? NULL : MHD_create_response_from_fd_at_offset64(serve->bytes, fd, 0);
	if (!response) {
		if (fd >= 0)
			close(fd);
		return reply_empty(serve, connection, 503, false);
	}
	ky_serve_clients_wait(&serve->clients, ky_serve_clients_find(connection), false);
	MHD_add_response_header(response, "Content-Type", "application/octet-stream");
	return reply(serve, connection, 200, response, allowed);
}

/* Return 0 if the request may have the file. The page also looks for a trace_processor: 404. */
static unsigned check(const struct ky_serve_file *serve, const char *target, const char *host,
		      const char *origin)
{
	const char *const rest = ky_serve_site_after_token(&serve->site, target);
	if (!host || !ky_serve_site_is_host(&serve->site, host))
		return 403;
	if (origin && strcmp(origin, serve->origin) != 0)
		return 403;
	return rest && rest[0] == '/' && strcmp(rest + 1, serve->name) == 0 ? 0 : 404;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *bytes, void **at)
{
	struct ky_serve_file *const serve = context;
	const char *const origin = ky_serve_clients_header(connection, "Origin");
	const unsigned status =
		check(serve, url, ky_serve_clients_header(connection, "Host"), origin);
	(void)version;
	(void)data;
	(void)at;
	if (status)
		return reply_empty(serve, connection, status, false);
	if (*bytes)
		return MHD_NO;
	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
		return reply_file(serve, connection, origin != NULL);
	if (strcmp(method, "OPTIONS") == 0)
		return reply_empty(serve, connection, 204, origin != NULL);
	return reply_empty(serve, connection, 405, false);
}

static void end_request(void *context, struct MHD_Connection *connection, void **at,
			enum MHD_RequestTerminationCode code)
{
	struct ky_serve_file *const serve = context;
	(void)at;
	(void)code;
	ky_serve_clients_wait(&serve->clients, ky_serve_clients_find(connection), true);
}

/* Keep the target as received. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context;
	(void)connection;
	return strlen(text);
}

/* ---- the server ---- */

static struct MHD_Daemon *start_daemon(struct ky_serve_file *serve)
{
	const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
			       MHD_USE_POLL | MHD_USE_ITC;
	return MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, serve, MHD_OPTION_LISTEN_SOCKET, serve->listen.fd,
		MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED,
		end_request, serve, MHD_OPTION_NOTIFY_CONNECTION, ky_serve_clients_notify,
		&serve->clients, MHD_OPTION_CONNECTION_LIMIT, (unsigned)KY_SERVE_CLIENTS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HEAD_BYTES_MAX, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

static void take_name(struct ky_serve_file *serve, const char *name)
{
	size_t at = 0;
	for (; name[at] && at < NAME_BYTES - 1; at++) {
		const char c = name[at];
		const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				   (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
		serve->name[at] = plain ? c : '_';
	}
	serve->name[at] = '\0';
}

static int start(struct ky_serve_file *serve, const struct ky_serve_file_options *options,
		 char message[KY_MESSAGE_BYTES])
{
	const struct ky_serve_options at = {.port = options->port};
	struct stat status;
	if (fstat(options->fd, &status) != 0)
		return -errno;
	serve->fd = options->fd;
	serve->bytes = (uint64_t)status.st_size;
	serve->origin = options->origin;
	take_name(serve, options->name);
	int error = ky_serve_site_make_token(&serve->site);
	if (!error)
		error = ky_serve_site_open(&serve->listen, &serve->site, &at, message);
	if (error)
		return error;
	snprintf(serve->address, sizeof(serve->address), "http://%s:%u/%s/%s", serve->listen.host,
		 (unsigned)serve->site.port, serve->site.token, serve->name);
	serve->daemon = start_daemon(serve);
	if (serve->daemon)
		return 0;
	close(serve->listen.fd);
	return ky_fail(message, -ENOMEM, "cannot start the server: not enough memory");
}

int ky_serve_file_open(struct ky_serve_file **out, const struct ky_serve_file_options *options,
		       char message[KY_MESSAGE_BYTES])
{
	struct ky_serve_file *serve = calloc(1, sizeof(*serve));
	*out = NULL;
	snprintf(message, KY_MESSAGE_BYTES, "cannot start the server");
	if (!serve)
		return -ENOMEM;
	ky_serve_clients_open(&serve->clients);
	const int error = start(serve, options, message);
	if (error)
		ky_serve_file_close(&serve);
	*out = serve;
	return error;
}

void ky_serve_file_close(struct ky_serve_file **at)
{
	struct ky_serve_file *const serve = *at;
	*at = NULL;
	if (!serve)
		return;
	if (serve->daemon)
		MHD_stop_daemon(serve->daemon);
	ky_serve_clients_close(&serve->clients);
	free(serve);
}

const char *ky_serve_file_address(const struct ky_serve_file *serve)
{
	return serve->address;
}
