/* SPDX-License-Identifier: MIT */
/*
 * kymo_chunk_find.h: the bytes of a .kymo file, and the chunks in them. The bytes are not trusted: the
 * head and the body of a chunk have a checksum each.
 *
 * Files are read, not mapped: one that is cut while it is read is then an error and not a signal.
 */
#ifndef KY_FORMATS_KYMO_KYMO_CHUNK_FIND_H
#define KY_FORMATS_KYMO_KYMO_CHUNK_FIND_H

#include "formats/kymo/kymo_layout.h"

#include <stdbool.h>

struct ky_kymo_bytes {
	int fd;              /* -1: in memory */
	const uint8_t *data; /* the caller's */
	uint64_t bytes;
};

/* A body, read and checked; the memory is used again for the next. */
struct ky_kymo_body {
	uint8_t *data;
	size_t bytes;
	size_t room;
};

/* 0 or -errno. */
int ky_kymo_bytes_open(struct ky_kymo_bytes *file, const char *path);
/* fd stays the caller's. */
int ky_kymo_bytes_open_fd(struct ky_kymo_bytes *file, int fd);
void ky_kymo_bytes_close(struct ky_kymo_bytes *file);
/* False when the bytes are not all there. */
bool ky_kymo_bytes_read(const struct ky_kymo_bytes *file, uint64_t at, void *to, size_t bytes);

/* Get the chunk at that place. Return 0; -EBADMSG: there is no chunk; -ENODATA: it is cut off. */
int ky_kymo_chunk_at(const struct ky_kymo_bytes *file, uint64_t at, struct ky_kymo_chunk *chunk);
/* Return the place of the next whole chunk, from that place on, or the file's size. */
uint64_t ky_kymo_chunk_find(const struct ky_kymo_bytes *file, uint64_t at,
			    struct ky_kymo_chunk *chunk);
/* Its body. 0; -EBADMSG when the checksum is wrong; -ENODATA when it could not be read; -ENOMEM. */
int ky_kymo_chunk_body(const struct ky_kymo_bytes *file, uint64_t at,
		       const struct ky_kymo_chunk *chunk, struct ky_kymo_body *body);
void ky_kymo_body_free(struct ky_kymo_body *body);

static inline uint64_t ky_kymo_chunk_bytes(const struct ky_kymo_chunk *chunk)
{
	return (uint64_t)chunk->head_bytes + chunk->body_bytes;
}

#endif
