/* SPDX-License-Identifier: MIT */
/*
 * ring.c: taking rings, beginning blocks.
 *
 * Which ring a thread gets: one that is free (the longest ago released, so that what a thread left
 * stays readable for long), else a new one while the budget lasts, smaller when it runs low, else one
 * whose owner died without saying so. So memory is bounded and short-lived threads share rings.
 *
 * Forked children that write into their parent's drum may be very many, and end without saying so: each
 * takes a small ring, a dead one's when there are many, and a larger one when that is full.
 */
#include "core/ring.h"
#include "os/os.h"

#include "core/clock.h"

#include <errno.h>

/* Rings for signal handlers that interrupt events: rare, so small. */
#define NESTED_BYTES (64u << 10)
/* How often a sample of the clocks is taken even when no session runs. */
#define SAMPLE_TICKS (UINT64_C(1) << 28)

/*
 * A child's first ring. While there are few it is a new one: each child begins a block, so that very few rings would come
 * round before they are read. Then among how many it looks for a dead owner.
 */
#define CHILD_BYTES (64u << 10)
#define CHILD_RINGS 512u
#define CHILD_LOOKS 32u

/* Of the second half of the budget a ring takes at most one part in so many of what is left. */
#define LEFT_PARTS 64u

uint32_t ky_ring_slow_only;

/* A power of two, whatever was configured. */
static uint64_t ring_bytes_wanted(const struct ky_drum *drum, const struct ky_ring_writer *w)
{
	const uint64_t wanted = __atomic_load_n(&drum->header->ring_bytes, __ATOMIC_RELAXED);
	uint64_t bytes = KY_RING_BYTES_MIN;
	while (bytes < wanted && bytes <= UINT64_MAX / 4)
		bytes *= 2;
	const bool small = w->level != 0 || (w->pid && !w->grown);
	const uint64_t most = w->level != 0 ? NESTED_BYTES : CHILD_BYTES;
	return small && bytes > most ? most : bytes;
}

static struct ky_drum_block *block_at(const struct ky_ring_writer *w, uint64_t number)
{
	return (struct ky_drum_block *)(void *)(w->base +
						(number & (w->blocks - 1)) * KY_BLOCK_BYTES);
}

/* How many events the newest block of a ring holds: for a ring whose owner could not say. */
static uint64_t count_events(const struct ky_ring_writer *w)
{
	if (w->next == 0)
		return 0;
	const struct ky_drum_block *block = block_at(w, w->next - 1);
	uint64_t events = block->events_before;
	for (uint32_t at = 0; at < KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS;) {
		const uint64_t word = __atomic_load_n(&block->words[at], __ATOMIC_ACQUIRE);
		if (word == 0)
			break;
		events += KY_WORD_SITE(word) >= KY_CONTROL_MAX;
		at += 1 + KY_WORD_LENGTH(word);
	}
	return events;
}

static void use_ring(struct ky_drum *drum, struct ky_ring_writer *w, struct ky_drum_ring *ring,
		     bool released)
{
	w->ring = ring;
	w->base = drum->base + ring->at;
	w->blocks = ring->bytes / KY_BLOCK_BYTES;
	w->next = w->first = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	w->pub.ky_end = 0;
	__atomic_store_n(&w->pub.ky_events, released ? ring->events : count_events(w),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&ring->level, w->level, __ATOMIC_RELAXED);
	w->wanted_bytes = ring_bytes_wanted(drum, w);
}

static bool claim(struct ky_drum_ring *ring, uint32_t from, uint32_t owner)
{
	return __atomic_compare_exchange_n(&ring->owner, &from, owner, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* The free ring that was released the longest ago, of at least that size. */
static bool take_free(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, uint64_t bytes)
{
	for (;;) {
		struct ky_drum_ring *best = NULL;
		const uint32_t used = __atomic_load_n(&drum->header->rings_used, __ATOMIC_ACQUIRE);
		for (uint32_t i = 0; i < used && i < drum->header->rings_max; i++) {
			struct ky_drum_ring *ring = &drum->rings[i];
			if (__atomic_load_n(&ring->owner, __ATOMIC_RELAXED) == 0 &&
			    __atomic_load_n(&ring->bytes, __ATOMIC_ACQUIRE) >= bytes &&
			    (!best || KYMO_I_LOAD(&ring->released_ticks) <
					      KYMO_I_LOAD(&best->released_ticks)))
				best = ring;
		}
		if (!best)
			return false;
		if (claim(best, 0, ky_ring_owner(w, tid))) {
			use_ring(drum, w, best, true);
			return true;
		}
	}
}

static bool take_space(struct ky_drum *drum, uint64_t bytes, uint64_t *at)
{
	struct ky_drum_header *h = drum->header;
	const uint64_t budget = __atomic_load_n(&h->budget_bytes, __ATOMIC_RELAXED);
	uint64_t used = __atomic_load_n(&h->space_used, __ATOMIC_RELAXED);
	do {
		if (used + bytes > budget || used + bytes > h->space_bytes)
			return false;
	} while (!__atomic_compare_exchange_n(&h->space_used, &used, used + bytes, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*at = h->space_at + used;
	return true;
}

/* The disk is full, but a smaller ring may fit: unless somebody has taken the space behind it. */
static void give_space_back(struct ky_drum_header *h, uint64_t bytes, uint64_t at)
{
	uint64_t used = at + bytes - h->space_at;
	(void)__atomic_compare_exchange_n(&h->space_used, &used, used - bytes, false,
					  __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static bool take_new(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, uint64_t bytes)
{
	struct ky_drum_header *h = drum->header;
	uint64_t at;
	if (__atomic_load_n(&h->rings_used, __ATOMIC_RELAXED) >= h->rings_max ||
	    !take_space(drum, bytes, &at))
		return false;
	if (drum->on_disk && !ky_os_populate(drum->base + at, bytes)) {
		give_space_back(h, bytes, at);
		return false;
	}
	const uint32_t index = __atomic_fetch_add(&h->rings_used, 1, __ATOMIC_ACQ_REL);
	if (index >= h->rings_max) {
		__atomic_store_n(&h->rings_used, h->rings_max, __ATOMIC_RELAXED);
		return false;
	}
	struct ky_drum_ring *ring = &drum->rings[index];
	__atomic_store_n(&ring->owner, ky_ring_owner(w, tid), __ATOMIC_RELAXED);
	KYMO_I_STORE(&ring->at, at);
	/* Release: the entry is complete before anybody sees a size. */
	__atomic_store_n(&ring->bytes, bytes, __ATOMIC_RELEASE);
	use_ring(drum, w, ring, true);
	return true;
}

/* Of so many rings, from one on that is another for each thread. */
static bool take_dead(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, uint64_t bytes,
		      uint32_t looks)
{
	const uint32_t most = drum->header->rings_max;
	const uint32_t all = __atomic_load_n(&drum->header->rings_used, __ATOMIC_ACQUIRE);
	const uint32_t used = all < most ? all : most;
	/* Owners may be of several processes where kymo made the drum. */
	const int32_t pid =
		drum->header->layer == KY_DRUM_OWN ? (int32_t)drum->header->pid : KY_OS_ANY_PROCESS;
	for (uint32_t i = 0; !w->apart && i < used && i < looks; i++) {
		struct ky_drum_ring *ring = &drum->rings[(tid + i) % used];
		const uint32_t owner = __atomic_load_n(&ring->owner, __ATOMIC_RELAXED);
		if (owner != 0 && owner != tid && owner < KY_RING_APART &&
		    __atomic_load_n(&ring->bytes, __ATOMIC_ACQUIRE) >= bytes &&
		    !ky_os_thread_alive(pid, (int32_t)owner) && claim(ring, owner, tid)) {
			use_ring(drum, w, ring, false);
			return true;
		}
	}
	return false;
}

/* A system call for each ring: after one look in vain not with every event of a thread. */
static bool take_any_dead(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid)
{
	const uint64_t now = ky_drum_ticks(drum);
	if (now - w->vain_ticks < SAMPLE_TICKS)
		return false;
	w->vain_ticks = now;
	return take_dead(drum, w, tid, KY_RING_BYTES_MIN, UINT32_MAX);
}

/* The first half of the budget is for rings as large as they were asked for; then they get smaller. */
static uint64_t affordable(const struct ky_drum *drum, uint64_t bytes)
{
	const uint64_t budget = __atomic_load_n(&drum->header->budget_bytes, __ATOMIC_RELAXED);
	const uint64_t used = __atomic_load_n(&drum->header->space_used, __ATOMIC_RELAXED);
	if (used == 0 || used + bytes <= budget / 2)
		return bytes;
	const uint64_t most = used < budget ? (budget - used) / LEFT_PARTS : 0;
	while (bytes > KY_RING_BYTES_MIN && bytes > most)
		bytes /= 2;
	return bytes;
}

int ky_ring_take(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid)
{
	const uint64_t wanted = affordable(drum, ring_bytes_wanted(drum, w));
	const bool few = __atomic_load_n(&drum->header->rings_used, __ATOMIC_RELAXED) < CHILD_RINGS;
	if (w->pid && few && take_new(drum, w, tid, wanted))
		return 0;
	if (take_free(drum, w, tid, wanted) ||
	    (w->pid && take_dead(drum, w, tid, wanted, CHILD_LOOKS)))
		return 0;
	for (uint64_t bytes = wanted; bytes >= KY_RING_BYTES_MIN; bytes /= 2)
		if (take_new(drum, w, tid, bytes))
			return 0;
	if (take_free(drum, w, tid, KY_RING_BYTES_MIN) || take_any_dead(drum, w, tid))
		return 0;
	return -ENOSPC;
}

void ky_ring_release(struct ky_drum *drum, struct ky_ring_writer *w)
{
	struct ky_drum_ring *ring = w->ring;
	if (!ring)
		return;
	w->ring = NULL;
	w->pub.ky_end = 0;
	ring->events = w->pub.ky_events;
	KYMO_I_STORE(&ring->released_ticks, ky_drum_ticks(drum));
	/* Release: the next owner sees the count. */
	__atomic_store_n(&ring->owner, 0, __ATOMIC_RELEASE);
}

void ky_ring_release_dead(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t dead,
			  uint32_t tid)
{
	if (w->ring && claim(w->ring, dead, tid))
		ky_ring_release(drum, w);
}

/*
 * The order matters to readers of the old block in this place: seq becomes 0 before anything else
 * changes, and the new number only when the block is whole again.
 */
static void begin_block(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, uint32_t name,
			uint64_t ticks)
{
	struct ky_drum_block *block = block_at(w, w->next);
	__atomic_store_n(&block->seq, 0, __ATOMIC_RELAXED);
	KY_STORE_FENCE();
	if (w->next >= w->blocks)
		ky_cpu_clear(block->words, KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS);
	__atomic_store_n(&block->events_before, w->pub.ky_events, __ATOMIC_RELAXED);
	__atomic_store_n(&block->ticks, ticks, __ATOMIC_RELAXED);
	__atomic_store_n(&block->tid, tid, __ATOMIC_RELAXED);
	__atomic_store_n(&block->name, name, __ATOMIC_RELEASE);
	__atomic_store_n(&block->level, w->level, __ATOMIC_RELAXED);
	__atomic_store_n(&block->pid, w->pid, __ATOMIC_RELAXED);
	w->next++;
	/* Release: pairs with the acquire loads in ring_read.c. */
	__atomic_store_n(&block->seq, w->next, __ATOMIC_RELEASE);
	__atomic_store_n(&w->ring->head, w->next, __ATOMIC_RELEASE);
	w->high = (uint32_t)(ticks >> 32);
	w->pub.ky_pos = (uintptr_t)block->words + KYMO_I_BUSY;
	w->pub.ky_end = (uintptr_t)block + KY_BLOCK_BYTES;

	const struct ky_drum_clock *clock = drum->clock;
	const uint32_t count = __atomic_load_n(&clock->count, __ATOMIC_RELAXED);
	if (count && count <= drum->header->clock_max &&
	    ticks - KYMO_I_LOAD(&clock->readings[count - 1].ticks) > SAMPLE_TICKS)
		ky_clock_take(drum, false);
}

static bool next_block(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, uint32_t name,
		       uint64_t ticks)
{
	/* A session asked for larger rings since, or a child is not one of few calls: move on to one, once. */
	w->grown |= w->pid && w->ring && w->next - w->first >= w->blocks;
	if (w->ring && w->wanted_bytes < ring_bytes_wanted(drum, w)) {
		struct ky_ring_writer larger = {
			.level = w->level, .pid = w->pid, .apart = w->apart, .grown = w->grown};
		const uint64_t asked = ring_bytes_wanted(drum, w);
		const uint64_t wanted = w->pid ? affordable(drum, asked) : asked;
		if (wanted > w->blocks * KY_BLOCK_BYTES && (take_free(drum, &larger, tid, wanted) ||
							    take_new(drum, &larger, tid, wanted))) {
			ky_ring_release(drum, w);
			larger.pub.ky_pos = w->pub.ky_pos;
			*w = larger;
		}
		w->wanted_bytes = ring_bytes_wanted(drum, w);
	}
	if (!w->ring && ky_ring_take(drum, w, tid) != 0)
		return false;
	begin_block(drum, w, tid, name, ticks);
	return true;
}

/* Room for the event, and for a control word before it. */
static bool has_room(const struct ky_ring_writer *w, uint32_t words)
{
	return w->ring && w->pub.ky_pos - KYMO_I_BUSY + 8u * (words + 2) <= w->pub.ky_end;
}

/* Where the event goes; before it, when it has changed, the counter's high half. */
static uint64_t *put_high(struct ky_ring_writer *w, uint32_t high)
{
	uintptr_t pos = w->pub.ky_pos - KYMO_I_BUSY;
	if (high != w->high) {
		const uint64_t control = (uint64_t)KY_CONTROL_HIGH << KY_WORD_SITE_SHIFT | high;
		__atomic_store_n((uint64_t *)pos, control, __ATOMIC_RELEASE);
		pos += 8;
		w->high = high;
		w->pub.ky_pos = pos + KYMO_I_BUSY;
	}
	return (uint64_t *)pos;
}

uint64_t *ky_ring_reserve_at(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid,
			     uint32_t name, uint32_t words, uint64_t ticks)
{
	if (!has_room(w, words) && !next_block(drum, w, tid, name, ticks))
		return NULL;
	return put_high(w, (uint32_t)(ticks >> 32));
}

uint64_t *ky_ring_reserve(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid,
			  uint32_t name, uint32_t words, uint64_t *ticks)
{
	if (!has_room(w, words) && !next_block(drum, w, tid, name, ky_drum_ticks(drum)))
		return NULL;
	*ticks = ky_drum_ticks(drum);
	const uint32_t high = (uint32_t)(*ticks >> 32);
	uint64_t *const pos = put_high(w, high);
	const bool slow =
		!drum->ticks_inline || __atomic_load_n(&ky_ring_slow_only, __ATOMIC_RELAXED);
	__atomic_store_n(&w->pub.ky_high, slow ? UINT32_MAX : high, __ATOMIC_RELAXED);
	return pos;
}
