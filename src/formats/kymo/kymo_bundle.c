/* SPDX-License-Identifier: MIT */
/*
 * kymo_bundle.c: whose each chunk of a file is.
 *
 *   FILE asks for version 2, or a chunk is of a source ─ no ─▶ one source: kymo_file.c
 *                  │ yes
 *                  ▼
 *   walk: chunk ─▶ source by its number, made when it is the first ─▶ ky_kymo_take_chunk()
 *
 * A source takes a small multiple of its first chunk's head in memory, and the large things are shared: a file
 * made of nothing but new sources costs no more than in proportion to its size.
 *
 * A copy has the undamaged part of a file of several sources, finished. Chunks are copied unread, so that nothing is
 * lost for which the model has no place:
 *
 *   chunk whose body has its checksum ─▶ copied; an INDEX or END is not, for its totals may be wrong now
 *   at the end: INDEX with the totals and END of each drum, those of source 0 last
 */
#include "base/array.h"
#include "base/map.h"
#include "formats/kymo/kymo_chunk.h"
#include "formats/kymo/kymo_file.h"
#include "formats/kymo/kymo_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ky_kymo_bundle {
	struct ky_kymo_medium *medium; /* NULL when it is the only source's own */
	struct ky_kymo **sources;
	uint32_t count, room;
	struct ky_u64_map by_number; /* index */
	bool several;
	bool begun; /* source 0's FILE chunk was there */
};

/* ---- of which kind the file is ---- */

static bool asks_for_sources(const struct ky_kymo_bytes *bytes, uint64_t at,
			     const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo_head head;
	if (chunk->source)
		return true;
	return chunk->type == KY_KYMO_FILE && chunk->body_bytes >= sizeof(head) &&
	       ky_kymo_bytes_read(bytes, at + chunk->head_bytes, &head, sizeof(head)) &&
	       head.version_min >= KY_KYMO_VERSION_SOURCES;
}

/* By its first chunk; when that is damaged, by any. */
static bool is_several(const struct ky_kymo_bytes *bytes)
{
	struct ky_kymo_chunk chunk;
	if (ky_kymo_chunk_at(bytes, 0, &chunk) == 0 && chunk.type == KY_KYMO_FILE)
		return asks_for_sources(bytes, 0, &chunk);
	for (uint64_t at = 0; at < bytes->bytes; at += ky_kymo_chunk_bytes(&chunk)) {
		if (ky_kymo_chunk_at(bytes, at, &chunk) != 0)
			at = ky_kymo_chunk_find(bytes, at, &chunk);
		if (at == bytes->bytes)
			break;
		if (asks_for_sources(bytes, at, &chunk))
			return true;
	}
	return false;
}

/* ---- sources ---- */

static struct ky_kymo *add_source(struct ky_kymo_bundle *bundle, struct ky_kymo *source)
{
	return KY_ARRAY_ADD(bundle->sources, bundle->count, bundle->room, source) ? source : NULL;
}

static struct ky_kymo *make_source(struct ky_kymo_bundle *bundle, uint32_t number)
{
	struct ky_kymo *source = calloc(1, sizeof(*source));
	if (!source || !add_source(bundle, source)) {
		free(source);
		return NULL;
	}
	source->medium = bundle->medium;
	source->shares = true;
	source->several = true;
	source->number = number;
	return source;
}

/* Return the source of that number, made if needed; NULL without memory. */
static struct ky_kymo *source_of(struct ky_kymo_bundle *bundle, uint32_t number)
{
	bool made;
	uint32_t *index = ky_u64_map_add(&bundle->by_number, number, &made);
	if (!index)
		return NULL;
	if (!made)
		return bundle->sources[*index];
	*index = bundle->count;
	return make_source(bundle, number);
}

/* ---- opening ---- */

struct opening {
	struct ky_kymo_walk walk;
	struct ky_kymo_bundle *bundle;
	struct ky_kymo_error *error;
};

static int take(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct opening *opening = context;
	struct ky_kymo_bundle *bundle = opening->bundle;
	if (chunk->type == KY_KYMO_FILE && chunk->source == 0) {
		if (bundle->begun) {
			opening->walk.stop = true;
			ky_kymo_note(bundle->medium, at,
				     "another file begins here; it is left out");
			return 0;
		}
		bundle->begun = true;
	}
	struct ky_kymo *source = source_of(bundle, chunk->source);
	return source ? ky_kymo_take_chunk(source, at, chunk, opening->error) : -ENOMEM;
}

static void untake(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	const struct opening *opening = context;
	struct ky_kymo *source = source_of(opening->bundle, chunk->source);
	if (source)
		ky_kymo_untake_chunk(source, at);
}

static int open_several(struct ky_kymo_bundle *bundle, struct ky_kymo_error *error)
{
	struct opening opening = {.bundle = bundle,
				  .error = error,
				  .walk = {.medium = bundle->medium,
					   .take = take,
					   .untake = untake,
					   .context = &opening}};
	bundle->several = true;
	int result = ky_kymo_walk(&opening.walk, error);
	for (uint32_t i = 0; result == 0 && i < bundle->count; i++)
		result = ky_kymo_taken(bundle->sources[i]);
	return result;
}

static int open_single(struct ky_kymo_bundle *bundle, struct ky_kymo_error *error)
{
	struct ky_kymo *file;
	struct ky_kymo_medium *medium = bundle->medium;
	bundle->medium = NULL;
	const int result = ky_kymo_open_whole(&file, medium, error);
	if (result == 0 && !add_source(bundle, file)) {
		ky_kymo_close(&file);
		return -ENOMEM;
	}
	return result;
}

/* result is that of opening the bytes. */
static int open_bytes(struct ky_kymo_bundle **opened, struct ky_kymo_bytes *bytes, int result,
		      struct ky_kymo_error *error)
{
	*opened = NULL;
	if (result) {
		ky_kymo_set_error(error, 0, strerror(-result));
		return result;
	}
	struct ky_kymo_bundle *bundle = *opened = calloc(1, sizeof(*bundle));
	result = bundle ? ky_kymo_medium_open(&bundle->medium, bytes) : -ENOMEM;
	if (!bundle)
		ky_kymo_bytes_close(bytes);
	if (result == 0)
		result = is_several(bytes) ? open_several(bundle, error)
					   : open_single(bundle, error);
	if (result == -ENOMEM)
		ky_kymo_set_error(error, 0, "not enough memory");
	if (result)
		ky_kymo_bundle_close(opened);
	return result;
}

int ky_kymo_bundle_open(struct ky_kymo_bundle **bundle, const char *path,
			struct ky_kymo_error *error)
{
	struct ky_kymo_bytes bytes;
	return open_bytes(bundle, &bytes, ky_kymo_bytes_open(&bytes, path), error);
}

int ky_kymo_bundle_open_fd(struct ky_kymo_bundle **bundle, int fd, struct ky_kymo_error *error)
{
	struct ky_kymo_bytes bytes;
	return open_bytes(bundle, &bytes, ky_kymo_bytes_open_fd(&bytes, fd), error);
}

void ky_kymo_bundle_close(struct ky_kymo_bundle **opened)
{
	struct ky_kymo_bundle *bundle = *opened;
	if (bundle) {
		for (uint32_t i = 0; i < bundle->count; i++)
			ky_kymo_close(&bundle->sources[i]);
		ky_kymo_medium_close(&bundle->medium);
		ky_u64_map_free(&bundle->by_number);
		KY_ARRAY_FREE(bundle->sources, bundle->room);
		free(bundle);
	}
	*opened = NULL;
}

/* ---- content ---- */

bool ky_kymo_bundle_several(const struct ky_kymo_bundle *bundle)
{
	return bundle->several;
}

uint32_t ky_kymo_bundle_count(const struct ky_kymo_bundle *bundle)
{
	return bundle->count;
}

struct ky_kymo *ky_kymo_bundle_source(const struct ky_kymo_bundle *bundle, uint32_t index)
{
	return bundle->sources[index];
}

static struct ky_kymo *numbered(const struct ky_kymo_bundle *bundle, uint32_t number)
{
	const uint32_t *index = ky_u64_map_find(&bundle->by_number, number);
	return index ? bundle->sources[*index] : NULL;
}

struct ky_kymo *ky_kymo_bundle_of_all(const struct ky_kymo_bundle *bundle)
{
	return bundle->several ? numbered(bundle, 0) : bundle->sources[0];
}

bool ky_kymo_bundle_finished(const struct ky_kymo_bundle *bundle)
{
	const struct ky_kymo *of_all = ky_kymo_bundle_of_all(bundle);
	return of_all && of_all->indexed;
}

uint32_t ky_kymo_source_number(const struct ky_kymo *source)
{
	return source->number;
}

/* ---- a copy of what is whole ---- */

#define PUSH_BYTES (256u << 10)

struct copy {
	struct ky_kymo_walk walk;
	const struct ky_kymo_bundle *bundle;
	struct ky_kymo_medium *medium;
	struct ky_kymo_chunks chunks; /* that are written again */
	bool begun;
	ky_kymo_progress_fn progress;
	void *progress_context;
};

/* Count the events of the damaged chunk's head as lost. */
static void count_lost(struct copy *copy, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct ky_kymo_data data;
	struct ky_kymo *source = numbered(copy->bundle, chunk->source);
	if (source && chunk->type == KY_KYMO_DATA && chunk->body_bytes >= sizeof(data) &&
	    ky_kymo_bytes_read(&copy->medium->bytes, at + chunk->head_bytes, &data, sizeof(data)))
		source->lost += data.events;
}

/* The head as we know it: longer ones are of a later version, and what they say there is not for us to repeat. */
static void put_chunk(struct copy *copy, const struct ky_kymo_chunk *chunk)
{
	const struct ky_kymo_body *body = &copy->medium->body;
	copy->chunks.source = chunk->source;
	copy->chunks.count = chunk->number;
	uint8_t *to = ky_kymo_chunks_body(&copy->chunks, body->bytes);
	if (!to)
		return;
	if (body->bytes)
		memcpy(to, body->data, body->bytes);
	ky_kymo_chunks_write(&copy->chunks, (enum ky_kymo_chunk_type)chunk->type, body->bytes);
}

static void begin(struct copy *copy, const struct ky_kymo_chunk *first)
{
	copy->begun = true;
	if (first->type != KY_KYMO_FILE || first->source != 0)
		ky_kymo_chunks_file(&copy->chunks, KY_KYMO_VERSION_SOURCES, 1000000000);
}

static int copy_chunk(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct copy *copy = context;
	struct ky_out *out = copy->chunks.out;
	int error = copy->progress
			    ? copy->progress(copy->progress_context, at, copy->medium->bytes.bytes)
			    : 0;
	if (error)
		return error;
	if (copy->begun && chunk->type == KY_KYMO_FILE && chunk->source == 0) {
		copy->walk.stop = true;
		return 0;
	}
	error = ky_kymo_chunk_body(&copy->medium->bytes, at, chunk, &copy->medium->body);
	if (error == -ENOMEM)
		return error;
	if (error) {
		count_lost(copy, at, chunk);
		return 0;
	}
	if (!copy->begun)
		begin(copy, chunk);
	if (chunk->type != KY_KYMO_INDEX && chunk->type != KY_KYMO_END)
		put_chunk(copy, chunk);
	if (out->used >= PUSH_BYTES)
		ky_out_push(out);
	return out->error;
}

/* It was not copied. */
static void leave_chunk(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	(void)context;
	(void)at;
	(void)chunk;
}

static void finish_source(struct copy *copy, const struct ky_kymo *source)
{
	struct ky_kymo_chunks *chunks = &copy->chunks;
	const struct ky_kymo_index index = {.size = sizeof(index),
					    .entry_bytes = sizeof(struct ky_kymo_entry),
					    .events = source->events,
					    .lost = source->lost};
	uint8_t *body = ky_kymo_chunks_body(chunks, sizeof(index));
	if (!body || source->streams_count)
		return;
	chunks->source = source->number;
	memcpy(body, &index, sizeof(index));
	ky_kymo_chunks_write(chunks, KY_KYMO_INDEX, sizeof(index));
	ky_kymo_chunks_end(chunks, 0, 0);
}

static void finish(struct copy *copy)
{
	static const struct ky_kymo none;
	const struct ky_kymo *of_all = ky_kymo_bundle_of_all(copy->bundle);
	for (uint32_t i = 0; i < ky_kymo_bundle_count(copy->bundle); i++) {
		const struct ky_kymo *source = ky_kymo_bundle_source(copy->bundle, i);
		if (source != of_all)
			finish_source(copy, source);
	}
	finish_source(copy, of_all ? of_all : &none);
}

int ky_kymo_bundle_copy(const struct ky_kymo_bundle *bundle, struct ky_out *out,
			ky_kymo_progress_fn progress, void *context)
{
	struct ky_kymo_error why;
	struct copy copy = {.bundle = bundle,
			    .medium = ky_kymo_bundle_source(bundle, 0)->medium,
			    .progress = progress,
			    .progress_context = context};
	copy.walk = (struct ky_kymo_walk){
		.medium = copy.medium, .take = copy_chunk, .untake = leave_chunk, .context = &copy};
	int error = ky_kymo_chunks_open(&copy.chunks, out, 0);
	if (error)
		return error;
	error = ky_kymo_walk(&copy.walk, &why);
	if (!error) {
		finish(&copy);
		error = out->error;
	}
	ky_kymo_chunks_close(&copy.chunks);
	return error;
}
