/* SPDX-License-Identifier: MIT */
/*
 * calls.c: the slow paths. A call comes here when a check of its stub failed; nothing has been done then.
 *
 *   state.top ─▶ slot of S ─previous▶ slot of S' ─previous▶ … ~0        the thread's open calls, innermost first
 *
 * On one stack S grows outwards. A call that is still open below a new call's S, or inside a call that returns, was
 * left by longjmp or an exception: its span ends now. A stack that is far away is another one (a coroutine's, a
 * signal handler's): calls there nest in the open ones, and nothing ends.
 *
 * Whatever happens to the list, every function returns to its caller: that address is in its own return slot. A walk
 * along the list ends at a return slot without the state's mark, and takes the mark off each that it passes: so it
 * ends.
 */
#include "functrace/agent/parts.h"

#include "functrace/agent_abi.h"

#include <sys/mman.h>
#include <sys/syscall.h>

/* Addresses that are further apart than this are on different stacks. */
#define SAME_STACK_BYTES (UINT64_C(1) << 20)
/* Open calls of other stacks that are skipped to find one of this stack. */
#define OTHER_STACKS_STEPS 256u
#define PIECE_BYTES (sizeof(struct ky_agent_call) << (KY_AGENT_PIECE_SHIFT - 3))

static uint64_t make_memory(const struct ky_agent_home *home, uint64_t bytes)
{
	const uint64_t access = PROT_READ | PROT_WRITE;
	const int64_t at =
		ky_agent_system(SYS_mmap, 0, bytes, home->unlocks ? PROT_NONE : access,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1, 0);
	if (at < 0)
		return 0;
	/* What has no access is not filled when it is locked. */
	if (home->unlocks) {
		ky_agent_system(SYS_munlock, (uint64_t)at, bytes, 0, 0, 0, 0);
		ky_agent_system(SYS_mprotect, (uint64_t)at, bytes, access, 0, 0, 0);
	}
	ky_agent_system(SYS_madvise, (uint64_t)at, bytes, MADV_DONTDUMP, 0, 0, 0);
	return (uint64_t)at;
}

/*
 * Put the address of new memory, less what it is biased by, into an entry that is still as it was. If two threads do it
 * at once, one wins. Return the entry.
 */
static uint64_t make(const struct ky_agent_home *home, uint64_t *entry, uint64_t before,
		     uint64_t bytes, uint64_t bias)
{
	const uint64_t at = make_memory(home, bytes);
	const uint64_t biased = at - bias;
	/* An entry is never 0: no piece lies at four times its own addresses. */
	if (!at)
		return before;
	if (biased != 0 && __atomic_compare_exchange_n(entry, &before, biased, false,
						       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return biased;
	ky_agent_system(SYS_munmap, at, bytes, 0, 0, 0, 0);
	return before;
}

struct ky_agent_call *ky_agent_call_at(const struct ky_agent_home *home, uint64_t slot)
{
	const uint64_t root = slot >> KY_AGENT_ROOT_SHIFT, piece = slot >> KY_AGENT_PIECE_SHIFT;
	const uint64_t place = (piece & (KY_AGENT_LEAF_PIECES - 1)) * sizeof(uint64_t);
	if (root >= KY_AGENT_ROOTS || slot % 8 != 0)
		return NULL;
	uint64_t *entry = (uint64_t *)(uintptr_t)home->directory + root;
	uint64_t leaf = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
	uint64_t biased = __atomic_load_n((uint64_t *)(uintptr_t)(leaf + place), __ATOMIC_ACQUIRE);
	if (biased)
		return (struct ky_agent_call *)(uintptr_t)(biased + slot * 4);
	const uint64_t empty = ky_agent_leaf_empty(home->directory);
	if (leaf == empty)
		leaf = make(home, entry, empty, KY_AGENT_LEAF_BYTES, 0);
	if (leaf == empty)
		return NULL;
	biased = make(home, (uint64_t *)(uintptr_t)(leaf + place), 0, PIECE_BYTES,
		      (piece << KY_AGENT_PIECE_SHIFT) * 4);
	return biased ? (struct ky_agent_call *)(uintptr_t)(biased + slot * 4) : NULL;
}

void ky_agent_use_leaf(const struct ky_agent_home *home, struct ky_agent_state *state,
		       uint64_t slot)
{
	const uint64_t root = slot >> KY_AGENT_ROOT_SHIFT;
	if (root >= KY_AGENT_ROOTS)
		return;
	state->leaf =
		__atomic_load_n((uint64_t *)(uintptr_t)home->directory + root, __ATOMIC_ACQUIRE);
	state->root = (uint32_t)root;
}

void ky_agent_count(struct ky_agent_state *state, uint32_t function)
{
	uint32_t *counts = (uint32_t *)(void *)((uint8_t *)state + KY_STATE_COUNTS);
	counts[function]++;
}

void ky_agent_open(const struct ky_agent_home *home, struct ky_agent_state *state, uint64_t slot,
		   struct ky_agent_call *call, uint32_t site, uint64_t ticks)
{
	call->previous = state->top;
	call->mark = state->mark;
	state->top = slot;
	ky_agent_put(home, state, site, ticks);
}

struct ky_agent_call *ky_agent_top_call(const struct ky_agent_home *home,
					struct ky_agent_state *state)
{
	struct ky_agent_call *call =
		state->top == KY_AGENT_NO_CALL ? NULL : ky_agent_call_at(home, state->top);
	if (call && call->mark == state->mark)
		return call;
	state->top = KY_AGENT_NO_CALL;
	return NULL;
}

void ky_agent_close_top(const struct ky_agent_home *home, struct ky_agent_state *state,
			uint64_t ticks)
{
	struct ky_agent_call *call = ky_agent_top_call(home, state);
	if (!call)
		return;
	call->mark = 0;
	state->top = call->previous;
	ky_agent_put(home, state, home->end_site, ticks);
}

/*
 * Return the innermost open call that seems to be on the stack of `slot`, when it is not further out than `slot`: it
 * was left, and with it all that was called from it since, on any stack (a handler's that was left by longjmp). ~0:
 * there is none.
 */
static uint64_t left_call(const struct ky_agent_home *home, const struct ky_agent_state *state,
			  uint64_t slot)
{
	uint64_t at = state->top;
	for (uint32_t steps = 0; steps < OTHER_STACKS_STEPS && at != KY_AGENT_NO_CALL; steps++) {
		const struct ky_agent_call *call = ky_agent_call_at(home, at);
		if (!call || call->mark != state->mark)
			break;
		const uint64_t own = ky_agent_call_stack(call, at);
		const uint64_t apart = own <= slot ? slot - own : own - slot;
		if (apart < SAME_STACK_BYTES)
			return own <= slot ? at : KY_AGENT_NO_CALL;
		at = call->previous;
	}
	return KY_AGENT_NO_CALL;
}

uint32_t ky_agent_close_below(const struct ky_agent_home *home, struct ky_agent_state *state,
			      uint64_t slot, uint64_t ticks)
{
	uint32_t closed = 0;
	uint64_t last;
	while ((last = left_call(home, state, slot)) != KY_AGENT_NO_CALL) {
		for (bool more = true; more && ky_agent_top_call(home, state); closed++) {
			more = state->top != last;
			ky_agent_close_top(home, state, ticks);
		}
	}
	return closed;
}

static bool may_hook(const struct ky_agent_home *home, uint64_t returns)
{
	if (!home->check_callers)
		return true;
	for (uint32_t i = 0; i < home->ranges_count && i < KY_AGENT_RANGES_MAX; i++)
		if (returns - home->ranges[i].from < home->ranges[i].bytes)
			return true;
	return false;
}

/*
 * Take a tail call: [S] is a hook already because the caller of this function has jumped to it, and the caller's own
 * return address is in the return slot. Its span ends, this one's begins, and the one return of both ends it.
 */
static void tail_call(const struct ky_agent_home *home, struct ky_agent_state *state, uint64_t slot,
		      struct ky_agent_call *call, const struct ky_agent_stub_data *stub)
{
	const uint64_t ticks = __builtin_ia32_rdtsc();
	ky_agent_close_below(home, state, slot, ticks);
	ky_agent_open(home, state, slot, call, stub->site, ticks);
}

/* Report whether the return address was taken: then [S] is to become the hook. */
static bool call(const struct ky_agent_home *home, struct ky_agent_state *state, uint64_t slot,
		 const struct ky_agent_stub_data *stub, uint64_t hook)
{
	const uint64_t returns = *(const uint64_t *)(uintptr_t)slot;
	struct ky_agent_call *call = stub->hooks ? ky_agent_call_at(home, slot) : NULL;
	ky_agent_count(state, stub->function);
	if (!stub->hooks) {
		ky_agent_put(home, state, stub->site, __builtin_ia32_rdtsc());
		return false;
	}
	if (!call) {
		ky_agent_lost(home, state);
		return false;
	}
	if (call->hook == returns) {
		tail_call(home, state, slot, call, stub);
		return false;
	}
	const uint64_t ticks = __builtin_ia32_rdtsc();
	ky_agent_close_below(home, state, slot, ticks);
	if (!may_hook(home, returns)) {
		if (stub->instant_site)
			ky_agent_put(home, state, stub->instant_site, ticks);
		return false;
	}
	call->returns = returns;
	call->hook = hook;
	ky_agent_open(home, state, slot, call, stub->site, ticks);
	return true;
}

uint64_t ky_agent_enter(struct ky_agent_home *home, uint64_t slot,
			const struct ky_agent_stub_data *stub)
{
	const uint64_t data = (uint64_t)(uintptr_t)stub;
	const uint64_t plain = data + sizeof(*stub);
	if (!__atomic_load_n(&home->on, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&home->pause, __ATOMIC_RELAXED) == KY_LOADER_GAVE_UP)
			ky_agent_lost(home, NULL);
		return plain;
	}
	struct ky_agent_state *state = ky_agent_state_take(home);
	if (!state || !ky_agent_begin(state, slot))
		return plain;
	const uint64_t hook = data - KY_STUB_DATA_AFTER_HOOK;
	const bool hooked = call(home, state, slot, stub, hook);
	ky_agent_end(home, state);
	return hooked ? hook - KY_STUB_GO_BYTES : plain;
}

void ky_agent_leave(struct ky_agent_home *home, uint64_t slot)
{
	struct ky_agent_state *state = ky_agent_state_mine(home);
	/* it exists: the function was entered */
	struct ky_agent_call *call = ky_agent_call_at(home, slot);
	*(uint64_t *)(uintptr_t)slot = call->returns;
	/* It belongs to another thread, a parent process or an earlier attach, or has ended already: write nothing. */
	if (!state || call->mark != state->mark || !__atomic_load_n(&home->on, __ATOMIC_RELAXED) ||
	    !ky_agent_begin(state, slot))
		return;
	const uint64_t ticks = __builtin_ia32_rdtsc();
	while (call->mark == state->mark && ky_agent_top_call(home, state))
		ky_agent_close_top(home, state, ticks);
	if (call->mark == state->mark) { /* it was in no list: its span is open all the same */
		state->top = call->previous;
		call->mark = 0;
		ky_agent_put(home, state, home->end_site, ticks);
	}
	ky_agent_end(home, state);
}
