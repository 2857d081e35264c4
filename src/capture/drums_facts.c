/* SPDX-License-Identifier: MIT */
/*
 * drums_facts.c: what a drum tells about itself, read anew with each question. Counts are as far as
 * the rings tell: an owner writes its count of events down with each block that it begins, and the
 * events of the newest block are counted here.
 */
#include "capture/attached_drum.h"

#include <string.h>

void ky_far_drum_text(char *to, size_t room, struct ky_text text)
{
	const size_t bytes = text.bytes < room - 1 ? text.bytes : room - 1;
	memcpy(to, text.data, bytes);
	to[bytes] = '\0';
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)to[i] < ' ' || to[i] == 0x7f)
			to[i] = '?';
}

static const struct ky_drum_block *newest_block(const struct ky_drum_view *view, uint32_t ring)
{
	struct ky_ring_cursor cursor;
	ky_ring_cursor_init(&cursor, ring, false);
	const uint64_t head = __atomic_load_n(&view->rings[ring].head, __ATOMIC_ACQUIRE);
	if (head == 0 || !ky_ring_find(view, &cursor))
		return NULL;
	const uint64_t at = ((head - 1) & (cursor.blocks - 1)) * KY_BLOCK_BYTES;
	const struct ky_drum_block *block = (const void *)(view->base + cursor.at + at);
	return __atomic_load_n(&block->seq, __ATOMIC_ACQUIRE) == head ? block : NULL;
}

static uint64_t events_of(const struct ky_drum_view *view, uint32_t ring)
{
	const struct ky_drum_block *block = newest_block(view, ring);
	if (!block)
		return 0;
	uint64_t events = __atomic_load_n(&block->events_before, __ATOMIC_RELAXED);
	for (uint32_t at = 0; at < KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS;) {
		const uint64_t word = __atomic_load_n(&block->words[at], __ATOMIC_ACQUIRE);
		if (word == 0)
			break;
		events += KY_WORD_SITE(word) >= KY_CONTROL_MAX;
		at += 1 + KY_WORD_LENGTH(word);
	}
	return events;
}

static void count_rings(const struct ky_drum_view *view, struct ky_drums_facts *facts)
{
	for (uint32_t i = 0; i < ky_drum_view_rings(view); i++) {
		const struct ky_drum_ring *ring = &view->rings[i];
		facts->threads += __atomic_load_n(&ring->owner, __ATOMIC_RELAXED) != 0 &&
				  __atomic_load_n(&ring->level, __ATOMIC_RELAXED) == 0;
		facts->events += events_of(view, i);
	}
}

static void count_categories(const struct ky_drum_view *view, struct ky_drums_facts *facts)
{
	for (uint32_t i = 0; i < view->header.categories_max; i++) {
		const struct ky_drum_category *category = &view->categories[i];
		if (__atomic_load_n(&category->name, __ATOMIC_ACQUIRE) == 0)
			break;
		facts->categories++;
		facts->categories_on +=
			(__atomic_load_n(&category->state, __ATOMIC_RELAXED) & 0xff) != 0;
	}
}

void ky_far_drum_facts(const struct ky_far_drum *drum, struct ky_drums_facts *facts)
{
	const struct ky_drum_view *view = &drum->pieces.view;
	const struct ky_drum_header *live = view->live;
	*facts = (struct ky_drums_facts){
		.pid = drum->pid,
		.ended = drum->ended,
		.lost = ky_far_drum_lost(drum),
		.damaged = ky_far_drum_damaged(drum),
		.pressure = drum->ended ? 0 : ky_far_drum_pressure(drum),
		.recorders = (uint32_t)__builtin_popcountll(
			__atomic_load_n(&live->recorders_taken, __ATOMIC_RELAXED)),
	};
	const struct ky_text name =
		ky_drum_view_string(view, __atomic_load_n(&live->process_name, __ATOMIC_ACQUIRE));
	if (name.bytes)
		ky_far_drum_text(facts->name, sizeof(facts->name), name);
	else
		memcpy(facts->name, drum->process, sizeof(facts->name));
	/* Rings that claim what is not there would have memory made for them by looking. */
	if (!drum->given_up && ky_far_drum_is_backed(drum))
		count_rings(view, facts);
	count_categories(view, facts);
}

bool ky_far_drum_category(const struct ky_far_drum *drum, uint32_t category, char *name,
			  size_t room, bool *on)
{
	const struct ky_drum_view *view = &drum->pieces.view;
	if (category >= view->header.categories_max || room == 0)
		return false;
	const struct ky_drum_category *entry = &view->categories[category];
	const uint32_t record = __atomic_load_n(&entry->name, __ATOMIC_ACQUIRE);
	if (record == 0)
		return false;
	ky_far_drum_text(name, room, ky_drum_view_string(view, record));
	*on = (__atomic_load_n(&entry->state, __ATOMIC_RELAXED) & 0xff) != 0;
	return true;
}
