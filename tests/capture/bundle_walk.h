/* SPDX-License-Identifier: MIT */
/*
 * bundle_walk.h: a bundle's file, taken apart by hand: by docs/formats/kymo.md, without the
 * reader.
 */
#ifndef KY_TESTS_BUNDLE_WALK_H
#define KY_TESTS_BUNDLE_WALK_H

#include "formats/kymo/kymo_layout.h"

#include <stdbool.h>

#define WALK_CHUNKS_MAX 4096u

struct walk_chunk {
	uint64_t at;
	struct ky_kymo_chunk head;
	const uint8_t *body;
};

struct walk {
	uint8_t *bytes;
	size_t size;
	struct walk_chunk chunks[WALK_CHUNKS_MAX];
	uint32_t count;
	uint64_t whole_bytes; /* up to the end of the last whole chunk */
	uint32_t sources;     /* the largest number + 1 */
};

/* Every chunk up to the first that is not whole; heads, hashes and numbers are checked. */
void walk_file(struct walk *walk, const char *path);
void walk_bytes(struct walk *walk, const uint8_t *bytes, size_t size);
void walk_free(struct walk *walk);

/* What a source has. */
uint32_t walk_count(const struct walk *walk, uint32_t source, enum ky_kymo_chunk_type type);
uint64_t walk_events(const struct walk *walk, uint32_t source);
uint64_t walk_lost(const struct walk *walk, uint32_t source); /* of the DATA heads */
const struct ky_kymo_index *walk_index(const struct walk *walk, uint32_t source);
/*
 * Records of that kind, in DEFINE chunks that are not of all; the last one's struct and texts are
 * in *record.
 */
uint32_t walk_records(const struct walk *walk, uint32_t source, enum ky_kymo_record_kind kind,
		      struct ky_kymo_record *head, uint8_t *record, size_t room);
/* The parts of a stream, one behind the other; returns the bytes. *out is the caller's. */
size_t walk_stream(const struct walk *walk, uint32_t source, uint8_t **out);

#endif
