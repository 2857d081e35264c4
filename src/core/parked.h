/* SPDX-License-Identifier: MIT */
/*
 * parked.h: hold a writer for an event of the slow path, and notice events that were left in the middle.
 *
 * A signal handler that interrupted an event finds the writer parked, and uses the next level's. It may also never return
 * to that event: siglongjmp, an exception, a cancellation. Then the writer stays parked. The event's stack pointer shows
 * that it is over: what runs at that place of the stack, or above it, did not interrupt it.
 *
 *   older frames    ┌──────────────────┐ high addresses
 *                   │ calls f()        │ ◀─ an event here, or in f() again: the one below is over
 *                   ├──────────────────┤
 *                   │ f(): parked here │
 *                   ├──────────────────┤
 *                   │ signal handler   │ ◀─ an event here: the one above goes on later
 *                   └──────────────────┘ low addresses
 */
#ifndef KY_CORE_PARKED_H
#define KY_CORE_PARKED_H

#include "core/ring.h"

/* Park the writer for an event whose stack pointer is frame. Return the old position. */
static inline uintptr_t ky_parked_park(struct kymo_i_writer *w, uintptr_t frame)
{
	uintptr_t pos = frame + 1;
#if defined(__x86_64__)
	__asm__ volatile("xaddq %0, %1" : "+r"(pos), "+m"(w->ky_pos) : : "memory", "cc");
	return pos;
#else
	return __atomic_fetch_add(&w->ky_pos, pos, __ATOMIC_RELAXED);
#endif
}

/* The stack pointer of the function's caller. */
#define KY_PARKED_FRAME() ((uintptr_t)__builtin_dwarf_cfa())

enum ky_parked_hold {
	KY_PARKED_BUSY,  /* with an event that goes on later */
	KY_PARKED_HELD,  /* was free */
	KY_PARKED_TAKEN, /* its event was left: it is counted as lost unless it is whole */
};

/* Report whether the position is a parked writer's. No multiple of 8: by one event, or several that interrupted it. */
static inline bool ky_parked_is_parked(uintptr_t pos, uintptr_t end)
{
	return pos % 8 != 0 || pos > end;
}

/* Hold a writer that was parked at pos if its event is over. */
enum ky_parked_hold ky_parked_take(struct ky_drum *drum, struct ky_ring_writer *w, uintptr_t pos,
				   uintptr_t frame);

/* Hold the writer for an event, unless it is busy. */
static inline enum ky_parked_hold ky_parked_hold(struct ky_drum *drum, struct ky_ring_writer *w,
						 uintptr_t frame)
{
	const uintptr_t pos = ky_parked_park(&w->pub, frame);
	if (KYMO_I_UNLIKELY(ky_parked_is_parked(pos, w->pub.ky_end)))
		return ky_parked_take(drum, w, pos, frame);
	w->at = pos;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	KYMO_I_STORE(&w->frame, frame);
	return KY_PARKED_HELD;
}
/* Take the writer if it is parked by an event that was left, and unpark it. */
void ky_parked_clean(struct ky_drum *drum, struct ky_ring_writer *w, uintptr_t frame);
/*
 * Report whether an event with the stack pointer held is over when another of its thread has frame. quiet: without a
 * system call, so only at the same place.
 */
bool ky_parked_is_over(uintptr_t held, uintptr_t frame, bool quiet);

/* Let go of a held writer without an event. */
static inline void ky_parked_unhold(struct ky_ring_writer *w)
{
	KYMO_I_STORE(&w->frame, 0);
	/* A signal handler that finds the writer free may change all of it. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	KYMO_I_STORE(&w->pub.ky_pos, w->at);
}

/* Publish the event of a held writer, and let go of it. */
static inline void ky_parked_commit(struct ky_ring_writer *w, uint64_t *slot, uint64_t header,
				    const uint64_t *end)
{
	KYMO_I_STORE(&w->frame, 0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ky_ring_commit(&w->pub, slot, header, end);
}

#endif
