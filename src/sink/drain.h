/* SPDX-License-Identifier: MIT */
/*
 * drain.h: a thread of the library that looks after one session or subscription: it wakes up by
 * itself, sooner the more there is to read, and when somebody asks for a flush or the end.
 *
 * The program's threads never signal it: that would be a system call in an event.
 */
#ifndef KY_SINK_DRAIN_H
#define KY_SINK_DRAIN_H

#include "core/drum.h"
#include "core/stream.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Larger rings for whoever reads all along: a file or a callback is slower than the program can be
 * for a while.
 */
#define KY_DRAIN_RING_BYTES (UINT64_C(4) << 20)
#define KY_DRAIN_TOTAL_BYTES (UINT64_C(512) << 20)

enum ky_drain_wish { KY_DRAIN_MORE, KY_DRAIN_REST, KY_DRAIN_END };

struct ky_drain {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* to the thread */
	pthread_cond_t done; /* to those who wait for a flush */
	uint64_t asked;      /* flushes asked for */
	uint64_t answered;   /* flushes done */
	bool stopping;
	bool ended;  /* the last round is over */
	bool joined; /* or about to be */
	bool started;
	/*
	 * One round of work; flush: everything up to now, and through to the file. last: there will
	 * be no other. Returns whether to come again soon, to rest, or (a failure, a limit) to end.
	 */
	enum ky_drain_wish (*round)(void *self, bool flush, bool last);
	void *self;
	void (*gone)(void *self); /* the thread's last act, when nobody will join it */
};

/* CLOCK_MONOTONIC, which naps and limits are measured by. */
uint64_t ky_drain_now_ns(void);

/* Starts the thread with all signals blocked. 0 or a negative error. */
int ky_drain_start(struct ky_drain *drain, void *self,
		   enum ky_drain_wish (*round)(void *self, bool flush, bool last));
/*
 * Waits for a round with flush that began after this call. From the thread itself: returns at once.
 */
void ky_drain_flush(struct ky_drain *drain);
/*
 * Asks for the last round and waits until it is over. By any number of threads at once; the drain
 * stays. From the thread itself: does not wait.
 */
void ky_drain_finish(struct ky_drain *drain);
/* The same, and frees what the drain holds: nobody else may use it. Not from the thread itself. */
void ky_drain_stop(struct ky_drain *drain);
/* From inside a round: nobody will stop the drain; when the round ends it, gone is called. */
void ky_drain_leave(struct ky_drain *drain, void (*gone)(void *self));
/* Whether the caller is the drain's own thread. */
bool ky_drain_is_self(const struct ky_drain *drain);

/* ---- reading the process's own drum while it is written ---- */

/* Takes a sample of the clocks when it is time, or when the rings fill up. */
void ky_drain_read_clock(struct ky_drum *drum, const struct ky_stream *stream);
/* Hands out what came before the last sample, less the time an event may be on its way. */
int ky_drain_read_news(struct ky_stream *stream);
/* Hands out all that was recorded before the call. */
int ky_drain_read_all(struct ky_drum *drum, struct ky_stream *stream);
/* Whether the rings are so full that there is no time for a nap. */
bool ky_drain_read_hurry(const struct ky_stream *stream);

/* ---- pthread_cancel() ---- */

/*
 * Cancellation must not reach a thread that is inside the library: it would leave a lock behind, and the
 * end of the process would wait for it for ever.
 */

/* Holds off cancellation of the calling thread; what it returns is for ky_cancel_restore(). */
static inline int ky_cancel_hold(void)
{
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void ky_cancel_restore(int before)
{
	pthread_setcancelstate(before, NULL);
}

#endif
