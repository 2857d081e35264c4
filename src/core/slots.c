/* SPDX-License-Identifier: MIT */
/*
 * slots.c: take and leave slots, name threads, and look at all slots for those who wait. Never locks or allocates.
 */
#include "core/slots.h"

#include "core/heap.h"
#include "os/os.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define FIRST_LEVEL_KEYS 32u

/*
 * Threads without a slot share these. Invariant: their ky_end is 0, so every event takes the slow path. Which one it is holds what else a
 * thread knows, so that its thread-local storage is the one pointer: a process has room for some 1,600 bytes of it in
 * all libraries that it loads later.
 */
enum {
	/* A fault's handler must not attach while its thread does; other signals wait. */
	ATTACHING = 1,
	/* The thread found no slot, and no dead thread's. */
	SLOTLESS = 2,
	/* The thread has left its slot, at its end. A destructor or a handler that records then takes another. */
	ENDING = 4,
};
static struct kymo_i_writer idles[8];
__thread struct kymo_i_writer *kymo_i_tls __attribute__((tls_model("initial-exec"))) = &idles[0];

__attribute__((used)) static const char *const linked[] = {&ky_init_linked, &ky_env_linked};
static pthread_key_t exit_key;
static _Atomic bool exit_key_made;
/*
 * All slots, and how many were ever taken: no slot from slots_high on was. Sequentially consistent, but for the first load
 * in slots(): ky_slots_settle() sees every slot that a thread took before.
 */
static _Atomic(struct ky_slot *) arena;
static _Atomic uint32_t slots_high;
/*
 * How often a slot was given back; and that number, plus 1, when there was none left. While they agree, there is none,
 * unless a thread died without giving its slot back. Sequentially consistent: a slot that is free after the count was
 * read makes the count differ.
 */
static _Atomic uint32_t slots_freed, slots_full;
/* When a thread without a slot last looked for dead ones, and where it goes on. Plain counters. */
static _Atomic uint64_t looked_ticks;
static _Atomic uint32_t looked_at;
#define LOOK_TICKS (UINT64_C(1) << 21)
#define LOOKS 8u

static bool is_idle(void)
{
	return (uintptr_t)kymo_i_tls - (uintptr_t)idles < sizeof(idles);
}

static unsigned idle_state(void)
{
	return is_idle() ? (unsigned)(kymo_i_tls - idles) : 0;
}

static void set_idle(unsigned state)
{
	kymo_i_tls = &idles[state];
}

/* The slots of threads that fork in a handler which interrupted an event: the child's is wiped. */
#define FORKS_AT_ONCE 16u
static struct {
	struct ky_slot *_Atomic of; /* NULL: free */
	struct ky_slot slot;
} forking[FORKS_AT_ONCE];

/* No handler runs in the parent (init.h): a thread gives its place back when it forks again, and when it ends. */
static void end_forking(const struct ky_slot *slot)
{
	for (uint32_t i = 0; i < FORKS_AT_ONCE; i++)
		if (atomic_load(&forking[i].of) == slot)
			atomic_store(&forking[i].of, NULL);
}

static void detach(struct ky_slot *slot)
{
	KY_ASSERT(ky_slots_tid(slot) != 0 && kymo_i_tls != &slot->level[0].pub);
	end_forking(slot);
	struct ky_drum *drum = ky_drum_peek();
	for (uint32_t i = 0; drum && i < KY_LEVELS; i++)
		ky_ring_release(drum, &slot->level[i]);
	memset(slot->level, 0, sizeof(slot->level));
	/* Pairs with the acquire in take_slot(): the next owner finds the levels zeroed. */
	__atomic_store_n(&slot->tid, 0, __ATOMIC_RELEASE);
	atomic_fetch_add(&slots_freed, 1);
}

static void thread_exits(void *value)
{
	struct ky_slot *slot = value;
	if (kymo_i_tls != &slot->level[0].pub || ky_slots_tid(slot) == 0)
		return; /* of the parent, before fork */
	/* Other destructors may record, too: leave the slot late. In the last round the thread sanitizer's thread ends. */
	if (++slot->exits < PTHREAD_DESTRUCTOR_ITERATIONS - 1 &&
	    pthread_setspecific(exit_key, slot) == 0)
		return;
	set_idle(ENDING);
	/* From here on signal handlers find no slot, and do not use the one being detached. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	detach(slot);
}

void ky_slots_prepare(void)
{
	/* glibc allocates for a key beyond its first level. Without a key dead threads are found by looking. */
	if (pthread_key_create(&exit_key, thread_exits) != 0)
		return;
	exit_key_made = exit_key < FIRST_LEVEL_KEYS;
	if (!exit_key_made)
		pthread_key_delete(exit_key);
}

void ky_slots_unload(void)
{
	struct ky_slot *all = atomic_load(&arena);
	const struct ky_drum *drum = ky_drum_peek();
	if (atomic_exchange(&exit_key_made, false))
		pthread_key_delete(exit_key);
	set_idle(0);
	/* The wiped slots of a forked child's parent have no thread. */
	for (uint32_t i = 0; all && drum && i < ky_limits.rings_max; i++)
		if (ky_slots_tid(&all[i]) != 0)
			detach(&all[i]);
	if (all)
		ky_os_unmap(all, ky_limits.rings_max * sizeof(struct ky_slot));
	atomic_store(&arena, NULL);
}

static struct ky_slot *slots(void)
{
	/* Pairs with the compare-and-swap below, by another thread. The memory is zero: a fresh mapping. */
	struct ky_slot *now = atomic_load_explicit(&arena, memory_order_acquire);
	if (now)
		return now;
	struct ky_slot *made = ky_os_private(ky_limits.rings_max * sizeof(struct ky_slot), NULL);
	if (made && !atomic_compare_exchange_strong(&arena, &now, made)) {
		ky_os_unmap(made, ky_limits.rings_max * sizeof(struct ky_slot));
		return now;
	}
	return made;
}

const struct ky_slot *ky_slots_first(void)
{
	return atomic_load(&arena);
}

/* Take the slot of a thread that ended without its destructors (of clone(), or killed in one). Look at so many. */
static struct ky_slot *take_dead_slot(struct ky_slot *all, uint32_t tid, uint32_t from,
				      uint32_t looks)
{
	struct ky_drum *drum = ky_drum_peek();
	for (uint32_t i = 0; all && drum && i < looks; i++) {
		struct ky_slot *slot = &all[(from + i) % ky_limits.rings_max];
		const uint32_t dead = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);
		uint32_t owner = dead;
		/*
		 * This thread has no slot: one with its id belonged to another of that id. The dead
		 * thread's stores are visible: the kernel reported its end.
		 */
		if (owner == 0 ||
		    (owner != tid && ky_os_thread_alive(ky_os_pid(), (int32_t)owner)) ||
		    !__atomic_compare_exchange_n(&slot->tid, &owner, tid, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		for (uint32_t level = 0; level < KY_LEVELS; level++)
			ky_ring_release_dead(drum, &slot->level[level], dead, tid);
		return slot;
	}
	return NULL;
}

/* A child's slots are new: the one its first thread points to stays empty, and no other thread gets it. */
void ky_slots_forget(void)
{
	atomic_store(&arena, NULL);
	atomic_store(&slots_high, 0);
	atomic_store(&slots_full, 0);
}

void ky_slots_leave(void)
{
	set_idle(0);
}

static bool is_in_event(const struct ky_slot *slot)
{
	bool any = false;
	for (uint32_t i = 0; i < KY_LEVELS; i++)
		any |= slot->level[i].pub.ky_pos % 8 != 0;
	return any;
}

void ky_slots_before_fork(void)
{
	struct ky_slot *slot = (struct ky_slot *)(void *)kymo_i_tls;
	if (is_idle())
		return;
	end_forking(slot);
	if (ky_slots_tid(slot) == 0 || !is_in_event(slot))
		return;
	for (uint32_t i = 0; i < FORKS_AT_ONCE; i++) {
		struct ky_slot *nobody = NULL;
		if (atomic_compare_exchange_strong(&forking[i].of, &nobody, slot)) {
			forking[i].slot = *slot;
			return;
		}
	}
}

void ky_slots_after_fork(void)
{
	struct ky_slot *slot = (struct ky_slot *)(void *)kymo_i_tls;
	for (uint32_t i = 0; i < FORKS_AT_ONCE; i++) {
		/* The child finishes the event when its handler returns: in this slot, and not in the parent's ring. */
		if (!is_idle() && atomic_load(&forking[i].of) == slot) {
			*slot = forking[i].slot;
			for (uint32_t level = 0; level < KY_LEVELS; level++)
				if (slot->level[level].ring)
					ky_drum_keep(slot->level[level].ring);
		}
		atomic_store(&forking[i].of, NULL); /* the parent's threads are not here */
	}
}

static void raise_slots_high(uint32_t count)
{
	uint32_t now = atomic_load(&slots_high);
	while (now < count && !atomic_compare_exchange_weak(&slots_high, &now, count))
		;
}

static struct ky_slot *take_free_slot(struct ky_slot *all, uint32_t tid)
{
	for (uint32_t i = 0; all && i < ky_limits.rings_max; i++) {
		uint32_t nobody = 0;
		/* Acquire pairs with the release store of tid in detach(). */
		if (__atomic_load_n(&all[i].tid, __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&all[i].tid, &nobody, tid, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			raise_slots_high(i + 1);
			return &all[i];
		}
	}
	return NULL;
}

static bool no_slot_is_free(void)
{
	return atomic_load(&slots_full) == atomic_load(&slots_freed) + 1;
}

/* Looking for dead threads is a system call for each: at all of them once in a thread, then now and then at some. */
static struct ky_slot *take_slot(uint32_t tid)
{
	struct ky_slot *all = slots();
	const uint32_t freed = atomic_load(&slots_freed);
	struct ky_slot *slot = no_slot_is_free() ? NULL : take_free_slot(all, tid);
	if (!slot) {
		atomic_store(&slots_full, freed + 1);
		slot = idle_state() & SLOTLESS
			       ? take_dead_slot(all, tid, atomic_fetch_add(&looked_at, LOOKS),
						LOOKS)
			       : take_dead_slot(all, tid, 0, ky_limits.rings_max);
	}
	return slot;
}

/*
 * Report whether a thread that found no slot may look again: with each event that would take longer than the event. One
 * thread looks for the dead ones, and not often.
 */
static bool may_look_again(const struct ky_drum *drum)
{
	if (!(idle_state() & SLOTLESS) || !no_slot_is_free())
		return true;
	const uint64_t now = ky_drum_ticks(drum);
	uint64_t then = atomic_load_explicit(&looked_ticks, memory_order_relaxed);
	return now - then >= LOOK_TICKS &&
	       atomic_compare_exchange_strong(&looked_ticks, &then, now);
}

static void rename_blocks(struct ky_slot *slot)
{
	for (uint32_t i = 0; i < KY_LEVELS; i++) {
		if (slot->level[i].pub.ky_end == 0)
			continue;
		struct ky_drum_block *block =
			(struct ky_drum_block *)(slot->level[i].pub.ky_end - KY_BLOCK_BYTES);
		/* Pairs with the acquire load of name in read_block(): the string is there. */
		__atomic_store_n(&block->name, slot->name, __ATOMIC_RELEASE);
	}
}

/* Names that threads gave themselves while there was no drum, or no slot. A thread's name is kept under its id; 0 is free. */
#define EARLY_NAMES 16u
static struct early_name {
	_Atomic uint32_t tid;
	char name[KYMO_STRING_MAX + 1];
} early_names[EARLY_NAMES];
static _Atomic uint32_t early_count; /* how many there are */

/* Report whether there was room. An event in a handler must not take a name that is half written: TAKEN is no thread. */
static bool keep_early_name(const char *name)
{
	enum { TAKEN = INT32_MAX };
	const uint32_t tid = (uint32_t)ky_os_tid();
	/* Its own place, else a free one. */
	for (uint32_t i = 0; i < 2 * EARLY_NAMES; i++) {
		const bool own = i < EARLY_NAMES;
		struct early_name *const early = &early_names[i % EARLY_NAMES];
		uint32_t now = own ? tid : 0;
		if (!atomic_compare_exchange_strong(&early->tid, &now, TAKEN))
			continue;
		const size_t bytes = strnlen(name, KYMO_STRING_MAX);
		memcpy(early->name, name, bytes);
		early->name[bytes] = '\0';
		if (!own)
			atomic_fetch_add(&early_count, 1);
		atomic_store(&early->tid, tid);
		return true;
	}
	return false;
}

/* Use the name that the thread gave itself before. */
static void take_early_name(struct ky_drum *drum, struct ky_slot *slot)
{
	const uint32_t tid = ky_slots_tid(slot);
	for (uint32_t i = 0; atomic_load(&early_count) && i < EARLY_NAMES; i++) {
		if (atomic_load(&early_names[i].tid) != tid)
			continue;
		const char *name = early_names[i].name;
		slot->name = ky_heap_thread_name(drum, name, strlen(name));
		atomic_store(&early_names[i].tid, 0);
		atomic_fetch_sub(&early_count, 1);
	}
}

/* Give the slot to the thread. As soon as kymo_i_tls points to it, signal handlers use it, too. */
static void move_in(struct ky_drum *drum, struct ky_slot *slot)
{
	KY_ASSERT(ky_slots_tid(slot) != 0 && idle_state() & ATTACHING);
	const bool ending = idle_state() & ENDING;
	char comm[16];
	ky_os_comm(comm);
	slot->name = ending ? KY_NAME_SAME
			    : ky_heap_thread_name(drum, comm, strnlen(comm, sizeof(comm)));
	memset(slot->level, 0, sizeof(slot->level));
	for (uint32_t i = 0; i < KY_LEVELS; i++)
		slot->level[i].level = i;
	slot->exits = ending ? PTHREAD_DESTRUCTOR_ITERATIONS : 0; /* leave it at once */
	slot->prepared = false;
	slot->lowest = 0;
	slot->coarse = (struct ky_coarse){0};
	take_early_name(drum, slot);
	/* The thread sanitizer's thread has ended by then: a look for the dead gives the slot back. */
	if (exit_key_made && !(ending && KY_IS_SANITIZED_THREAD))
		pthread_setspecific(exit_key, slot);
	/* A signal handler that finds the slot finds it complete. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	kymo_i_tls = &slot->level[0].pub;
}

/* Give the thread a slot. Rings come with the first event at each level. */
static struct ky_slot *attach(struct ky_drum *drum)
{
	if (idle_state() & ATTACHING)
		return NULL;
	const uint64_t mask = ky_os_signals_hold();
	/* A handler may have attached since the caller looked: a second slot would hide the first. */
	struct ky_slot *slot = (struct ky_slot *)(void *)kymo_i_tls;
	if (is_idle()) {
		set_idle(idle_state() | ATTACHING);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		slot = take_slot((uint32_t)ky_os_tid());
		if (slot)
			move_in(drum, slot);
		else
			set_idle((idle_state() & ENDING) | SLOTLESS);
	}
	ky_os_signals_restore(mask);
	return slot;
}

/* Report false in vfork's child, which shares its parent's memory: what it took would be the parent's later. */
static bool in_own_memory(const struct ky_drum *drum)
{
	return drum->header->pid == (uint32_t)ky_os_pid();
}

struct ky_slot *ky_slots_own(struct ky_drum *drum)
{
	if (!is_idle()) {
		struct ky_slot *slot = (struct ky_slot *)(void *)kymo_i_tls;
		if (ky_slots_tid(slot) != 0)
			return slot;
		ky_slots_leave(); /* wiped by fork */
	}
	return may_look_again(drum) && in_own_memory(drum) ? attach(drum) : NULL;
}

int ky_slots_prepare_thread(struct ky_drum *drum, bool strict)
{
	struct ky_slot *slot = ky_slots_own(drum);
	if (!slot)
		return -EAGAIN;
	if (strict && !slot->coarse.rate)
		ky_coarse_begin(&slot->coarse, drum);
	const uint64_t mask = ky_os_signals_hold();
	bool good = true;
	if (strict) {
		/* Without a block every event takes the slow path before it reads the counter. */
		ky_ring_leave(drum, &slot->level[0]);
		slot->lowest = 1;
	}
	for (uint32_t i = slot->lowest; i < KY_LEVELS; i++)
		good &= ky_ring_prepare(drum, &slot->level[i], ky_slots_tid(slot),
					i == slot->lowest);
	slot->prepared = true;
	ky_os_signals_restore(mask);
	if (drum->on_disk && !ky_os_populate(drum->base, drum->header->space_at))
		return -ENOSPC;
	drum->populated = true;
	return good ? 0 : -EAGAIN;
}

/* A thread that is just attaching clears it again: its first event takes the slow path anyway. */
__attribute__((noinline, no_sanitize("thread"))) static void make_slow(struct kymo_i_writer *w)
{
	*(volatile uint32_t *)&w->ky_high = UINT32_MAX;
}

void ky_slots_slow_only(bool on)
{
	/*
	 * Sequentially consistent with the load of the arena: a thread that attaches later than this looks reads
	 * slow_only in its first event, which is a slow one (ky_ring_reserve()).
	 */
	__atomic_store_n(&ky_ring_slow_only, on, __ATOMIC_SEQ_CST);
	struct ky_slot *all = atomic_load(&arena);
	for (uint32_t i = 0; all && on && i < ky_limits.rings_max; i++)
		if (__atomic_load_n(&all[i].tid, __ATOMIC_RELAXED) != 0)
			make_slow(&all[i].level[0].pub);
}

/* Its own thread writes it without an atomic, in one instruction: the sanitizer does not know that. */
__attribute__((noinline, no_sanitize("thread"))) static uintptr_t look_at_pos(
	const struct kymo_i_writer *w)
{
	const uintptr_t pos = *(const volatile uintptr_t *)&w->ky_pos;
	/* What the caller reads of the rings after this is not older than pos. */
	KY_LOAD_FENCE();
	return pos;
}

void ky_slots_settle(bool (*wait)(void *context), void *context)
{
	const struct ky_slot *all = atomic_load(&arena);
	const uint32_t count = atomic_load(&slots_high);
	for (uint32_t i = 0; all && i < count * KY_LEVELS; i++) {
		const struct ky_slot *slot = &all[i / KY_LEVELS];
		if (__atomic_load_n(&slot->tid, __ATOMIC_RELAXED) == 0)
			continue;
		const struct kymo_i_writer *w = &slot->level[i % KY_LEVELS].pub;
		/* Each event leaves pos at another place: one that changed is another event's. */
		const uintptr_t pos = look_at_pos(w);
		while (pos % 8 != 0 && !KYMO_I_LOAD(&slot->stalling) && look_at_pos(w) == pos)
			if (!wait(context))
				return;
	}
}

void kymo_thread_name(const char *name)
{
	const int saved_errno = errno;
	struct ky_drum *drum = ky_drum_get();
	const uint32_t string =
		drum && name && in_own_memory(drum)
			? ky_heap_thread_name(drum, name, strnlen(name, KYMO_STRING_MAX))
			: 0;
	struct ky_slot *slot = string ? ky_slots_own(drum) : NULL;
	if (slot) {
		slot->name = string;
		rename_blocks(slot);
	} else if (name && (string || !drum) && !ky_drum_failed() && !keep_early_name(name) &&
		   drum) {
		__atomic_fetch_add(&drum->header->refused_names, 1, __ATOMIC_RELAXED);
	}
	errno = saved_errno;
}
