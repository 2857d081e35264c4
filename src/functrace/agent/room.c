/* SPDX-License-Identifier: MIT */
/*
 * room.c: maps more of the drum and more states when threads need them. Both grow in place, and nothing is reserved behind
 * them: their addresses are far from those that the kernel gives to others. Where something is in the way they stay as
 * they are.
 *
 *   drum     [header, heap ─▶ drum_heap)   nothing   [rings ─▶ drum_end)   nothing   drum_bytes
 *   states   [0 .. states_max ─▶)
 */
#include "functrace/agent/parts.h"
#include "os/os.h"

#include <sys/syscall.h>

#define PAGE_BYTES UINT64_C(4096)
/* At least this much is mapped at once. */
#define STEP_BYTES (UINT64_C(1) << 20)
/* What a program in a sandbox may need later: no system call is made then. */
#define SEALED_BYTES (UINT64_C(64) << 20)
#define LOCK_TRIES 10000u

extern const uint64_t ky_agent_table[] __attribute__((visibility("hidden")));

/*
 * One thread at a time. The lock is held without signals, so it is never held for long; in a child of a process in which
 * it was, it is free (thread.c).
 */
static bool lock(struct ky_agent_home *home, uint64_t *mask)
{
	*mask = ky_agent_block_signals();
	for (uint32_t i = 0; i < LOCK_TRIES; i++) {
		uint32_t free = 0;
		if (__atomic_compare_exchange_n(&home->growing, &free, 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
		ky_agent_system(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	ky_agent_unblock_signals(*mask);
	return false;
}

static void unlock(struct ky_agent_home *home, uint64_t mask)
{
	__atomic_store_n(&home->growing, 0, __ATOMIC_RELEASE);
	ky_agent_unblock_signals(mask);
}

/* Make memory longer where it is. It may be several mappings to the kernel: its last page is of one. */
static bool extend(uint64_t at, uint64_t bytes, uint64_t wanted)
{
	const uint64_t last = at + bytes - PAGE_BYTES;
	return ky_agent_system(SYS_mremap, last, PAGE_BYTES, wanted - bytes + PAGE_BYTES, 0, 0,
			       0) == (int64_t)last;
}

/* Have a part of the drum, which begins at `from` and is mapped up to *end, mapped up to `wanted`, and not beyond `most`. */
static bool map_part(struct ky_agent_home *home, uint64_t from, uint64_t *end, uint64_t wanted,
		     uint64_t most)
{
	uint64_t mask;
	if (wanted <= __atomic_load_n(end, __ATOMIC_ACQUIRE))
		return true;
	if (wanted > most || !lock(home, &mask))
		return false;
	const uint64_t is = *end;
	const uint64_t steps = (wanted + STEP_BYTES - 1) & ~(STEP_BYTES - 1);
	const uint64_t to = steps < most ? steps : most;
	const bool done = wanted <= is || extend(home->drum + from, is - from, to - from);
	if (done && wanted > is)
		__atomic_store_n(end, to, __ATOMIC_RELEASE);
	unlock(home, mask);
	return done;
}

/* Called by ring.c and heap.c before they use memory that nobody has used. */
bool ky_os_populate(void *at, uint64_t bytes)
{
	struct ky_agent_home *home = (struct ky_agent_home *)(uintptr_t)ky_agent_table[0];
	const uint64_t to = (uint64_t)(uintptr_t)at + bytes - home->drum;
	if (to <= home->drum_rings)
		return map_part(home, 0, &home->drum_heap, to, home->drum_rings);
	return map_part(home, home->drum_rings, &home->drum_end, to, home->drum_bytes);
}

void ky_agent_room_states(struct ky_agent_home *home)
{
	uint64_t mask;
	if (!lock(home, &mask))
		return;
	const uint32_t now = home->states_max;
	const uint64_t bytes = now * home->state_bytes;
	if (home->states_used >= now) {
		if (now * 2 <= KY_AGENT_STATES_MAX && extend(home->states, bytes, bytes * 2))
			__atomic_store_n(&home->states_max, now * 2, __ATOMIC_RELEASE);
		else
			home->crowded = 1;
	}
	unlock(home, mask);
}

void ky_agent_room_sealed(struct ky_agent_home *home)
{
	const uint64_t wanted = home->drum_end + SEALED_BYTES;
	(void)map_part(home, home->drum_rings, &home->drum_end,
		       wanted < home->drum_bytes ? wanted : home->drum_bytes, home->drum_bytes);
}
