/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export.h: what the files of the export to Perfetto's format share.
 *
 *   pftrace_export.c         the file, its packets and clocks, descriptors of tracks
 *   pftrace_export_events.c  slices, instants, counters, flows, arguments
 *   pftrace_export_kernel.c  scheduling, kernel events, logs, samples
 *
 * The file has three sequences: descriptors and clocks; events, whose times count from the event before, since
 * the walk is in order; samples. Texts are interned under the number they have in the trace.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_EXPORT_H
#define KY_FORMATS_PFTRACE_PFTRACE_EXPORT_H

#include "base/map.h"
#include "formats/address.h"
#include "formats/flow_marks.h"
#include "formats/pftrace/pftrace_emit.h"
#include "formats/walk.h"

enum ky_pf_export_sequence {
	KY_PF_EXPORT_FILE = KY_PF_EMIT_FILE_SEQUENCE,
	KY_PF_EXPORT_EVENTS = 3,
	KY_PF_EXPORT_SAMPLES = 4
};

enum ky_pf_export_interned {
	KY_PF_EXPORT_CATEGORIES,
	KY_PF_EXPORT_NAMES,
	KY_PF_EXPORT_KEYS,
	KY_PF_EXPORT_FUNCTIONS,
	KY_PF_EXPORT_FRAMES,
	KY_PF_EXPORT_CALLSTACKS,
	KY_PF_EXPORT_BUILD_IDS,
	KY_PF_EXPORT_PATHS,
	KY_PF_EXPORT_SOURCES,
	KY_PF_EXPORT_MAPPINGS,
	KY_PF_EXPORT_INTERNED
};

/* The typed event that a name stands for: see pftrace_export_typed.c. */
#define KY_PF_TYPED_SLOTS 64u
struct ky_pf_typed_event;
struct ky_pf_typed_slot {
	uint32_t string;
	const struct ky_pf_typed_event *event; /* NULL: it has none */
};

struct ky_pf_exporter {
	const struct ky_trace *trace;
	const struct ky_export_selection *selection;
	struct ky_pf_emitter emit;
	struct ky_export_left *left;
	struct ky_addresses addresses;
	struct ky_flow_marks flow_marks;
	uint8_t *known[KY_PF_EXPORT_INTERNED]; /* a bit for each number */
	struct ky_cpu_switches switches;
	struct ky_pf_typed_slot typed[KY_PF_TYPED_SLOTS];
	struct ky_u64_map with_states; /* tids */
	bool states_known;
	uint32_t levels[64]; /* where the levels of nested arguments begin in body */
	uint32_t depth;
	uint64_t clock;    /* enum ky_clock of the file */
	uint64_t event_ns; /* time of the last packet of KY_PF_EXPORT_EVENTS */
};

/* pftrace_export.c: write body as that field of a packet of the file's sequence. */
void ky_pf_export_send_file(struct ky_pf_exporter *w, uint32_t field);
/* pftrace_export.c: write body and interned as a packet with a time. */
void ky_pf_export_send(struct ky_pf_exporter *w, enum ky_pf_export_sequence sequence,
		       uint32_t field, int64_t ts);
/* pftrace_export.c: intern a string unless it was; return true the first time. */
void ky_pf_export_intern(struct ky_pf_exporter *w, enum ky_pf_export_interned what,
			 uint32_t string);
bool ky_pf_export_is_new(struct ky_pf_exporter *w, enum ky_pf_export_interned what,
			 uint32_t number);
void ky_pf_export_string(struct ky_pf_exporter *w, struct ky_out *to, uint32_t field,
			 uint32_t string);

/* pftrace_export.c: return the uuid of a track. */
uint64_t ky_pf_export_thread_uuid(const struct ky_pf_exporter *w, uint32_t thread);
uint64_t ky_pf_export_track(const struct ky_pf_exporter *w, uint32_t track);

/* pftrace_export_events.c */
void ky_pf_export_slice(void *self, const struct ky_walk_item *item);
void ky_pf_export_counter(void *self, const struct ky_walk_item *item);
void ky_pf_export_losses(struct ky_pf_exporter *w);

/* pftrace_export_kernel.c */
void ky_pf_export_sched(void *self, const struct ky_walk_item *item);
void ky_pf_export_sched_end(struct ky_pf_exporter *w);
void ky_pf_export_raw(void *self, const struct ky_walk_item *item);
void ky_pf_export_log(void *self, const struct ky_walk_item *item);

/* pftrace_export_typed.c: write the fields of a kernel event into part. Return its number, or 0 when it is to be generic. */
uint32_t ky_pf_export_typed(struct ky_pf_exporter *w, uint32_t name, uint32_t set);

void ky_pf_export_sample(void *self, const struct ky_walk_item *item);

#endif
