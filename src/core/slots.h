/* SPDX-License-Identifier: MIT */
/*
 * slots.h: the slots of the threads that trace.
 *
 * A slot is a few writers, one for each depth at which signal handlers may interrupt events. Slots are in
 * memory that the kernel zeroes in a forked child, so that a child's first event notices the fork, even after a raw clone().
 */
#ifndef KY_CORE_SLOTS_H
#define KY_CORE_SLOTS_H

#include "core/coarse.h"
#include "core/ring.h"

#define KY_LEVELS 4u

/*
 * A slot has cache lines of its own: two threads must not slow each other down.
 *
 * Invariants: the thread whose id is in tid uses the slot alone; another may take it only after that thread ended, by a
 * compare-and-swap of tid. level[i].level is i while tid is not 0. If level[i] is parked, so are all levels below it.
 * kymo_i_tls points to level[0] of the thread's slot, or to the idle writer, or (in a forked child) to a wiped slot.
 */
struct ky_slot {
	/* First: kymo_i_tls points there. */
	_Alignas(64) struct ky_ring_writer level[KY_LEVELS];
	uint32_t tid;   /* 0: free, or wiped by fork */
	uint32_t name;  /* of the thread, a string in the heap */
	uint32_t exits; /* rounds of its destructors so far */
	bool prepared;  /* ky_slots_prepare_thread() */
	/* The level that events use: 1 if the counter may not be read, because level 0 reads it. */
	uint32_t lowest;
	struct ky_coarse coarse;
	/* stall.h: */
	bool stalling;                  /* its event waits for a reader; it has not begun */
	struct ky_drum_ring *vain_ring; /* a reader of this ring was waited for in vain */
	uint64_t vain_read;             /* when it was here */
};

/*
 * A linker takes from a static library only what is referred to. The slots, which every trace point refers to,
 * refer to these, and so link the constructors of init.c and of sink/env.c.
 */
extern const char ky_init_linked, ky_env_linked;

/* Make the thread-exit hook; once, when the library is loaded. */
void ky_slots_prepare(void);
/*
 * Do all for the calling thread that its events would need system calls for. strict: nor may they read the CPU's counter.
 * Return 0, or -EAGAIN without a ring.
 */
int ky_slots_prepare_thread(struct ky_drum *drum, bool strict);
/* Give the threads' rings back and remove the hook, before the library is unmapped: no thread is in an event. */
void ky_slots_unload(void);
/* Forget the parent's slots: in a forked child, before anything is recorded. */
void ky_slots_forget(void);
/* Leave the calling thread's slot, which is the parent's: by the thread that forked. */
void ky_slots_leave(void);
/*
 * Around a fork, by the thread that forks. When it does so in a handler that interrupted an event, both processes finish
 * that event: the child, as it is in the parent's rings, out of sight.
 */
void ky_slots_before_fork(void);
void ky_slots_after_fork(void); /* in the child */

/* Return the calling thread's slot, or NULL: then the caller counts the loss. */
struct ky_slot *ky_slots_own(struct ky_drum *drum);
/* Return the first slot, from which a slot has its number. */
const struct ky_slot *ky_slots_first(void);
static inline uint32_t ky_slots_tid(const struct ky_slot *slot)
{
	return __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);
}

/* Send all events through the slow path, and so to its hook (writer.h); or stop doing so. */
void ky_slots_slow_only(bool on);
/*
 * Wait for threads that are in the middle of an event: afterwards all events that began before the call are in the rings.
 * A thread may be suspended there for long: wait() is called between two looks, and ends the wait by returning false.
 */
void ky_slots_settle(bool (*wait)(void *context), void *context);

#endif
