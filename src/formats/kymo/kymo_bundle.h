/* SPDX-License-Identifier: MIT */
/*
 * kymo_bundle.h: a .kymo file with all its sources (docs/formats/kymo.md, "Several sources"). One as a session writes it
 * has one, which is opened by its index; of a bundle, which a capture writes, the heads of all chunks are looked at once.
 *
 *   chunks of 0, 1, 2 ... interleaved ─▶ source 0: snapshots, notes, clocks
 *                                        source 1: a drum ── ky_kymo_read()
 *                                        source 2: a stream ── ky_kymo_stream_open() ─▶ input of another reader
 */
#ifndef KY_FORMATS_KYMO_KYMO_BUNDLE_H
#define KY_FORMATS_KYMO_KYMO_BUNDLE_H

#include "formats/input.h"
#include "formats/kymo/kymo_file.h"

struct ky_kymo_bundle;

/* As ky_kymo_open(), of either kind of file. */
int ky_kymo_bundle_open(struct ky_kymo_bundle **bundle, const char *path,
			struct ky_kymo_error *error);
/* A plain file's descriptor, which is duplicated. */
int ky_kymo_bundle_open_fd(struct ky_kymo_bundle **bundle, int fd, struct ky_kymo_error *error);
void ky_kymo_bundle_close(struct ky_kymo_bundle **bundle);

/* Report whether it is a file of several sources, even when it has only one. */
bool ky_kymo_bundle_several(const struct ky_kymo_bundle *bundle);
/* Report whether its writer finished it. */
bool ky_kymo_bundle_finished(const struct ky_kymo_bundle *bundle);

/* In the order in which they begin in the file. */
uint32_t ky_kymo_bundle_count(const struct ky_kymo_bundle *bundle);
struct ky_kymo *ky_kymo_bundle_source(const struct ky_kymo_bundle *bundle, uint32_t index);
/* Return a source by its number, or NULL. */
struct ky_kymo *ky_kymo_bundle_numbered(const struct ky_kymo_bundle *bundle, uint32_t number);
uint32_t ky_kymo_source_number(const struct ky_kymo *source);
/* Source 0, whose snapshots, notes and clocks are of all; NULL when it is missing. */
struct ky_kymo *ky_kymo_bundle_of_all(const struct ky_kymo_bundle *bundle);

/* Write the undamaged part of a file of several sources as a finished file. Return 0, -errno, or the result of progress. */
struct ky_out;
int ky_kymo_bundle_copy(const struct ky_kymo_bundle *bundle, struct ky_out *out,
			ky_kymo_progress_fn progress, void *context);

/* enum ky_kymo_stream_kind and the bytes it unpacks to; 0 when the source is no stream. */
uint32_t ky_kymo_stream_kind(const struct ky_kymo *source, uint64_t *bytes);
/*
 * All parts of a stream, unpacked, one behind the other. Damaged parts are left out and noted. Tells the source's
 * progress. 0 or -errno; -ENOENT without libzstd.
 */
int ky_kymo_stream_open(struct ky_kymo *source, const char *name, struct ky_input **input);

#endif
