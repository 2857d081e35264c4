/* SPDX-License-Identifier: MIT */
/* serve_reply.c: see serve_reply.h. */
#include "server/serve_reply.h"

#include "base/json_out.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Less does not fill a packet anyway. */
#define PACK_BYTES_MIN 4096

/*
 * The page's own <meta> restricts scripts to one, by its hash; both policies apply. Only a header can restrict framing.
 */
static const char page_policy[] =
	"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
	"connect-src 'self'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
	"frame-ancestors 'none'";
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
	if (may_pack && takes_gzip(connection) && pack(page, bytes, &packed))
		response = own(&packed, true);
	else
		response = MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)page,
							   MHD_RESPMEM_PERSISTENT);
	return send_to(connection, 200, response, "text/html; charset=utf-8", page_policy);
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
