/* SPDX-License-Identifier: MIT */
/*
 * pftrace_emit.h: what the files of the Perfetto writer share.
 *
 *   pftrace_emit.c        the file: sequences, packets, time stamps, the fast path
 *   pftrace_emit_event.c  one event as a TrackEvent message
 *   pftrace_emit_track.c  the tracks that events are on, and their descriptions
 *
 * Each thread is a packet sequence, as in Perfetto's own SDK. That makes packets small: a sequence
 * has defaults for the track and the clock, and the clock counts from the sequence's last packet,
 * which works out because the events of a thread come in order. A sequence has its own interned
 * strings; the numbers for them are derived from the trace point's index, so they are the same in
 * all sequences and the only thing to remember is one bit per sequence and trace point.
 *
 * Numbers of messages and fields are those of perfetto's protos/perfetto/trace.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_EMIT_H
#define KY_FORMATS_PFTRACE_PFTRACE_EMIT_H

#include "formats/format.h"
#include "formats/table.h"

#define KY_PFT_BODY_BYTES 32u
#define KY_PFT_HEAD_BYTES 16u
#define KY_PFT_SEEN 16384u

/* A thread and its sequence. */
struct ky_pft_thread {
	uint64_t last_ns; /* what the next time stamp counts from */
	uint64_t uuid;    /* of its track; 0 until the sequence has begun */
	uint64_t *known;  /* a bit for each trace point whose strings the sequence has */
	uint32_t known_words;
	uint8_t head_bytes;
	uint8_t head[KY_PFT_HEAD_BYTES]; /* of each packet: sequence and flags */
};

/* A trace point: its events' TrackEvent field, as far as it is always the same. */
struct ky_pft_site {
	uint8_t body_bytes; /* 0 until made */
	bool plain;         /* an event without arguments is the body and a time, no more */
	uint8_t body[KY_PFT_BODY_BYTES];
};

struct ky_pft {
	struct ky_out *out;
	struct ky_out body;      /* the TrackEvent being put together */
	struct ky_out interned;  /* the InternedData that goes with it */
	struct ky_out part;      /* a message inside one of these */
	struct ky_out clean;     /* text made valid */
	struct ky_table threads; /* struct ky_pft_thread */
	struct ky_table sites;   /* struct ky_pft_site */
	uint64_t uuid_base;      /* differs from file to file, so that files can be joined */
	int32_t pid;
	uint64_t seen[KY_PFT_SEEN]; /* tracks described lately, by uuid modulo the size */
};

/* pftrace_emit.c: the descriptions in w->body or w->part as a packet of their own. */
void ky_pft_describe(struct ky_pft *w, const struct ky_out *descriptor);
/* pftrace_emit.c: w->body and w->interned as one packet of the thread's sequence. */
void ky_pft_send(struct ky_pft *w, struct ky_pft_thread *thread, uint64_t time_ns);

/* pftrace_emit_event.c: fills in what is the same for all events of a trace point. */
void ky_pft_make_site(struct ky_pft_site *known, const struct ky_site *site);
/* pftrace_emit_event.c: the strings of a trace point, into w->interned. */
void ky_pft_intern_site(struct ky_pft *w, const struct ky_site *site);
/* pftrace_emit_event.c: sends any event. known is NULL when the event has no trace point. */
void ky_pft_write_event(struct ky_pft *w, struct ky_pft_thread *thread,
			const struct ky_pft_site *known, const struct ky_event *e);

/* pftrace_emit_track.c: the uuids of tracks; those with a writer describe the track on first use. */
uint64_t ky_pft_process_uuid(const struct ky_pft *w, int32_t pid);
uint64_t ky_pft_thread_uuid(const struct ky_pft *w, uint32_t index);
uint64_t ky_pft_async_track(struct ky_pft *w, const struct ky_event *e);
uint64_t ky_pft_counter_track(struct ky_pft *w, const struct ky_event *e,
			      const struct kymo_arg *arg);
uint64_t ky_pft_snapshots_track(struct ky_pft *w, int32_t pid);
uint64_t ky_pft_global_track(struct ky_pft *w);
void ky_pft_describe_process(struct ky_pft *w, int32_t pid, struct ky_text name,
			     struct ky_text command);
void ky_pft_describe_thread(struct ky_pft *w, const struct ky_thread *thread);
/* A number that is different for different inputs, for all practical purposes. */
uint64_t ky_pft_mix(uint64_t a, uint64_t b);

#endif
