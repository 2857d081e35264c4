/* SPDX-License-Identifier: MIT */
/*
 * kymo_scan.c: the way through a .kymo file without its index: the bytes, the chunks in them, and what a source is made
 * of, chunk by chunk as they are met. Of a file without its index, or of one of several sources. Only definitions are
 * read; of DATA and STREAM only the head.
 *
 *   chunk ─▶ chunk ─▶ chunk ─▶ no chunk where one should be
 *                       │
 *                       └─ is its body whole? yes: bytes behind it are damaged; search there
 *                                             no:  it is damaged, its size perhaps too; search
 *                                                  inside
 *
 *   … damaged bytes … │ magic type number body_bytes hashes │ body …
 *     ──── search ───▶ ╰─ the head's hash is right: a chunk ─╯
 *
 * The search goes through the file in steps that overlap by less than a head, and looks at every place where the magic
 * is; most are decided by its first byte. Bodies are hashed only to find the place again, and in all not more than a few
 * times the file's size: a file made for it could have chunks in chunks.
 *
 * Invariant: chunks that were taken and not untaken do not overlap.
 */
#include "base/array.h"
#include "formats/kymo/kymo_reader.h"
#include "formats/xxh64.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- bytes and chunks ---- */

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
	/* A pipe is refused, not waited for. */
	return take_fd(file, open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
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

/* ---- from chunk to chunk ---- */

#define HASHED_TIMES_MAX 4u

static bool is_whole(struct ky_kymo_walk *walk, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo_medium *medium = walk->medium;
	if (chunk->body_bytes > walk->hashed_left)
		return true; /* for the search; loading it checks the rest */
	walk->hashed_left -= chunk->body_bytes;
	return ky_kymo_chunk_body(&medium->bytes, at, chunk, &medium->body) == 0;
}

/* Return where to search on, when there is no chunk behind the one at that place. */
static uint64_t search_from(struct ky_kymo_walk *walk, uint64_t at,
			    const struct ky_kymo_chunk *chunk)
{
	if (is_whole(walk, at, chunk))
		return at + ky_kymo_chunk_bytes(chunk);
	walk->untake(walk->context, at, chunk);
	ky_kymo_note(walk->medium, at, "a chunk's body does not have the checksum in its head");
	return at + sizeof(*chunk);
}

/* Return the chunk at or after that place, or the file's size. */
static uint64_t next_chunk(const struct ky_kymo_bytes *bytes, uint64_t at,
			   struct ky_kymo_chunk *chunk)
{
	if (ky_kymo_chunk_at(bytes, at, chunk) == 0)
		return at;
	return ky_kymo_chunk_find(bytes, at, chunk);
}

static void note_gap(struct ky_kymo_medium *medium, uint64_t at, uint64_t next)
{
	const uint64_t end = medium->bytes.bytes;
	if (next < end)
		ky_kymo_note(medium, at, "expected a chunk here; the next one is further on");
	else if (at < end)
		ky_kymo_note(medium, at, "the file ends in the middle of a chunk");
	else
		ky_kymo_note(medium, at, "the file ends without an index");
}

int ky_kymo_walk(struct ky_kymo_walk *walk, struct ky_kymo_error *error)
{
	const struct ky_kymo_bytes *bytes = &walk->medium->bytes;
	struct ky_kymo_chunk chunk, next;
	uint64_t at = next_chunk(bytes, 0, &chunk);
	walk->hashed_left = HASHED_TIMES_MAX * bytes->bytes;
	if (at == bytes->bytes) {
		*error = (struct ky_kymo_error){.text = "expected a .kymo file: its first 8 bytes "
							"are 89 6b 79 6d 6f 0d 0a 1a"};
		return -EBADMSG;
	}
	if (at != 0 || chunk.type != KY_KYMO_FILE)
		ky_kymo_note(walk->medium, 0, "expected a FILE chunk at the beginning");
	while (at < bytes->bytes && !walk->stop) {
		const int result = walk->take(walk->context, at, &chunk);
		if (result)
			return result;
		uint64_t end = at + ky_kymo_chunk_bytes(&chunk);
		const bool last = chunk.type == KY_KYMO_END && end == bytes->bytes;
		if (ky_kymo_chunk_at(bytes, end, &next) != 0 && end != bytes->bytes)
			end = search_from(walk, at, &chunk);
		at = next_chunk(bytes, end, &next);
		if (at != end || (at == bytes->bytes && !last))
			note_gap(walk->medium, end, at);
		chunk = next;
	}
	return 0;
}

/* ---- the chunks of a source ---- */

/* Read the head of a body; false, and a note, when the body is too short for it. */
static bool read_body_head(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
			   void *head, size_t bytes, const char *what)
{
	if (chunk->body_bytes >= bytes &&
	    ky_kymo_bytes_read(&file->medium->bytes, at + chunk->head_bytes, head, bytes))
		return true;
	ky_kymo_note(file->medium, at, what);
	return false;
}

static int add_data(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo_data data;
	if (!read_body_head(file, at, chunk, &data, sizeof(data),
			    "a DATA chunk is too short for its head"))
		return 0;
	struct ky_kymo_entry *entry = ky_kymo_add_entry(file);
	if (!entry)
		return -ENOMEM;
	*entry = (struct ky_kymo_entry){
		.at = at,
		.first_ticks = data.first_ticks,
		.last_ticks = data.last_ticks,
		.lost = data.lost,
		.events = data.events,
		.pieces = data.pieces,
		.raw_bytes = data.raw_bytes,
		.chunk_bytes = (uint32_t)ky_kymo_chunk_bytes(chunk),
	};
	return 0;
}

static int add_stream(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo_stream stream;
	if (!read_body_head(file, at, chunk, &stream, sizeof(stream),
			    "a STREAM chunk is too short for its head"))
		return 0;
	if (!KY_ARRAY_ADD(file->streams, file->streams_count, file->streams_room, at))
		return -ENOMEM;
	if (file->streams_count == 1)
		file->stream_kind = stream.kind;
	file->stream_bytes += stream.bytes;
	return 0;
}

static int take(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
		struct ky_kymo_error *error)
{
	switch (chunk->type) {
	case KY_KYMO_FILE:
		/* That of a single file was read before the search. */
		return file->several ? ky_kymo_read_head(file, at, chunk, error) : 0;
	case KY_KYMO_DEFINE:
		return ky_kymo_read_define(file, at, chunk, error);
	case KY_KYMO_DATA:
		return add_data(file, at, chunk);
	case KY_KYMO_STREAM:
		return add_stream(file, at, chunk);
	case KY_KYMO_INDEX:
		return file->several ? ky_kymo_read_totals(file, at, chunk) : 0;
	case KY_KYMO_END:
		file->indexed |= file->several;
		return 0;
	default: /* later types are not known */
		return 0;
	}
}

int ky_kymo_take_chunk(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
		       struct ky_kymo_error *error)
{
	const int result = take(file, at, chunk, error);
	return result == -EBADMSG ? 0 : result;
}

void ky_kymo_untake_chunk(struct ky_kymo *file, uint64_t at)
{
	if (file->entries_count && file->entries[file->entries_count - 1].at == at)
		file->entries_count--;
	if (file->streams_count && file->streams[file->streams_count - 1] == at)
		file->streams_count--;
}

int ky_kymo_taken(struct ky_kymo *file)
{
	uint64_t lost = 0;
	file->events = 0;
	for (uint32_t i = 0; i < file->entries_count; i++) {
		file->events += file->entries[i].events;
		lost += file->entries[i].lost;
	}
	/* The index knows of more than the pieces do: what never got into a ring. */
	if (lost > file->lost)
		file->lost = lost;
	return ky_kymo_defs_done(&file->defs, file->ticks_per_s);
}

struct chunk_scan {
	struct ky_kymo_walk walk;
	struct ky_kymo *file;
	struct ky_kymo_error *error;
	uint64_t chunks; /* found */
};

static int take_scanned(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct chunk_scan *scan = context;
	scan->chunks++;
	if (chunk->type == KY_KYMO_FILE && at != 0 && scan->chunks > 1) {
		scan->walk.stop = true;
		ky_kymo_note(scan->file->medium, at, "another file begins here; it is left out");
		return 0;
	}
	return ky_kymo_take_chunk(scan->file, at, chunk, scan->error);
}

static void untake_scanned(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	const struct chunk_scan *scan = context;
	(void)chunk;
	ky_kymo_untake_chunk(scan->file, at);
}

int ky_kymo_scan(struct ky_kymo *file, struct ky_kymo_error *error)
{
	struct chunk_scan scan = {.file = file,
				  .error = error,
				  .walk = {.medium = file->medium,
					   .take = take_scanned,
					   .untake = untake_scanned,
					   .context = &scan}};
	return ky_kymo_walk(&scan.walk, error);
}
