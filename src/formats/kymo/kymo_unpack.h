/* SPDX-License-Identifier: MIT */
/*
 * kymo_unpack.h: the body of a DATA chunk back to pieces and their words. The body is anybody's:
 * what does not add up is an error that says where, and nothing is allocated beyond a small
 * multiple of what the chunk says it unpacks to, which in turn is bounded by the body's size.
 */
#ifndef KY_FORMATS_KYMO_KYMO_UNPACK_H
#define KY_FORMATS_KYMO_KYMO_UNPACK_H

#include "formats/compress.h"
#include "kymo_layout.h"

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
