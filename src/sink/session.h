/* SPDX-License-Identifier: MIT */
/*
 * session.h of the sink: what a session is made of, for the files that share the work: session.c
 * (its life), record.c (a round of reading and writing), env.c (started by the environment).
 */
#ifndef KY_SINK_SESSION_H
#define KY_SINK_SESSION_H

#include "core/drum.h"
#include "core/stream.h"
#include "sink/drain.h"
#include "sink/output.h"
#include "sink/spans.h"

#include <kymo/session.h>
#include <stdatomic.h>

struct kymo_session {
	struct ky_drain drain;
	struct kymo_options options; /* with strings of our own */
	struct ky_drum *drum;
	struct ky_output output;
	struct ky_stream stream; /* ring mode: only while a file is written */
	struct ky_spans spans;
	int32_t pid;
	int slot; /* in the drum's recorders; -1: given back */
	int fd;   /* ring mode without a path: a descriptor of our own, else -1 */
	int format;
	uint64_t start_ticks;
	uint64_t start_ns;
	uint64_t flushed_ns;
	uint64_t lost_before;    /* the drum's own counts when the session began */
	uint64_t snapshots_seen; /* ring mode */
	uint64_t mark_seen;      /* ring mode: the mark that a snapshot began at already */
	uint64_t written;        /* events */
	uint32_t clocks_written; /* samples given to the writer */
	uint64_t clock_ns;       /* of the last of them */
	uint32_t process_name;   /* as last written */
	uint32_t rotation;
	bool full; /* max_bytes reached, and the path has no ${rotation} */
	_Atomic int error;
	_Atomic uint64_t events;
	_Atomic uint64_t lost;
	_Atomic uint64_t bytes;
	_Atomic uint32_t files;
	struct kymo_session *next; /* in the list of all */
};

/* Opens the stream and the first file. */
int ky_record_begin(struct kymo_session *session);
/* A round of the drain thread. */
enum ky_drain_wish ky_record_round(void *session, bool flush, bool last);
/* Frees what ky_record_begin made. */
void ky_record_free(struct kymo_session *session);
/* In a forked child: closes the copies of the parent's descriptors, and no more. */
void ky_record_forget(struct kymo_session *session);
/* Keeps the first error. */
void ky_session_fail(struct kymo_session *session, int error);
/* Switches the session's categories off, where no other wants them. */
void ky_session_stop_recording(struct kymo_session *session);
/* Whether its time is up. */
bool ky_session_is_over(const struct kymo_session *session, uint64_t now_ns);

/* marker.c: sends events to ftrace. One at a time: -EBUSY. */
int ky_marker_start(struct kymo_session *session);
/* Of a session that is none of its own too. False when a thread still uses the session. */
bool ky_marker_stop(struct kymo_session *session);
/* In a forked child: no session is. */
void ky_marker_forget(void);
int ky_marker_fd(void); /* -1 when there is none */

#endif
