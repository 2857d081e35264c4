/* SPDX-License-Identifier: MIT */
/*
 * kymo_scan.c: the way into a .kymo file without its index: from chunk to chunk.
 *
 *   chunk ─▶ chunk ─▶ chunk ─▶ no chunk where one should be
 *                       │
 *                       └─ is its body whole? yes: bytes behind it are damaged; search there
 *                                             no:  it is damaged, its size perhaps too; search
 *                                                  inside
 *
 * Only definitions are read; of DATA only the head. Bodies are hashed only to find the place again,
 * and in all not more than a few times the file's size: a file made for it could have chunks in
 * chunks.
 *
 * Invariant: the entries do not overlap.
 */
#include <errno.h>
#include <string.h>

#include "kymo_parts.h"

#define HASHED_TIMES_MAX 4u

struct scan {
	struct ky_kymo *file;
	uint64_t chunks;      /* found */
	uint64_t hashed_left; /* bytes that may still be hashed to find the place again */
	bool second;          /* another file begins */
};

static int add_data(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo_data data;
	if (chunk->body_bytes < sizeof(data) ||
	    !ky_kymo_source_read(&file->source, at + chunk->head_bytes, &data, sizeof(data))) {
		ky_kymo_note(file, at, "a DATA chunk is too short for its head");
		return 0;
	}
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

/* Damage in it is noted and is not an error here. */
static int take_chunk(struct scan *scan, uint64_t at, const struct ky_kymo_chunk *chunk,
		      struct ky_kymo_error *error)
{
	int result = 0;
	scan->chunks++;
	switch (chunk->type) {
	case KY_KYMO_FILE:
		scan->second = at != 0 && scan->chunks > 1;
		if (scan->second)
			ky_kymo_note(scan->file, at, "another file begins here; it is left out");
		break; /* the first was read before the search */
	case KY_KYMO_DEFINE:
		result = ky_kymo_read_define(scan->file, at, chunk, error);
		break;
	case KY_KYMO_DATA:
		result = add_data(scan->file, at, chunk);
		break;
	default: /* INDEX and END are what could not be used; later types are not known */
		break;
	}
	return result == -EBADMSG ? 0 : result;
}

static bool is_whole(struct scan *scan, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	if (chunk->body_bytes > scan->hashed_left)
		return true; /* as far as the search is concerned; loading it will tell */
	scan->hashed_left -= chunk->body_bytes;
	return ky_kymo_chunk_body(&scan->file->source, at, chunk, &scan->file->body) == 0;
}

/* Where to search on, when there is no chunk behind the one at that place. */
static uint64_t search_from(struct scan *scan, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo *file = scan->file;
	if (is_whole(scan, at, chunk))
		return at + ky_kymo_chunk_bytes(chunk);
	if (file->entries_count && file->entries[file->entries_count - 1].at == at)
		file->entries_count--;
	ky_kymo_note(file, at, "a chunk's body does not have the checksum in its head");
	return at + sizeof(*chunk);
}

/* The chunk at that place or behind it; the file's size when there is none. */
static uint64_t next_chunk(const struct ky_kymo *file, uint64_t at, struct ky_kymo_chunk *chunk)
{
	if (ky_kymo_chunk_at(&file->source, at, chunk) == 0)
		return at;
	return ky_kymo_chunk_find(&file->source, at, chunk);
}

static void note_gap(struct ky_kymo *file, uint64_t at, uint64_t next)
{
	if (next < file->source.bytes)
		ky_kymo_note(file, at, "expected a chunk here; the next one is further on");
	else if (at < file->source.bytes)
		ky_kymo_note(file, at, "the file ends in the middle of a chunk");
	else
		ky_kymo_note(file, at, "the file ends without an index");
}

static void sum_up(struct ky_kymo *file)
{
	for (uint32_t i = 0; i < file->entries_count; i++) {
		file->events += file->entries[i].events;
		file->lost += file->entries[i].lost;
	}
}

int ky_kymo_scan(struct ky_kymo *file, struct ky_kymo_error *error)
{
	struct scan scan = {.file = file, .hashed_left = HASHED_TIMES_MAX * file->source.bytes};
	struct ky_kymo_chunk chunk, next;
	uint64_t at = next_chunk(file, 0, &chunk);
	if (at == file->source.bytes) {
		*error = (struct ky_kymo_error){.text = "expected a .kymo file: its first 8 bytes "
							"are 89 6b 79 6d 6f 0d 0a 1a"};
		return -EBADMSG;
	}
	if (at != 0 || chunk.type != KY_KYMO_FILE)
		ky_kymo_note(file, 0, "expected a FILE chunk at the begin");
	while (at < file->source.bytes && !scan.second) {
		const int result = take_chunk(&scan, at, &chunk, error);
		if (result)
			return result;
		uint64_t end = at + ky_kymo_chunk_bytes(&chunk);
		const bool last = chunk.type == KY_KYMO_END && end == file->source.bytes;
		if (ky_kymo_chunk_at(&file->source, end, &next) != 0 && end != file->source.bytes)
			end = search_from(&scan, at, &chunk);
		at = next_chunk(file, end, &next);
		if (at != end || (at == file->source.bytes && !last))
			note_gap(file, end, at);
		chunk = next;
	}
	sum_up(file);
	return 0;
}
