/* SPDX-License-Identifier: MIT */
/*
 * kymo_reader.h: an open .kymo file from inside, for the files of its reader.
 *
 *   bytes ─ chunks ─▶ defs      definitions, read at once
 *                 ├─▶ entries   where the DATA chunks are ─ ky_kymo_load() ─▶ pieces, when needed
 *                 └─▶ streams   where the STREAM chunks are ─ kymo_stream.c ─▶ a file, when needed
 *
 * struct ky_kymo is one source. A file of several has several, which share the medium: the large things, and those of
 * the file and not of a source.
 */
#ifndef KY_FORMATS_KYMO_KYMO_READER_H
#define KY_FORMATS_KYMO_KYMO_READER_H

#include "formats/compress.h"
#include "formats/kymo/kymo_defs.h"
#include "formats/kymo/kymo_file.h"
#include "formats/kymo/kymo_layout.h"
#include "formats/kymo/kymo_pack.h"

#include <stdbool.h>

/*
 * ---- bytes and chunks ----
 *
 * The bytes are not trusted: the head and the body of a chunk have a checksum each. Files are read, not mapped: one
 * that is cut while it is read is then an error and not a signal.
 */

struct ky_kymo_bytes {
	int fd;              /* -1: in memory */
	const uint8_t *data; /* the caller's */
	uint64_t bytes;
};

/* A body, read and checked; the memory is used again for the next. */
struct ky_kymo_body {
	uint8_t *data;
	size_t bytes;
	size_t room;
};

/* 0 or -errno. */
int ky_kymo_bytes_open(struct ky_kymo_bytes *file, const char *path);
/* fd stays the caller's. */
int ky_kymo_bytes_open_fd(struct ky_kymo_bytes *file, int fd);
void ky_kymo_bytes_close(struct ky_kymo_bytes *file);
/* False when the bytes are not all there. */
bool ky_kymo_bytes_read(const struct ky_kymo_bytes *file, uint64_t at, void *to, size_t bytes);

/* Get the chunk at that place. Return 0; -EBADMSG: there is no chunk; -ENODATA: it is cut off. */
int ky_kymo_chunk_at(const struct ky_kymo_bytes *file, uint64_t at, struct ky_kymo_chunk *chunk);
/* Return the place of the next whole chunk, from that place on, or the file's size. */
uint64_t ky_kymo_chunk_find(const struct ky_kymo_bytes *file, uint64_t at,
			    struct ky_kymo_chunk *chunk);
/* Its body. 0; -EBADMSG when the checksum is wrong; -ENODATA when it could not be read; -ENOMEM. */
int ky_kymo_chunk_body(const struct ky_kymo_bytes *file, uint64_t at,
		       const struct ky_kymo_chunk *chunk, struct ky_kymo_body *body);
void ky_kymo_body_free(struct ky_kymo_body *body);

static inline uint64_t ky_kymo_chunk_bytes(const struct ky_kymo_chunk *chunk)
{
	return (uint64_t)chunk->head_bytes + chunk->body_bytes;
}

/* ---- the open file ---- */

struct ky_kymo_medium {
	struct ky_kymo_bytes bytes;
	struct ky_kymo_body body; /* of the chunk read last */
	struct ky_zstd *zstd;     /* NULL without the library */
	struct ky_kymo_unpack *unpack;
	struct ky_kymo_error notes[KY_KYMO_NOTES_MAX];
	uint32_t notes_count;
	uint64_t damages;
};

struct ky_kymo {
	struct ky_kymo_medium *medium;
	bool shares; /* the medium is another's to close */
	bool several; /* it is a source of a file of several: places in its index are not those of the file */
	uint32_t number; /* of the source */
	struct ky_kymo_defs defs;
	/* Places grow and chunks do not overlap: nothing in the file is unpacked twice. */
	struct ky_kymo_entry *entries;
	uint32_t entries_count;
	uint32_t entries_room;
	uint64_t *streams; /* places */
	uint32_t streams_count;
	uint32_t streams_room;
	uint32_t stream_kind;  /* enum ky_kymo_stream_kind of the first */
	uint64_t stream_bytes; /* unpacked, as the heads say */
	uint64_t events;
	uint64_t lost;
	uint32_t version;
	uint64_t ticks_per_s;
	bool indexed;
	struct ky_kymo_info info;
	ky_kymo_progress_fn progress; /* or NULL */
	void *progress_context;
};

/* Open a medium and own the bytes, also on failure. Return 0 or -ENOMEM. */
int ky_kymo_medium_open(struct ky_kymo_medium **medium, const struct ky_kymo_bytes *bytes);
void ky_kymo_medium_close(struct ky_kymo_medium **medium);
/* Note an error at a byte. */
void ky_kymo_note(struct ky_kymo_medium *medium, uint64_t at, const char *text);
/* Read a chunk's body into medium->body; note damage. Return 0, -EBADMSG or -ENOMEM. */
int ky_kymo_read_body(struct ky_kymo_medium *medium, uint64_t at,
		      const struct ky_kymo_chunk *chunk);
/* Open the file that is all of the medium, which is its own then, also on failure. */
int ky_kymo_open_whole(struct ky_kymo **file, struct ky_kymo_medium *medium,
		       struct ky_kymo_error *error);
void ky_kymo_set_error(struct ky_kymo_error *error, uint64_t at, const char *text);

/*
 * Unpack a DATA chunk; *raw is the caller's to free. 0; -EBADMSG when it is damaged, which is
 * noted; -ENOENT without libzstd, noted too; -ENOMEM.
 */
int ky_kymo_load(struct ky_kymo *file, const struct ky_kymo_entry *entry, struct ky_kymo_data *data,
		 uint8_t **raw);

/*
 * From chunk to chunk through the whole file, over damage, which is noted. take gets each chunk; not 0 ends it. untake:
 * the chunk taken last is damaged, its size perhaps too: it is searched for others.
 */
struct ky_kymo_walk {
	struct ky_kymo_medium *medium;
	int (*take)(void *context, uint64_t at, const struct ky_kymo_chunk *chunk);
	void (*untake)(void *context, uint64_t at, const struct ky_kymo_chunk *chunk);
	void *context;
	uint64_t hashed_left; /* bytes that may still be hashed to find the place again */
	bool stop;            /* set by take: what follows is another file's */
};
/* 0; -EBADMSG with *error when there is no chunk at all; or what take returned. */
int ky_kymo_walk(struct ky_kymo_walk *walk, struct ky_kymo_error *error);

/* Fill defs and entries by a search through the whole file. 0 or -ENOMEM, -ENOENT, -ENOTSUP. */
int ky_kymo_scan(struct ky_kymo *file, struct ky_kymo_error *error);
/* One chunk of the source, as it is met; damage is noted and no error. 0 or -ENOMEM, -ENOENT, -ENOTSUP with *error. */
int ky_kymo_take_chunk(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
		       struct ky_kymo_error *error);
/* Undo the chunk that was taken last. */
void ky_kymo_untake_chunk(struct ky_kymo *file, uint64_t at);
/* Finish after the last chunk: sums, clocks. Return 0 or -ENOMEM. */
int ky_kymo_taken(struct ky_kymo *file);
/* Read a FILE or DEFINE chunk; damage is noted. 0 or -ENOMEM, -ENOENT, -ENOTSUP with *error. */
int ky_kymo_read_head(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
		      struct ky_kymo_error *error);
int ky_kymo_read_define(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
			struct ky_kymo_error *error);
/* Get the totals of an INDEX chunk; true when they are there. */
int ky_kymo_read_totals(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk);
/* Return a new entry at the end; NULL without memory. */
struct ky_kymo_entry *ky_kymo_add_entry(struct ky_kymo *file);

#endif
