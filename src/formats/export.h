/* SPDX-License-Identifier: MIT */
/*
 * export.h: writes a trace as a file of any format of KY_FORMATS_WRITTEN, or as a profile. Rows that a format cannot carry are
 * counted and reported, not dropped silently.
 */
#ifndef KY_FORMATS_EXPORT_H
#define KY_FORMATS_EXPORT_H

#include "base/fail.h"
#include "formats/format.h"
#include "model/trace.h"

/* What a profile (collapsed stacks, speedscope, pprof) is made of. */
enum ky_profile_source {
	KY_PROFILE_ANY, /* samples, or spans if there are none */
	KY_PROFILE_SAMPLES,
	KY_PROFILE_SPANS
};

/* The part of a trace to write: all of it where a field is NULL or KY_TIME_NONE. Rows are by number. */
struct ky_export_selection {
	int64_t from_ns, to_ns;    /* slices that reach into it */
	bool cut;                  /* cut spans at the edges */
	const uint8_t *tracks;     /* a byte for each: not 0 where selected */
	const uint8_t *categories; /* a byte for each string */
	const uint8_t
		*threads; /* a byte for each: for rows without a track (sched, samples, logs) */
	enum ky_profile_source profile;
};

/* The rows that a file of that format could not carry. */
struct ky_export_left {
	uint64_t slices, instants, counters, flows, args, sched, samples, logs, raw_events, tracks;
	uint64_t ends; /* of slices: they are read back with another end */
	uint64_t frames, metadata, snapshots;
	uint64_t cut; /* texts that were longer than the format allows */
};

/* Write "12 flows, 3 samples", or "" for nothing. Return text. */
const char *ky_export_left_text(const struct ky_export_left *left, char *text, size_t bytes);

/* One export. */
struct ky_export_job {
	const struct ky_trace *trace;
	const struct ky_export_selection *selection; /* never NULL */
	struct ky_out *out;
	struct ky_export_left *left;
	int (*progress)(void *context, uint64_t done,
			uint64_t all); /* as in ky_trace_finish; may be NULL */
	void *context;
};

struct ky_exporter {
	const struct ky_format *format; /* its name, and the writer that sessions use */
	/* Write the job's trace to its out. Return 0 or -errno. */
	int (*write)(const struct ky_export_job *job);
};

#define KY_EXPORTER_DECLARE(name) extern const struct ky_exporter ky_exporter_##name;
KY_FORMATS_WRITTEN(KY_EXPORTER_DECLARE, )
/* Profiles, for flame graphs: stacks and sums, no timeline. No session writes them: their format has a name and a suffix alone. */
extern const struct ky_exporter ky_exporter_collapsed, ky_exporter_speedscope, ky_exporter_pprof;

extern const struct ky_exporter *const ky_exporters[]; /* ends with NULL */

/* Return the format that a format's name ("json", "json.gz"), or else the path's suffix, asks for; or NULL. */
const struct ky_exporter *ky_exporter_find(const char *path, const char *format, int *packing);

/*
 * Write path: its suffix is the format unless format names one; .gz and .zst compress. The file appears whole or not
 * at all (a temporary one beside it, renamed at the end); "-" is standard output. Return 0, or -errno and a message.
 */
int ky_export(const struct ky_trace *trace, const struct ky_export_selection *selection,
	      const char *path, const char *format, struct ky_export_left *left,
	      int (*progress)(void *, uint64_t, uint64_t), void *context,
	      char message[KY_MESSAGE_BYTES]);

/* Write a file that does not come from a trace of the model: write fills out in the exporter's format. */
typedef int (*ky_export_fn)(void *context, const struct ky_exporter *exporter, struct ky_out *out);
int ky_export_by(const char *path, const char *format, ky_export_fn write, void *context,
		 char message[KY_MESSAGE_BYTES]);

#endif
