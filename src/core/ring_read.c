/* SPDX-License-Identifier: MIT */
/*
 * ring_read.c: copy pieces of blocks while their owner may overwrite them. layout.h has the protocol: nothing copied is
 * trusted before seq was read a second time.
 */
#include "core/ring_read.h"

#include "core/assert.h"
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

bool ky_ring_find(const struct ky_drum_view *view, struct ky_ring_cursor *c)
{
	if (c->blocks)
		return true;
	KY_ASSERT(c->ring < view->header.rings_max);
	const struct ky_drum_ring *ring = &view->rings[c->ring];
	/* Pairs with the release store of bytes in take_new(), ring.c. */
	const uint64_t bytes = __atomic_load_n(&ring->bytes, __ATOMIC_ACQUIRE);
	const uint64_t at = __atomic_load_n(&ring->at, __ATOMIC_RELAXED);
	if (bytes < KY_RING_BYTES_MIN || (bytes & (bytes - 1)) != 0 || at % 8 != 0 ||
	    at < view->header.space_at || at > view->bytes || bytes > view->bytes - at)
		return false;
	c->at = at;
	c->blocks = bytes / KY_BLOCK_BYTES;
	return true;
}

/* Copy whole events from a word on; count them and follow the counter's high half. */
static uint32_t copy_events(const struct ky_drum_block *source, uint32_t from, uint64_t *words,
			    struct ky_block *block, uint32_t *high, bool *damaged)
{
	uint32_t at = from;
	while (at < PAYLOAD_WORDS) {
		/* Pairs with the release stores of headers in kymo_i_publish() and ky_ring_commit(). */
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
	KY_ASSERT(at <= PAYLOAD_WORDS);
	return at;
}

/* Read the block that the cursor is at. Return false when it was overwritten. */
static bool read_block(const struct ky_drum_view *view, struct ky_ring_cursor *c, bool complete,
		       uint64_t *words, struct ky_block *block)
{
	KY_ASSERT(c->blocks && (c->blocks & (c->blocks - 1)) == 0 && c->word <= PAYLOAD_WORDS);
	KY_ASSERT(c->at + c->blocks * KY_BLOCK_BYTES <= view->bytes);
	const struct ky_drum_block *source =
		(const void *)(view->base + c->at + (c->number & (c->blocks - 1)) * KY_BLOCK_BYTES);
	/* Pairs with the release store of seq in begin_block(). */
	const uint64_t seq = __atomic_load_n(&source->seq, __ATOMIC_ACQUIRE);
	if (seq != c->number + 1)
		return false;
	const uint64_t ticks = KYMO_I_LOAD(&source->ticks);
	uint32_t high = c->word ? c->high : (uint32_t)(ticks >> 32);
	const uint64_t before = KYMO_I_LOAD(&source->events_before);
	bool damaged = false;
	/* The acquire of name pairs with the release stores in begin_block() and rename_blocks(). */
	*block = (struct ky_block){.ring = c->ring,
				   .tid = KYMO_I_LOAD(&source->tid),
				   .pid = KYMO_I_LOAD(&source->pid),
				   .name = __atomic_load_n(&source->name, __ATOMIC_ACQUIRE),
				   .level = KYMO_I_LOAD(&source->level),
				   .number = c->number,
				   .ticks = ticks,
				   .left_ticks = KYMO_I_LOAD(&source->left_ticks),
				   .from = c->word,
				   .high = high,
				   .words = words};
	const uint32_t end = copy_events(source, c->word, words, block, &high, &damaged);
	/* Pairs with the store fence in begin_block(). */
	KY_LOAD_FENCE();
	if (KYMO_I_LOAD(&source->seq) != seq)
		return false;
	block->count = end - c->word;
	if (c->word == 0) {
		/* Unsigned on purpose: a count that goes backwards is damage, not a loss. */
		const uint64_t gap = before - c->events;
		block->lost = c->counted && gap < UINT64_MAX / 2 ? gap : 0;
		c->events = before;
		c->counted = true;
	}
	c->events += block->events;
	c->high = high;
	/* The rest of a damaged block is of no use, now or later. */
	c->word = complete ? 0 : damaged ? PAYLOAD_WORDS : end;
	if (damaged && c->damaged++ == 0)
		c->damaged_at = (uint64_t)((const uint8_t *)&source->words[end] - view->base);
	c->number += complete;
	return true;
}

/* Go on to the next block with data, at most to the one being written. Report whether the cursor's own has none. */
static bool skip_hole(const struct ky_drum_view *view, struct ky_ring_cursor *c, uint64_t head)
{
	const uint64_t index = c->number & (c->blocks - 1);
	const uint64_t end = c->at + c->blocks * KY_BLOCK_BYTES;
	const uint64_t at = c->at + index * KY_BLOCK_BYTES;
	const uint64_t data = ky_drum_view_data(view, at, end);
	if (data == at)
		return false;
	const uint64_t skipped = (data - at + KY_BLOCK_BYTES - 1) / KY_BLOCK_BYTES;
	const uint64_t most = head - 1 - c->number;
	c->number += skipped < most ? skipped : most;
	c->word = 0;
	return true;
}

bool ky_ring_read(const struct ky_drum_view *view, struct ky_ring_cursor *c, uint64_t *words,
		  struct ky_block *block)
{
	if (!ky_ring_find(view, c))
		return false;
	/* A writer that begins blocks faster than this loop reads them must not hold the reader up. */
	for (uint64_t steps = 0; steps <= 2 * c->blocks; steps++) {
		/* Pairs with the release store in begin_block(): all events of earlier blocks are visible. */
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
		const uint64_t from = c->number;
		if (view->pages && skip_hole(view, c, head)) {
			if (c->number == from) /* being written, and nothing there yet */
				return false;
			continue;
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
		/* Overwritten, or about to be: continue with the next; events shows how many were missed. */
		if (had == 0 && !complete)
			return false;
		c->number++;
		c->word = 0;
	}
	return false;
}

const struct ky_drum_block *ky_ring_newest(const struct ky_drum_view *view,
					   const struct ky_ring_cursor *c)
{
	const uint64_t head = __atomic_load_n(&view->rings[c->ring].head, __ATOMIC_ACQUIRE);
	if (head == 0 || c->blocks == 0)
		return NULL;
	const struct ky_drum_block *block =
		(const void *)(view->base + c->at +
			       ((head - 1) & (c->blocks - 1)) * KY_BLOCK_BYTES);
	return __atomic_load_n(&block->seq, __ATOMIC_ACQUIRE) == head ? block : NULL;
}

bool ky_ring_news(const struct ky_drum_view *view, const struct ky_ring_cursor *c)
{
	if (c->blocks == 0)
		return true;
	const struct ky_drum_block *block =
		(const void *)(view->base + c->at + (c->number & (c->blocks - 1)) * KY_BLOCK_BYTES);
	return c->word < PAYLOAD_WORDS && KYMO_I_LOAD(&block->words[c->word]) != 0;
}
