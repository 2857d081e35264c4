/* SPDX-License-Identifier: MIT */
/*
 * kymo_pack.h: the packed form of a DATA chunk. Words of a ring compress badly as they are: the
 * times change all the time and stand between what repeats. So a batch is taken apart into columns
 * of similar values, which zstd then packs to a third of the size in half of the time.
 *
 *   piece │ header word            │ items …                     a ring's words
 *         │ site length end  time  │ 17   0x7f…  "accept"
 *           └──────┬──────┘  │       │     │      │
 *   TABLES         │         │       │     │      │     sites, shapes, pieces
 *   SHAPES         number    │       │     │      │     a number for each (site, length, end)
 *   TIMES                    symbol  │     │      │     difference to the word before: the frequent
 *   TIMES_REST               or in full    │      │     ones have a byte each
 *   ITEMS                            by site and position
 *   STRINGS                                       number, and each string once
 *
 * Varints are of 7 bits a byte, lowest first (LEB128); "signed" ones are zigzag: 0 -1 1 -2 become
 * 0 1 2 3. Differences wrap around. In the sections:
 *
 *   TABLES      sites: count; each the signed difference of its number to the one before, and a
 *               mask of which items are strings. Shapes: count; each its site's index and length *
 *               2 + end. Pieces, as many as the chunk's head says: ring; signed difference of the
 *               tid to the one before; level; signed difference of the block's number; from; words;
 *               signed difference of the ticks; lost.
 *   SHAPES      a varint for each header word, in the order of the pieces
 *   TIMES       a byte for each header word: the difference of its low half to that of the word
 *               before it (the first: to the piece's ticks), as a number in the table; or the
 *               escape
 *   TIMES_REST  the table: count; each the difference to the one before. Then, a varint for each
 *               escape, the difference itself.
 *   ITEMS       columns: count; each the difference of its number (site's index * 16 + the item's
 *               position, 15 for all from there on) to the one before, the number of values, a byte
 *               for its mode, the bytes of values, and these
 *   STRINGS     count; each the word before its bytes, and these without padding
 *
 * In a column of strings a value is a string's number plus 1; 0 says that the word is not before a
 * string that fits, and the next value is the word.
 */
#ifndef KY_FORMATS_KYMO_KYMO_PACK_H
#define KY_FORMATS_KYMO_KYMO_PACK_H

#include "formats/compress.h"
#include "formats/kymo/kymo_layout.h"

#include <stdbool.h>

enum ky_kymo_sections {
	KY_KYMO_TABLES,
	KY_KYMO_SHAPES,
	KY_KYMO_TIMES,
	KY_KYMO_TIMES_REST,
	KY_KYMO_ITEMS,
	KY_KYMO_STRINGS,
	KY_KYMO_SECTIONS
};

#define KY_KYMO_TIME_ESCAPE 255u
#define KY_KYMO_SITE_COLUMNS 16u
#define KY_KYMO_SHAPES_MAX 4096u /* and as many sites; an index is at most two bytes */

/* How the values of a column are written. */
enum ky_kymo_mode {
	KY_KYMO_PLAIN = 0,      /* varints */
	KY_KYMO_DIFFERENCE = 1, /* signed varints of the differences, the first to 0 */
	KY_KYMO_PLANES = 2,     /* 8 bytes each: the lowest bytes of all, then the next */
};

/* The largest batch: small enough for a CPU's second level cache. */
#define KY_KYMO_BATCH_BYTES (512u << 10)

/* A writer's knowledge of trace points, by their number in the words. */
struct ky_kymo_masks {
	uint16_t *pages[KY_KYMO_SITES >> 10];
};
#define KY_KYMO_MASK_KNOWN 0x8000u /* beside a bit for each item that is a string */

static inline uint16_t ky_kymo_mask(const struct ky_kymo_masks *masks, uint32_t site)
{
	const uint16_t *page = masks->pages[site >> 10];
	return page ? page[site & 1023] : 0;
}

struct ky_kymo_pack;

/* 0 or -ENOMEM. */
int ky_kymo_pack_open(struct ky_kymo_pack **pack);
void ky_kymo_pack_close(struct ky_kymo_pack **pack);

/*
 * Pack pieces (at most KY_KYMO_BATCH_BYTES, their lengths checked). False when that does not pay
 * or there is too much variety: then they are better off as they are.
 */
bool ky_kymo_pack(struct ky_kymo_pack *pack, const uint8_t *raw, size_t bytes,
		  const struct ky_kymo_masks *masks);
/* One of the sections of what was packed last; good until the next. */
const uint8_t *ky_kymo_packed(const struct ky_kymo_pack *pack, enum ky_kymo_sections section,
			      size_t *bytes);

/*
 * ---- the reverse: kymo_unpack.c ----
 *
 * The body is not trusted: an inconsistency is an error with its place, and memory is bounded by a small multiple of
 * the unpacked size in the chunk, which in turn is bounded by the body's size.
 */

struct ky_kymo_unpack;

/* Open; without zstd (NULL) compressed data cannot be read. Return 0 or -ENOMEM. */
int ky_kymo_unpack_open(struct ky_kymo_unpack **unpack, struct ky_zstd *zstd);
void ky_kymo_unpack_close(struct ky_kymo_unpack **unpack);

/* Get the body's head, checked; -EBADMSG with *what when it cannot be. */
int ky_kymo_data_head(const uint8_t *body, size_t bytes, struct ky_kymo_data *data,
		      const char **what);

/*
 * Unpack into *raw (malloc, the caller's to free): data->raw_bytes of struct ky_kymo_piece, each
 * as long as ours, and their words; every piece has all its words and its events have all theirs.
 * 0; or -EBADMSG, -ENOENT without libzstd, -ENOMEM, with *what in words and *at where in the body.
 */
int ky_kymo_unpack(struct ky_kymo_unpack *unpack, const uint8_t *body, size_t bytes,
		   const struct ky_kymo_data *data, uint8_t **raw, const char **what, uint64_t *at);

#endif
