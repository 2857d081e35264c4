/* SPDX-License-Identifier: MIT */
/*
 * told.c: programs that report their calls themselves, compiled with -finstrument-functions.
 *
 *   S   the function's return address, which it passes on as `caller`
 *       its stack frame
 *   A   the return address of its call of __cyg_profile_func_enter
 *       the return slot of A - 8 is used for the call: no return address is ever there; of several functions in one
 *       frame (inlined ones) each takes the next one below
 *
 * The exit is called from the same frame, or is the function's last jump: then it finds the function's return address
 * at its own. A frame is known by S: as soon as something is called or returns at S or above, it is gone.
 */
#include "functrace/agent/parts.h"

#include "functrace/agent_abi.h"

#define WORD_BYTES sizeof(uint64_t)
#define PAGE_BYTES UINT64_C(4096)
#define SLOT_STEP (2 * WORD_BYTES) /* between return slots of one frame */
/* A larger stack frame is not searched for its return address. */
#define FRAME_WORDS 1024u
/* Further away than this it is another stack. */
#define SAME_STACK_BYTES (UINT64_C(1) << 20)
/* Open calls in which an exit looks for its function. */
#define EXIT_STEPS 64u
#define FUNCTION_MASK ((UINT64_C(1) << KY_TOLD_FUNCTION_BITS) - 1)

_Static_assert(KY_AGENT_FUNCTIONS_MAX <= 1u << KY_TOLD_FUNCTION_BITS, "a number fits");

static const struct ky_agent_known *find(const struct ky_agent_home *home, uint64_t function)
{
	const struct ky_agent_known *table = (const struct ky_agent_known *)(uintptr_t)home->known;
	uint64_t at = ky_agent_known_at(function, home->known_mask);
	for (uint64_t i = 0; table && i <= home->known_mask;
	     i++, at = (at + 1) & home->known_mask) {
		if (table[at].address == function)
			return &table[at];
		if (table[at].address == 0)
			break;
	}
	return NULL;
}

static struct ky_agent_state *begin(struct ky_agent_home *home, uint64_t slot)
{
	struct ky_agent_state *state =
		__atomic_load_n(&home->on, __ATOMIC_RELAXED) ? ky_agent_state_take(home) : NULL;
	return state && ky_agent_begin(state, slot) ? state : NULL;
}

/* Return S: where the return address is, from A on; just above A when it is not found. */
static uint64_t stack_of(uint64_t slot, uint64_t caller)
{
	uint64_t at = slot + WORD_BYTES;
	for (uint32_t i = 0; caller && i < FRAME_WORDS; i++, at += WORD_BYTES) {
		if (at % PAGE_BYTES == 0 && !ky_agent_readable(at))
			break;
		if (*(const uint64_t *)(uintptr_t)at == caller)
			return at;
	}
	return slot + WORD_BYTES;
}

static bool is_told(const struct ky_agent_call *call)
{
	return call->hook == 0;
}

static uint64_t function_of(const struct ky_agent_call *call)
{
	return call->returns >> KY_TOLD_UP_BITS & FUNCTION_MASK;
}

static uint64_t part_of(uint64_t caller)
{
	return caller << (KY_TOLD_UP_BITS + KY_TOLD_FUNCTION_BITS);
}

/* Report whether the innermost open call, of the same frame, goes on: it has inlined this function. */
static bool inlines(const struct ky_agent_call *call, uint32_t function, uint64_t caller)
{
	const uint64_t all = KY_TOLD_UP_BITS + KY_TOLD_FUNCTION_BITS;
	return is_told(call) && function_of(call) != function &&
	       call->returns >> all == part_of(caller) >> all;
}

/* End the calls whose frames are gone. */
static void close_gone(const struct ky_agent_home *home, struct ky_agent_state *state,
		       uint64_t stack, uint32_t function, uint64_t caller, uint64_t ticks)
{
	ky_agent_close_below(home, state, stack - WORD_BYTES, ticks);
	const struct ky_agent_call *call = ky_agent_top_call(home, state);
	if (call && ky_agent_call_stack(call, state->top) == stack &&
	    !inlines(call, function, caller))
		ky_agent_close_below(home, state, stack, ticks);
}

/* Return an address for the list, below all that are open on this stack. */
static uint64_t place_of(const struct ky_agent_state *state, uint64_t slot)
{
	const uint64_t place = slot - WORD_BYTES;
	return state->top <= place && place - state->top < SAME_STACK_BYTES ? state->top - SLOT_STEP
									    : place;
}

void ky_agent_cyg_enter(struct ky_agent_home *home, uint64_t function, uint64_t caller,
			uint64_t slot)
{
	const struct ky_agent_known *known = find(home, function);
	struct ky_agent_state *state = known ? begin(home, slot) : NULL;
	if (!state)
		return;
	const uint64_t ticks = __builtin_ia32_rdtsc();
	const uint64_t stack = stack_of(slot, caller);
	close_gone(home, state, stack, known->function, caller, ticks);
	const uint64_t place = place_of(state, slot);
	struct ky_agent_call *call = ky_agent_call_at(home, place);
	if (call && (stack - place) / WORD_BYTES <= KY_TOLD_UP_MASK) {
		call->hook = 0;
		call->returns = (stack - place) / WORD_BYTES |
				(uint64_t)known->function << KY_TOLD_UP_BITS | part_of(caller);
		ky_agent_count(state, known->function);
		ky_agent_open(home, state, place, call, known->site, ticks);
	}
	ky_agent_end(home, state);
}

/* Return the address by which the function's innermost open call is listed; KY_AGENT_NO_CALL: it was not seen to begin. */
static uint64_t find_open(const struct ky_agent_home *home, const struct ky_agent_state *state,
			  uint32_t function)
{
	uint64_t at = state->top;
	for (uint32_t i = 0; i < EXIT_STEPS && at != KY_AGENT_NO_CALL; i++) {
		const struct ky_agent_call *call = ky_agent_call_at(home, at);
		if (!call || call->mark != state->mark)
			break;
		if (is_told(call) && function_of(call) == function)
			return at;
		at = call->previous;
	}
	return KY_AGENT_NO_CALL;
}

void ky_agent_cyg_exit(struct ky_agent_home *home, uint64_t function, uint64_t caller,
		       uint64_t slot)
{
	const struct ky_agent_known *known = find(home, function);
	struct ky_agent_state *state = known ? begin(home, slot) : NULL;
	if (!state)
		return;
	const uint64_t ticks = __builtin_ia32_rdtsc();
	const bool is_last = *(const uint64_t *)(uintptr_t)slot == caller;
	ky_agent_close_below(home, state, is_last ? slot - WORD_BYTES : slot, ticks);
	const uint64_t open = find_open(home, state, known->function);
	for (bool more = open != KY_AGENT_NO_CALL; more && ky_agent_top_call(home, state);) {
		more = state->top != open;
		ky_agent_close_top(home, state, ticks);
	}
	ky_agent_end(home, state);
}
