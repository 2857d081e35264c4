/* SPDX-License-Identifier: MIT */
/*
 * pftrace_session.h: a session's Perfetto trace, for the two files that write it.
 *
 *   pftrace_session.c        the file: sequences, tracks, time stamps, the fast path
 *   pftrace_session_event.c  one event as a TrackEvent message
 *
 * Each thread is a packet sequence, as in Perfetto's own SDK. That makes packets small: a sequence has defaults for the
 * track and the clock, and the clock counts from the sequence's last packet, which works because the events of a
 * thread come in order. A sequence has its own interned strings; their ids are derived from the trace point's index,
 * so they are the same in all sequences and one bit per sequence and trace point is all there is to remember.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_SESSION_H
#define KY_FORMATS_PFTRACE_PFTRACE_SESSION_H

#include "formats/format.h"
#include "formats/out.h"
#include "formats/pftrace/pftrace_emit.h"

#define KY_PF_SESSION_BODY_BYTES 32u
#define KY_PF_SESSION_HEAD_BYTES 16u
#define KY_PF_SESSION_SEEN 16384u

/* A thread and its sequence. */
struct ky_pf_session_thread {
	uint64_t last_ns; /* what the next time stamp counts from */
	uint64_t uuid;    /* of its track; 0 until its sequence has started */
	uint64_t *known;  /* a bit for each trace point whose strings the sequence has */
	uint32_t known_words;
	uint8_t head_bytes;
	uint8_t head[KY_PF_SESSION_HEAD_BYTES]; /* of each packet: sequence and flags */
};

/* A trace point: its events' TrackEvent field, as far as it is always the same. */
struct ky_pf_session_site {
	uint8_t body_bytes; /* 0 until made */
	bool plain;         /* an event without arguments is the body and a time, no more */
	uint8_t body[KY_PF_SESSION_BODY_BYTES];
};

struct ky_pf_session {
	struct ky_pf_emitter emit;
	struct ky_table threads; /* struct ky_pf_session_thread */
	struct ky_table sites;   /* struct ky_pf_session_site */
	uint64_t uuid_base;      /* differs from file to file, so that files can be joined */
	int32_t pid;
	uint64_t begin_ns;
	uint64_t seen[KY_PF_SESSION_SEEN]; /* tracks described lately, by uuid modulo the size */
};

/* Write body and interned as one packet of the thread's sequence. */
void ky_pf_session_send(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
			uint64_t time_ns);
/* Return the uuid of a track; all but the process's describe the track on first use. */
uint64_t ky_pf_session_process_uuid(const struct ky_pf_session *w, int32_t pid);
uint64_t ky_pf_session_async_track(struct ky_pf_session *w, const struct ky_event *e);
uint64_t ky_pf_session_counter_track(struct ky_pf_session *w, const struct ky_event *e,
				     const struct kymo_arg *arg);
uint64_t ky_pf_session_snapshots_track(struct ky_pf_session *w, int32_t pid);
uint64_t ky_pf_session_global_track(struct ky_pf_session *w);
/* Return a number that differs for different inputs, for all practical purposes. */
uint64_t ky_pf_session_mix(uint64_t a, uint64_t b);

/* pftrace_session_event.c: fill in what is the same for all events of a trace point. */
void ky_pf_session_event_make(struct ky_pf_session_site *known, const struct ky_site *site);
/* Add the strings of a trace point to interned. */
void ky_pf_session_event_intern(struct ky_pf_session *w, const struct ky_site *site);
/* Write how many events are missing: here in the thread, or (what is not NULL) for a cause, in no thread. */
void ky_pf_session_event_lost(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
			      uint64_t time_ns, uint64_t count, const char *what);
/* Write any event. known is NULL when the event has no trace point. */
void ky_pf_session_event_write(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
			       const struct ky_pf_session_site *known, const struct ky_event *e);

#endif
