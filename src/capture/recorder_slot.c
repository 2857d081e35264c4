/* SPDX-License-Identifier: MIT */
/*
 * recorder_slot.c: a recorder's slot in somebody else's drum.
 *
 *   free ── claim ──▶ claimed ── pattern, bits set ──▶ on ── pattern 0, bits cleared ─┐
 *    ▲      pid: own     ▲                                                            │
 *    │                   └── take over: pid: own ── holder is gone                    │
 *    └──────────────────────────── release, pid: 0 ───────────────────────────────────┘
 *
 * Who does what at the same time:
 *
 * - A slot belongs to the process that its pid names. It changes hands by compare-and-swap on the
 *   word of pattern and pid: of several that want a free slot one gets it. Start and namespaces
 *   follow, which make the holder one that can be found to be gone; then the bit in
 *   recorders_taken, for those who count; then what has an effect. (A recorder that is killed
 *   between the first two leaves a slot that has none.)
 * - Of several that find a holder gone, the one takes over who clears the namespaces: a slot
 *   without them is nobody's to judge until it is signed again.
 * - The pattern is written by the holder alone, and each bit of a category's word is that of one
 *   slot: so recorders outside and sessions inside the process never undo each other's. The word
 *   changes by compare-and-swap with its low byte, which trace points test, in the same step: 1
 *   when any bit is left.
 * - A category that the process adds is seen by every recorder: either its pattern was there before
 *   the entry (then heap.c applies it), or the holder walks the table after it set its pattern.
 *   When it leaves, the pattern goes first and the bits after it; heap.c looks at the pattern a
 *   second time after it set a bit.
 * - Growth only ever raises, as in drum.c, and stays: rings that were made large are.
 *
 * The drum may hold anything: a name is copied before it is matched, and every loop ends.
 */
#include "capture/recorder_slot.h"

#include "capture/drum_intern.h"
#include "capture/fail.h"
#include "core/glob.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* A compare-and-swap that fails so often fails because somebody wants it to. */
#define TRIES_MAX 10000u

_Static_assert(offsetof(struct ky_drum_recorder, pid) ==
		       offsetof(struct ky_drum_recorder, pattern) + 4,
	       "one word");
_Static_assert(offsetof(struct ky_drum_header, recorders) % 8 == 0, "aligned");

static struct ky_drum_header *header_of(const struct ky_drum_map *map)
{
	return (struct ky_drum_header *)(void *)map->writable;
}

static struct ky_drum_category *categories_of(const struct ky_drum_map *map,
					      const struct ky_drum_view *view)
{
	return (struct ky_drum_category *)(void *)(map->writable + view->header.categories_at);
}

/* The word of pattern and pid, as it is in memory. */
static uint64_t holder_word(uint32_t pattern, uint32_t pid)
{
	return (uint64_t)pid << 32 | pattern;
}

static bool change_holder(struct ky_drum_recorder *slot, uint64_t from, uint64_t to)
{
	uint64_t *word = (uint64_t *)(void *)slot;
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

/* Sets or clears the slot's bit; the byte that trace points test follows in the same store. */
static void want(struct ky_drum_category *category, uint32_t slot, bool wanted)
{
	const uint64_t bit = UINT64_C(1) << (8 + slot);
	uint64_t old = __atomic_load_n(&category->state, __ATOMIC_SEQ_CST);
	for (uint32_t tries = 0; tries < TRIES_MAX; tries++) {
		uint64_t now = (wanted ? old | bit : old & ~bit) & ~UINT64_C(0xff);
		now |= now != 0;
		if (now == old || __atomic_compare_exchange_n(&category->state, &old, now, false,
							      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return;
	}
}

static void switch_wanted(const struct ky_drum_map *map, const struct ky_drum_view *view,
			  uint32_t slot, const char *globs)
{
	char name[KY_TEXT_BYTES_MAX + 1];
	struct ky_drum_category *categories = categories_of(map, view);
	uint64_t left = view->header.heap_bytes; /* each name is there once */
	for (uint32_t i = 0; i < view->header.categories_max; i++) {
		const uint32_t record = __atomic_load_n(&categories[i].name, __ATOMIC_SEQ_CST);
		const struct ky_text text = ky_drum_view_string(view, record);
		if (record == 0 || text.bytes > left)
			break;
		left -= text.bytes;
		memcpy(name, text.data, text.bytes);
		name[text.bytes] = '\0';
		if (ky_glob_list_match(globs, name))
			want(&categories[i], slot, true);
	}
}

/* All of the table: who scribbles over names must not keep categories on. */
static void clear_bits(const struct ky_drum_map *map, const struct ky_drum_view *view,
		       uint32_t slot)
{
	struct ky_drum_category *categories = categories_of(map, view);
	for (uint32_t i = 0; i < view->header.categories_max; i++)
		if (__atomic_load_n(&categories[i].state, __ATOMIC_SEQ_CST) >> (8 + slot) & 1)
			want(&categories[i], slot, false);
}

/* By its holder. */
static void release(const struct ky_drum_map *map, const struct ky_drum_view *view, uint32_t slot,
		    const struct ky_recorder_life *own)
{
	struct ky_drum_recorder *recorder = &header_of(map)->recorders[slot];
	__atomic_store_n(&recorder->pattern, 0, __ATOMIC_SEQ_CST);
	clear_bits(map, view, slot);
	__atomic_store_n(&recorder->started_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&recorder->namespaces, 0, __ATOMIC_RELAXED);
	__atomic_fetch_and(&header_of(map)->recorders_taken, ~(UINT64_C(1) << slot),
			   __ATOMIC_SEQ_CST);
	(void)change_holder(recorder, holder_word(0, own->pid), 0);
}

static void sign(struct ky_drum_recorder *recorder, const struct ky_recorder_life *own)
{
	__atomic_store_n(&recorder->started_ns, own->started_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&recorder->namespaces, own->namespaces, __ATOMIC_SEQ_CST);
}

static void free_if_gone(const struct ky_drum_map *map, const struct ky_drum_view *view,
			 uint32_t slot, const struct ky_recorder_life *own)
{
	struct ky_drum_recorder *recorder = &header_of(map)->recorders[slot];
	const uint64_t word = __atomic_load_n((uint64_t *)(void *)recorder, __ATOMIC_SEQ_CST);
	const struct ky_recorder_life life = {
		.pid = (uint32_t)(word >> 32),
		.namespaces = __atomic_load_n(&recorder->namespaces, __ATOMIC_SEQ_CST),
		.started_ns = __atomic_load_n(&recorder->started_ns, __ATOMIC_RELAXED),
	};
	uint64_t signed_in = life.namespaces;
	if (!ky_recorder_life_is_over(&life, own) ||
	    !__atomic_compare_exchange_n(&recorder->namespaces, &signed_in, 0, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	if (!change_holder(recorder, word, holder_word(0, own->pid))) {
		/* Somebody else's by now, who signed with the same: it was given back meanwhile. */
		__atomic_store_n(&recorder->namespaces, life.namespaces, __ATOMIC_SEQ_CST);
		return;
	}
	sign(recorder, own);
	release(map, view, slot, own);
}

static uint32_t claim(const struct ky_drum_map *map, const struct ky_recorder_life *own)
{
	struct ky_drum_header *header = header_of(map);
	for (uint32_t slot = KY_RECORDERS_INSIDE; slot < KY_RECORDERS_MAX; slot++) {
		if (!change_holder(&header->recorders[slot], 0, holder_word(0, own->pid)))
			continue;
		sign(&header->recorders[slot], own);
		__atomic_fetch_or(&header->recorders_taken, UINT64_C(1) << slot, __ATOMIC_SEQ_CST);
		return slot;
	}
	return KY_DRUM_NO_SLOT;
}

int ky_drum_switch_on(const struct ky_drum_map *map, const struct ky_drum_view *view,
		      const struct ky_recorder_life *own, const char *globs, const char *name,
		      char message[KY_CAPTURE_MESSAGE_BYTES])
{
	globs = globs && *globs ? globs : "*"; /* the empty string has no record */
	if (strlen(globs) > KY_TEXT_BYTES_MAX)
		return ky_capture_fail(message, -E2BIG,
				       "%s: a list of categories of %zu bytes; expected at most %u",
				       name, strlen(globs), KY_TEXT_BYTES_MAX);
	for (uint32_t slot = KY_RECORDERS_INSIDE; slot < KY_RECORDERS_MAX; slot++)
		free_if_gone(map, view, slot, own);
	uint32_t pattern = 0;
	const int error = ky_drum_intern(map, view, globs, strlen(globs), &pattern);
	if (error)
		return ky_capture_fail(message, error,
				       "%s: its categories cannot be switched: the drum's heap is "
				       "%s; start the program with KYMO_CATEGORIES",
				       name, error == -ENOSPC ? "full" : "damaged");
	const uint32_t slot = claim(map, own);
	if (slot == KY_DRUM_NO_SLOT)
		return ky_capture_fail(message, -EBUSY,
				       "%s: its categories cannot be switched: %u recorders are "
				       "attached already; end one of them",
				       name, KY_RECORDERS_MAX - KY_RECORDERS_INSIDE);
	__atomic_store_n(&header_of(map)->recorders[slot].pattern, pattern, __ATOMIC_SEQ_CST);
	switch_wanted(map, view, slot, globs);
	return (int)slot;
}

void ky_drum_switch_off(const struct ky_drum_map *map, const struct ky_drum_view *view,
			uint32_t slot, const struct ky_recorder_life *own)
{
	if (slot >= KY_RECORDERS_INSIDE && slot < KY_RECORDERS_MAX && map->writable)
		release(map, view, slot, own);
}

static void raise_to(uint64_t *field, uint64_t value)
{
	uint64_t now = __atomic_load_n(field, __ATOMIC_RELAXED);
	for (uint32_t tries = 0; now < value && tries < TRIES_MAX; tries++)
		if (__atomic_compare_exchange_n(field, &now, value, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
}

void ky_drum_switch_grow(const struct ky_drum_map *map, const struct ky_drum_view *view,
			 uint64_t ring_bytes, uint64_t total_bytes)
{
	const uint64_t space = view->header.space_bytes;
	const uint64_t total = total_bytes > ring_bytes ? total_bytes : ring_bytes;
	const uint64_t pages = total < space ? (total + 4095) & ~UINT64_C(4095) : space;
	struct ky_drum_header *header = header_of(map);
	raise_to(&header->budget_bytes, pages < space ? pages : space);
	raise_to(&header->ring_bytes, ring_bytes < space ? ring_bytes : space);
}
