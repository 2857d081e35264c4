/* SPDX-License-Identifier: MIT */
/*
 * kymo_stream.c: the STREAM chunks of a source as one file, for the reader of its format.
 *
 *   STREAM ─ zstd ─▶ part ─┐
 *   STREAM ─ zstd ─▶ part ─┼─▶ memory, or an unlinked file when it is large ─▶ input
 *   STREAM: damaged, noted ┘
 *
 * A writer cuts streams between records, so that the parts after a missing one can still be read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "formats/input_parts.h"
#include "formats/kymo/kymo_bundle.h"
#include "formats/kymo/kymo_reader.h"

/* A larger stream goes to a file. */
#define MEMORY_BYTES_MAX (64u << 20)

struct stream_part {
	const uint8_t *data;
	size_t bytes;
	uint8_t *unpacked; /* to be freed */
};

uint32_t ky_kymo_stream_kind(const struct ky_kymo *source, uint64_t *bytes)
{
	*bytes = source->stream_bytes;
	return source->streams_count ? source->stream_kind : 0;
}

static int decompress(struct ky_kymo_medium *medium, const struct ky_kymo_stream *head,
		      struct stream_part *part, const char **what)
{
	*what = "it is compressed with zstd, and libzstd.so.1 was not found";
	if (!medium->zstd)
		return -ENOENT;
	part->unpacked = malloc((size_t)head->bytes + 1);
	if (!part->unpacked)
		return -ENOMEM;
	*what = "a part of a stream is no zstd frame of the size that its chunk says";
	const int64_t got = ky_zstd_decompress(medium->zstd, part->unpacked, head->bytes,
					       part->data, head->stored_bytes);
	part->data = part->unpacked;
	part->bytes = head->bytes;
	return got == head->bytes ? 0 : got == -ENOMEM ? -ENOMEM : -EBADMSG;
}

/* Find the part in the body read last. */
static int open_part(struct ky_kymo *source, struct stream_part *part, const char **what)
{
	const struct ky_kymo_body *body = &source->medium->body;
	struct ky_kymo_stream head;
	*what = "a STREAM chunk's head does not fit its body";
	if (body->bytes < sizeof(head))
		return -EBADMSG;
	memcpy(&head, body->data, sizeof(head));
	if (head.size < sizeof(head) || head.size > body->bytes ||
	    head.stored_bytes > body->bytes - head.size || head.stored_bytes > head.bytes)
		return -EBADMSG;
	*what = "a STREAM chunk claims more than its size allows";
	if (head.bytes > KY_KYMO_RAW_MAX || head.bytes / KY_KYMO_RATIO_MAX > head.stored_bytes)
		return -EBADMSG;
	*what = "a STREAM chunk is of another kind than those before it";
	if (head.kind != source->stream_kind)
		return -EBADMSG;
	part->data = body->data + head.size;
	part->bytes = head.stored_bytes;
	return head.stored_bytes == head.bytes ? 0 : decompress(source->medium, &head, part, what);
}

static int report_progress(const struct ky_kymo *source, uint32_t done)
{
	return source->progress
		       ? source->progress(source->progress_context, done, source->streams_count)
		       : 0;
}

static int write_part(struct ky_kymo *source, uint64_t at, int fd)
{
	struct ky_kymo_medium *medium = source->medium;
	struct ky_kymo_chunk chunk;
	struct stream_part part = {0};
	const char *what = "a STREAM chunk should begin here, and does not";
	int error = -EBADMSG;
	if (ky_kymo_chunk_at(&medium->bytes, at, &chunk) == 0 && chunk.type == KY_KYMO_STREAM) {
		error = ky_kymo_read_body(medium, at, &chunk);
		if (error)
			return error == -EBADMSG ? 0 : error;
		error = open_part(source, &part, &what);
	}
	if (error == -EBADMSG || error == -ENOENT)
		ky_kymo_note(medium, at, what);
	else if (error == 0)
		error = ky_file_write_all(fd, part.data, part.bytes);
	free(part.unpacked);
	return error == -EBADMSG ? 0 : error;
}

static int make_file(uint64_t bytes)
{
	if (bytes > MEMORY_BYTES_MAX)
		return ky_store_temporary();
	const int fd = memfd_create("kymo-stream", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int ky_kymo_stream_open(struct ky_kymo *source, const char *name, struct ky_input **input)
{
	const int fd = make_file(source->stream_bytes);
	int error = fd < 0 ? fd : 0;
	*input = NULL;
	for (uint32_t i = 0; !error && i < source->streams_count; i++) {
		error = report_progress(source, i);
		if (!error)
			error = write_part(source, source->streams[i], fd);
	}
	if (!error)
		return ky_input_open_fd(input, fd, name);
	if (fd >= 0)
		close(fd);
	return error;
}
