/* SPDX-License-Identifier: MIT */
/*
 * kymo_file.h: reads .kymo files (docs/formats/kymo.md). A file with its index opens in the time it
 * takes to read the index; one that was cut off is searched from its beginning. Damage is not an error:
 * the undamaged rest is read, and notes describe the damage and its byte. A file of several sources is a
 * bundle, which has one of these for each.
 *
 *	struct ky_kymo *file;
 *	struct ky_kymo_error error;
 *	if (ky_kymo_open(&file, path, &error) != 0)
 *		... error.at, error.text
 *	ky_kymo_read(file, 0, UINT64_MAX, &sink, &totals);
 *	ky_kymo_close(&file);
 */
#ifndef KY_FORMATS_KYMO_KYMO_FILE_H
#define KY_FORMATS_KYMO_KYMO_FILE_H

#include "core/stream.h"
#include "formats/input.h"
#include "formats/kymo/kymo_defs.h"
#include "formats/kymo/kymo_file.h"
#include "formats/kymo/kymo_layout.h"

/* An error and its place; the text names what was expected. */
struct ky_kymo_error {
	uint64_t at; /* byte of the file */
	char text[152];
};

#define KY_KYMO_NOTES_MAX 32u

struct ky_kymo_info {
	uint32_t version; /* 0 when the beginning of the file is damaged */
	bool indexed;     /* found by the index; else by a search */
	int32_t pid;
	uint32_t layer;         /* which of the process's drums it was: enum ky_drum_layer */
	struct ky_text process; /* its name */
	struct ky_text command; /* the program's path */
	const struct ky_kymo_process_name *processes; /* all that are named, this one too */
	uint32_t processes_count;
	uint64_t ticks_per_s;
	const struct ky_tick_reading *samples; /* ordered by ticks */
	uint32_t samples_count;
	struct ky_thread *const *threads; /* by index */
	uint32_t threads_count;
	struct ky_site *const *sites; /* by index */
	uint32_t sites_count;
	const struct ky_kymo_entry *entries; /* one for each DATA chunk, in their order */
	uint32_t entries_count;
	uint64_t events; /* as the index or the chunks' heads say */
	uint64_t lost;
	const struct ky_kymo_snapshot_record *snapshots; /* in the order of the file */
	uint32_t snapshots_count;
	const struct ky_kymo_program_end *ends;
	uint32_t ends_count;
	const struct ky_kymo_loss_record *losses; /* beside those of the pieces */
	uint32_t losses_count;
	const struct ky_text *remarks; /* lines about the capture */
	uint32_t remarks_count;
	const struct ky_kymo_error *notes; /* damage found so far: the first few */
	uint32_t notes_count;
	uint64_t damages; /* all that was found so far */
};

/* The totals of one reading. */
struct ky_kymo_totals {
	uint64_t events;  /* passed to the sink */
	uint64_t lost;    /* according to the trace, in that time */
	uint64_t unknown; /* left out: their trace points are not defined */
	uint64_t damaged; /* left out with damaged chunks, as far as the index knows */
};

struct ky_kymo;

/*
 * Open a file, or bytes in memory that stay as long as it is open. *file is NULL on failure. 0;
 * -errno of opening it; -EBADMSG when it is no .kymo file; -ENOTSUP when it is of a version that is
 * too new; -ENOENT when it needs libzstd and that is not there; -ENOMEM.
 */
int ky_kymo_open(struct ky_kymo **file, const char *path, struct ky_kymo_error *error);
int ky_kymo_open_memory(struct ky_kymo **file, const void *data, uint64_t bytes,
			struct ky_kymo_error *error);
/* NULL is allowed. */
void ky_kymo_close(struct ky_kymo **file);

/* Called before each chunk that is loaded: chunks done, and all. Not 0 ends the reading with that. */
typedef int (*ky_kymo_progress_fn)(void *context, uint64_t done, uint64_t all);
void ky_kymo_on_progress(struct ky_kymo *file, ky_kymo_progress_fn progress, void *context);

/* Good until the next call with the same file. */
const struct ky_kymo_info *ky_kymo_info(struct ky_kymo *file);

/* CLOCK_BOOTTIME of a tick. */
uint64_t ky_kymo_ns(struct ky_kymo *file, uint64_t ticks);

/*
 * Hand out the events from from_ns to to_ns (CLOCK_BOOTTIME) in the order of their times: first all threads to
 * sink->thread, then each event. With sink->block set: the pieces of the chunks that have events in that time, in the
 * order of the file. totals may be NULL. 0; -ENOENT without libzstd; -ENOMEM.
 */
int ky_kymo_read(struct ky_kymo *file, uint64_t from_ns, uint64_t to_ns,
		 const struct ky_stream_sink *sink, struct ky_kymo_totals *totals);

/*
 * ---- a file with all its sources (docs/formats/kymo.md, "Several sources"): kymo_bundle.c ----
 *
 * One as a session writes it has one, which is opened by its index; of a bundle, which a capture writes, the heads of
 * all chunks are looked at once.
 *
 *   chunks of 0, 1, 2 ... interleaved ─▶ source 0: snapshots, notes, clocks
 *                                        source 1: a drum ── ky_kymo_read()
 *                                        source 2: a stream ── ky_kymo_stream_load_all() ─▶ another reader
 */

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
uint32_t ky_kymo_source_number(const struct ky_kymo *source);
/* Source 0, whose snapshots, notes and clocks are of all; NULL when it is missing. */
struct ky_kymo *ky_kymo_bundle_of_all(const struct ky_kymo_bundle *bundle);

/* Write the undamaged part of a file of several sources as a finished file. Return 0, -errno, or the result of progress. */
struct ky_out;
int ky_kymo_bundle_copy(const struct ky_kymo_bundle *bundle, struct ky_out *out,
			ky_kymo_progress_fn progress, void *context);

/* enum ky_kymo_stream_kind and the bytes it unpacks to; 0 when the source is no stream. */
uint32_t ky_kymo_stream_kind(const struct ky_kymo *source, uint64_t *bytes);
/* Load all streams, each by the reader of its format. Return 0 or -errno. */
struct ky_load;
int ky_kymo_stream_load_all(struct ky_load *load, const struct ky_kymo_bundle *bundle);

#endif
