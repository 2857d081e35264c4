/* SPDX-License-Identifier: MIT */
/*
 * html_out.c: compresses bytes with gzip and writes them as base64, a piece at a time, so that memory does not grow with
 * the trace. base64 turns three bytes into four, so up to two bytes wait for the next ones.
 */
#include "server/html_parts.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

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

int ky_html_out_open(struct ky_html_out **out, int fd)
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

void ky_html_out_close(struct ky_html_out **out)
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

int ky_html_out_flush(struct ky_html_out *out)
{
	if (!out->error)
		out->error = ky_file_write_all(out->fd, out->text, out->used);
	out->written += out->used;
	out->used = 0;
	if (!out->error && out->written > KY_HTML_BYTES_MAX)
		out->error = -EFBIG;
	return out->error;
}

void ky_html_out_plain(struct ky_html_out *out, const void *bytes, size_t count)
{
	const char *from = bytes;
	while (count && !out->error) {
		if (out->used == OUT_BYTES)
			ky_html_out_flush(out);
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
		ky_html_out_flush(out);
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

void ky_html_out_data_end(struct ky_html_out *out)
{
	out->gzip.next_in = NULL;
	out->gzip.avail_in = 0;
	squeeze(out, Z_FINISH);
	encode_end(out);
}
