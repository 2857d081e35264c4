/* SPDX-License-Identifier: MIT */
/*
 * html_export.c: writes the page with the trace's data in the place reserved for it, and the trace's name as its title.
 * The data, before gzip: "KYH1", a u32 size, that much JSON, then the columns that the JSON lists.
 */
#include "server/html_export.h"

#include "base/file.h"
#include "query/filter.h"
#include "query/sample_stats.h"
#include "server/api.h"
#include "server/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- output ---- */

/*
 * Compresses bytes with gzip and writes them as base64, a piece at a time, so that memory does not grow with the trace.
 * base64 turns three bytes into four, so up to two bytes wait for the next ones.
 */

#define OUT_BYTES 65536u
#define PIECE_BYTES 32768u

struct ky_html_out {
	int fd;
	int error;
	z_stream gzip;
	uint64_t written;
	uint32_t waiting; /* bytes of an unfinished group of three */
	uint32_t used;
	uint8_t wait[3];
	char text[OUT_BYTES];
	uint8_t piece[PIECE_BYTES]; /* compressed */
};

static int open_out(struct ky_html_out **out, int fd)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->fd = fd;
	/* 16 added to the window bits makes zlib write a gzip header. */
	if (deflateInit2(&(*out)->gzip, 6, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(*out);
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void close_out(struct ky_html_out **out)
{
	if (!*out)
		return;
	deflateEnd(&(*out)->gzip);
	free(*out);
	*out = NULL;
}

int ky_html_out_error(const struct ky_html_out *out)
{
	return out->error;
}

/* Write the rest. Return 0 or the first error: -EFBIG or -errno. */
static int flush_out(struct ky_html_out *out)
{
	if (!out->error)
		out->error = ky_file_write_all(out->fd, out->text, out->used);
	out->written += out->used;
	out->used = 0;
	if (!out->error && out->written > KY_HTML_BYTES_MAX)
		out->error = -EFBIG;
	return out->error;
}

/* Write bytes unchanged, before and after the data. */
static void put_plain(struct ky_html_out *out, const void *bytes, size_t count)
{
	const char *from = bytes;
	while (count && !out->error) {
		if (out->used == OUT_BYTES)
			flush_out(out);
		const size_t room = OUT_BYTES - out->used;
		const size_t now = count < room ? count : room;
		memcpy(out->text + out->used, from, now);
		out->used += (uint32_t)now;
		from += now;
		count -= now;
	}
}

static void put_group(struct ky_html_out *out, const uint8_t group[3])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	if (OUT_BYTES - out->used < 4)
		flush_out(out);
	char *const to = out->text + out->used;
	to[0] = digits[group[0] >> 2];
	to[1] = digits[(group[0] & 3) << 4 | group[1] >> 4];
	to[2] = digits[(group[1] & 15) << 2 | group[2] >> 6];
	to[3] = digits[group[2] & 63];
	out->used += 4;
}

static void encode(struct ky_html_out *out, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count && !out->error; i++) {
		out->wait[out->waiting++] = bytes[i];
		if (out->waiting == 3) {
			put_group(out, out->wait);
			out->waiting = 0;
		}
	}
}

static void encode_end(struct ky_html_out *out)
{
	const uint32_t waiting = out->waiting;
	if (!waiting || out->error)
		return;
	memset(out->wait + waiting, 0, 3 - waiting);
	put_group(out, out->wait);
	memset(out->text + out->used - (3 - waiting), '=', 3 - waiting);
	out->waiting = 0;
}

/* Compress the pending input; with Z_FINISH to the end. */
static void squeeze(struct ky_html_out *out, int flush)
{
	int state;
	do {
		out->gzip.next_out = out->piece;
		out->gzip.avail_out = PIECE_BYTES;
		state = deflate(&out->gzip, flush);
		encode(out, out->piece, PIECE_BYTES - out->gzip.avail_out);
	} while (!out->error && state != Z_STREAM_END &&
		 (out->gzip.avail_out == 0 || flush == Z_FINISH));
}

void ky_html_out_data(struct ky_html_out *out, const void *bytes, size_t count)
{
	const uint8_t *from = bytes;
	while (count && !out->error) {
		const uInt now = count < INT_MAX ? (uInt)count : INT_MAX;
		/* zlib only reads it, but lacks the const. */
		out->gzip.next_in = (Bytef *)(uintptr_t)from;
		out->gzip.avail_in = now;
		squeeze(out, Z_NO_FLUSH);
		from += now;
		count -= now;
	}
}

/* End the data. */
static void end_data(struct ky_html_out *out)
{
	out->gzip.next_in = NULL;
	out->gzip.avail_in = 0;
	squeeze(out, Z_FINISH);
	encode_end(out);
}

/* ---- the page ---- */

static const char marker[] = "<!-- kymo-data -->";
static const char title_begin[] = "<title>";
static const char title_end[] = "</title>";

struct part {
	const char *text;
	size_t bytes;
};

static bool find(struct part in, const char *what, size_t *at)
{
	const char *const found = memmem(in.text, in.bytes, what, strlen(what));
	*at = found ? (size_t)(found - in.text) : 0;
	return found;
}

/* Escape what could end the title. */
static void put_escaped(struct ky_html_out *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			put_plain(out, "&lt;", 4);
		else if (*text == '&')
			put_plain(out, "&amp;", 5);
		else
			put_plain(out, text, 1);
	}
}

/* Write the part before the data, with the trace's name as the title. */
static void put_head(struct ky_html_out *out, struct part head, const char *name)
{
	size_t begin, end;
	if (find(head, title_begin, &begin) && find(head, title_end, &end) && begin < end) {
		begin += strlen(title_begin);
		put_plain(out, head.text, begin);
		put_escaped(out, name ? name : "");
		put_plain(out, " \xc2\xb7 kymo", strlen(" \xc2\xb7 kymo"));
		head.text += end;
		head.bytes -= end;
	}
	put_plain(out, head.text, head.bytes);
}

/* Write the steps of REALTIME against the trace's clock. */
static void put_wall(struct ky_json_out *json, const struct ky_api *api)
{
	ky_json_out_begin(json, "wall", '[');
	for (uint32_t i = 0; i < api->wall_count; i++) {
		ky_json_out_begin(json, NULL, '[');
		ky_json_out_digits(json, NULL, api->wall[i].from_ns);
		ky_json_out_digits(json, NULL, api->wall[i].offset_ns);
		ky_json_out_end(json, ']');
	}
	ky_json_out_end(json, ']');
}

/* Write the response to api/trace. */
static bool put_trace(struct ky_json_out *json, struct ky_api *api)
{
	struct ky_api_response response = {0};
	ky_api_respond(api, &(struct ky_api_request){.path = "api/trace"}, &response);
	const bool good = response.status == 200;
	ky_json_out_raw(json, "trace", response.body.data, response.body.bytes);
	ky_buffer_free(&response.body);
	return good;
}

/* Write a time of the page, or null if there is no bound. */
static void put_bound(struct ky_json_out *json, const char *key, const struct ky_html_data *data,
		      int64_t ns)
{
	if (ns == INT64_MIN || ns == INT64_MAX)
		ky_json_out_null(json, key);
	else
		ky_json_out_int(json, key, ky_sub_clamped(ns, data->view->base_ns));
}

static void put_range(struct ky_json_out *json, const struct ky_html_data *data)
{
	if (data->from_ns == INT64_MIN && data->to_ns == INT64_MAX) {
		ky_json_out_null(json, "range");
		return;
	}
	ky_json_out_begin(json, "range", '{');
	put_bound(json, "from", data, data->from_ns);
	put_bound(json, "to", data, data->to_ns);
	ky_json_out_end(json, '}');
}

static int make_json(struct ky_json_out *json, const struct ky_html_data *data)
{
	struct ky_api *api;
	/* The API keeps its own data beside the view and does not change it. */
	const int error = ky_api_open(&api, (struct ky_view *)(uintptr_t)data->view);
	if (error)
		return error;
	ky_json_out_begin(json, NULL, '{');
	put_range(json, data);
	ky_json_out_uint(json, "first", data->rows[KY_HTML_SLICES].first);
	put_wall(json, api);
	ky_html_columns_list(data, json);
	const bool good = put_trace(json, api);
	ky_json_out_end(json, '}');
	ky_api_close(&api);
	return good && !json->buffer->failed ? 0 : -ENOMEM;
}

static void put_u32(struct ky_html_out *out, size_t value)
{
	const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
				  (uint8_t)(value >> 24)};
	ky_html_out_data(out, bytes, sizeof(bytes));
}

static int put_data(struct ky_html_out *out, struct ky_html_data *data)
{
	struct ky_buffer json = {0};
	const int error = make_json(&(struct ky_json_out){.buffer = &json}, data);
	if (!error) {
		ky_html_out_data(out, "KYH1", 4);
		put_u32(out, json.bytes);
		ky_html_out_data(out, json.data, json.bytes);
		ky_html_columns_write(data, out);
		end_data(out);
	}
	ky_buffer_free(&json);
	return error;
}

static int choose(struct ky_html_data *data, const struct ky_html_export *what)
{
	uint64_t others;
	*data = (struct ky_html_data){.view = what->view, .trace = what->view->trace};
	data->from_ns = what->from_ns == KY_TIME_NONE ? INT64_MIN : what->from_ns;
	data->to_ns = what->to_ns == KY_TIME_NONE ? INT64_MAX : what->to_ns;
	data->main_event = ky_sample_main_event(data->trace, &others);
	const size_t strings = (size_t)data->trace->strings.count + 1;
	data->last = calloc((size_t)data->trace->tracks.rows.count + 1, sizeof(*data->last));
	data->category_of = calloc(strings, sizeof(*data->category_of));
	data->type_of = calloc(strings, sizeof(*data->type_of));
	if (!data->last || !data->category_of || !data->type_of)
		return -ENOMEM;
	const int error = ky_html_data_choose(data);
	return error ? error : ky_html_columns_strings(data);
}

static int put_page(struct ky_html_out *out, struct ky_html_data *data, struct part page,
		    size_t data_at)
{
	static const char begin[] = "<script type=\"application/x-kymo\" id=\"kymo-data\">";
	static const char end[] = "</script>";
	const size_t rest = data_at + strlen(marker);
	put_head(out, (struct part){page.text, data_at}, data->view->name);
	put_plain(out, begin, strlen(begin));
	const int error = put_data(out, data);
	if (error)
		return error;
	put_plain(out, end, strlen(end));
	put_plain(out, page.text + rest, page.bytes - rest);
	return flush_out(out);
}

static int write_file(int fd, struct ky_html_data *data, struct part page, size_t data_at)
{
	struct ky_html_out *out;
	int error = open_out(&out, fd);
	if (error)
		return error;
	error = put_page(out, data, page, data_at);
	close_out(&out);
	return error;
}

static int explain(int error, char message[256])
{
	if (error == -EFBIG)
		snprintf(message, 256,
			 "too large for one page (more than %" PRIu64 " events or %" PRIu64
			 " MB): choose a part of the time with --from and --to",
			 KY_HTML_EVENTS_MAX, KY_HTML_BYTES_MAX >> 20);
	else if (error)
		snprintf(message, 256, "%s", strerror(-error));
	return error;
}

int ky_html_export_page(int fd, const struct ky_html_export *what, const char *page,
			size_t page_bytes, char message[256])
{
	struct ky_html_data data;
	size_t data_at;
	message[0] = '\0';
	if (!find((struct part){page, page_bytes}, marker, &data_at)) {
		snprintf(message, 256, "this kymo was built without the page: run `make viewer`");
		return -ENOENT;
	}
	int error = choose(&data, what);
	if (!error)
		error = write_file(fd, &data, (struct part){page, page_bytes}, data_at);
	ky_html_data_free(&data);
	return explain(error, message);
}

int ky_html_export(int fd, const struct ky_html_export *what, char message[256])
{
	return ky_html_export_page(fd, what, ky_page, ky_page_bytes, message);
}
