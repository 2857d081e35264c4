/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export.h: what the files of the export to Perfetto's format share.
 *
 *   pftrace_export.c  the file, its packets and clocks
 *   pftrace_export_tracks.c       descriptors of processes, threads and tracks
 *   pftrace_export_events.c       slices, instants, counters, flows, arguments
 *   pftrace_export_kernel.c       scheduling, kernel events, logs
 *   pftrace_export_samples.c      samples and their call stacks
 *
 * The file has three sequences: descriptors and clocks; events, whose times count from the event before, since
 * the walk is in order; samples. Texts are interned under the number they have in the trace.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_EXPORT_H
#define KY_FORMATS_PFTRACE_PFTRACE_EXPORT_H

#include "formats/address.h"
#include "formats/cpu_switches.h"
#include "formats/export_loop.h"
#include "formats/flow_marks.h"
#include "formats/pftrace/pftrace_schema.h"
#include "formats/proto.h"

enum ky_pfx_sequence { KY_PFX_FILE = 2, KY_PFX_EVENTS = 3, KY_PFX_SAMPLES = 4 };

enum ky_pfx_interned {
	KY_PFX_CATEGORIES,
	KY_PFX_NAMES,
	KY_PFX_KEYS,
	KY_PFX_FUNCTIONS,
	KY_PFX_FRAMES,
	KY_PFX_CALLSTACKS,
	KY_PFX_BUILD_IDS,
	KY_PFX_PATHS,
	KY_PFX_SOURCES,
	KY_PFX_MAPPINGS,
	KY_PFX_INTERNED
};

struct ky_pfx {
	const struct ky_trace *trace;
	const struct ky_selection *selection;
	struct ky_out *out;
	struct ky_out body;     /* the message of the packet being put together */
	struct ky_out interned; /* the InternedData that goes with it */
	struct ky_out part, inner;
	struct ky_out clean;
	struct ky_export_left *left;
	struct ky_addresses addresses;
	struct ky_flow_marks flow_marks;
	uint8_t *known[KY_PFX_INTERNED]; /* a bit for each number */
	struct ky_cpu_switches switches;
	uint32_t levels[64]; /* where the levels of nested arguments begin in body */
	uint32_t depth;
	uint64_t clock;    /* enum ky_clock of the file */
	uint64_t event_ns; /* time of the last packet of KY_PFX_EVENTS */
};

/* pftrace_export.c: body as that field of a packet of the file's sequence. */
void ky_pfx_send_file(struct ky_pfx *w, uint32_t field);
/* pftrace_export.c: body and interned as a packet with a time. */
void ky_pfx_send(struct ky_pfx *w, enum ky_pfx_sequence sequence, uint32_t field, int64_t ts);
/* pftrace_export.c: true the first time; then the text, valid, goes into interned. */
void ky_pfx_intern(struct ky_pfx *w, enum ky_pfx_interned what, uint32_t string);
bool ky_pfx_is_new(struct ky_pfx *w, enum ky_pfx_interned what, uint32_t number);
void ky_pfx_text(struct ky_pfx *w, struct ky_out *to, uint32_t field, struct ky_text text);
void ky_pfx_string(struct ky_pfx *w, struct ky_out *to, uint32_t field, uint32_t string);

/* pftrace_export_tracks.c */
void ky_pfx_describe_tasks(struct ky_pfx *w);
uint64_t ky_pfx_thread_uuid(const struct ky_pfx *w, uint32_t thread);
void ky_pfx_describe_tracks(struct ky_pfx *w);
uint64_t ky_pfx_track(const struct ky_pfx *w, uint32_t track);

/* pftrace_export_events.c */
void ky_pfx_slice(void *self, const struct ky_walk_item *item);
void ky_pfx_counter(void *self, const struct ky_walk_item *item);
void ky_pfx_losses(struct ky_pfx *w);

/* pftrace_export_kernel.c */
void ky_pfx_sched(void *self, const struct ky_walk_item *item);
void ky_pfx_sched_end(struct ky_pfx *w);
void ky_pfx_raw(void *self, const struct ky_walk_item *item);
void ky_pfx_log(void *self, const struct ky_walk_item *item);

/* pftrace_export_samples.c */
void ky_pfx_sample(void *self, const struct ky_walk_item *item);

#endif
