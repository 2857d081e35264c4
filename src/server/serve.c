/* SPDX-License-Identifier: MIT */
/*
 * serve.c: see serve.h. A request passes, in the thread of its connection, through
 *
 *   take_target      keeps its target as received, before the library interprets it
 *   check            decides whether it may be served at all (serve_site.h)
 *   take_body        collects the body of a POST, up to the limit
 *   handle, route    parse it (serve_http.h) and reply with the page, the status or the API's response (api.h)
 *
 * libmicrohttpd implements HTTP and limits headers and idle time; serve_http.h limits waiting connections.
 */
#include "server/serve.h"

#include "server/generations.h"
#include "server/serve_http.h"
#include "server/serve_site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit of a request's headers; also the memory of a waiting connection. */
#define HEAD_BYTES_MAX (32u << 10)
#define IDLE_SECONDS 30u
#define STACK_BYTES (2u << 20)
/* For each remote address. All local clients share one address, limited by KY_SERVE_CLIENTS_MAX. */
#define CLIENTS_OF_ADDRESS 64u

struct ky_serve {
	struct MHD_Daemon *daemon;
	struct ky_serve_site site;
	struct ky_serve_listen listen;
	struct ky_serve_clients clients;
	struct ky_generations generations;
	char address[KY_SERVE_SITE_NAME_BYTES + KY_SERVE_SITE_TOKEN_BYTES + 32];
};

/* One request, from its first line to its reply. */
struct exchange {
	char *target;
	bool checked;
	const char *after_token; /* in target */
	bool posts;
	struct ky_buffer body;
};

/* ---- callbacks of libmicrohttpd ---- */

static void *take_target(void *context, const char *target, struct MHD_Connection *connection)
{
	struct exchange *const exchange = calloc(1, sizeof(*exchange));
	(void)context;
	(void)connection;
	if (exchange)
		exchange->target = strdup(target);
	return exchange;
}

static void end_exchange(void *context, struct MHD_Connection *connection, void **at,
			 enum MHD_RequestTerminationCode code)
{
	struct ky_serve *const serve = context;
	struct exchange *const exchange = *at;
	(void)code;
	*at = NULL;
	ky_serve_clients_wait(&serve->clients, ky_serve_clients_find(connection), true);
	if (!exchange)
		return;
	ky_buffer_free(&exchange->body);
	free(exchange->target);
	free(exchange);
}

/* ---- check ---- */

static enum MHD_Result take_host(void *context, enum MHD_ValueKind kind, const char *key,
				 const char *value)
{
	struct ky_serve_head *const head = context;
	(void)kind;
	if (ky_serve_site_same_name(key, "Host")) {
		head->host = value;
		head->hosts++;
	}
	return MHD_YES;
}

static const char *why_not(int status)
{
	return status == 405 ? "Only GET, HEAD and POST are supported."
			     : "Access denied: open the address that kymo view printed.";
}

/* Reject a long body by its header, without waiting for it. */
static bool is_too_long(struct MHD_Connection *connection)
{
	const char *const length = ky_serve_clients_header(connection, "Content-Length");
	return length && strtoull(length, NULL, 10) > KY_SERVE_REQUEST_BODY_MAX;
}

static enum MHD_Result check(struct ky_serve *serve, struct MHD_Connection *connection,
			     struct exchange *exchange, const char *method)
{
	struct ky_serve_head head = {.method = method,
				     .target = exchange->target,
				     .origin = ky_serve_clients_header(connection, "Origin"),
				     .fetch_site =
					     ky_serve_clients_header(connection, "Sec-Fetch-Site")};
	exchange->checked = true;
	MHD_get_connection_values(connection, MHD_HEADER_KIND, take_host, &head);
	const int status = ky_serve_site_check(&serve->site, &head, &exchange->after_token);
	if (status)
		return ky_serve_reply_error(connection, (unsigned)status, why_not(status));
	if (is_too_long(connection))
		return ky_serve_reply_error(connection, 413,
					    "The body is longer than 1 MiB: send less at once.");
	exchange->posts = strcmp(method, "POST") == 0;
	return MHD_YES;
}

/* End the connection for a body over the limit, or in a GET: no honest client sends that. */
static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t *bytes)
{
	if (exchange->posts && exchange->body.bytes + *bytes <= KY_SERVE_REQUEST_BODY_MAX) {
		ky_buffer_add(&exchange->body, data, *bytes);
		*bytes = 0;
	}
	return *bytes ? MHD_NO : MHD_YES;
}

/* ---- replies ---- */

static enum MHD_Result reply_status(struct ky_serve *serve, struct MHD_Connection *connection,
				    const struct ky_serve_request *request, bool wait)
{
	const char *const known = ky_serve_request_parameter(request, "g");
	struct ky_serve_reply reply = {.status = 200, .type = "application/json"};
	if (wait)
		ky_generations_wait(&serve->generations,
				    known ? (uint32_t)strtoul(known, NULL, 10) : 0);
	ky_generations_status(&serve->generations, &(struct ky_json_out){.buffer = &reply.body});
	return ky_serve_reply_send(connection, &reply);
}

static enum MHD_Result reply_api(struct ky_serve *serve, struct MHD_Connection *connection,
				 const struct ky_api_request *request)
{
	struct ky_api_response response = {0};
	struct ky_generation *const generation = ky_generations_hold(&serve->generations);
	if (!generation)
		return ky_serve_reply_error(
			connection, 503, "The trace is being loaded; api/status has the progress.");
	if (request->body && strcmp(request->path, "api/cancel") == 0)
		ky_generations_interrupt_old(&serve->generations);
	ky_api_respond(generation->api, request, &response);
	ky_generations_release(&serve->generations, generation);
	struct ky_serve_reply reply = {.status = (unsigned)response.status,
				       .type = response.type,
				       .body = response.body,
				       .pack = !serve->listen.loopback};
	return ky_serve_reply_send(connection, &reply);
}

static enum MHD_Result route(struct ky_serve *serve, struct MHD_Connection *connection,
			     const struct ky_serve_request *request, bool is_head)
{
	const struct ky_api_request *const api = &request->api;
	if (!*api->path)
		return api->body ? ky_serve_reply_error(connection, 405, why_not(405))
				 : ky_serve_reply_page(connection, ky_page, ky_page_bytes,
						       !serve->listen.loopback);
	if (strcmp(api->path, "api/status") == 0)
		return reply_status(serve, connection, request, !is_head);
	if (strncmp(api->path, "api/", 4) == 0)
		return reply_api(serve, connection, api);
	return ky_serve_reply_error(connection, 404, "Not found: the page is at TOKEN/.");
}

static enum MHD_Result handle(struct ky_serve *serve, struct MHD_Connection *connection,
			      struct exchange *exchange, bool is_head)
{
	struct ky_serve_request request;
	const char *why;
	/* The page's requests are relative to it: its own path must end with a slash. */
	if (*exchange->after_token != '/')
		return ky_serve_reply_redirect(connection, strchr(serve->address + 7, '/'));
	if (exchange->posts) /* a NUL after the body */
		ky_buffer_add(&exchange->body, "", 1);
	if (exchange->body.failed)
		return ky_serve_reply_error(connection, 503, "Out of memory.");
	const int status =
		ky_serve_request_open(&request, exchange->after_token, exchange->body.data,
				      exchange->posts ? exchange->body.bytes - 1 : 0, &why);
	if (status)
		return ky_serve_reply_error(connection, (unsigned)status, why);
	const enum MHD_Result result = route(serve, connection, &request, is_head);
	ky_serve_request_close(&request);
	return result;
}

/* Making a reply may take longer than a connection may be idle. */
static enum MHD_Result handle_untimed(struct ky_serve *serve, struct MHD_Connection *connection,
				      struct exchange *exchange, bool is_head)
{
	struct ky_serve_client *const client = ky_serve_clients_find(connection);
	ky_serve_clients_wait(&serve->clients, client, false);
	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	const enum MHD_Result result = handle(serve, connection, exchange, is_head);
	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, IDLE_SECONDS);
	ky_serve_clients_wait(&serve->clients, client, true);
	return result;
}

/* Called once for the headers, then for each piece of the body, then at the end. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *bytes, void **at)
{
	struct exchange *const exchange = *at;
	(void)url;
	(void)version;
	if (!exchange || !exchange->target)
		return MHD_NO;
	if (!exchange->checked)
		return check(context, connection, exchange, method);
	if (*bytes)
		return take_body(exchange, data, bytes);
	return handle_untimed(context, connection, exchange, strcmp(method, "HEAD") == 0);
}

/* ---- the server ---- */

static void *serve_daemon(struct ky_serve *serve)
{
	const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
			       MHD_USE_POLL | MHD_USE_ITC;
	return MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, serve, MHD_OPTION_LISTEN_SOCKET, serve->listen.fd,
		MHD_OPTION_URI_LOG_CALLBACK, take_target, NULL, MHD_OPTION_NOTIFY_COMPLETED,
		end_exchange, serve, MHD_OPTION_NOTIFY_CONNECTION, ky_serve_clients_notify,
		&serve->clients, MHD_OPTION_CONNECTION_LIMIT, (unsigned)KY_SERVE_CLIENTS_MAX,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		serve->listen.loopback ? 0u : CLIENTS_OF_ADDRESS, MHD_OPTION_CONNECTION_TIMEOUT,
		IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES_MAX,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
		MHD_OPTION_END);
}

static int start(struct ky_serve *serve, const struct ky_serve_options *options,
		 char message[KY_MESSAGE_BYTES])
{
	int error = ky_serve_site_open(&serve->listen, &serve->site, options, message);
	if (error)
		return error;
	error = ky_serve_site_make_token(&serve->site);
	if (!error) {
		snprintf(serve->address, sizeof(serve->address), "http://%s:%u/%s/",
			 serve->listen.host, (unsigned)serve->site.port, serve->site.token);
		errno = ENOMEM;
		serve->daemon = serve_daemon(serve);
		error = serve->daemon ? 0 : -errno;
	}
	if (error) {
		snprintf(message, KY_MESSAGE_BYTES,
			 "cannot start the server: %s: close some programs and try again",
			 strerror(-error));
		close(serve->listen.fd);
	}
	return error;
}

int ky_serve_open(struct ky_serve **out, const struct ky_serve_options *options,
		  char message[KY_MESSAGE_BYTES])
{
	struct ky_serve *serve = calloc(1, sizeof(*serve));
	int error = serve ? ky_generations_open(&serve->generations) : -ENOMEM;
	*out = NULL;
	if (error) {
		free(serve);
		return ky_fail(message, error, "not enough memory for the server");
	}
	ky_serve_clients_open(&serve->clients);
	error = start(serve, options, message);
	if (error)
		ky_serve_close(&serve);
	*out = serve;
	return error;
}

void ky_serve_close(struct ky_serve **at)
{
	struct ky_serve *const serve = *at;
	*at = NULL;
	if (!serve)
		return;
	ky_generations_stop(&serve->generations);
	if (serve->daemon)
		MHD_stop_daemon(serve->daemon); /* the socket too */
	ky_generations_close(&serve->generations);
	ky_serve_clients_close(&serve->clients);
	free(serve);
}

const char *ky_serve_address(const struct ky_serve *serve)
{
	return serve->address;
}

int ky_serve_show(struct ky_serve *serve, struct ky_view *view)
{
	return ky_generations_show(&serve->generations, view);
}

void ky_serve_progress(struct ky_serve *serve, const char *stage, uint64_t done, uint64_t all)
{
	ky_generations_progress(&serve->generations, stage, done, all);
}
