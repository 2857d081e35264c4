/* SPDX-License-Identifier: MIT */
/*
 * kymo_chunk.h: chunks of a .kymo file (kymo_layout.h): put together in a body that is used again
 * and again, compressed where that is smaller, numbered, hashed, and appended whole to the buffer.
 *
 *   ky_kymo_chunks_body(c, bytes) ─▶ the caller fills it, ky_kymo_chunks_store() compresses into it
 *   ky_kymo_chunks_write(c, type, bytes) ─▶ head and body into out
 *
 * Those of one source of a file of several have a struct of their own; the buffer may be the same,
 * and what a chunk is made with may be lent by one to the others.
 */
#ifndef KY_FORMATS_KYMO_KYMO_CHUNK_H
#define KY_FORMATS_KYMO_KYMO_CHUNK_H

#include "core/event.h"
#include "formats/kymo/kymo_layout.h"
#include "formats/out.h"

struct ky_zstd;

struct ky_kymo_chunks {
	struct ky_out *out;
	uint32_t source;      /* in every head; 0 in a file of one source */
	uint32_t count;       /* written */
	struct ky_zstd *zstd; /* NULL without the library: then nothing is compressed */
	uint8_t *body;
	size_t body_room;
	struct ky_kymo_chunks *lender; /* of zstd and body; NULL: they are its own */
};

/* 0 or -ENOMEM. */
int ky_kymo_chunks_open(struct ky_kymo_chunks *chunks, struct ky_out *out, uint32_t source);
/* The same with what the lender has, which stays open longer. */
void ky_kymo_chunks_borrow(struct ky_kymo_chunks *chunks, struct ky_out *out, uint32_t source,
			   struct ky_kymo_chunks *lender);
void ky_kymo_chunks_close(struct ky_kymo_chunks *chunks);

/* Return a body with room for so many bytes and their padding. NULL and out->error set without memory. */
uint8_t *ky_kymo_chunks_body(struct ky_kymo_chunks *chunks, size_t bytes);
/* Room that so many bytes need at most, compressed or not. */
size_t ky_kymo_chunks_bound(const struct ky_kymo_chunks *chunks, size_t bytes);
/* Compressed where that is smaller, but not to less than bytes / ratio_max. Return the bytes. */
size_t ky_kymo_chunks_store(struct ky_kymo_chunks *chunks, uint8_t *to, const uint8_t *from,
			    size_t bytes, size_t ratio_max);
/* Append the body as a chunk. */
void ky_kymo_chunks_write(struct ky_kymo_chunks *chunks, enum ky_kymo_chunk_type type,
			  size_t bytes);

/* Whole chunks. version: KY_KYMO_VERSION, or KY_KYMO_VERSION_SOURCES in a file of several sources. */
void ky_kymo_chunks_file(struct ky_kymo_chunks *chunks, uint16_t version, uint64_t ticks_per_s);
void ky_kymo_chunks_define(struct ky_kymo_chunks *chunks, const struct ky_out *records,
			   uint32_t flags);
void ky_kymo_chunks_stream(struct ky_kymo_chunks *chunks, enum ky_kymo_stream_kind kind,
			   const uint8_t *data, uint32_t bytes);
void ky_kymo_chunks_end(struct ky_kymo_chunks *chunks, uint64_t define_at, uint64_t index_at);

/* ---- records of definitions, appended to a buffer for ky_kymo_chunks_define() ---- */

void ky_kymo_define_process(struct ky_out *out, int32_t pid, uint32_t layer, struct ky_text name,
			    struct ky_text command);
void ky_kymo_define_thread(struct ky_out *out, const struct ky_thread *thread);
void ky_kymo_define_clock(struct ky_out *out, const struct ky_tick_reading *sample);
/* number: how the words of events name the trace point. */
void ky_kymo_define_site(struct ky_out *out, uint32_t number, const struct ky_site *site);
/* Define a capture's snapshot. texts: trigger, reason, stack, of the lengths in snapshot. */
void ky_kymo_define_snapshot(struct ky_out *out, const struct ky_kymo_snapshot *snapshot,
			     const struct ky_text texts[3]);
void ky_kymo_define_loss(struct ky_out *out, struct ky_text what, uint64_t count, uint32_t number);
void ky_kymo_define_note(struct ky_out *out, struct ky_text note);
void ky_kymo_define_program_end(struct ky_out *out, uint32_t source, uint32_t tid,
				uint64_t time_ns);

#endif
