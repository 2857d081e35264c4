/* SPDX-License-Identifier: MIT */
/*
 * block_select.h: remove unwanted events from a piece of a block. The others move together in place; where the counter's
 * high half changes between two of them, a control word is put in. Inline, so that keep() is inlined, too.
 */
#ifndef KY_CORE_BLOCK_SELECT_H
#define KY_CORE_BLOCK_SELECT_H

#include "core/assert.h"
#include "core/ring_read.h"

#include <string.h>

/* Report whether to keep an event; at is where its words began in the piece. */
typedef bool ky_block_keep_fn(void *context, uint64_t word, uint64_t ticks, uint32_t at);

/* words is the piece's own memory. Return where its first event was in the piece, 0 when none is left. */
static inline uint32_t ky_block_select(struct ky_block *b, uint64_t *words, ky_block_keep_fn *keep,
				       void *context)
{
	uint32_t high = b->high, to = 0, first = 0;
	uint64_t last_high = UINT64_MAX; /* what the kept events' control words say */
	for (uint32_t at = 0; at < b->count;) {
		const uint64_t word = words[at];
		const uint32_t size = 1 + KY_WORD_LENGTH(word);
		const bool event = KY_WORD_SITE(word) >= KY_CONTROL_MAX;
		if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
			high = KY_WORD_LOW(word);
		const bool stays =
			event && keep(context, word, (uint64_t)high << 32 | KY_WORD_LOW(word), at);
		if (stays && to == 0) {
			b->high = high;
			first = at;
		} else if (stays && last_high != high && at > to) {
			words[to++] = (uint64_t)KY_CONTROL_HIGH << KY_WORD_SITE_SHIFT | high;
		}
		if (stays) {
			last_high = high;
			memmove(&words[to], &words[at], size * sizeof(uint64_t));
			to += size;
		} else if (event) {
			b->events--;
		}
		at += size;
	}
	KY_ASSERT(to <= b->count);
	b->count = to;
	return first;
}

#endif
