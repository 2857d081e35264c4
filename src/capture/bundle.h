/* SPDX-License-Identifier: MIT */
/*
 * bundle.h: what a capture writes: one .kymo file of several parts (docs/formats/kymo.md, "Several sources").
 *
 *   drum of process 41 ──▶ part 1: FILE DEFINE DATA DATA ...   ┐
 *   drum of process 57 ──▶ part 2: FILE DEFINE DATA ...        ├─▶ chunks of all, as they are finished ─▶ file
 *   kernel's ring pages ─▶ part 3: STREAM STREAM ...           │
 *   perf's records ──────▶ part 4: STREAM ...                  │
 *   snapshots, clocks ───▶ part 0: FILE DEFINE ...             ┘
 *
 * Chunks are appended whole and never changed: a file that is cut off anywhere, because kymo was killed or the disk is
 * full, is whole up to there. Compressed with zstd where that is smaller.
 *
 * Rotation: when a file has max_bytes and the path has ${rotation}, it is finished and the next begun. Each stands on its
 * own: the parts are begun again in it, and a stream's restate() is called first. Without ${rotation} the capture
 * is full: ky_bundle_is_full().
 *
 * Nothing here fails the capture at once: the first error is kept (ky_bundle_error), and from then on nothing is
 * written.
 */
#ifndef KY_CAPTURE_BUNDLE_H
#define KY_CAPTURE_BUNDLE_H

#include "capture/fail.h"
#include "core/ring_read.h"
#include "core/sites.h"
#include "formats/format.h"
#include "formats/kymo/kymo_layout.h"

struct ky_bundle;

struct ky_bundle_options {
	const char *path;   /* may have ${pid} and ${rotation} */
	int fd;             /* when path is NULL: written to, stays the caller's */
	uint64_t max_bytes; /* 0: no limit */
	uint32_t files_max; /* rotation: older ones are removed beyond so many; 0: all are kept */
};

/* 0, or -errno and one line that names the path and the remedy. */
int ky_bundle_open(struct ky_bundle **bundle, const struct ky_bundle_options *options,
		   char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Finishes all parts and the file. The first error of all; nulls the pointer. NULL is allowed. */
int ky_bundle_close(struct ky_bundle **bundle);
/* Pushes what is gathered to the file: at least every second, so that little is lost when kymo is killed. */
void ky_bundle_flush(struct ky_bundle *bundle);

int ky_bundle_error(const struct ky_bundle *bundle);
bool ky_bundle_is_full(const struct ky_bundle *bundle);
struct ky_bundle_facts {
	uint64_t events; /* of drums */
	uint64_t bytes;  /* written, all files */
	uint32_t files;
	const char *path; /* of the file that is being written */
};
void ky_bundle_facts(const struct ky_bundle *bundle, struct ky_bundle_facts *facts);

/* ---- drums ---- */

/* A new part for a drum's events: its number, 0 on failure (the error is kept). The texts are copied. */
uint32_t ky_bundle_drum(struct ky_bundle *bundle, const struct ky_trace_info *info);
/* As struct ky_format has them. Threads and clocks are remembered for the next file of a rotation. */
void ky_bundle_process(struct ky_bundle *bundle, uint32_t part, int32_t pid, struct ky_text name);
void ky_bundle_thread(struct ky_bundle *bundle, uint32_t part, const struct ky_thread *thread);
void ky_bundle_clock(struct ky_bundle *bundle, uint32_t part, const struct ky_tick_reading *sample);
void ky_bundle_block(struct ky_bundle *bundle, uint32_t part, const struct ky_block *block,
		     const struct ky_thread *thread, struct ky_sites *sites);
/* The drum's process has ended, and all was read; lost is the number of events missing in all. */
void ky_bundle_drum_end(struct ky_bundle *bundle, uint32_t part, uint64_t lost);

/* ---- streams of other formats, told by enum ky_kymo_stream_kind (kymo_layout.h) ---- */

/*
 * restate, which may be NULL, is called at the begin of each later file of a rotation, to write what the stream's
 * records need to be understood. Its number, or 0.
 */
uint32_t ky_bundle_stream(struct ky_bundle *bundle, enum ky_kymo_stream_kind kind,
			  void (*restate)(void *context, uint32_t part), void *context);
/* Whole records. */
void ky_bundle_stream_write(struct ky_bundle *bundle, uint32_t part, const void *data,
			    size_t bytes);

/* ---- snapshots ---- */

struct ky_bundle_snapshot {
	uint64_t time_ns; /* CLOCK_BOOTTIME, when it was asked for */
	uint64_t from_ns; /* what the file holds because of it */
	uint64_t to_ns;
	uint64_t noticed_ns; /* when the recorder saw it */
	int32_t pid;         /* who: 0 is not known */
	int32_t tid;
	uint32_t args_count; /* of these */
	uint64_t args[2];
	const char *trigger; /* as the user gave it: "span:net/recv>5ms" */
	const char *
		reason; /* what happened: "net/recv took 7.1 ms", the text of kymo_snapshot(), "SIGSEGV" */
	const char *stack; /* lines, the innermost first; NULL: none */
};
void ky_bundle_snapshot(struct ky_bundle *bundle, const struct ky_bundle_snapshot *snapshot);

/* A line about the capture for whoever opens the file: "kernel: not recorded: ...". Metadata "capture_note". */
void ky_bundle_note(struct ky_bundle *bundle, const char *note);

#endif
