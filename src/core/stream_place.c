/* SPDX-License-Identifier: MIT */
/* stream_place.c: a place is (block number + 1) << 16 | word; 0 is the ring's beginning. */
#include "core/stream_place.h"

#define PAYLOAD_WORDS (KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS)

static uint64_t number_of(uint64_t place)
{
	return (place >> 16) - 1;
}

static uint32_t word_of(uint64_t place)
{
	const uint32_t word = place & 0xffffu;
	return word <= PAYLOAD_WORDS ? word : 0;
}

void ky_stream_place_leave(const struct ky_stream *stream, struct ky_drum *drum)
{
	for (uint32_t i = 0; i < stream->inputs_count; i++) {
		const struct ky_ring_cursor *c = &stream->inputs[i]->cursor;
		if (c->blocks == 0 || c->number > UINT64_MAX / 2)
			continue;
		KYMO_I_STORE(&drum->rings[i].left_events, c->events);
		KYMO_I_STORE(&drum->rings[i].left_place, (c->number + 1) << 16 | c->word);
	}
}

static const struct ky_drum_block *block_at(const struct ky_ring_cursor *c, const uint8_t *base)
{
	return (const void *)(base + c->at + (c->number & (c->blocks - 1)) * KY_BLOCK_BYTES);
}

/* Return the counter's high half at the cursor's word. */
static uint32_t high_at(const struct ky_drum_block *block, uint32_t end)
{
	uint32_t high = (uint32_t)(KYMO_I_LOAD(&block->ticks) >> 32);
	for (uint32_t at = 0; at < end;) {
		const uint64_t word = KYMO_I_LOAD(&block->words[at]);
		if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
			high = KY_WORD_LOW(word);
		at += 1 + KY_WORD_LENGTH(word);
	}
	return high;
}

static void resume(struct ky_ring_cursor *c, const struct ky_drum_ring *ring, const uint8_t *base)
{
	const uint64_t place = KYMO_I_LOAD(&ring->left_place);
	if (place == 0 || c->blocks == 0)
		return;
	c->number = number_of(place);
	c->events = KYMO_I_LOAD(&ring->left_events);
	c->counted = true;
	c->word = word_of(place);
	const struct ky_drum_block *block = block_at(c, base);
	c->high = high_at(block, c->word);
	/* Overwritten: the next block's count shows how many events are missing. */
	if (__atomic_load_n(&block->seq, __ATOMIC_ACQUIRE) != c->number + 1)
		c->word = 0;
}

void ky_stream_place_resume(struct ky_stream *stream, const struct ky_drum *drum)
{
	for (uint32_t i = 0; i < stream->inputs_count; i++)
		resume(&stream->inputs[i]->cursor, &drum->rings[i], stream->view.base);
}

static bool has_news(const struct ky_drum *drum, const struct ky_drum_ring *ring)
{
	const uint64_t place = KYMO_I_LOAD(&ring->left_place);
	/* Pairs with the release store in begin_block(). */
	const uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	if (place == 0 || head > number_of(place) + 1)
		return head != 0;
	const struct ky_ring_cursor c = {
		.at = ring->at, .blocks = ring->bytes / KY_BLOCK_BYTES, .number = number_of(place)};
	return word_of(place) < PAYLOAD_WORDS && head > c.number &&
	       KYMO_I_LOAD(&block_at(&c, drum->base)->words[word_of(place)]) != 0;
}

bool ky_stream_place_news(const struct ky_drum *drum)
{
	const uint32_t most = drum->header->rings_max;
	const uint32_t used = __atomic_load_n(&drum->header->rings_used, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < used && i < most; i++)
		/* Pairs with the release store in take_new(): the entry is complete. */
		if (__atomic_load_n(&drum->rings[i].bytes, __ATOMIC_ACQUIRE) &&
		    has_news(drum, &drum->rings[i]))
			return true;
	return false;
}
