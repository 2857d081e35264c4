/* SPDX-License-Identifier: MIT */
/*
 * parts.h: the agent's functions that cross files. The agent runs in another program: no libc, no data of its own,
 * general registers only, no errno; it may be called anywhere, even in a signal handler that came anywhere.
 *
 *   entry.S ─▶ calls.c    the slow paths of calls and returns
 *           ─▶ told.c     programs that report their calls themselves (-finstrument-functions)
 *           ─▶ others.c   the loader's pause; sandboxes; answers _Unwind_Find_FDE for the stubs; a program that turns
 *                         the CPU's counter off
 *   calls.c ─▶ thread.c   the thread's state and its ring
 *           ─▶ room.c     more memory for both
 *   system.c              system calls, and the parts of os and libc that core's ring.c and heap.c, which are in here too, need
 */
#ifndef KY_FUNCTRACE_AGENT_PARTS_H
#define KY_FUNCTRACE_AGENT_PARTS_H

#include "core/drum.h"
#include "core/ring.h"
#include "functrace/agent_abi.h"

#include <stdbool.h>

#define KY_AGENT_NO_CALL UINT64_MAX

/* ---- called by entry.S ---- */
uint64_t ky_agent_enter(struct ky_agent_home *home, uint64_t slot,
			const struct ky_agent_stub_data *stub);
void ky_agent_leave(struct ky_agent_home *home, uint64_t slot);
const void *ky_agent_find_fde(const struct ky_agent_home *home, uint64_t pc, void *bases);
void ky_agent_loader(struct ky_agent_home *home);
void ky_agent_cyg_enter(struct ky_agent_home *home, uint64_t function, uint64_t caller,
			uint64_t slot);
void ky_agent_cyg_exit(struct ky_agent_home *home, uint64_t function, uint64_t caller,
		       uint64_t slot);

/* Take a call of prctl() or syscall(), with its first three arguments. */
void ky_agent_sandbox(struct ky_agent_home *home, uint64_t first, uint64_t second, uint64_t slot,
		      uint64_t third);

/* ---- thread.c ---- */

/* Return the calling thread's own state; NULL: it has none. */
struct ky_agent_state *ky_agent_state_mine(const struct ky_agent_home *home);
/* Return the same, made if there is none; NULL: there are too many threads. */
struct ky_agent_state *ky_agent_state_take(struct ky_agent_home *home);
/* Begin the slow path: from here on calls of signal handlers are only counted. Return false when this is one. */
bool ky_agent_begin(struct ky_agent_state *state, uint64_t slot);
/* Count an event that is not in the drum; state may be NULL. */
void ky_agent_lost(const struct ky_agent_home *home, struct ky_agent_state *state);
void ky_agent_end(const struct ky_agent_home *home, struct ky_agent_state *state);
/* Write an event, or count it as lost when there is no ring. */
void ky_agent_put(const struct ky_agent_home *home, struct ky_agent_state *state, uint32_t site,
		  uint64_t ticks);

/* ---- room.c ---- */

/* Make room for more states, if all are used and there is any. */
void ky_agent_room_states(struct ky_agent_home *home);
/* Map what may be needed later, before the program can make no system call. */
void ky_agent_room_sealed(struct ky_agent_home *home);

/* ---- calls.c: spans without a hook ---- */
struct ky_agent_call *ky_agent_call_at(const struct ky_agent_home *home, uint64_t slot);
/* Have stubs find the return slots of a stack. */
void ky_agent_use_leaf(const struct ky_agent_home *home, struct ky_agent_state *state,
		       uint64_t slot);
/* Return the return slot of the innermost open call; NULL: there is none, or the list is not to be trusted. */
struct ky_agent_call *ky_agent_top_call(const struct ky_agent_home *home,
					struct ky_agent_state *state);
/* Return S of an open call that is listed by an address. */
static inline uint64_t ky_agent_call_stack(const struct ky_agent_call *call, uint64_t at)
{
	return call->hook ? at : at + (call->returns & KY_TOLD_UP_MASK) * 8;
}
void ky_agent_open(const struct ky_agent_home *home, struct ky_agent_state *state, uint64_t slot,
		   struct ky_agent_call *call, uint32_t site, uint64_t ticks);
/* End the open calls up to `slot` that seem to be on the same stack. Return how many. */
uint32_t ky_agent_close_below(const struct ky_agent_home *home, struct ky_agent_state *state,
			      uint64_t slot, uint64_t ticks);
void ky_agent_close_top(const struct ky_agent_home *home, struct ky_agent_state *state,
			uint64_t ticks);
void ky_agent_count(struct ky_agent_state *state, uint32_t function);

/* ---- system.c: results as the kernel's: -errno; -EPERM when the program is in a sandbox ---- */
int64_t ky_agent_system(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			uint64_t f);
uint32_t ky_agent_pid(void);
/* Report whether memory is readable; false in a sandbox. */
bool ky_agent_readable(uint64_t address);
uint64_t ky_agent_block_signals(void);
void ky_agent_unblock_signals(uint64_t mask);

static inline uint64_t ky_agent_thread(void)
{
	uint64_t thread;
	__asm__ volatile("mov %%fs:0, %0" : "=r"(thread));
	return thread;
}

static inline struct ky_agent_state *ky_agent_gs(void)
{
	struct ky_agent_state *state;
	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(state) : "i"(KY_STATE_SELF));
	return state;
}

#endif
