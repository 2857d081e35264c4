/* SPDX-License-Identifier: MIT */
/*
 * ring_read.c: copying pieces of blocks while their owner may overwrite them. Layout.h has the protocol;
 * what is read before the second look at seq is only believed after it.
 */
#include "core/ring_read.h"

#include "os/os.h"

#include <string.h>

#define PAYLOAD_WORDS (KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS)

void ky_ring_cursor_init(struct ky_ring_cursor *cursor, uint32_t ring, bool newest)
{
	memset(cursor, 0, sizeof(*cursor));
	cursor->ring = ring;
	cursor->counted = !newest;
	cursor->number = newest ? UINT64_MAX : 0;
}

/* Looks at the ring's entry once; its memory must lie in the drum. */
bool ky_ring_find(const struct ky_drum_view *view, struct ky_ring_cursor *c)
{
	if (c->blocks)
		return true;
	const struct ky_drum_ring *ring = &view->rings[c->ring];
	const uint64_t bytes = __atomic_load_n(&ring->bytes, __ATOMIC_ACQUIRE);
	const uint64_t at = __atomic_load_n(&ring->at, __ATOMIC_RELAXED);
	if (bytes < KY_RING_BYTES_MIN || (bytes & (bytes - 1)) != 0 || at % 8 != 0 ||
	    at < view->header.space_at || at > view->bytes || bytes > view->bytes - at)
		return false;
	c->at = at;
	c->blocks = bytes / KY_BLOCK_BYTES;
	return true;
}

/* Copies whole events from c->word on; counts them and follows the counter's high half. */
static uint32_t copy_events(const struct ky_drum_block *source, uint32_t from, uint64_t *words,
			    struct ky_block *block, uint32_t *high, bool *damaged)
{
	uint32_t at = from;
	while (at < PAYLOAD_WORDS) {
		/* Acquire: pairs with the writer's release of the header, before the items. */
		const uint64_t word = __atomic_load_n(&source->words[at], __ATOMIC_ACQUIRE);
		const uint32_t length = KY_WORD_LENGTH(word);
		if (word == 0)
			break;
		if (length >= PAYLOAD_WORDS - at) {
			*damaged = true;
			break;
		}
		words[at - from] = word;
		for (uint32_t i = 1; i <= length; i++)
			words[at - from + i] = KYMO_I_LOAD(&source->words[at + i]);
		if (KY_WORD_SITE(word) >= KY_CONTROL_MAX)
			block->events++;
		else if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
			*high = KY_WORD_LOW(word);
		at += 1 + length;
	}
	return at;
}

/* The block that the cursor is at, if it is still there; false when it was overwritten. */
static bool read_block(const struct ky_drum_view *view, struct ky_ring_cursor *c, bool complete,
		       uint64_t *words, struct ky_block *block)
{
	const struct ky_drum_block *source =
		(const void *)(view->base + c->at + (c->number & (c->blocks - 1)) * KY_BLOCK_BYTES);
	const uint64_t seq = __atomic_load_n(&source->seq, __ATOMIC_ACQUIRE);
	if (seq != c->number + 1)
		return false;
	uint32_t high = c->word ? c->high : (uint32_t)(KYMO_I_LOAD(&source->ticks) >> 32);
	const uint64_t before = KYMO_I_LOAD(&source->events_before);
	bool damaged = false;
	*block = (struct ky_block){.ring = c->ring,
				   .tid = KYMO_I_LOAD(&source->tid),
				   .pid = KYMO_I_LOAD(&source->pid),
				   .name = __atomic_load_n(&source->name, __ATOMIC_ACQUIRE),
				   .level = KYMO_I_LOAD(&source->level),
				   .number = c->number,
				   .from = c->word,
				   .high = high,
				   .words = words};
	const uint32_t end = copy_events(source, c->word, words, block, &high, &damaged);
	KY_LOAD_FENCE();
	if (KYMO_I_LOAD(&source->seq) != seq)
		return false;
	block->count = end - c->word;
	if (c->word == 0) {
		/* Unsigned on purpose: a count that goes backwards is no loss but damage. */
		const uint64_t gap = before - c->events;
		block->lost = c->counted && gap < UINT64_MAX / 2 ? gap : 0;
		c->events = before;
		c->counted = true;
	}
	c->events += block->events;
	c->high = high;
	/* The rest of a damaged block says nothing, now or later. */
	c->word = complete ? 0 : damaged ? PAYLOAD_WORDS : end;
	if (damaged && c->damaged++ == 0)
		c->damaged_at = (uint64_t)((const uint8_t *)&source->words[end] - view->base);
	c->number += complete;
	return true;
}

bool ky_ring_read(const struct ky_drum_view *view, struct ky_ring_cursor *c, uint64_t *words,
		  struct ky_block *block)
{
	if (!ky_ring_find(view, c))
		return false;
	/* A writer that begins blocks faster than they are looked at must not hold the reader up. */
	for (uint64_t steps = 0; steps <= 2 * c->blocks; steps++) {
		/* Acquire: all events of the blocks before the newest are visible then. */
		const uint64_t head = __atomic_load_n(&view->rings[c->ring].head, __ATOMIC_ACQUIRE);
		if (c->number == UINT64_MAX) { /* at what is being written now */
			c->number = head ? head - 1 : 0;
			c->counted = head == 0;
		}
		if (head <= c->number || head > UINT64_MAX / 2)
			return false;
		if (head - c->number > c->blocks) {
			c->number = head - c->blocks;
			c->word = 0;
		}
		const uint32_t had = c->word;
		const bool complete = head > c->number + 1;
		if (read_block(view, c, complete, words, block)) {
			if (block->count || block->lost)
				return true;
			if (!complete)
				return false;
			continue; /* nothing more in that block: on to the next */
		}
		/* Overwritten, or about to be: go on with the next; events tells what was missed. */
		if (had == 0 && !complete)
			return false;
		c->number++;
		c->word = 0;
	}
	return false;
}

bool ky_ring_news(const struct ky_drum_view *view, const struct ky_ring_cursor *c)
{
	if (c->blocks == 0)
		return true;
	const struct ky_drum_block *block =
		(const void *)(view->base + c->at + (c->number & (c->blocks - 1)) * KY_BLOCK_BYTES);
	return c->word < PAYLOAD_WORDS && KYMO_I_LOAD(&block->words[c->word]) != 0;
}
