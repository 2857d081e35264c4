/* SPDX-License-Identifier: MIT */
/*
 * thread.c: assigns states to threads, and holds the thread's ring.
 *
 *   states: [free] [tid 7] [tid 9] [dead] [tid 12] ... states_used ... states_max
 *
 * A thread that comes with a state that is not its own (gs is inherited) looks for one under its number, then for one
 * whose thread is gone, among a few; then takes a new one; when there are no more, it looks at all, then makes more. A
 * dead thread's ring goes with its state: each block names its thread.
 *
 * A forked child finds its states all zero. It goes on in its parent's drum, which is shared memory that kymo has
 * open: so nothing of it is lost however soon it ends. Its blocks name its process.
 *
 * While the slow path is at work, state.thread is 0: so a signal handler's calls come to the slow path, too, and find
 * it busy.
 */
#include "core/heap.h"
#include "functrace/agent/parts.h"

#include "os/os.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define ARCH_SET_GS_CODE 0x1001
/* States checked for a dead thread before a new one is taken: each is a system call. */
#define LOOKS 4u
/* Words at a block's end that are left for calls of handlers that come between check and store. */
#define SPARE_BYTES 128u
/* Memory is made for this many blocks at once, in a ring's first lap. */
#define POPULATE_BLOCKS 16u
/* A mark is the time when it was given, and the number of its state. */
#define MARK_SHIFT 12
_Static_assert(KY_AGENT_STATES_MAX <= 1u << MARK_SHIFT, "a state's number is in its mark");
/* Time that a thread without a ring waits until it asks again, in ticks. */
#define RETRY_TICKS (UINT64_C(1) << 28)
/* A call further above the slow path's stack address is one of a handler on another stack. */
#define SAME_STACK_BYTES (UINT64_C(1) << 20)

_Static_assert(sizeof(struct ky_ring_writer) <= sizeof(((struct ky_agent_state *)0)->ring),
	       "the state has room for it");

static struct ky_ring_writer *writer_of(struct ky_agent_state *state)
{
	return (struct ky_ring_writer *)(void *)state->ring;
}

static struct ky_agent_state *state_at(const struct ky_agent_home *home, uint32_t index)
{
	return (struct ky_agent_state *)(uintptr_t)(home->states + index * home->state_bytes);
}

static uint64_t index_of(const struct ky_agent_home *home, const struct ky_agent_state *state)
{
	return ((uint64_t)(uintptr_t)state - home->states) / home->state_bytes;
}

/* Any value may be in gs when the program has set it: it is looked at only as an address of a state. */
struct ky_agent_state *ky_agent_state_mine(const struct ky_agent_home *home)
{
	struct ky_agent_state *state = ky_agent_gs();
	const uint64_t away = (uint64_t)(uintptr_t)state - home->states;
	return away < home->states_max * home->state_bytes && away % home->state_bytes == 0 &&
			       state->owner == ky_agent_thread() &&
			       state->generation == home->generation
		       ? state
		       : NULL;
}

static bool claim(struct ky_agent_state *state, uint32_t from, uint32_t tid)
{
	return __atomic_compare_exchange_n(&state->tid, &from, tid, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static struct ky_agent_state *find_own(const struct ky_agent_home *home, uint32_t used,
				       uint32_t tid)
{
	for (uint32_t i = 1; i < used; i++)
		if (__atomic_load_n(&state_at(home, i)->tid, __ATOMIC_RELAXED) == tid)
			return state_at(home, i);
	return NULL;
}

/* Return a state whose thread is gone, among `count` from a varying place on; *was is its former owner. */
static struct ky_agent_state *find_dead(const struct ky_agent_home *home, uint32_t used,
					uint32_t tid, uint32_t count, uint32_t *was)
{
	const int32_t pid = (int32_t)ky_agent_pid();
	for (uint32_t i = 0; used > 1 && i < count; i++) {
		struct ky_agent_state *state = state_at(home, 1 + (tid + i) % (used - 1));
		*was = __atomic_load_n(&state->tid, __ATOMIC_RELAXED);
		if ((*was == 0 || !ky_os_thread_alive(pid, (int32_t)*was)) &&
		    claim(state, *was, tid))
			return state;
	}
	return NULL;
}

static struct ky_agent_state *find_new(struct ky_agent_home *home, uint32_t tid)
{
	uint32_t used = __atomic_load_n(&home->states_used, __ATOMIC_RELAXED);
	while (used < __atomic_load_n(&home->states_max, __ATOMIC_ACQUIRE)) {
		if (!__atomic_compare_exchange_n(&home->states_used, &used, used + 1, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		if (claim(state_at(home, used), 0, tid))
			return state_at(home, used);
		used++;
	}
	return NULL;
}

/*
 * Take the ring with the state, unless it belongs to another drum, or another thread has taken it from the dead
 * thread before.
 */
static void take_ring(struct ky_agent_state *state, uint64_t generation, uint32_t was, uint32_t tid)
{
	struct ky_ring_writer *writer = writer_of(state);
	struct ky_drum_ring *ring = state->generation == generation ? writer->ring : NULL;
	uint32_t dead = ky_ring_owner(writer, was);
	if (!ring || !__atomic_compare_exchange_n(&ring->owner, &dead, ky_ring_owner(writer, tid),
						  false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		*writer = (struct ky_ring_writer){0};
}

/* Return the drum as if it ended at `end`: it is mapped in parts. */
static struct ky_drum drum_of(const struct ky_agent_home *home, uint64_t end)
{
	uint8_t *const base = (uint8_t *)(uintptr_t)home->drum;
	struct ky_drum_header *h = (struct ky_drum_header *)(void *)base;
	return (struct ky_drum){
		.base = base,
		.header = h,
		.clock = (struct ky_drum_clock *)(void *)(base + h->clock_at),
		.categories = (struct ky_drum_category *)(void *)(base + h->categories_at),
		.buckets = (uint32_t *)(void *)(base + h->buckets_at),
		.rings = (struct ky_drum_ring *)(void *)(base + h->rings_at),
		.bytes = end,
		.fd = -1,
		.on_disk = true, /* room.c maps what was not used before */
		.ticks_inline = true,
	};
}

static uint32_t own_name(const struct ky_agent_home *home)
{
	char name[16] = "";
	ky_agent_system(SYS_prctl, PR_GET_NAME, (uintptr_t)name, 0, 0, 0, 0);
	size_t bytes = 0;
	while (bytes < sizeof(name) && name[bytes])
		bytes++;
	struct ky_drum drum = drum_of(home, home->drum_heap);
	return drum.header->magic == KY_DRUM_MAGIC ? ky_heap_thread_name(&drum, name, bytes) : 0;
}

/* Prepare a state. Return false when kymo has attached once more in between: then the state is free. */
static bool prepare(const struct ky_agent_home *home, struct ky_agent_state *state, uint32_t was,
		    uint32_t tid)
{
	const uint64_t generation = __atomic_load_n(&home->generation, __ATOMIC_ACQUIRE);
	const struct ky_drum drum = drum_of(home, home->drum_end);
	take_ring(state, generation, was, tid);
	struct ky_ring_writer *writer = writer_of(state);
	const uint32_t pid = home->apart ? home->pid | KY_PID_APART : home->pid;
	writer->pid = drum.header->pid == pid ? 0 : pid;
	writer->apart = home->apart;
	state->name = own_name(home);
	state->top = KY_AGENT_NO_CALL;
	state->limit = 0; /* the next event begins a block, which names its thread */
	state->retry = 0;
	state->busy = 0;
	state->mark = __builtin_ia32_rdtsc() << MARK_SHIFT | index_of(home, state);
	state->self = (uint64_t)(uintptr_t)state;
	state->generation = generation;
	state->owner = ky_agent_thread();
	return __atomic_load_n(&state->tid, __ATOMIC_RELAXED) == tid &&
	       __atomic_load_n(&home->generation, __ATOMIC_RELAXED) == generation;
}

/* Set up home in a forked child. A process that shares its parent's memory counts as a thread of it. */
static void settle_in_child(struct ky_agent_home *home)
{
	struct ky_agent_state *nobody = state_at(home, 0);
	if (__atomic_load_n(&nobody->here, __ATOMIC_RELAXED))
		return;
	home->states_used = 1;
	home->pid = ky_agent_pid();
	home->pause = KY_LOADER_UNWATCHED;
	home->growing = 0;
	home->generation++;
	/* A parent in another namespace is not visible here. */
	home->apart |= ky_agent_system(SYS_getppid, 0, 0, 0, 0, 0, 0) == 0;
	__atomic_store_n(&nobody->here, 1, __ATOMIC_RELAXED);
}

static struct ky_agent_state *take(struct ky_agent_home *home)
{
	settle_in_child(home);
	if (home->sealed)
		return NULL;
	const uint32_t tid = (uint32_t)ky_agent_system(SYS_gettid, 0, 0, 0, 0, 0, 0);
	const uint32_t used = __atomic_load_n(&home->states_used, __ATOMIC_ACQUIRE);
	uint32_t was = tid;
	struct ky_agent_state *state = find_own(home, used, tid);
	if (!state)
		state = find_dead(home, used, tid, used - 1 < LOOKS ? used - 1 : LOOKS, &was);
	if (!state)
		state = find_new(home, tid);
	if (!state)
		state = find_dead(home, used, tid, used - 1, &was);
	if (!state) {
		ky_agent_room_states(home);
		was = tid;
		state = find_new(home, tid);
	}
	if (!state || !prepare(home, state, was, tid))
		return NULL;
	ky_agent_system(SYS_arch_prctl, ARCH_SET_GS_CODE, (uintptr_t)state, 0, 0, 0, 0);
	return state;
}

struct ky_agent_state *ky_agent_state_take(struct ky_agent_home *home)
{
	struct ky_agent_state *state = ky_agent_state_mine(home);
	if (state)
		return state;
	/* A handler that came in between would do the same once more. */
	const uint64_t mask = ky_agent_block_signals();
	state = take(home);
	ky_agent_unblock_signals(mask);
	return state;
}

/* Count it where a reader of the drum sees it, even when this process is gone. */
void ky_agent_lost(const struct ky_agent_home *home, struct ky_agent_state *state)
{
	struct ky_drum_header *header = (struct ky_drum_header *)(uintptr_t)home->drum;
	if (state)
		state->lost++;
	__atomic_fetch_add(&header->lost_ringless, 1, __ATOMIC_RELAXED);
}

bool ky_agent_begin(struct ky_agent_state *state, uint64_t slot)
{
	__atomic_store_n(&state->thread, 0, __ATOMIC_RELAXED);
	const uint64_t busy = state->busy;
	/* A handler's calls are further down its stack; further up, the slow path was left by longjmp. */
	if (busy != 0 && (slot <= busy || slot - busy >= SAME_STACK_BYTES)) {
		state->lost++;
		return false;
	}
	state->busy = slot;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

void ky_agent_end(const struct ky_agent_home *home, struct ky_agent_state *state)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ky_agent_use_leaf(home, state, state->busy);
	state->busy = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&home->on, __ATOMIC_RELAXED) && state->generation == home->generation)
		__atomic_store_n(&state->thread, state->owner, __ATOMIC_RELAXED);
}

/* Touch some blocks at once: that costs less than many first touches. */
static void populate(const struct ky_ring_writer *writer)
{
	const uint64_t number = writer->next - 1;
	/* Most children need only a page. */
	if ((writer->pid && !writer->grown) || writer->next > writer->blocks ||
	    number % POPULATE_BLOCKS != 0)
		return;
	const uint64_t left = writer->blocks - number;
	ky_agent_system(SYS_madvise, (uintptr_t)(writer->base + number * KY_BLOCK_BYTES),
			(left < POPULATE_BLOCKS ? left : POPULATE_BLOCKS) * KY_BLOCK_BYTES,
			MADV_POPULATE_WRITE, 0, 0, 0);
}

/* Count the events that the fast path has written since the writer's block began. */
static void count_events(const struct ky_agent_state *state, struct ky_ring_writer *w)
{
	if (!w->ring || w->next == 0 || state->pos == 0)
		return;
	const struct ky_drum_block *block =
		(const void *)(w->base + ((w->next - 1) & (w->blocks - 1)) * KY_BLOCK_BYTES);
	const uint64_t words = (state->pos - (uintptr_t)block->words) / 8;
	if (words <= KY_BLOCK_WORDS)
		w->pub.ky_events = block->events_before + words - state->controls;
}

/* Return the word for the event, in a block that ends at *limit (unchanged, or another); NULL: there is no ring. */
static uint64_t *reserve(const struct ky_agent_home *home, struct ky_agent_state *state,
			 uint64_t ticks, uint64_t *limit)
{
	struct ky_ring_writer *w = writer_of(state);
	struct ky_drum drum = drum_of(home, home->drum_end);
	const bool fits = w->ring && state->pos < *limit;
	count_events(state, w);
	w->at = fits ? state->pos : 0;
	w->pub.ky_end = fits ? *limit + SPARE_BYTES : 0;
	const uint32_t high = w->high;
	uint64_t *slot = ky_ring_reserve_at(&drum, w, state->tid, state->name, 0, ticks);
	if (slot && !fits) {
		state->controls = 0;
		*limit = w->pub.ky_end - SPARE_BYTES;
		populate(w);
	} else if (slot && w->high != high) {
		state->controls++;
	}
	return slot;
}

/*
 * Write an event. The slow path may be left at any instruction, by a handler that runs the thread's cancellation or
 * jumps away: the fast path must not go on with a place in one block and the limit of another. Without a limit it
 * does not go on at all.
 */
void ky_agent_put(const struct ky_agent_home *home, struct ky_agent_state *state, uint32_t site,
		  uint64_t ticks)
{
	uint64_t limit = state->limit;
	state->limit = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	uint64_t *slot = ticks < state->retry ? NULL : reserve(home, state, ticks, &limit);
	if (!slot) {
		if (ticks >= state->retry)
			state->retry = ticks + RETRY_TICKS;
		ky_agent_lost(home, state);
		return;
	}
	__atomic_store_n(slot, (uint64_t)site << KY_WORD_SITE_SHIFT | (uint32_t)ticks,
			 __ATOMIC_RELEASE);
	state->pos = (uintptr_t)(slot + 1);
	state->high = writer_of(state)->high;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	state->limit = limit;
}
