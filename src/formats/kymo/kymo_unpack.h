/* SPDX-License-Identifier: MIT */
/*
 * kymo_unpack.h: unpacks the body of a DATA chunk to pieces and their words. The body is not trusted: an inconsistency
 * is an error with its place, and memory is bounded by a small multiple of the unpacked size in the chunk, which in
 * turn is bounded by the body's size.
 */
#ifndef KY_FORMATS_KYMO_KYMO_UNPACK_H
#define KY_FORMATS_KYMO_KYMO_UNPACK_H

#include "formats/compress.h"
#include "formats/kymo/kymo_layout.h"

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
