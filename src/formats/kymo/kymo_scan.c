/* SPDX-License-Identifier: MIT */
/*
 * kymo_scan.c: what a source is made of, chunk by chunk as they are met: of a file without its index, or of one of
 * several sources. Only definitions are read; of DATA and STREAM only the head.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "formats/kymo/kymo_reader.h"

static int add_data(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo_data data;
	if (chunk->body_bytes < sizeof(data) ||
	    !ky_kymo_bytes_read(&file->medium->bytes, at + chunk->head_bytes, &data,
				sizeof(data))) {
		ky_kymo_note(file->medium, at, "a DATA chunk is too short for its head");
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

static int add_stream(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo_stream stream;
	if (chunk->body_bytes < sizeof(stream) ||
	    !ky_kymo_bytes_read(&file->medium->bytes, at + chunk->head_bytes, &stream,
				sizeof(stream))) {
		ky_kymo_note(file->medium, at, "a STREAM chunk is too short for its head");
		return 0;
	}
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
