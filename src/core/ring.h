/* SPDX-License-Identifier: MIT */
/*
 * ring.h: the writing side of the rings. A writer is a thread's private view of the ring that it owns. A thread has a few
 * of them, for signal handlers that interrupt an event (level 1 and up).
 */
#ifndef KY_CORE_RING_H
#define KY_CORE_RING_H

#include "core/assert.h"
#include "core/drum.h"

#include <kymo/kymo.h>

/*
 * Only the thread itself and its signal handlers use a writer, but for pub.ky_high.
 *
 * Parking: an event adds its stack pointer and 1 to pub.ky_pos with one instruction and owns the writer if it was not
 * parked before; the store of ky_pos at its end unparks it. The slow path also holds the writer (parked.h): at is where
 * its event goes, frame not 0. So each function below that is called for a held writer has it alone.
 *
 * Invariants:
 *   - ring NULL: pub.ky_end is 0, so that every event takes the slow path.
 *   - pub.ky_end not 0: it is the end of block next - 1; ky_pos, or at of a held writer, is in its words or at the end,
 *     and the words from there on are zero.
 *   - first <= next == ring->head. pub.ky_events is events_before of the newest block plus its events.
 *   - high is the counter's high half that a reader of the block has at ky_pos.
 */
struct ky_ring_writer {
	struct kymo_i_writer pub; /* first: all that kymo.h's fast path sees */
	struct ky_drum_ring *ring;
	uint8_t *base;   /* of the ring's memory */
	uint64_t blocks; /* in the ring, a power of two */
	uint64_t next;   /* number of the block to begin next */
	uint64_t first;  /* number of the first block that it began here */
	uint32_t high;   /* the counter's high half; pub.ky_high may be ~0 instead */
	uint32_t level;
	uint32_t pid; /* of a forked child that writes into its parent's drum; else 0 */
	bool apart;   /* the child is in another pid namespace: see KY_RING_APART */
	bool grown;   /* the child has filled its first ring */
	bool quiet; /* its events make no system call: no readings of the clocks, no larger ring */
	uint64_t wanted_bytes; /* the drum's ring_bytes when this ring was taken */
	/* There was no ring left, not even a dead thread's: */
	uint64_t vain_ticks;   /* when it looked for dead threads again */
	uint32_t vain_looks;   /* where */
	uint32_t vain_changes; /* room_changes then, with bit 31 set; 0: it has not looked yet */
	uintptr_t at;          /* of a held writer: where its event goes; 0 without a block */
	uintptr_t frame; /* of a held writer: the stack pointer of the event's caller; else 0 */
};

/*
 * Set in the owner of a ring whose thread is in another pid namespace. Ids of another namespace do not show whether a
 * thread lives: nobody takes such a ring for a dead thread's, and such a thread takes none.
 */
#define KY_RING_APART (1u << 31)
static inline uint32_t ky_ring_owner(const struct ky_ring_writer *w, uint32_t tid)
{
	return w->apart ? tid | KY_RING_APART : tid;
}

/*
 * Take a ring of that size and populate it, so that events need no system call later. The thread itself, with its signals
 * held. Return false when no ring is left.
 */
bool ky_ring_prepare(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, bool large);

/* Give the ring of a thread that ends back. Its blocks stay readable until the next owner overwrites them. */
void ky_ring_release(struct ky_drum *drum, struct ky_ring_writer *w);
/* The same of one that goes on in another ring. */
void ky_ring_leave(struct ky_drum *drum, struct ky_ring_writer *w);
/* The same for a thread that ended, unless its ring has another owner already. */
void ky_ring_release_dead(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t dead,
			  uint32_t tid);

/*
 * Take up the ring again, with a new block, after an event was left while it began one. Readers find whole blocks, as
 * after the death of a ring's owner. The caller holds the writer.
 */
void ky_ring_restart(struct ky_drum *drum, struct ky_ring_writer *w);

/* Report whether the event and a control word before it fit in the block. The caller holds the writer. */
static inline bool ky_ring_has_room(const struct ky_ring_writer *w, uint32_t words)
{
	return w->ring && w->at + 8u * (words + 2) <= w->pub.ky_end;
}
/* Move to a new ring of twice the size, if the budget allows it. The caller holds the writer. */
bool ky_ring_grow(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid);

/*
 * Return room for an event with that many words after its header, and its time. Begin a block and write out the
 * counter's high half as needed. The caller holds the writer.
 */
uint64_t *ky_ring_reserve(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid,
			  uint32_t name, uint32_t words, uint64_t *ticks);
/* The same for an event whose time is known: another thread's. */
uint64_t *ky_ring_reserve_at(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid,
			     uint32_t name, uint32_t words, uint64_t ticks);

/* Make the event visible, count it and unpark the writer, which continues at the event's end. No frame is set. */
static inline void ky_ring_commit(struct kymo_i_writer *w, uint64_t *slot, uint64_t header,
				  const uint64_t *end)
{
	KY_ASSERT(header >> KY_WORD_SITE_SHIFT >= KY_CONTROL_MAX);
	KY_ASSERT(end == slot + 1 + KY_WORD_LENGTH(header));
	KY_ASSERT((uintptr_t)end <= w->ky_end);
	/* Pairs with the acquire load of the header in copy_events(): the items are there before it. */
	__atomic_store_n(slot, header, __ATOMIC_RELEASE);
	w->ky_events++;
	/* A signal handler that finds the writer free finds the event whole. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	KYMO_I_STORE(&w->ky_pos, (uintptr_t)end);
}

/* Set while every event must take the slow path: a marker session runs. */
extern uint32_t ky_ring_slow_only;

#endif
