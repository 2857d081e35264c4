/* SPDX-License-Identifier: MIT */
/*
 * kymo_file.c: opening a .kymo file.
 *
 *   the last bytes are END ─▶ DEFINE with everything, INDEX ─▶ open
 *                 else, or when one of them is damaged ─▶ kymo_scan.c
 *
 * The index is a help, not the truth: what it says about a chunk is compared with the chunk when
 * that is loaded.
 */
#include "formats/kymo/kymo_file.h"
#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/kymo/kymo_reader.h"

void ky_kymo_set_error(struct ky_kymo_error *error, uint64_t at, const char *text)
{
	error->at = at;
	snprintf(error->text, sizeof(error->text), "%s", text);
}

void ky_kymo_note(struct ky_kymo_medium *medium, uint64_t at, const char *text)
{
	medium->damages++;
	if (medium->notes_count < KY_KYMO_NOTES_MAX)
		ky_kymo_set_error(&medium->notes[medium->notes_count++], at, text);
}

struct ky_kymo_entry *ky_kymo_add_entry(struct ky_kymo *file)
{
	return KY_ARRAY_NEW(file->entries, file->entries_count, file->entries_room);
}

int ky_kymo_read_body(struct ky_kymo_medium *medium, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	const int error = ky_kymo_chunk_body(&medium->bytes, at, chunk, &medium->body);
	if (error == -EBADMSG)
		ky_kymo_note(medium, at, "a chunk's body does not have the checksum in its head");
	if (error == -ENODATA)
		ky_kymo_note(medium, at, "a chunk's body could not be read");
	return error == -ENOMEM ? -ENOMEM : error ? -EBADMSG : 0;
}

int ky_kymo_read_head(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
		      struct ky_kymo_error *error)
{
	struct ky_kymo_head head;
	const struct ky_kymo_body *body = &file->medium->body;
	const uint32_t known = file->several ? KY_KYMO_VERSION_SOURCES : KY_KYMO_VERSION;
	const int read = ky_kymo_read_body(file->medium, at, chunk);
	if (read)
		return read == -EBADMSG ? 0 : read;
	if (body->bytes < sizeof(head)) {
		ky_kymo_note(file->medium, at, "a FILE chunk is too short");
		return 0;
	}
	memcpy(&head, body->data, sizeof(head));
	if (head.version_min > known) {
		snprintf(error->text, sizeof(error->text),
			 "the file needs a reader of version %u, this is one of version %u",
			 head.version_min, known);
		error->at = at + chunk->head_bytes + offsetof(struct ky_kymo_head, version_min);
		return -ENOTSUP;
	}
	file->version = head.version;
	file->ticks_per_s = head.ticks_per_s;
	return 0;
}

/* Get the records of the DEFINE chunk in the body read last; *records is to be freed in any case. */
static int open_records(struct ky_kymo *file, struct ky_kymo_define *define, uint8_t **records,
			const char **what)
{
	const struct ky_kymo_body *body = &file->medium->body;
	*what = "a DEFINE chunk's head does not fit its body";
	if (body->bytes < sizeof(*define))
		return -EBADMSG;
	memcpy(define, body->data, sizeof(*define));
	if (define->size < sizeof(*define) || define->size > body->bytes ||
	    define->stored_bytes > body->bytes - define->size ||
	    define->bytes / KY_KYMO_DEFINE_RATIO_MAX > define->stored_bytes)
		return -EBADMSG;
	*records = malloc((size_t)define->bytes + 1);
	if (!*records)
		return -ENOMEM;
	if (define->stored_bytes == define->bytes) {
		memcpy(*records, body->data + define->size, define->bytes);
		return 0;
	}
	*what = "definitions are compressed with zstd, and libzstd.so.1 was not found";
	if (!file->medium->zstd)
		return -ENOENT;
	*what = "definitions are no zstd frame of the size that their chunk says";
	const int64_t bytes = ky_zstd_decompress(file->medium->zstd, *records, define->bytes,
						 body->data + define->size, define->stored_bytes);
	return bytes == define->bytes ? 0 : bytes == -ENOMEM ? -ENOMEM : -EBADMSG;
}

int ky_kymo_read_define(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
			struct ky_kymo_error *error)
{
	struct ky_kymo_define define;
	uint8_t *records = NULL;
	const char *what;
	size_t record = 0;
	int result = ky_kymo_read_body(file->medium, at, chunk);
	if (result)
		return result;
	result = open_records(file, &define, &records, &what);
	if (result == 0)
		result = ky_kymo_defs_add(&file->defs, records, define.bytes, &record, &what);
	free(records);
	if (result == -EBADMSG)
		ky_kymo_note(file->medium, at, what);
	if (result == -ENOENT)
		ky_kymo_set_error(error, at, what);
	return result;
}

/* A chunk that END says is there; damage is noted, at END: the place may be anything. */
static int find_named(struct ky_kymo *file, uint64_t at, enum ky_kymo_chunk_type type,
		      struct ky_kymo_chunk *chunk)
{
	if (ky_kymo_chunk_at(&file->medium->bytes, at, chunk) == 0 && chunk->type == type)
		return 0;
	ky_kymo_note(file->medium, file->medium->bytes.bytes - KY_KYMO_END_BYTES,
		     "END names the place of a DEFINE and an INDEX chunk, and they are not there");
	return -EBADMSG;
}

/* Entries must be chunks one after the other. */
static int add_entries(struct ky_kymo *file, const struct ky_kymo_index *index)
{
	const uint8_t *from = file->medium->body.data + index->size;
	uint64_t behind = 0;
	for (uint64_t i = 0; i < index->entries; i++, from += index->entry_bytes) {
		struct ky_kymo_entry *entry = ky_kymo_add_entry(file);
		if (!entry)
			return -ENOMEM;
		memcpy(entry, from, sizeof(*entry));
		if (entry->at < behind || entry->at > file->medium->bytes.bytes ||
		    entry->chunk_bytes < sizeof(struct ky_kymo_chunk) ||
		    entry->chunk_bytes > file->medium->bytes.bytes - entry->at)
			return -EBADMSG;
		behind = entry->at + entry->chunk_bytes;
	}
	return 0;
}

/* Get the head of the INDEX chunk in the body read last. */
static bool index_head(const struct ky_kymo_body *body, struct ky_kymo_index *index)
{
	if (body->bytes < sizeof(*index))
		return false;
	memcpy(index, body->data, sizeof(*index));
	return index->size >= sizeof(*index) && index->size <= body->bytes;
}

static int read_index(struct ky_kymo *file, uint64_t at)
{
	struct ky_kymo_index index;
	struct ky_kymo_chunk chunk;
	const struct ky_kymo_body *body = &file->medium->body;
	int error = find_named(file, at, KY_KYMO_INDEX, &chunk);
	if (error == 0)
		error = ky_kymo_read_body(file->medium, at, &chunk);
	if (error)
		return error;
	error = -EBADMSG;
	if (index_head(body, &index) && index.entry_bytes >= sizeof(struct ky_kymo_entry) &&
	    index.entries <= (body->bytes - index.size) / index.entry_bytes)
		error = add_entries(file, &index);
	if (error == -EBADMSG)
		ky_kymo_note(file->medium, at, "the index does not fit the file");
	if (error)
		return error;
	file->events = index.events;
	file->lost = index.lost;
	return 0;
}

int ky_kymo_read_totals(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo_index index;
	const int error = ky_kymo_read_body(file->medium, at, chunk);
	if (error)
		return error;
	if (!index_head(&file->medium->body, &index))
		ky_kymo_note(file->medium, at, "an INDEX chunk is too short for its head");
	else
		file->lost = index.lost;
	return 0;
}

/* By the file's end. 0; -EBADMSG when there is no end or it is damaged, and a search is needed. */
static int open_end(struct ky_kymo *file, struct ky_kymo_error *error)
{
	struct ky_kymo_chunk chunk;
	struct ky_kymo_end end;
	if (file->medium->bytes.bytes < KY_KYMO_END_BYTES)
		return -EBADMSG;
	const uint64_t at = file->medium->bytes.bytes - KY_KYMO_END_BYTES;
	if (ky_kymo_chunk_at(&file->medium->bytes, at, &chunk) != 0 || chunk.type != KY_KYMO_END)
		return -EBADMSG;
	int result = ky_kymo_read_body(file->medium, at, &chunk);
	if (result)
		return result;
	if (file->medium->body.bytes < sizeof(end))
		return -EBADMSG;
	memcpy(&end, file->medium->body.data, sizeof(end));
	result = find_named(file, end.define_at, KY_KYMO_DEFINE, &chunk);
	if (result == 0)
		result = ky_kymo_read_define(file, end.define_at, &chunk, error);
	if (result == 0)
		result = read_index(file, end.index_at);
	return result;
}

static int open_chunks(struct ky_kymo *file, struct ky_kymo_error *error)
{
	struct ky_kymo_chunk chunk;
	int result = 0;
	if (ky_kymo_chunk_at(&file->medium->bytes, 0, &chunk) == 0 && chunk.type == KY_KYMO_FILE)
		result = ky_kymo_read_head(file, 0, &chunk, error);
	if (result)
		return result;
	result = open_end(file, error);
	file->indexed = result == 0;
	if (result == 0)
		return ky_kymo_defs_done(&file->defs, file->ticks_per_s);
	if (result != -EBADMSG)
		return result;
	ky_kymo_defs_free(&file->defs);
	file->entries_count = 0;
	result = ky_kymo_scan(file, error);
	return result ? result : ky_kymo_taken(file);
}

void ky_kymo_medium_close(struct ky_kymo_medium **medium)
{
	if (*medium) {
		ky_kymo_bytes_close(&(*medium)->bytes);
		ky_kymo_body_free(&(*medium)->body);
		ky_kymo_unpack_close(&(*medium)->unpack);
		ky_zstd_close(&(*medium)->zstd);
		free(*medium);
	}
	*medium = NULL;
}

int ky_kymo_medium_open(struct ky_kymo_medium **opened, const struct ky_kymo_bytes *bytes)
{
	struct ky_kymo_bytes to_close = *bytes;
	struct ky_kymo_medium *medium = calloc(1, sizeof(*medium));
	*opened = medium;
	if (!medium) {
		ky_kymo_bytes_close(&to_close);
		return -ENOMEM;
	}
	medium->bytes = *bytes;
	int result = ky_zstd_open(&medium->zstd);
	if (result == 0 || result == -ENOENT)
		result = ky_kymo_unpack_open(&medium->unpack, medium->zstd);
	if (result)
		ky_kymo_medium_close(opened);
	return result;
}

int ky_kymo_open_whole(struct ky_kymo **opened, struct ky_kymo_medium *medium,
		       struct ky_kymo_error *error)
{
	struct ky_kymo *file = calloc(1, sizeof(*file));
	int result = -ENOMEM;
	*opened = file;
	if (file) {
		file->medium = medium;
		result = open_chunks(file, error);
	} else {
		ky_kymo_medium_close(&medium);
	}
	if (result)
		ky_kymo_close(opened);
	return result;
}

static int open_bytes(struct ky_kymo **file, const struct ky_kymo_bytes *bytes,
		      struct ky_kymo_error *error)
{
	struct ky_kymo_medium *medium;
	*file = NULL;
	int result = ky_kymo_medium_open(&medium, bytes);
	if (result == 0)
		result = ky_kymo_open_whole(file, medium, error);
	if (result == -ENOMEM)
		ky_kymo_set_error(error, 0, "not enough memory");
	return result;
}

int ky_kymo_open(struct ky_kymo **file, const char *path, struct ky_kymo_error *error)
{
	struct ky_kymo_bytes bytes;
	*file = NULL;
	const int result = ky_kymo_bytes_open(&bytes, path);
	if (result == 0)
		return open_bytes(file, &bytes, error);
	ky_kymo_set_error(error, 0, strerror(-result));
	return result;
}

void ky_kymo_on_progress(struct ky_kymo *file, ky_kymo_progress_fn progress, void *context)
{
	file->progress = progress;
	file->progress_context = context;
}

int ky_kymo_open_memory(struct ky_kymo **file, const void *data, uint64_t bytes,
			struct ky_kymo_error *error)
{
	const struct ky_kymo_bytes in_memory = {.fd = -1, .data = data, .bytes = bytes};
	return open_bytes(file, &in_memory, error);
}

void ky_kymo_close(struct ky_kymo **opened)
{
	struct ky_kymo *file = *opened;
	if (file) {
		if (!file->shares)
			ky_kymo_medium_close(&file->medium);
		ky_kymo_defs_free(&file->defs);
		KY_ARRAY_FREE(file->entries, file->entries_room);
		KY_ARRAY_FREE(file->streams, file->streams_room);
		free(file);
	}
	*opened = NULL;
}

const struct ky_kymo_info *ky_kymo_info(struct ky_kymo *file)
{
	const struct ky_kymo_defs *defs = &file->defs;
	static const struct ky_text none = {"", 0};
	file->info = (struct ky_kymo_info){
		.version = file->version,
		.indexed = file->indexed,
		.pid = defs->pid,
		.layer = defs->layer,
		.process = defs->process.data ? defs->process : none,
		.command = defs->command.data ? defs->command : none,
		.processes = defs->processes,
		.processes_count = defs->processes_count,
		.ticks_per_s = file->ticks_per_s,
		.samples = defs->samples,
		.samples_count = defs->samples_count,
		.threads = defs->threads,
		.threads_count = defs->threads_count,
		.sites = defs->sites,
		.sites_count = defs->sites_count,
		.entries = file->entries,
		.entries_count = file->entries_count,
		.events = file->events,
		.lost = file->lost,
		.snapshots = defs->snapshots,
		.snapshots_count = defs->snapshots_count,
		.ends = defs->ends,
		.ends_count = defs->ends_count,
		.losses = defs->losses,
		.losses_count = defs->losses_count,
		.remarks = defs->remarks,
		.remarks_count = defs->remarks_count,
		.notes = file->medium->notes,
		.notes_count = file->medium->notes_count,
		.damages = file->medium->damages,
	};
	return &file->info;
}

uint64_t ky_kymo_ns(struct ky_kymo *file, uint64_t ticks)
{
	return ky_clock_map_ns(&file->defs.clock, ticks);
}

int ky_kymo_load(struct ky_kymo *file, const struct ky_kymo_entry *entry, struct ky_kymo_data *data,
		 uint8_t **raw)
{
	struct ky_kymo_chunk chunk;
	const char *what;
	uint64_t at;
	*raw = NULL;
	if (ky_kymo_chunk_at(&file->medium->bytes, entry->at, &chunk) != 0 ||
	    chunk.type != KY_KYMO_DATA || ky_kymo_chunk_bytes(&chunk) != entry->chunk_bytes) {
		ky_kymo_note(file->medium, entry->at,
			     "a DATA chunk should begin here, and does not");
		return -EBADMSG;
	}
	struct ky_kymo_medium *medium = file->medium;
	const struct ky_kymo_body *body = &medium->body;
	int error = ky_kymo_read_body(medium, entry->at, &chunk);
	if (error)
		return error;
	at = 0;
	error = ky_kymo_data_head(body->data, body->bytes, data, &what);
	if (error == 0)
		error = ky_kymo_unpack(medium->unpack, body->data, body->bytes, data, raw, &what,
				       &at);
	if (error == -EBADMSG || error == -ENOENT)
		ky_kymo_note(file->medium, entry->at + chunk.head_bytes + at, what);
	return error;
}
