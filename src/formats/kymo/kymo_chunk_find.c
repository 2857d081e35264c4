/* SPDX-License-Identifier: MIT */
/*
 * kymo_chunk_find.c: reading bytes and finding chunks.
 *
 *   … damaged bytes … │ magic type number body_bytes hashes │ body …
 *     ──── search ───▶ ╰─ the head's hash is right: a chunk ─╯
 *
 * The search goes through the file in steps that overlap by less than a head, and looks at every
 * place where the magic is; most are decided by its first byte.
 */
#include "formats/kymo/kymo_chunk_find.h"
#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/xxh64.h"

/* The next chunk is near at most times: the buffer begins small. */
#define BUFFER_BYTES_MIN 512u
#define BUFFER_BYTES_MAX 65536u

/* Take the descriptor, also on failure. */
static int take_fd(struct ky_kymo_bytes *file, int fd)
{
	struct stat status;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		close(fd);
		return -ESPIPE; /* only a file has an end to begin with */
	}
	*file = (struct ky_kymo_bytes){.fd = fd, .bytes = (uint64_t)status.st_size};
	return 0;
}

int ky_kymo_bytes_open(struct ky_kymo_bytes *file, const char *path)
{
	return take_fd(file, open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
}

int ky_kymo_bytes_open_fd(struct ky_kymo_bytes *file, int fd)
{
	return take_fd(file, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void ky_kymo_bytes_close(struct ky_kymo_bytes *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

bool ky_kymo_bytes_read(const struct ky_kymo_bytes *file, uint64_t at, void *to, size_t bytes)
{
	uint8_t *into = to;
	if (at > file->bytes || bytes > file->bytes - at)
		return false;
	if (file->fd < 0) {
		memcpy(into, file->data + at, bytes);
		return true;
	}
	while (bytes) {
		const ssize_t got = pread(file->fd, into, bytes, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		into += got;
		at += (uint64_t)got;
		bytes -= (size_t)got;
	}
	return true;
}

static bool is_head(const struct ky_kymo_chunk *chunk)
{
	return chunk->magic == KY_KYMO_MAGIC && chunk->head_bytes >= sizeof(*chunk) &&
	       chunk->head_hash == ky_xxh64(chunk, offsetof(struct ky_kymo_chunk, head_hash));
}

int ky_kymo_chunk_at(const struct ky_kymo_bytes *file, uint64_t at, struct ky_kymo_chunk *chunk)
{
	if (at > file->bytes || file->bytes - at < sizeof(*chunk))
		return -ENODATA;
	if (!ky_kymo_bytes_read(file, at, chunk, sizeof(*chunk)))
		return -ENODATA;
	if (!is_head(chunk))
		return -EBADMSG;
	return ky_kymo_chunk_bytes(chunk) > file->bytes - at ? -ENODATA : 0;
}

/* Return where in the buffer the head of a whole chunk is, or the buffer's end. */
static size_t search(const uint8_t *buffer, size_t bytes, uint64_t file_left,
		     struct ky_kymo_chunk *chunk)
{
	const uint64_t magic = KY_KYMO_MAGIC;
	const uint8_t *at = buffer;
	while (bytes - (size_t)(at - buffer) >= sizeof(*chunk)) {
		at = memmem(at, bytes - (size_t)(at - buffer), &magic, sizeof(magic));
		if (!at || bytes - (size_t)(at - buffer) < sizeof(*chunk))
			break;
		memcpy(chunk, at, sizeof(*chunk));
		const size_t place = (size_t)(at - buffer);
		if (is_head(chunk) && ky_kymo_chunk_bytes(chunk) <= file_left - place)
			return place;
		at++;
	}
	return bytes;
}

uint64_t ky_kymo_chunk_find(const struct ky_kymo_bytes *file, uint64_t at,
			    struct ky_kymo_chunk *chunk)
{
	uint8_t buffer[BUFFER_BYTES_MAX];
	size_t room = BUFFER_BYTES_MIN;
	while (at < file->bytes && file->bytes - at >= sizeof(*chunk)) {
		const uint64_t left = file->bytes - at;
		const size_t bytes = left < room ? (size_t)left : room;
		if (!ky_kymo_bytes_read(file, at, buffer, bytes))
			break;
		const size_t found = search(buffer, bytes, left, chunk);
		if (found < bytes)
			return at + found;
		at += bytes - sizeof(*chunk) + 1;
		if (room < BUFFER_BYTES_MAX)
			room *= 2;
	}
	return file->bytes;
}

int ky_kymo_chunk_body(const struct ky_kymo_bytes *file, uint64_t at,
		       const struct ky_kymo_chunk *chunk, struct ky_kymo_body *body)
{
	/* The chunk's end is in the file: no more is allocated than there is. */
	const size_t bytes = chunk->body_bytes;
	if (!KY_ARRAY_GROW(body->data, body->room, bytes))
		return -ENOMEM;
	body->bytes = bytes;
	if (bytes && !ky_kymo_bytes_read(file, at + chunk->head_bytes, body->data, bytes))
		return -ENODATA;
	return ky_xxh64(body->data, bytes) == chunk->body_hash ? 0 : -EBADMSG;
}

void ky_kymo_body_free(struct ky_kymo_body *body)
{
	KY_ARRAY_FREE(body->data, body->room);
	memset(body, 0, sizeof(*body));
}
