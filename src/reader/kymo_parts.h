/* SPDX-License-Identifier: MIT */
/*
 * kymo_parts.h: an open .kymo file from inside, for the files of its reader.
 *
 *   source ─ chunks ─▶ defs      what is defined, read at once
 *                  └─▶ entries   where the DATA chunks are ─ ky_kymo_load() ─▶ pieces, when needed
 */
#ifndef KY_READER_KYMO_PARTS_H
#define KY_READER_KYMO_PARTS_H

#include "compress.h"
#include "kymo_defs.h"
#include "kymo_file.h"
#include "kymo_source.h"
#include "kymo_unpack.h"

struct ky_kymo {
	struct ky_kymo_source source;
	struct ky_kymo_body body; /* of the chunk read last */
	struct ky_zstd *zstd;     /* NULL without the library */
	struct ky_kymo_unpack *unpack;
	struct ky_kymo_defs defs;
	/* Places grow and chunks do not overlap: nothing in the file is unpacked twice. */
	struct ky_kymo_entry *entries;
	uint32_t entries_count;
	uint32_t entries_room;
	uint64_t events;
	uint64_t lost;
	uint32_t version;
	uint64_t ticks_per_s;
	bool indexed;
	struct ky_kymo_error notes[KY_KYMO_NOTES_MAX];
	uint32_t notes_count;
	uint64_t damages;
	struct ky_kymo_info info;
	ky_kymo_progress_fn progress; /* or NULL */
	void *progress_context;
};

/* Keeps what is wrong at a byte. */
void ky_kymo_note(struct ky_kymo *file, uint64_t at, const char *text);

/*
 * Unpacks a DATA chunk; *raw is the caller's to free. 0; -EBADMSG when it is damaged, which is
 * noted; -ENOENT without libzstd, noted too; -ENOMEM.
 */
int ky_kymo_load(struct ky_kymo *file, const struct ky_kymo_entry *entry, struct ky_kymo_data *data,
		 uint8_t **raw);

/* Fills defs and entries by a search through the whole file. 0 or -ENOMEM, -ENOENT, -ENOTSUP. */
int ky_kymo_scan(struct ky_kymo *file, struct ky_kymo_error *error);
/* Reads a FILE or DEFINE chunk; damage is noted. 0 or -ENOMEM, -ENOENT, -ENOTSUP with *error. */
int ky_kymo_read_head(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
		      struct ky_kymo_error *error);
int ky_kymo_read_define(struct ky_kymo *file, uint64_t at, const struct ky_kymo_chunk *chunk,
			struct ky_kymo_error *error);
/* A new entry at the end; NULL without memory. */
struct ky_kymo_entry *ky_kymo_add_entry(struct ky_kymo *file);

#endif
