/* SPDX-License-Identifier: MIT */
/*
 * writer.h: which writer an event goes to, and the slow path of the trace points.
 *
 * A thread that traces has a slot: a few writers, one for each depth at which signal handlers may
 * interrupt events. Slots are in memory that the kernel zeroes in a forked child, so that a child's
 * first event finds that it is in a child, even after a raw clone().
 */
#ifndef KY_CORE_WRITER_H
#define KY_CORE_WRITER_H

#include "core/ring.h"

#define KY_LEVELS 4u

/* A slot has cache lines of its own: two threads must not slow each other down. */
struct ky_slot {
	_Alignas(64) struct ky_ring_writer level[KY_LEVELS]; /* first: kymo_i_tls points there */
	uint32_t tid;                                        /* 0: free, or wiped by fork */
	uint32_t name; /* of the thread, a string in the heap */
};

/*
 * A linker takes from a static library only what is referred to. The slow path, which every trace point
 * refers to, refers to these: so the constructors of init.c and of sink/env.c come along.
 */
extern const char ky_init_linked, ky_env_linked;

/* Makes the thread-exit hook; once, when the library is loaded. */
void ky_writer_prepare(void);
/* Before the library is unmapped: no thread must call into it when it ends. */
void ky_writer_unload(void);
/* In a forked child, before anything is recorded; and by the thread that forked. */
void ky_writer_forget(void);
void ky_writer_leave(void);

/* Called after an event was recorded in the slow path, in its thread: the marker backend. */
typedef void ky_event_hook_fn(const struct kymo_site_info *info, bool end, const uint64_t *values);
extern ky_event_hook_fn *ky_event_hook;
/* Sends all events through the slow path, and so to the hook; or lets them go again. */
void ky_writer_slow_only(bool on);
/*
 * Waits for threads that are in the middle of an event: afterwards all that began before the call is
 * in the rings. A thread may be held up there for long: between two looks wait() is called, and when it
 * returns false, that is the end.
 */
void ky_writer_settle(bool (*wait)(void *context), void *context);

/* Records whether or not the category is on. Registers the site if need be. 1 or 0. */
int ky_writer_record(struct kymo_i_site *site, uint64_t end_bit, uint32_t items, uint64_t types,
		     const uint64_t *values);

/* The same in two steps, for embedded libraries: room for the items, then the event. */
int ky_writer_reserve(uint64_t site, uint32_t words, struct kymo_reservation *reservation);
void ky_writer_commit(struct kymo_reservation *reservation, bool end);

#endif
