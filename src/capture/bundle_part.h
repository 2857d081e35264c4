/* SPDX-License-Identifier: MIT */
/*
 * bundle_part.h: the parts of a bundle, for the files of the bundle.
 *
 *   bundle.c         opening, closing, flushing, rotation, the file; parts in other formats
 *   bundle_part.c    parts that are drums: the recorder's own writer of .kymo (formats/kymo/kymo_emit.c);
 *                    part 0: notes, snapshots, clocks
 *
 * All parts append whole chunks to one buffer, which is pushed to the file between two calls. The
 * buffer's first error is the bundle's: ky_out drops everything after it.
 *
 * Invariants: out.pushed_bytes + out.used is the size of the current file. A part's writer exists
 * from when the part begins in a file until the file is finished or the part ends. parts[n] is part
 * n, or NULL when it ended.
 */
#ifndef KY_CAPTURE_BUNDLE_PART_H
#define KY_CAPTURE_BUNDLE_PART_H

#include "capture/bundle.h"
#include "formats/kymo/kymo_chunk.h"
#include "formats/kymo/kymo_pack.h"
#include "formats/out.h"

#include <limits.h>

/*
 * The number of a drum's last clock readings that are written again in the next file. They come
 * about once a second.
 */
#define KY_BUNDLE_CLOCKS 128u

/* A part that is a drum. */
struct ky_bundle_drum {
	void *writer;
	struct ky_trace_info info; /* its texts are ours; clock is the first reading */
	struct ky_tick_reading clocks[KY_BUNDLE_CLOCKS];
	uint64_t clocks_count;   /* ever; the newest is at (count - 1) % KY_BUNDLE_CLOCKS */
	struct ky_table threads; /* by index: u32, the number of the file that has its record */
	uint64_t lost_before;    /* written in the files before this one */
	uint64_t lost;           /* events missing before pieces of this file, or left out of it */
	uint64_t left_out;       /* those of all losses that the bundle caused */
};

/* A part in another format. */
struct ky_bundle_stream {
	enum ky_kymo_stream_kind kind;
	struct ky_kymo_chunks chunks;
	struct ky_out records; /* not yet in a chunk */
	void (*restate)(void *context, uint32_t part);
	void *context;
};

enum ky_bundle_part_kind { KY_BUNDLE_PART_DRUM, KY_BUNDLE_PART_STREAM };

struct ky_bundle_part {
	enum ky_bundle_part_kind kind;
	uint32_t number;
	union {
		struct ky_bundle_drum drum;
		struct ky_bundle_stream stream;
	};
};

/* Part 0. */
struct ky_bundle_about {
	struct ky_kymo_chunks chunks;
	struct ky_out fresh; /* records not yet in the file */
	struct ky_out all;   /* records that are */
	struct ky_out notes; /* records that every file has */
	uint64_t clock_ns;   /* when the clocks were last read */
};

struct ky_bundle_kept {
	char *path;
	uint64_t events_before; /* in all files before it */
};

struct ky_bundle_file {
	char *pattern;         /* the path as given; NULL: the descriptor is the caller's */
	int fd;                /* -1: none */
	uint32_t number;       /* of files so far */
	uint64_t bytes_before; /* of all files before this one */
	char path[PATH_MAX];
	struct ky_bundle_kept *kept; /* the files that exist, oldest first */
	uint32_t kept_count;
	uint32_t kept_room;
};

struct ky_bundle {
	struct ky_out out;
	struct ky_bundle_file file;
	struct ky_bundle_about about; /* the drums' chunks borrow from its own */
	struct ky_kymo_pack *pack;    /* shared by all drums */
	uint64_t max_bytes;
	uint32_t files_max;
	uint64_t begun_bytes; /* of this file, after everything was stated again */
	uint64_t held_bytes;  /* at most so much is gathered in the parts, and not packed yet */
	bool due;             /* the next data begins the next file */
	bool rotating;
	bool full;
	uint64_t events;
	struct ky_bundle_part **parts; /* by number; 0 is unused */
	uint32_t parts_count;
	uint32_t parts_room;
};

/* Keep the error, if it is the first. */
void ky_bundle_fail(struct ky_bundle *bundle, int error);
/* Add a part with the next number; NULL without memory or after an error. */
struct ky_bundle_part *ky_bundle_add(struct ky_bundle *bundle, enum ky_bundle_part_kind kind);
/* Return the part if it is of that kind and neither it nor the bundle has ended. */
struct ky_bundle_part *ky_bundle_find(const struct ky_bundle *bundle, uint32_t part,
				      enum ky_bundle_part_kind kind);
/* Forget a part that ended. */
void ky_bundle_drop(struct ky_bundle *bundle, struct ky_bundle_part *part);
/*
 * Push, and begin the next file when this one is large enough. To be called after everything that
 * appends.
 */
void ky_bundle_appended(struct ky_bundle *bundle);
/* Return the size of the file so far, with what is still in memory. */
uint64_t ky_bundle_file_bytes(const struct ky_bundle *bundle);
/* Begin the next file, if that is due: so the last one is never empty. */
void ky_bundle_before_data(struct ky_bundle *bundle);

/* Part 0: the first chunks of a file; what is gathered; its last chunks. */
int ky_bundle_about_open(struct ky_bundle *bundle);
void ky_bundle_about_begin(struct ky_bundle *bundle);
void ky_bundle_about_flush(struct ky_bundle *bundle);
void ky_bundle_about_finish(struct ky_bundle *bundle);
void ky_bundle_about_close(struct ky_bundle *bundle);

/* A part begins in each file, gathers, finishes at the end of the file, and is closed once. */
void ky_bundle_drum_begin(struct ky_bundle *bundle, struct ky_bundle_part *part);
void ky_bundle_drum_flush(struct ky_bundle_part *part);
void ky_bundle_drum_finish(struct ky_bundle_part *part);
void ky_bundle_drum_close(struct ky_bundle_part *part);

#endif
