/* SPDX-License-Identifier: MIT */
#include "bundle_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <cmocka.h>

#include "formats/xxh64.h"

/* Whether there is a whole chunk; a body that is there has its hash. */
static bool take_chunk(struct walk *w, uint64_t at)
{
	struct walk_chunk *chunk = &w->chunks[w->count];
	if (w->size - at < sizeof(chunk->head))
		return false;
	memcpy(&chunk->head, w->bytes + at, sizeof(chunk->head));
	const struct ky_kymo_chunk *head = &chunk->head;
	assert_int_equal(head->magic, KY_KYMO_MAGIC);
	assert_int_equal(head->head_bytes, sizeof(*head));
	assert_int_equal(head->body_bytes % 8, 0);
	assert_int_equal(head->head_hash,
			 ky_xxh64(head, offsetof(struct ky_kymo_chunk, head_hash)));
	if (w->size - at - sizeof(*head) < head->body_bytes)
		return false;
	chunk->at = at;
	chunk->body = w->bytes + at + sizeof(*head);
	assert_int_equal(head->body_hash, ky_xxh64(chunk->body, head->body_bytes));
	return true;
}

static uint32_t chunks_of(const struct walk *w, uint32_t source)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->count; i++)
		count += w->chunks[i].head.source == source;
	return count;
}

static void walk_all(struct walk *w)
{
	while (w->count < WALK_CHUNKS_MAX && take_chunk(w, w->whole_bytes)) {
		const struct ky_kymo_chunk *head = &w->chunks[w->count].head;
		assert_int_equal(head->number, chunks_of(w, head->source));
		w->whole_bytes += sizeof(*head) + head->body_bytes;
		if (head->source >= w->sources)
			w->sources = head->source + 1;
		w->count++;
	}
	assert_true(w->count < WALK_CHUNKS_MAX);
}

void walk_bytes(struct walk *w, const uint8_t *bytes, size_t size)
{
	memset(w, 0, sizeof(*w));
	w->bytes = malloc(size + 1);
	w->size = size;
	memcpy(w->bytes, bytes, size);
	walk_all(w);
}

void walk_file(struct walk *w, const char *path)
{
	memset(w, 0, sizeof(*w));
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	w->size = (size_t)ftell(file);
	rewind(file);
	w->bytes = malloc(w->size + 1);
	assert_int_equal(fread(w->bytes, 1, w->size, file), w->size);
	fclose(file);
	walk_all(w);
}

void walk_free(struct walk *w)
{
	free(w->bytes);
	w->bytes = NULL;
}

uint32_t walk_count(const struct walk *w, uint32_t source, enum ky_kymo_chunk_type type)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->count; i++)
		count += w->chunks[i].head.source == source && w->chunks[i].head.type == type;
	return count;
}

static struct ky_kymo_data data_of(const struct walk_chunk *chunk)
{
	struct ky_kymo_data data;
	memcpy(&data, chunk->body, sizeof(data));
	return data;
}

uint64_t walk_events(const struct walk *w, uint32_t source)
{
	uint64_t events = 0;
	for (uint32_t i = 0; i < w->count; i++)
		if (w->chunks[i].head.source == source && w->chunks[i].head.type == KY_KYMO_DATA)
			events += data_of(&w->chunks[i]).events;
	return events;
}

uint64_t walk_lost(const struct walk *w, uint32_t source)
{
	uint64_t lost = 0;
	for (uint32_t i = 0; i < w->count; i++)
		if (w->chunks[i].head.source == source && w->chunks[i].head.type == KY_KYMO_DATA)
			lost += data_of(&w->chunks[i]).lost;
	return lost;
}

const struct ky_kymo_index *walk_index(const struct walk *w, uint32_t source)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (w->chunks[i].head.source == source && w->chunks[i].head.type == KY_KYMO_INDEX)
			return (const void *)w->chunks[i].body;
	return NULL;
}

/* What is behind the chunk's first struct, unpacked. */
static uint8_t *unpack(const uint8_t *from, uint32_t stored_bytes, uint32_t bytes)
{
	uint8_t *to = malloc((size_t)bytes + 1);
	if (stored_bytes == bytes)
		memcpy(to, from, bytes);
	else
		assert_int_equal(ZSTD_decompress(to, bytes, from, stored_bytes), bytes);
	return to;
}

uint32_t walk_records(const struct walk *w, uint32_t source, enum ky_kymo_record_kind kind,
		      struct ky_kymo_record *head, uint8_t *record, size_t room)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->count; i++) {
		struct ky_kymo_define define;
		const struct walk_chunk *chunk = &w->chunks[i];
		if (chunk->head.source != source || chunk->head.type != KY_KYMO_DEFINE)
			continue;
		memcpy(&define, chunk->body, sizeof(define));
		if (define.flags & KY_KYMO_DEFINE_ALL)
			continue;
		uint8_t *records =
			unpack(chunk->body + sizeof(define), define.stored_bytes, define.bytes);
		struct ky_kymo_record at;
		for (uint32_t byte = 0; byte < define.bytes; byte += at.bytes) {
			memcpy(&at, records + byte, sizeof(at));
			assert_true(at.bytes >= sizeof(at) && at.bytes <= define.bytes - byte);
			if (at.kind != kind)
				continue;
			count++;
			const size_t body = at.bytes - sizeof(at);
			if (head)
				*head = at;
			if (record)
				memcpy(record, records + byte + sizeof(at),
				       body < room ? body : room);
		}
		free(records);
	}
	return count;
}

size_t walk_stream(const struct walk *w, uint32_t source, uint8_t **out)
{
	size_t bytes = 0;
	*out = NULL;
	for (uint32_t i = 0; i < w->count; i++) {
		struct ky_kymo_stream stream;
		const struct walk_chunk *chunk = &w->chunks[i];
		if (chunk->head.source != source || chunk->head.type != KY_KYMO_STREAM)
			continue;
		memcpy(&stream, chunk->body, sizeof(stream));
		uint8_t *part =
			unpack(chunk->body + sizeof(stream), stream.stored_bytes, stream.bytes);
		*out = realloc(*out, bytes + stream.bytes);
		memcpy(*out + bytes, part, stream.bytes);
		bytes += stream.bytes;
		free(part);
	}
	return bytes;
}
