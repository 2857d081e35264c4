/* SPDX-License-Identifier: MIT */
/*
 * ring_read.h: the reading side of one ring. Any number of readers, each with a place of its own; the
 * writer does not know of them. A reader copies what is new, checks that it was not overwritten
 * meanwhile, and learns exactly how many events it missed when it was.
 */
#ifndef KY_CORE_RING_READ_H
#define KY_CORE_RING_READ_H

#include "core/drum_view.h"

/* A piece of a block, copied: whole events in the order they were written. */
struct ky_block {
	uint32_t ring; /* index in the directory */
	uint32_t tid;
	uint32_t pid;  /* 0: the drum's own */
	uint32_t name; /* the thread's, a string in the heap */
	uint32_t level;
	uint64_t number; /* of the block in its ring */
	uint32_t from;   /* where in the block the piece begins, in words */
	uint32_t count;  /* words */
	uint32_t high;   /* the counter's high half where it begins */
	uint32_t events; /* in the piece */
	uint64_t lost;   /* events of the ring missing right before it */
	const uint64_t *words;
};

struct ky_ring_cursor {
	uint64_t at;     /* of the ring in the drum, checked */
	uint64_t blocks; /* in the ring; 0: not looked at yet */
	uint64_t number; /* of the block to read from */
	uint64_t events; /* of the ring, read or known to be lost */
	uint32_t word;   /* in that block */
	uint32_t high;
	uint32_t ring;
	bool counted;        /* events is right */
	uint64_t damaged;    /* places where there was no event and should have been */
	uint64_t damaged_at; /* the first of them, from the beginning of the drum */
};

/* At the ring's oldest whole block, or (with newest) at what is being written now. */
void ky_ring_cursor_init(struct ky_ring_cursor *cursor, uint32_t ring, bool newest);

/* Whether the ring's entry is complete and lies in the drum; it is looked at until it does. */
bool ky_ring_find(const struct ky_drum_view *view, struct ky_ring_cursor *cursor);

/*
 * Copies the next piece into words (KY_BLOCK_WORDS of them) and describes it in *block. Returns true
 * when there was one; it may have no words when it only tells of a loss.
 */
bool ky_ring_read(const struct ky_drum_view *view, struct ky_ring_cursor *cursor, uint64_t *words,
		  struct ky_block *block);

/* Whether the block that the cursor is in has events that it has not read. */
bool ky_ring_news(const struct ky_drum_view *view, const struct ky_ring_cursor *cursor);

#endif
