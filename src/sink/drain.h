/* SPDX-License-Identifier: MIT */
/*
 * drain.h: the thread of one session or subscription. It wakes up by itself, sooner the more there is to read, and when a
 * flush or the end is requested. Trace points never signal it: that would be a system call in an event.
 */
#ifndef KY_SINK_DRAIN_H
#define KY_SINK_DRAIN_H

#include "core/drum.h"
#include "core/stream.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Larger rings for continuous readers: the program can record faster than they read, for a while. */
#define KY_DRAIN_RING_BYTES (UINT64_C(4) << 20)
#define KY_DRAIN_TOTAL_BYTES (UINT64_C(512) << 20)

enum ky_drain_wish { KY_DRAIN_MORE, KY_DRAIN_REST, KY_DRAIN_END };

/* Invariants, under lock: answered <= asked; ended is set once and for all; joined only after that or by its waiter. */
struct ky_drain {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* to the thread */
	pthread_cond_t done; /* to those who wait for a flush */
	uint64_t asked;      /* flushes asked for */
	uint64_t answered;   /* flushes done */
	bool stopping;
	bool ended;  /* the last round is over */
	bool joined; /* or a thread is about to */
	bool started;
	/*
	 * Do one round of work. flush: everything up to now, and through to the file. last: it is the last round.
	 * Return whether to come again soon, to rest, or (a failure, a limit) to end.
	 */
	enum ky_drain_wish (*round)(void *self, bool flush, bool last);
	void *self;
	void (*gone)(void *self); /* the last call of a thread that is not joined */
};

/* Return CLOCK_MONOTONIC, which naps and limits are measured by. */
uint64_t ky_drain_now_ns(void);

/* Start the thread with all signals blocked. Return 0 or a negative errno. */
int ky_drain_start(struct ky_drain *drain, void *self,
		   enum ky_drain_wish (*round)(void *self, bool flush, bool last));
/* Wait for a round with flush that began after this call. In the thread itself, return at once. */
void ky_drain_flush(struct ky_drain *drain);
/*
 * Ask for the last round and wait until it is over. Any number of threads may do so at once; the drain stays. In the
 * thread itself, do not wait.
 */
void ky_drain_finish(struct ky_drain *drain);
/* The same, and free what the drain holds: no other thread may use it. Not in the thread itself. */
void ky_drain_stop(struct ky_drain *drain);
/* From inside a round: no thread will stop the drain; call gone after the last round. */
void ky_drain_leave(struct ky_drain *drain, void (*gone)(void *self));
/* Report whether the caller is the drain's own thread. */
bool ky_drain_is_self(const struct ky_drain *drain);

/* ---- reading the process's own drum while it is written ---- */

/* Read the clocks when it is time, or when the rings fill up. */
void ky_drain_read_clock(struct ky_drum *drum, const struct ky_stream *stream);
/* Deliver the events before the last reading of the clocks, less the time an event may be on its way. */
int ky_drain_read_news(struct ky_stream *stream);
/* Deliver all events recorded before the call. */
int ky_drain_read_all(struct ky_drum *drum, struct ky_stream *stream);
/* Report whether the rings are too full for a nap. */
bool ky_drain_read_hurry(const struct ky_stream *stream);

/* ---- pthread_cancel() ---- */

/*
 * Cancellation must not reach a thread that is inside the library: it would leave a lock behind, and the
 * end of the process would wait for it for ever.
 */

/* Hold off cancellation of the calling thread. Return the state for ky_drain_cancel_restore(). */
static inline int ky_drain_cancel_hold(void)
{
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void ky_drain_cancel_restore(int before)
{
	pthread_setcancelstate(before, NULL);
}

#endif
