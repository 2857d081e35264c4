/* SPDX-License-Identifier: MIT */
/*
 * ring.c: taking rings, beginning blocks.
 *
 * A thread gets a free ring (the one released the longest ago, so that what a thread left stays readable for long),
 * else a new one while the budget lasts, smaller when it runs low, else one whose owner died without releasing it.
 * So memory is bounded, and short-lived threads share rings.
 *
 * Forked children that write into their parent's drum may be very many, and end without releasing their rings: each
 * takes a small ring, a dead thread's when there are many, and a larger one when that is full.
 */
#include "core/ring.h"

#include "core/clock.h"
#include "os/os.h"

/* Rings for signal handlers that interrupt events: rare, so small. */
#define NESTED_BYTES (64u << 10)
/*
 * A child's first ring. It is a new one while there are few rings: each child begins a block, and very few rings would
 * wrap before they are read. After that a child looks for a dead owner among some rings.
 */
#define CHILD_BYTES (64u << 10)
#define CHILD_RINGS 512u
#define CHILD_LOOKS 32u

/* How often to look for dead threads when there is no ring left, and at how many of them. */
#define LOOK_TICKS (UINT64_C(1) << 21)
#define LOOKS 8u

/* In the second half of the budget a ring takes at most this fraction of what is left. */
#define LEFT_PARTS 64u
/* A ring that grows leaves this fraction of the budget to other threads. */
#define GROWTH_LEAVES 8u

uint32_t ky_ring_slow_only;

/* Return the configured size, rounded up to a power of two; small for handlers and new children. */
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

/* Move a held writer. A handler that looks finds it parked at any moment. */
static void move_to(struct ky_ring_writer *w, uintptr_t at)
{
	w->at = at;
	KYMO_I_STORE(&w->pub.ky_pos, at + w->frame + 1);
}

static struct ky_drum_block *block_at(const struct ky_ring_writer *w, uint64_t number)
{
	return (struct ky_drum_block *)(void *)(w->base +
						(number & (w->blocks - 1)) * KY_BLOCK_BYTES);
}

/* Count the events ever written to a ring whose owner died. */
static uint64_t count_events(const struct ky_ring_writer *w)
{
	return w->next ? ky_drum_block_events(block_at(w, w->next - 1)) : 0;
}

static void use_ring(struct ky_drum *drum, struct ky_ring_writer *w, struct ky_drum_ring *ring,
		     bool released)
{
	w->ring = ring;
	w->base = drum->base + ring->at;
	w->blocks = ring->bytes / KY_BLOCK_BYTES;
	KY_ASSERT(w->blocks >= KY_RING_BLOCKS_MIN && (w->blocks & (w->blocks - 1)) == 0);
	KY_ASSERT(ring->at >= drum->header->space_at && ring->at + ring->bytes <= drum->bytes);
	/* Pairs with the release store in begin_block(), of an owner that died. */
	w->next = w->first = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	w->pub.ky_end = 0;
	__atomic_store_n(&w->pub.ky_events, released ? ring->events : count_events(w),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&ring->level, w->level, __ATOMIC_RELAXED);
	w->wanted_bytes = ring_bytes_wanted(drum, w);
}

/* Acquire pairs with the release store of owner in ky_ring_release(): the old owner's count is there. */
static bool claim(struct ky_drum_ring *ring, uint32_t from, uint32_t owner)
{
	KY_ASSERT(owner != 0 && owner != from);
	return __atomic_compare_exchange_n(&ring->owner, &from, owner, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Of a drum that is mapped in part, rings beyond are those of other processes. */
static bool is_mapped(const struct ky_drum *drum, const struct ky_drum_ring *ring)
{
	return ring->at + ring->bytes <= drum->bytes;
}

/* Take the free ring of at least that size that was released the longest ago. */
static bool take_free(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, uint64_t bytes)
{
	for (;;) {
		struct ky_drum_ring *best = NULL;
		const uint32_t used = __atomic_load_n(&drum->header->rings_used, __ATOMIC_RELAXED);
		for (uint32_t i = 0; i < used && i < drum->header->rings_max; i++) {
			struct ky_drum_ring *ring = &drum->rings[i];
			/* Acquire pairs with the release store of bytes in take_new(): the entry is complete. */
			if (__atomic_load_n(&ring->owner, __ATOMIC_RELAXED) == 0 &&
			    __atomic_load_n(&ring->bytes, __ATOMIC_ACQUIRE) >= bytes &&
			    is_mapped(drum, ring) &&
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
	KY_ASSERT(*at % KY_BLOCK_BYTES == 0 && *at + bytes <= drum->bytes);
	return true;
}

/* The disk or the directory of rings is full, but a smaller ring may fit. Fails when another thread took the space after it. */
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
	const uint32_t index = __atomic_fetch_add(&h->rings_used, 1, __ATOMIC_RELAXED);
	if (index >= h->rings_max) {
		__atomic_store_n(&h->rings_used, h->rings_max, __ATOMIC_RELAXED);
		give_space_back(h, bytes, at);
		return false;
	}
	struct ky_drum_ring *ring = &drum->rings[index];
	__atomic_store_n(&ring->owner, ky_ring_owner(w, tid), __ATOMIC_RELAXED);
	KYMO_I_STORE(&ring->at, at);
	KY_ASSERT(bytes >= KY_RING_BYTES_MIN && (bytes & (bytes - 1)) == 0);
	/* Pairs with the acquire loads of bytes here and in ky_ring_find(): the entry is complete. */
	__atomic_store_n(&ring->bytes, bytes, __ATOMIC_RELEASE);
	use_ring(drum, w, ring, true);
	return true;
}

/* Take a dead thread's ring. Look at so many, beginning at ring number from. */
static bool take_dead(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, uint64_t bytes,
		      uint32_t from, uint32_t looks)
{
	const uint32_t most = drum->header->rings_max;
	const uint32_t all = __atomic_load_n(&drum->header->rings_used, __ATOMIC_RELAXED);
	const uint32_t used = all < most ? all : most;
	/* In a drum that kymo made, owners may be of several processes. */
	const int32_t pid =
		drum->header->layer == KY_DRUM_OWN ? (int32_t)drum->header->pid : KY_OS_ANY_PROCESS;
	for (uint32_t i = 0; !w->apart && i < used && i < looks; i++) {
		struct ky_drum_ring *ring = &drum->rings[(from + i) % used];
		const uint32_t owner = __atomic_load_n(&ring->owner, __ATOMIC_RELAXED);
		/* Acquire pairs with the release store of bytes in take_new(). */
		if (owner != 0 && owner != tid && owner < KY_RING_APART &&
		    __atomic_load_n(&ring->bytes, __ATOMIC_ACQUIRE) >= bytes &&
		    is_mapped(drum, ring) && !ky_os_thread_alive(pid, (int32_t)owner) &&
		    claim(ring, owner, tid)) {
			use_ring(drum, w, ring, false);
			return true;
		}
	}
	return false;
}

/*
 * Looking costs a system call per ring: at all of them once, and after that now and then at some more, so that an event
 * without a ring costs hardly more than one with a ring.
 */
static bool take_any_dead(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid)
{
	const uint64_t now = ky_drum_ticks(drum);
	if (w->vain_changes == 0)
		return take_dead(drum, w, tid, KY_RING_BYTES_MIN, tid, UINT32_MAX);
	if (now - w->vain_ticks < LOOK_TICKS)
		return false;
	w->vain_ticks = now;
	w->vain_looks += LOOKS;
	return take_dead(drum, w, tid, KY_RING_BYTES_MIN, w->vain_looks, LOOKS);
}

/* Return the size in the first half of the budget; in the second, rings get smaller. */
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

/* Take a ring that somebody has released, or a new one. */
static bool take_spare(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid)
{
	const uint64_t wanted = affordable(drum, ring_bytes_wanted(drum, w));
	const bool few = __atomic_load_n(&drum->header->rings_used, __ATOMIC_RELAXED) < CHILD_RINGS;
	if (w->pid && few && take_new(drum, w, tid, wanted))
		return true;
	if (take_free(drum, w, tid, wanted) ||
	    (w->pid && take_dead(drum, w, tid, wanted, tid, CHILD_LOOKS)))
		return true;
	for (uint64_t bytes = wanted; bytes >= KY_RING_BYTES_MIN; bytes /= 2)
		if (take_new(drum, w, tid, bytes))
			return true;
	return take_free(drum, w, tid, KY_RING_BYTES_MIN);
}

/* Take a ring for the thread. Return false when none is left; then none is until room_changes does, or a thread dies. */
static bool take_ring(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid)
{
	/* Acquire pairs with the release in note_room(): what was released before is found. */
	const uint32_t changes =
		(uint32_t)__atomic_load_n(&drum->header->room_changes, __ATOMIC_ACQUIRE) | 1u << 31;
	if ((changes != w->vain_changes && take_spare(drum, w, tid)) ||
	    take_any_dead(drum, w, tid)) {
		w->vain_changes = 0;
		return true;
	}
	w->vain_changes = changes;
	return false;
}

static void note_room(struct ky_drum *drum)
{
	__atomic_fetch_add(&drum->header->room_changes, 1, __ATOMIC_RELEASE);
}

/* moved: KY_RING_MOVED or 0. */
static void give_back(struct ky_drum *drum, struct ky_ring_writer *w, uint64_t moved)
{
	struct ky_drum_ring *ring = w->ring;
	if (!ring)
		return;
	KY_ASSERT(KYMO_I_LOAD(&ring->owner) != 0 && w->next >= w->first);
	w->ring = NULL;
	w->pub.ky_end = 0;
	w->at = 0;
	ring->events = w->pub.ky_events;
	KYMO_I_STORE(&ring->released_ticks, (ky_drum_ticks(drum) & ~KY_RING_MOVED) | moved);
	/* Pairs with the acquire in claim(): the next owner sees the count. */
	__atomic_store_n(&ring->owner, 0, __ATOMIC_RELEASE);
	note_room(drum);
}

void ky_ring_release(struct ky_drum *drum, struct ky_ring_writer *w)
{
	give_back(drum, w, 0);
}

void ky_ring_leave(struct ky_drum *drum, struct ky_ring_writer *w)
{
	give_back(drum, w, KY_RING_MOVED);
}

void ky_ring_release_dead(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t dead,
			  uint32_t tid)
{
	if (w->ring && claim(w->ring, dead, tid))
		ky_ring_release(drum, w);
}

void ky_ring_restart(struct ky_drum *drum, struct ky_ring_writer *w)
{
	w->pub.ky_end = 0;
	w->at = 0;
	if (w->ring)
		use_ring(drum, w, w->ring, false);
}

/*
 * Begin a block. The order matters to readers of the old block in this place: seq becomes 0 before anything else
 * changes, and the new number only when the block is whole again.
 */
static void begin_block(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, uint32_t name,
			uint64_t ticks)
{
	struct ky_drum_block *block = block_at(w, w->next);
	KY_ASSERT(w->next == w->ring->head);
	/* Handlers take the slow path: they must not take the old end for that of the new place. */
	KYMO_I_STORE(&w->pub.ky_end, 0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&block->seq, 0, __ATOMIC_RELAXED);
	/* Pairs with the load fence in read_block(): a reader that saw new words sees that seq changed. */
	KY_STORE_FENCE();
	if (w->next >= w->blocks)
		ky_cpu_clear(block->words, KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS);
	__atomic_store_n(&block->events_before, w->pub.ky_events, __ATOMIC_RELAXED);
	__atomic_store_n(&block->ticks, ticks, __ATOMIC_RELAXED);
	__atomic_store_n(&block->tid, tid, __ATOMIC_RELAXED);
	/* Pairs with the acquire load of name in read_block(), before the string is read. */
	__atomic_store_n(&block->name, name, __ATOMIC_RELEASE);
	__atomic_store_n(&block->level, w->level, __ATOMIC_RELAXED);
	__atomic_store_n(&block->pid, w->pid, __ATOMIC_RELAXED);
	__atomic_store_n(&block->left_ticks, w->next == w->first ? w->ring->released_ticks : 0,
			 __ATOMIC_RELAXED);
	w->next++;
	/* Pairs with the acquire load of seq in read_block(): the head of the block is there. */
	__atomic_store_n(&block->seq, w->next, __ATOMIC_RELEASE);
	/* Pairs with the acquire load of head in ky_ring_read(): all events of earlier blocks are there. */
	__atomic_store_n(&w->ring->head, w->next, __ATOMIC_RELEASE);
	w->high = (uint32_t)(ticks >> 32);
	move_to(w, (uintptr_t)block->words);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	KYMO_I_STORE(&w->pub.ky_end, (uintptr_t)block + KY_BLOCK_BYTES);

	const struct ky_drum_clock *clock = drum->clock;
	const uint32_t count = __atomic_load_n(&clock->count, __ATOMIC_RELAXED);
	if (!w->quiet && count && count <= drum->header->clock_max &&
	    ticks - KYMO_I_LOAD(&clock->readings[count - 1].ticks) >
		    KYMO_I_LOAD(&clock->every_ticks))
		ky_clock_take(drum, false);
}

/* Move to another ring, which larger has taken. */
static void move_out(struct ky_drum *drum, struct ky_ring_writer *w, struct ky_ring_writer *larger)
{
	ky_ring_leave(drum, w);
	larger->pub.ky_pos = w->frame + 1;
	larger->frame = w->frame;
	*w = *larger;
}

static struct ky_ring_writer like(const struct ky_ring_writer *w)
{
	return (struct ky_ring_writer){
		.level = w->level, .pid = w->pid, .apart = w->apart, .grown = w->grown};
}

/* Report whether a ring may grow to that many bytes and leave some for other threads. */
static bool may_grow(const struct ky_drum *drum, uint64_t bytes)
{
	const uint64_t budget = __atomic_load_n(&drum->header->budget_bytes, __ATOMIC_RELAXED);
	const uint64_t used = __atomic_load_n(&drum->header->space_used, __ATOMIC_RELAXED);
	return bytes <= budget && used + bytes <= budget - budget / GROWTH_LEAVES;
}

bool ky_ring_grow(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid)
{
	struct ky_ring_writer larger = like(w);
	const uint64_t bytes = 2 * w->blocks * KY_BLOCK_BYTES;
	if (!may_grow(drum, bytes) || !take_new(drum, &larger, tid, bytes))
		return false;
	move_out(drum, w, &larger);
	return true;
}

static bool next_block(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, uint32_t name,
		       uint64_t ticks)
{
	/* A session has asked for larger rings, or the child filled its first: move to a larger one, once. */
	w->grown |= w->pid && w->ring && w->next - w->first >= w->blocks;
	if (w->ring && !w->quiet && w->wanted_bytes < ring_bytes_wanted(drum, w)) {
		struct ky_ring_writer larger = like(w);
		const uint64_t asked = ring_bytes_wanted(drum, w);
		const uint64_t wanted = w->pid ? affordable(drum, asked) : asked;
		if (wanted > w->blocks * KY_BLOCK_BYTES &&
		    (take_free(drum, &larger, tid, wanted) ||
		     (may_grow(drum, wanted) && take_new(drum, &larger, tid, wanted))))
			move_out(drum, w, &larger);
		w->wanted_bytes = ring_bytes_wanted(drum, w);
	}
	if (!w->ring && !take_ring(drum, w, tid))
		return false;
	begin_block(drum, w, tid, name, ticks);
	return true;
}

/* Write the counter's high half if it has changed. Return where the event goes. */
static uint64_t *put_high(struct ky_ring_writer *w, uint32_t high)
{
	uintptr_t pos = w->at;
	if (high != w->high) {
		const uint64_t control = (uint64_t)KY_CONTROL_HIGH << KY_WORD_SITE_SHIFT | high;
		KY_ASSERT(*(const uint64_t *)pos == 0);
		/* Pairs with the acquire load in copy_events(). */
		__atomic_store_n((uint64_t *)pos, control, __ATOMIC_RELEASE);
		pos += 8;
		w->high = high;
		move_to(w, pos);
	}
	KY_ASSERT(pos % 8 == 0 && pos < w->pub.ky_end && *(const uint64_t *)pos == 0);
	return (uint64_t *)pos;
}

uint64_t *ky_ring_reserve_at(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid,
			     uint32_t name, uint32_t words, uint64_t ticks)
{
	KY_ASSERT(words <= KY_EVENT_WORDS_MAX);
	if (!ky_ring_has_room(w, words) && !next_block(drum, w, tid, name, ticks))
		return NULL;
	return put_high(w, (uint32_t)(ticks >> 32));
}

bool ky_ring_prepare(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid, bool large)
{
	const uint32_t level = w->level;
	if (!w->ring) {
		w->level = large ? 0 : level; /* those of handlers are small */
		take_ring(drum, w, tid);
		w->level = level;
	}
	w->quiet = true;
	return w->ring && ky_os_populate(w->base, w->blocks * KY_BLOCK_BYTES);
}

uint64_t *ky_ring_reserve(struct ky_drum *drum, struct ky_ring_writer *w, uint32_t tid,
			  uint32_t name, uint32_t words, uint64_t *ticks)
{
	KY_ASSERT(words <= KY_EVENT_WORDS_MAX);
	if (!ky_ring_has_room(w, words) && !next_block(drum, w, tid, name, ky_drum_ticks(drum)))
		return NULL;
	*ticks = ky_drum_ticks(drum);
	const uint32_t high = (uint32_t)(*ticks >> 32);
	uint64_t *const pos = put_high(w, high);
	const bool slow = !__atomic_load_n(&drum->ticks_inline, __ATOMIC_RELAXED) ||
			  __atomic_load_n(&ky_ring_slow_only, __ATOMIC_RELAXED);
	__atomic_store_n(&w->pub.ky_high, slow ? UINT32_MAX : high, __ATOMIC_RELAXED);
	return pos;
}
