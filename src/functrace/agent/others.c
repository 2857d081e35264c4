/* SPDX-License-Identifier: MIT */
/* others.c: the loader's pause, sandboxes, programs that call at each entry and exit themselves, and the unwinder. */
#include "functrace/agent/parts.h"
#include "functrace/agent_abi.h"

#include <link.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { GOES_ON, WAITS, GAVE_UP };

/* Wait while the loader's lock is held: not longer than a second, and never again after one wait without an answer. */
void ky_agent_loader(struct ky_agent_home *home)
{
	const struct r_debug *debug = (const struct r_debug *)(uintptr_t)home->r_debug;
	uint32_t now = GOES_ON;
	if (!__atomic_load_n(&home->on, __ATOMIC_RELAXED) || home->owner_pid == 0 ||
	    (debug && debug->r_state != RT_CONSISTENT) || home->pid != ky_agent_pid() ||
	    !__atomic_compare_exchange_n(&home->pause, &now, WAITS, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	const uint64_t tenth[2] = {0, 100000000};
	for (int i = 0; i < 10 && __atomic_load_n(&home->pause, __ATOMIC_ACQUIRE) == WAITS; i++)
		ky_agent_system(SYS_futex, (uintptr_t)&home->pause, FUTEX_WAIT, WAITS,
				(uintptr_t)tenth, 0, 0);
	now = WAITS;
	(void)__atomic_compare_exchange_n(&home->pause, &now, GAVE_UP, false, __ATOMIC_ACQ_REL,
					  __ATOMIC_RELAXED);
}

/* Report whether rdtsc is an error in this thread afterwards. */
static bool turns_counter_off(uint32_t call, uint32_t how)
{
	return (call == PR_SET_TSC && how == PR_TSC_SIGSEGV) ||
	       (call == PR_SET_SECCOMP && how == SECCOMP_MODE_STRICT) ||
	       (call == SYS_seccomp && how == SECCOMP_SET_MODE_STRICT);
}

/*
 * Make no system call from before the sandbox exists; it does not matter much that the sandbox may be refused. This
 * thread gets what it needs of the kernel to be traced now, others do without.
 */
void ky_agent_sandbox(struct ky_agent_home *home, uint64_t first, uint64_t second, uint64_t slot,
		      uint64_t third)
{
	const bool numbered = (uint32_t)first == SYS_prctl;
	const uint32_t call = (uint32_t)(numbered ? second : first);
	if (turns_counter_off(call, (uint32_t)(numbered ? third : second)))
		ky_agent_leave_counter(home, slot);
	if (call != PR_SET_SECCOMP && call != SYS_seccomp)
		return;
	if (__atomic_load_n(&home->on, __ATOMIC_RELAXED)) {
		(void)ky_agent_state_take(home);
		(void)ky_agent_frame_at(home, slot);
	}
	__atomic_store_n(&home->sealed, 1, __ATOMIC_RELAXED);
}

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

/*
 * Use the stack address of this very call for the function's: its return slot is not used otherwise, and lower than
 * its callers'.
 */
void ky_agent_cyg_enter(struct ky_agent_home *home, uint64_t function, uint64_t caller,
			uint64_t slot)
{
	(void)caller;
	const struct ky_agent_known *known = find(home, function);
	struct ky_agent_state *state = known ? begin(home, slot) : NULL;
	if (!state)
		return;
	struct ky_agent_frame *frame = ky_agent_frame_at(home, slot);
	const uint64_t ticks = __builtin_ia32_rdtsc();
	if (frame) {
		ky_agent_close_below(home, state, slot, ticks);
		ky_agent_count(state, known->function);
		ky_agent_open(home, state, slot, frame, known->site, ticks);
	}
	ky_agent_end(home, state);
}

/*
 * End the function. Enter and exit of a function are called at about the same depth; a call that is open below it has
 * lost its exit.
 */
void ky_agent_cyg_exit(struct ky_agent_home *home, uint64_t function, uint64_t caller,
		       uint64_t slot)
{
	(void)caller;
	struct ky_agent_state *state = find(home, function) ? begin(home, slot) : NULL;
	if (!state)
		return;
	const uint64_t ticks = __builtin_ia32_rdtsc();
	if (ky_agent_close_below(home, state, slot, ticks) == 0)
		ky_agent_close_top(home, state, ticks);
	ky_agent_end(home, state);
}

/* ---- the unwinder ---- */

#define PAGE_BYTES UINT64_C(4096)
#define BEGIN_BYTES 8u

/* libgcc's struct dwarf_eh_bases. */
struct bases {
	uint64_t text, data, function;
};

extern const char slow_entry[] __attribute__((visibility("hidden")));

static bool is_hook(const uint8_t *hook)
{
	uint32_t distance;
	if (hook[-5] != 0xe8 || hook[0] != 0xe9)
		return false;
	memcpy(&distance, hook - 4, sizeof(distance));
	if (distance != KY_STUB_BODY_AFTER_HOOK)
		return false;
	uint64_t entry;
	memcpy(&entry, hook + KY_STUB_DATA_AFTER_HOOK, sizeof(entry));
	return entry == (uint64_t)(uintptr_t)slow_entry;
}

/*
 * Report whether pc is at a region's very first instructions. A signal may have come there, and nothing need be
 * mapped before them: all regions begin with the same instructions, and on a page.
 */
static bool begins_region(const struct ky_agent_home *home, uint64_t pc)
{
	const uint64_t page = pc & ~(PAGE_BYTES - 1);
	return pc - page < BEGIN_BYTES &&
	       memcmp((const void *)(uintptr_t)page, (const void *)(uintptr_t)home->stubs_from,
		      BEGIN_BYTES) == 0;
}

const void *ky_agent_find_fde(const struct ky_agent_home *home, uint64_t pc, void *bases)
{
	if (home->unwind == 0 || pc < home->stubs_from || pc >= home->stubs_to ||
	    begins_region(home, pc) || !is_hook((const uint8_t *)(uintptr_t)pc + 1))
		return NULL;
	*(struct bases *)bases = (struct bases){.function = home->stubs_from};
	uint32_t cie_bytes;
	memcpy(&cie_bytes, (const void *)(uintptr_t)home->unwind, sizeof(cie_bytes));
	return (const uint8_t *)(uintptr_t)home->unwind + sizeof(cie_bytes) + cie_bytes;
}
