/* SPDX-License-Identifier: MIT */
/* serve_http.c: see serve_http.h. */
#include "server/serve_http.h"

#include "base/json_out.h"

#include <limits.h>
#include <stdio.h>

#include "base/chars.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <zlib.h>

/* ---- clients ---- */

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

/* ---- requests ---- */

/* Decode in place. Return false for a % without two digits, or a NUL, which would end the text. */
static bool decode(char *text)
{
	char *to = text;
	for (const char *from = text; *from; from++) {
		char c = *from == '+' ? ' ' : *from;
		if (c == '%') {
			const int high = ky_chars_hex_digit(from[1]);
			const int low = high < 0 ? -1 : ky_chars_hex_digit(from[2]);
			if (low < 0 || (high == 0 && low == 0))
				return false;
			c = (char)(high * 16 + low);
			from += 2;
		}
		*to++ = c;
	}
	*to = '\0';
	return true;
}

/* A parameter without '=' has an empty value; "&&" has none between. */
static int take_parameter(struct ky_serve_request *request, char *text, const char **why)
{
	struct ky_api_request *const api = &request->api;
	char *const equals = strchr(text, '=');
	if (!*text)
		return 0;
	if (api->parameters_count == KY_SERVE_REQUEST_PARAMETERS_MAX) {
		*why = "Too many parameters.";
		return 400;
	}
	if (equals)
		*equals = '\0';
	char *const value = equals ? equals + 1 : text + strlen(text);
	if (!decode(value) || !decode(text)) {
		*why = "A % in a parameter is not followed by two hexadecimal digits.";
		return 400;
	}
	request->parameters[api->parameters_count++] = (struct ky_api_parameter){text, value};
	return 0;
}

static int take_parameters(struct ky_serve_request *request, char *query, const char **why)
{
	int status = 0;
	while (query && !status) {
		char *const next = strchr(query, '&');
		if (next)
			*next = '\0';
		status = take_parameter(request, query, why);
		query = next ? next + 1 : NULL;
	}
	return status;
}

static int check_body(const char *body, size_t bytes, const char **why)
{
	if (body && bytes > KY_SERVE_REQUEST_BODY_MAX) {
		*why = "The body is longer than 1 MiB: send less at once.";
		return 413;
	}
	if (body && memchr(body, 0, bytes)) {
		*why = "The body has a zero byte: send text.";
		return 400;
	}
	return 0;
}

int ky_serve_request_open(struct ky_serve_request *request, const char *target, const char *body,
			  size_t body_bytes, const char **why)
{
	*request = (struct ky_serve_request){.text = strdup(target + (*target == '/'))};
	*why = "Out of memory: try again.";
	if (!request->text)
		return 503;
	char *const query = strchr(request->text, '?');
	if (query)
		*query = '\0';
	request->api = (struct ky_api_request){.path = request->text,
					       .parameters = request->parameters,
					       .body = body,
					       .body_bytes = body ? body_bytes : 0};
	int status = check_body(body, body_bytes, why);
	if (!status)
		status = take_parameters(request, query ? query + 1 : NULL, why);
	if (status)
		ky_serve_request_close(request);
	return status;
}

void ky_serve_request_close(struct ky_serve_request *request)
{
	free(request->text);
	*request = (struct ky_serve_request){0};
}

const char *ky_serve_request_parameter(const struct ky_serve_request *request, const char *key)
{
	for (uint32_t i = 0; i < request->api.parameters_count; i++)
		if (strcmp(request->parameters[i].key, key) == 0)
			return request->parameters[i].value;
	return NULL;
}

/* ---- replies ---- */

/* Less does not fill a packet anyway. */
#define PACK_BYTES_MIN 4096

#define POLICY_BYTES 1024

/*
 * Make the page's policy: that of its own <meta>, which allows one script and one style by their hashes, and no framing,
 * which only a header can forbid. A page without one may do nothing.
 */
static const char *page_policy(char policy[POLICY_BYTES], const char *page, size_t bytes)
{
	static const char begin[] = "http-equiv=\"Content-Security-Policy\" content=\"";
	const char *const found = memmem(page, bytes, begin, sizeof(begin) - 1);
	const char *const from = found ? found + sizeof(begin) - 1 : NULL;
	const char *const end = from ? memchr(from, '"', bytes - (size_t)(from - page)) : NULL;
	const int length = end && end - from < POLICY_BYTES / 2 ? (int)(end - from) : 0;
	snprintf(policy, POLICY_BYTES, "%.*s; frame-ancestors 'none'",
		 length ? length : (int)sizeof("default-src 'none'") - 1,
		 length ? from : "default-src 'none'");
	return policy;
}

static const char answer_policy[] = "default-src 'none'; frame-ancestors 'none'; sandbox";

static bool add_headers(struct MHD_Response *response, const char *type, const char *policy)
{
	const char *const headers[][2] = {
		{"Content-Type", type},
		{"Content-Security-Policy", policy},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Cache-Control", "no-store"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
	};
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		if (MHD_add_response_header(response, headers[i][0], headers[i][1]) != MHD_YES)
			return false;
	return true;
}

/* ---- gzip ---- */

static bool takes_gzip(struct MHD_Connection *connection)
{
	const char *const takes =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept-Encoding");
	const char *const gzip = takes ? strstr(takes, "gzip") : NULL;
	return gzip && strncmp(gzip + 4, ";q=0", 4) != 0;
}

/* Return false if gzip does not help. */
static bool pack(const char *data, size_t bytes, struct ky_buffer *packed)
{
	z_stream stream = {0};
	if (bytes < PACK_BYTES_MIN || bytes > UINT_MAX / 2)
		return false;
	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	const size_t room = deflateBound(&stream, (uLong)bytes);
	stream.next_out = ky_buffer_reserve(packed, room);
	stream.avail_out = (uInt)room;
	stream.next_in = (z_const Bytef *)(uintptr_t)data;
	stream.avail_in = (uInt)bytes;
	const bool done = !packed->failed && deflate(&stream, Z_FINISH) == Z_STREAM_END;
	packed->bytes = done ? stream.total_out : 0;
	deflateEnd(&stream);
	if (done && packed->bytes < bytes)
		return true;
	ky_buffer_free(packed);
	return false;
}

/* ---- sending ---- */

static enum MHD_Result send_to(struct MHD_Connection *connection, unsigned status,
			       struct MHD_Response *response, const char *type, const char *policy)
{
	enum MHD_Result result = MHD_NO;
	if (!response)
		return MHD_NO;
	if (add_headers(response, type, policy))
		result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static struct MHD_Response *own(struct ky_buffer *body, bool packed)
{
	struct MHD_Response *const response =
		MHD_create_response_from_buffer(body->bytes, body->data, MHD_RESPMEM_MUST_FREE);
	if (!response)
		ky_buffer_free(body);
	if (response && packed)
		MHD_add_response_header(response, "Content-Encoding", "gzip");
	return response;
}

enum MHD_Result ky_serve_reply_send(struct MHD_Connection *connection, struct ky_serve_reply *reply)
{
	struct ky_buffer packed = {0};
	if (reply->body.failed) {
		ky_buffer_free(&reply->body);
		return ky_serve_reply_error(connection, 503, "Out of memory: request less.");
	}
	const bool is_packed = reply->pack && takes_gzip(connection) &&
			       pack(reply->body.data, reply->body.bytes, &packed);
	if (is_packed) {
		ky_buffer_free(&reply->body);
		reply->body = packed;
	}
	struct MHD_Response *const response = own(&reply->body, is_packed);
	reply->body = (struct ky_buffer){0};
	return send_to(connection, reply->status, response, reply->type, answer_policy);
}

enum MHD_Result ky_serve_reply_page(struct MHD_Connection *connection, const char *page,
				    size_t bytes, bool may_pack)
{
	struct ky_buffer packed = {0};
	struct MHD_Response *response;
	char policy[POLICY_BYTES];
	if (may_pack && takes_gzip(connection) && pack(page, bytes, &packed))
		response = own(&packed, true);
	else
		response = MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)page,
							   MHD_RESPMEM_PERSISTENT);
	return send_to(connection, 200, response, "text/html; charset=utf-8",
		       page_policy(policy, page, bytes));
}

enum MHD_Result ky_serve_reply_error(struct MHD_Connection *connection, unsigned status,
				     const char *why)
{
	struct ky_buffer body = {0};
	struct ky_json_out json = {.buffer = &body};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "error", why);
	ky_json_out_end(&json, '}');
	if (body.failed) {
		ky_buffer_free(&body);
		return MHD_NO;
	}
	struct MHD_Response *const response = own(&body, false);
	if (response && status == 405)
		MHD_add_response_header(response, "Allow", "GET, HEAD, POST");
	if (response && status == 503)
		MHD_add_response_header(response, "Retry-After", "1");
	return send_to(connection, status, response, "application/json", answer_policy);
}

enum MHD_Result ky_serve_reply_redirect(struct MHD_Connection *connection, const char *to)
{
	struct MHD_Response *const response =
		MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	if (response)
		MHD_add_response_header(response, "Location", to);
	return send_to(connection, 308, response, "text/plain", answer_policy);
}
