/* SPDX-License-Identifier: MIT */
/*
 * drum_open_spans.c: see drum_open_spans.h. A ring is read from its oldest block to the window with a stack of what is open: the
 * trace points' numbers. Where events are missing, or another thread has taken the ring, it starts again.
 */
#include "capture/drum_open_spans.h"

#include "core/span_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What fits into a piece; deeper ones are not told. */
#define DEPTH_MAX (KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS)

struct open_call {
	const struct ky_site *site; /* first: an item of a span stack */
	uint64_t word;              /* of its beginning; 0: not to be handed out */
};

struct before {
	struct ky_stream *stream;
	uint64_t from_ticks;
	uint64_t words[KY_BLOCK_WORDS];
	struct ky_block last;       /* the last piece before the window: whose ring it is */
	struct ky_span_stack stack; /* of struct open_call */
};

/* The first tick that is not before the time. */
static uint64_t ticks_at(struct ky_clock_map *clock, uint64_t ns)
{
	uint64_t low = clock->readings[0].ticks;
	uint64_t high = clock->readings[clock->count - 1].ticks;
	if (ky_clock_map_ns(clock, high) < ns)
		return high;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (ky_clock_map_ns(clock, middle) < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void take_event(struct before *b, uint64_t word)
{
	const struct ky_site *const site = ky_sites_get(&b->stream->sites, word);
	if (!site)
		return;
	if (site->kind == KYMO_KIND_END || KY_WORD_IS_END(word)) {
		if (ky_span_stack_end_beyond(&b->stack))
			return;
		const struct ky_span_end ends =
			ky_span_stack_end(&b->stack, sizeof(struct open_call), site);
		b->stack.depth -= ends.inner + ends.found;
	} else if (site->kind == KYMO_KIND_BEGIN) {
		struct open_call *call =
			ky_span_stack_push(&b->stack, sizeof(*call), DEPTH_MAX, site);
		if (call)
			call->word = KY_WORD_LENGTH(word) || !ky_stream_wants(b->stream, site)
					     ? 0
					     : word;
	}
}

/* False when the piece reaches into the window. */
static bool take_piece(struct before *b, const struct ky_block *block)
{
	uint32_t high = block->high;
	if (block->lost || block->tid != b->last.tid || block->pid != b->last.pid)
		b->stack.depth = b->stack.beyond = 0;
	b->last = *block;
	for (uint32_t at = 0; at < block->count; at += 1 + KY_WORD_LENGTH(block->words[at])) {
		const uint64_t word = block->words[at];
		if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
			high = KY_WORD_LOW(word);
		if (KY_WORD_SITE(word) < KY_CONTROL_MAX)
			continue;
		if (((uint64_t)high << 32 | KY_WORD_LOW(word)) >= b->from_ticks)
			return false;
		take_event(b, word);
	}
	return true;
}

static void hand_out(struct before *b)
{
	const struct ky_stream_sink *const sink = &b->stream->sink;
	const uint64_t low = UINT32_MAX;
	bool renamed = false;
	struct ky_block block = b->last;
	const struct ky_thread *const thread =
		ky_sites_thread(&b->stream->sites, block.pid, block.tid, block.name, &renamed);
	block.count = 0;
	for (uint32_t i = 0; i < b->stack.depth; i++) {
		const struct open_call *call = ky_span_stack_at(&b->stack, sizeof(*call), i);
		if (call->word)
			b->words[block.count++] = (call->word & ~low) | (b->from_ticks & low);
	}
	if (!thread || !block.count)
		return;
	if (renamed)
		sink->thread(sink->context, thread);
	block.high = (uint32_t)(b->from_ticks >> 32);
	block.events = block.count;
	block.lost = 0;
	block.words = b->words;
	sink->block(sink->context, &block, thread);
}

static void read_ring(struct before *b, uint32_t ring)
{
	struct ky_ring_cursor cursor;
	struct ky_block block;
	ky_ring_cursor_init(&cursor, ring, false);
	b->stack.depth = b->stack.beyond = 0;
	b->last = (struct ky_block){0};
	if (!ky_ring_find(&b->stream->view, &cursor))
		return;
	/* An owner that lies could go on for ever. */
	for (uint64_t pieces = 0; pieces <= 2 * cursor.blocks; pieces++) {
		if (!ky_ring_read(&b->stream->view, &cursor, b->words, &block) ||
		    !take_piece(b, &block))
			break;
	}
	if (b->stack.depth)
		hand_out(b);
}

int ky_drum_before(struct ky_stream *stream, uint64_t from_ns)
{
	if (!stream->clock.count)
		return 0;
	struct before *const b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->stream = stream;
	b->from_ticks = ticks_at(&stream->clock, from_ns);
	for (uint32_t i = 0; i < ky_drum_view_rings(&stream->view); i++)
		read_ring(b, i);
	ky_span_stack_free(&b->stack);
	free(b);
	return 0;
}
