/* SPDX-License-Identifier: MIT */
/*
 * export.h: a trace of the model as a file of a format. One file of source a format, const vtables in one
 * array (export.c). What a format cannot carry is counted and said, not dropped silently.
 */
#ifndef KY_FORMATS_EXPORT_H
#define KY_FORMATS_EXPORT_H

#include "model/trace.h"

struct ky_out; /* out.h */

#define KY_EXPORT_MESSAGE_BYTES 512

/* What of a trace to write: all of it where a field is NULL or KY_TIME_NONE. Rows are by number. */
struct ky_selection {
	int64_t from_ns, to_ns;    /* slices that reach into it, cut to it with cut */
	bool cut;                  /* spans begin and end at the edges */
	const uint8_t *tracks;     /* a byte for each: whether it is wanted */
	const uint8_t *categories; /* a byte for each string */
	const uint8_t
		*threads; /* a byte for each: of what is not on tracks (sched, samples, logs) */
};

/* What a file of that format could not carry of this trace. */
struct ky_export_left {
	uint64_t slices, instants, counters, flows, args, sched, samples, logs, raw_events, tracks;
	uint64_t ends; /* of slices: they are read back with another one */
	uint64_t frames, metadata, snapshots;
	uint64_t cut; /* texts that were longer than the format allows */
};

/* "12 flows, 3 samples": what is in it, or "" for nothing. Returns text. */
const char *ky_export_left_text(const struct ky_export_left *left, char *text, size_t bytes);

struct ky_exporter {
	const char *name;   /* "json" */
	const char *suffix; /* ".json" */
	/* Writes to out. selection is never NULL. 0 or -errno. progress as in ky_trace_finish. */
	int (*write)(const struct ky_trace *trace, const struct ky_selection *selection,
		     struct ky_out *out, struct ky_export_left *left,
		     int (*progress)(void *, uint64_t, uint64_t), void *context);
};

extern const struct ky_exporter ky_exporter_json;
extern const struct ky_exporter ky_exporter_pftrace;
extern const struct ky_exporter ky_exporter_fxt;
extern const struct ky_exporter ky_exporter_kymo;
extern const struct ky_exporter *const ky_exporters[]; /* ends with NULL */

/* The format that a path, or else a format's name ("json", "json.gz"), asks for; NULL: none. */
const struct ky_exporter *ky_exporter_find(const char *path, const char *format, int *packing);

/*
 * Writes path: its suffix is the format unless format names one; .gz and .zst compress what is before. The file
 * appears whole or not at all (a temporary one beside it, renamed at the end); "-" is standard output.
 * 0, or -errno and a message.
 */
int ky_export(const struct ky_trace *trace, const struct ky_selection *selection, const char *path,
	      const char *format, struct ky_export_left *left,
	      int (*progress)(void *, uint64_t, uint64_t), void *context,
	      char message[KY_EXPORT_MESSAGE_BYTES]);

/* The same for what is not in a trace of the model: write fills out with a file of the exporter's format. */
typedef int (*ky_export_fn)(void *context, const struct ky_exporter *exporter, struct ky_out *out);
int ky_export_by(const char *path, const char *format, ky_export_fn write, void *context,
		 char message[KY_EXPORT_MESSAGE_BYTES]);

#endif
