/* SPDX-License-Identifier: MIT */
/*
 * ring.h: the writing side of the rings. A writer is a thread's private view of the ring it owns; a
 * thread has a few of them, for signal handlers that interrupt an event (level 1 and up).
 */
#ifndef KY_CORE_RING_H
#define KY_CORE_RING_H

#include "core/drum.h"

#include <kymo/kymo.h>

struct ky_ring_writer {
	struct kymo_i_writer pub; /* first: kymo.h's fast path sees this alone */
	struct ky_drum_ring *ring;
	uint8_t *base;   /* of the ring's memory */
	uint64_t blocks; /* in the ring, a power of two */
	uint64_t next;   /* number of the block to begin next */
	uint64_t first;  /* of the first that it began here */
	uint32_t high;   /* the counter's high half; pub.ky_high may be ~0 instead */
	uint32_t level;
	uint32_t pid;          /* of a forked child that writes into its parent's drum; else 0 */
	bool apart;            /* the child is in another pid namespace: see ky_ring_owner() */
	bool grown;            /* the child has filled its first ring */
	uint64_t wanted_bytes; /* the drum's ring_bytes when this ring was taken */
	uint64_t vain_ticks;   /* when no ring could be had, not even a dead thread's */
};

/*
 * What a ring's entry has as the thread that owns it. Numbers of another pid namespace say nothing about who lives: such a ring is
 * nobody's to judge, and who is there judges none.
 */
#define KY_RING_APART (1u << 31)
static inline uint32_t ky_ring_owner(const struct ky_ring_writer *w, uint32_t tid)
{
	return w->apart ? tid | KY_RING_APART : tid;
}

/* Takes a ring for the thread. 0, or -ENOSPC when there is none to be had. */
int ky_ring_take(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid);
/* Gives it back; its blocks stay readable until somebody overwrites them. */
void ky_ring_release(struct ky_drum *drum, struct ky_ring_writer *w);
/* The same for a thread that ended, unless somebody has its ring already. */
void ky_ring_release_dead(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t dead,
			  uint32_t tid);

/*
 * Room for an event of that many words beside its header, and its time. The writer is parked by the
 * caller; *pos is where it was. Begins a block and writes out the counter's high half as needed.
 */
uint64_t *ky_ring_reserve(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid,
			  uint32_t name, uint32_t words, uint64_t *ticks);
/* The same for an event whose time is known: for whoever records another thread's. */
uint64_t *ky_ring_reserve_at(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid,
			     uint32_t name, uint32_t words, uint64_t ticks);

/* Makes the event visible, counts it and unparks the writer, which goes on at the event's end. */
static inline void ky_ring_commit(struct kymo_i_writer *w, uint64_t *slot, uint64_t header,
				  const uint64_t *end)
{
	/* Release: the items are there before the header says so. */
	__atomic_store_n(slot, header, __ATOMIC_RELEASE);
	w->ky_events++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	KYMO_I_STORE(&w->ky_pos, (uintptr_t)end);
}

/* Whether every event must take the slow path: there is no counter, or a marker session runs. */
extern uint32_t ky_ring_slow_only;

#endif
