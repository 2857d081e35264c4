/* SPDX-License-Identifier: MIT */
/*
 * session.h of the sink: the parts of a session, for the files that share the work: session.c (starts and stops it),
 * record.c (a round of reading and writing), env.c (started by the environment).
 */
#ifndef KY_SINK_SESSION_H
#define KY_SINK_SESSION_H

#include "core/drum.h"
#include "core/losses.h"
#include "core/stream.h"
#include "sink/drain.h"
#include "sink/output.h"
#include "sink/spans.h"

#include <kymo/session.h>
#include <stdatomic.h>

/* How a session that the environment starts differs from others. */
struct ky_session_env {
	bool whole;  /* begin with the oldest event in the rings: a forked child's */
	bool resume; /* go on where the last session was left (drum_header.left_...) */
	void (*failed)(
		int error); /* called once by the thread, if the session ends with an error */
};

/*
 * Invariants: all but the atomics and drain belongs to the drain's thread from its start to its end. A session is in the
 * list of all from its start until its file is finished. error is set once.
 */
struct kymo_session {
	struct ky_drain drain;
	struct kymo_options options; /* with copies of the strings */
	struct ky_session_env env;
	bool by_env; /* KYMO_TRACE started it */
	struct ky_drum *drum;
	struct ky_output output;
	struct ky_stream stream; /* ring mode: only while a file is written */
	struct ky_spans spans;
	int32_t pid;
	int slot;   /* in the drum's recorders; -1: given back */
	int reader; /* in the drum's readers; -1: none */
	int fd;     /* ring mode without a path: a descriptor of our own, else -1 */
	int format;
	uint64_t start_ticks;
	uint64_t start_ns;
	uint64_t flushed_ns;
	struct ky_lost_counts lost_before; /* the drum's own counts when the session began */
	struct ky_lost_counts losses_told; /* the same, in the files before this one */
	uint64_t lost_told;                /* events in all, in the files before this one */
	uint64_t held_bytes;               /* at most so much of the file is not packed yet */
	uint64_t safe;                     /* events that are in a file for certain */
	bool rotation_due;                 /* the next event begins the next file */
	uint64_t snapshots_seen;           /* ring mode */
	uint64_t mark_seen;                /* ring mode: the last mark that a snapshot began at */
	uint64_t written;                  /* events */
	uint32_t clocks_written;           /* readings given to the writer */
	uint64_t clock_ns;                 /* of the last of them */
	uint32_t process_name;             /* as last written */
	uint32_t rotation;
	bool full; /* max_bytes reached, and the path has no ${rotation} */
	/* For other threads. Each is read alone: no access to other memory is ordered by them. */
	_Atomic int error;
	_Atomic uint64_t events;
	_Atomic uint64_t lost;
	_Atomic uint64_t bytes;
	_Atomic uint32_t files;
	struct kymo_session *next; /* in the list of all */
};

/* Start a session as kymo_session_start() for the environment. */
__attribute__((cold)) int ky_session_start(struct kymo_session **session,
					   const struct kymo_options *options,
					   const struct ky_session_env *env);
/* Finish the session's file and stop it, so that another copy of the library can go on. */
void ky_session_leave(struct kymo_session **session);
/* Open the stream and the first file. Return 0 or a negative error. */
int ky_record_begin(struct kymo_session *session);
/* Do a round of the drain thread. */
enum ky_drain_wish ky_record_round(void *session, bool flush, bool last);
/* Free what ky_record_begin() made. */
void ky_record_free(struct kymo_session *session);
/* Close, in a forked child, the copies of the parent's descriptors, and no more. */
void ky_record_forget(struct kymo_session *session);
/* Keep the error if it is the first. */
void ky_session_fail(struct kymo_session *session, int error);
/* Switch the session's categories off, unless another recorder wants them. */
void ky_session_stop_recording(struct kymo_session *session);
/* Report whether the session's time is up. */
bool ky_session_is_over(const struct kymo_session *session, uint64_t now_ns);

/* Call visit with each descriptor that the sessions of this process write to. */
void ky_session_each_fd(void (*visit)(int fd, void *context), void *context);

/* env.c: begin the session that waits for the first event of a forked child. */
void ky_env_begin(void);

/* marker.c: begin to send events to ftrace. Return 0, KYMO_EMARKER, or -EBUSY when another session does. */
int ky_marker_start(struct kymo_session *session);
/* Stop it; do nothing for other sessions. Return false when a thread still uses the session. */
bool ky_marker_stop(struct kymo_session *session);
/* Forget, in a forked child, the parent's session. */
void ky_marker_forget(void);
/* Return the descriptor in use, or -1. */
int ky_marker_fd(void);

#endif
