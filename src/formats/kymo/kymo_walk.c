/* SPDX-License-Identifier: MIT */
/*
 * kymo_walk.c: the way through a .kymo file without its index: from chunk to chunk.
 *
 *   chunk ─▶ chunk ─▶ chunk ─▶ no chunk where one should be
 *                       │
 *                       └─ is its body whole? yes: bytes behind it are damaged; search there
 *                                             no:  it is damaged, its size perhaps too; search
 *                                                  inside
 *
 * Bodies are hashed only to find the place again, and in all not more than a few times the file's size: a file made
 * for it could have chunks in chunks.
 *
 * Invariant: chunks that were taken and not untaken do not overlap.
 */
#include <errno.h>

#include "formats/kymo/kymo_reader.h"

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
