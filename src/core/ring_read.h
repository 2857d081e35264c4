/* SPDX-License-Identifier: MIT */
/*
 * ring_read.h: the reading side of one ring. Any number of readers, each with a cursor of its own; the writer does not
 * know of them. A reader copies what is new, checks that the owner did not overwrite it during the copy, and otherwise
 * learns exactly how many events it missed.
 */
#ifndef KY_CORE_RING_READ_H
#define KY_CORE_RING_READ_H

#include "core/drum_view.h"

/* A copied piece of a block: whole events in the order they were written. Invariant: from + count <= its words. */
struct ky_block {
	uint32_t ring; /* index in the directory */
	uint32_t tid;
	uint32_t pid;  /* 0: the drum's own */
	uint32_t name; /* the thread's, a string in the heap */
	uint32_t level;
	uint64_t number; /* of the block in its ring */
	uint64_t ticks;  /* when the block began */
	uint64_t
		left_ticks; /* when the ring's owner before this one left it, with KY_RING_MOVED; 0: not known, or as before */
	uint32_t from;   /* where in the block the piece begins, in words */
	uint32_t count;  /* words */
	uint32_t high;   /* the counter's high half where it begins */
	uint32_t events; /* in the piece */
	uint64_t lost;   /* events of the ring missing right before it */
	const uint64_t *words;
};

/*
 * Where a reader is in a ring. Invariants, once blocks is not 0: [at, at + blocks * KY_BLOCK_BYTES) is in the drum;
 * blocks is a power of two; word is at most a block's words. number never decreases.
 */
struct ky_ring_cursor {
	uint64_t at;     /* of the ring in the drum, checked */
	uint64_t blocks; /* in the ring; 0: not found yet */
	uint64_t number; /* of the block to read from */
	uint64_t events; /* of the ring: read, or known to be lost */
	uint32_t word;   /* in that block */
	uint32_t high;
	uint32_t ring;
	bool counted;        /* events is right */
	uint64_t damaged;    /* places with words that are no event */
	uint64_t damaged_at; /* the first of them, from the beginning of the drum */
};

/* Begin at the ring's oldest whole block, or (with newest) at the block being written. */
void ky_ring_cursor_init(struct ky_ring_cursor *cursor, uint32_t ring, bool newest);

/* Find the ring's memory. Return false while its entry is incomplete or not within the drum. */
bool ky_ring_find(const struct ky_drum_view *view, struct ky_ring_cursor *cursor);

/*
 * Copy the next piece into words (KY_BLOCK_WORDS of them) and describe it in *block. Return false when there is none.
 * A piece that only reports a loss has no words.
 */
bool ky_ring_read(const struct ky_drum_view *view, struct ky_ring_cursor *cursor, uint64_t *words,
		  struct ky_block *block);

/* Return the block that the ring's owner began last, or NULL. It may change at any moment. */
const struct ky_drum_block *ky_ring_newest(const struct ky_drum_view *view,
					   const struct ky_ring_cursor *cursor);

/* Report whether the cursor's block has events that it has not read. */
bool ky_ring_news(const struct ky_drum_view *view, const struct ky_ring_cursor *cursor);

#endif
