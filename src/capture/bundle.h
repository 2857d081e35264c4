/* SPDX-License-Identifier: MIT */
/*
 * bundle.h: the output of a capture: one .kymo file of several parts (docs/formats/kymo.md, "Several sources").
 *
 *   drum of process 41 ──▶ part 1: FILE DEFINE DATA DATA ...   ┐
 *   drum of process 57 ──▶ part 2: FILE DEFINE DATA ...        ├─▶ chunks of all, as they are finished ─▶ file
 *   kernel's ring pages ─▶ part 3: STREAM STREAM ...           │
 *   perf's records ──────▶ part 4: STREAM ...                  │
 *   snapshots, clocks ───▶ part 0: FILE DEFINE ...             ┘
 *
 * Chunks are appended whole and never changed, so a file that is cut off anywhere (kymo was killed, the disk is full) is
 * valid up to there. They are compressed with zstd where that is smaller.
 *
 * Rotation: when a file has max_bytes and the path has ${rotation}, it is finished and the next one begins. Each file
 * can be read alone: the parts begin again in it, and a stream's restate() is called first. Without ${rotation} the
 * capture is full: ky_bundle_is_full().
 *
 * No call here fails: the first error is kept (ky_bundle_error), and nothing is written from then on.
 */
#ifndef KY_CAPTURE_BUNDLE_H
#define KY_CAPTURE_BUNDLE_H

#include "base/fail.h"
#include "core/ring_read.h"
#include "core/sites.h"
#include "formats/format.h"
#include "formats/kymo/kymo_layout.h"

struct ky_bundle;

struct ky_bundle_options {
	const char *path;   /* may contain ${pid} and ${rotation} */
	int fd;             /* used when path is NULL; stays the caller's */
	uint64_t max_bytes; /* 0: no limit */
	uint32_t files_max; /* rotation: keep so many files and remove older ones; 0: keep all */
};

/* Return 0, or -errno and one line with the path and the remedy. */
int ky_bundle_open(struct ky_bundle **bundle, const struct ky_bundle_options *options,
		   char message[KY_MESSAGE_BYTES]);
/*
 * Finish all parts and the file, and set the pointer to NULL. Return the first error of all. NULL
 * is allowed.
 */
int ky_bundle_close(struct ky_bundle **bundle);
/*
 * Push buffered data to the file: at least every second, so that little is lost when kymo is
 * killed.
 */
void ky_bundle_flush(struct ky_bundle *bundle);

int ky_bundle_error(const struct ky_bundle *bundle);
bool ky_bundle_is_full(const struct ky_bundle *bundle);
struct ky_bundle_facts {
	uint64_t events;         /* of drums */
	uint64_t events_removed; /* of these, in files that a rotation has removed */
	uint64_t bytes;          /* written, all files */
	uint32_t files;
	const char *path; /* of the file that is being written */
};
void ky_bundle_facts(const struct ky_bundle *bundle, struct ky_bundle_facts *facts);

/* ---- drums ---- */

/*
 * Add a part for a drum's events. Return its number, or 0 on failure (the error is kept). The texts
 * are copied.
 */
uint32_t ky_bundle_drum(struct ky_bundle *bundle, const struct ky_trace_info *info);
/*
 * Write a record, as struct ky_format does. Threads and clocks are kept for the next file of a
 * rotation.
 */
void ky_bundle_process(struct ky_bundle *bundle, uint32_t part, int32_t pid, struct ky_text name);
void ky_bundle_thread(struct ky_bundle *bundle, uint32_t part, const struct ky_thread *thread);
void ky_bundle_clock(struct ky_bundle *bundle, uint32_t part, const struct ky_tick_reading *sample);
void ky_bundle_block(struct ky_bundle *bundle, uint32_t part, const struct ky_block *block,
		     const struct ky_thread *thread, struct ky_sites *sites);
/* Note that the program of the part ended then: before its part ends. */
void ky_bundle_program_end(struct ky_bundle *bundle, uint32_t part, uint64_t time_ns);
/* Note that a thread of the part ended then. */
void ky_bundle_thread_end(struct ky_bundle *bundle, uint32_t part, int32_t tid, uint64_t time_ns);
/*
 * End the part after its process ended and all was read; lost is the number of all missing events.
 */
/* So much is missing for a cause (losses.h), beside what the pieces count. Before the drum's end. */
void ky_bundle_loss(struct ky_bundle *bundle, uint32_t part, const char *what, uint64_t count);
void ky_bundle_drum_end(struct ky_bundle *bundle, uint32_t part, uint64_t lost);

/* ---- streams of other formats: enum ky_kymo_stream_kind (kymo_layout.h) ---- */

/*
 * Add a part in another format. Return its number, or 0. restate, which may be NULL, is called at
 * the beginning of each later file of a rotation, to write what the stream's records need to be
 * understood.
 */
uint32_t ky_bundle_stream(struct ky_bundle *bundle, enum ky_kymo_stream_kind kind,
			  void (*restate)(void *context, uint32_t part), void *context);
/* Write whole records. */
void ky_bundle_stream_write(struct ky_bundle *bundle, uint32_t part, const void *data,
			    size_t bytes);

/* ---- snapshots ---- */

struct ky_bundle_snapshot {
	uint64_t time_ns; /* CLOCK_BOOTTIME, when it was requested */
	uint64_t from_ns; /* the window */
	uint64_t to_ns;
	uint64_t noticed_ns; /* when the recorder saw it */
	int32_t pid;         /* 0: unknown */
	int32_t tid;
	uint32_t args_count; /* number of args */
	uint64_t args[2];
	const char *trigger; /* as given: "span:net/recv>5ms" */
	const char
		*reason;   /* e.g. "net/recv took 7.1 ms", the text of kymo_snapshot(), "SIGSEGV" */
	const char *stack; /* one line per frame, innermost first; NULL: none */
};
void ky_bundle_snapshot(struct ky_bundle *bundle, const struct ky_bundle_snapshot *snapshot);

/*
 * Write a line about the capture for readers of the file: "kernel: not recorded: ...". Metadata
 * "capture_note".
 */
void ky_bundle_note(struct ky_bundle *bundle, const char *text, ...)
	__attribute__((format(printf, 2, 3)));

#endif
