/* SPDX-License-Identifier: MIT */
/*
 * kymo_copy.c: copies the undamaged part of a file of several sources as a finished file. Chunks are
 * copied unread, so that nothing is lost for which the model has no place.
 *
 *   chunk whose body has its checksum ─▶ copied; an INDEX or END is not, for its totals may be wrong now
 *   at the end: INDEX with the totals and END of each drum, those of source 0 last
 */
#include <errno.h>
#include <string.h>

#include "formats/kymo/kymo_bundle.h"
#include "formats/kymo/kymo_chunk.h"
#include "formats/kymo/kymo_reader.h"

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
	struct ky_kymo *source = ky_kymo_bundle_numbered(copy->bundle, chunk->source);
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

static int take(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
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
static void untake(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
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
		.medium = copy.medium, .take = take, .untake = untake, .context = &copy};
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
