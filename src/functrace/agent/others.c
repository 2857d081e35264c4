/* SPDX-License-Identifier: MIT */
/*
 * others.c: the loader's pause, sandboxes, the unwinder, and programs that turn the CPU's counter off.
 *
 * The last make the kernel refuse it to them, by prctl(PR_SET_TSC) or a strict sandbox: the next stub's first
 * instructions would kill the program.
 *
 *   jumps     of calls are taken out, as kymo does it from outside, but while other threads run; home is off from then on.
 *             Those of the unwinder, the loader, sandboxes and -finstrument-functions stay: off, they read no counter.
 *   hooks     are taken off the stacks of the calling thread: the right to read the counter is a thread's own, inherited by
 *             those that it makes. Others return through their hooks, and come here themselves before they do the same.
 */
#include "functrace/agent/parts.h"
#include "functrace/agent_abi.h"
#include "functrace/stub.h"

#include <asm/prctl.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* ---- the counter ---- */

#define PAGE_BYTES UINT64_C(4096)
#define LINE_BYTES UINT64_C(64)
#define WORD_BYTES sizeof(uint64_t)
#define JUMP_TO_ITSELF 0xfeeb
/* Nothing further up than this is the thread's stack. */
#define STACK_BYTES (UINT64_C(8) << 20)
#define LEAVE_TRIES 100
#define LEAVE_WAIT_NS 10000000

static bool protect(uint64_t from, uint64_t to, int protection)
{
	return from < to &&
	       ky_agent_system(SYS_mprotect, from, to - from, (uint64_t)protection, 0, 0, 0) == 0;
}

static void store_two(uint8_t *at, uint16_t bytes)
{
	__asm__ volatile("movw %0, (%1)" : : "r"(bytes), "r"(at) : "memory");
}

static void store_word(uint8_t *at, uint64_t bytes)
{
	__asm__ volatile("movq %0, (%1)" : : "r"(bytes), "r"(at) : "memory");
}

/*
 * Put the bytes back while threads run through them. A store within an aligned word, and on all but old CPUs within a
 * cache line, is seen as a whole. For bytes over two lines, threads that come in between wait at a jump to itself.
 */
static void put_back(const struct ky_agent_patch *entry)
{
	uint8_t *const at = (uint8_t *)(uintptr_t)entry->address;
	const uint64_t in_line = entry->address % LINE_BYTES;
	uint64_t word_at = in_line & ~(WORD_BYTES - 1);
	uint64_t word;
	if (in_line + entry->bytes > LINE_BYTES || entry->bytes > WORD_BYTES) {
		store_two(at, JUMP_TO_ITSELF);
		for (uint32_t i = 2; i < entry->bytes; i++)
			((volatile uint8_t *)at)[i] = entry->before[i];
		store_two(at, (uint16_t)(entry->before[0] | entry->before[1] << 8));
		return;
	}
	if (in_line + entry->bytes > word_at + WORD_BYTES)
		word_at = in_line < LINE_BYTES - WORD_BYTES ? in_line : LINE_BYTES - WORD_BYTES;
	memcpy(&word, at - in_line + word_at, sizeof(word));
	memcpy((uint8_t *)&word + (in_line - word_at), entry->before, entry->bytes);
	store_word(at - in_line + word_at, word);
}

/* Report whether its stub reads the counter. The kind of stub is the form's low byte. */
static bool is_call(const struct ky_agent_patch *entry)
{
	const uint8_t kind = (uint8_t)entry->pad;
	return entry->set && entry->bytes && (kind == KY_STUB_CALL || kind == KY_STUB_ENTRY);
}

/*
 * Take the jumps out. Entries of the same pages mostly follow each other. A library that was unloaded may be gone, or
 * other code may be there.
 */
static void take_jumps_out(const struct ky_agent_home *home)
{
	struct ky_agent_patch *entry = (struct ky_agent_patch *)(uintptr_t)home->patches;
	uint64_t from = 0, to = 0;
	for (uint64_t i = 0; i < home->patches_count; i++, entry++) {
		const uint64_t last = entry->address + entry->bytes - 1;
		const uint64_t first_page = entry->address & ~(PAGE_BYTES - 1);
		const uint64_t end = (last | (PAGE_BYTES - 1)) + 1;
		if (!is_call(entry))
			continue;
		if (first_page != from || end != to) {
			(void)protect(from, to, PROT_READ | PROT_EXEC);
			from = to = 0;
			if (!ky_agent_readable(first_page) || !ky_agent_readable(last))
				continue;
		}
		if (memcmp((const void *)(uintptr_t)entry->address, entry->after, entry->bytes) !=
		    0)
			continue;
		if (!to && !protect(first_page, end, PROT_READ | PROT_WRITE | PROT_EXEC))
			continue;
		from = first_page;
		to = end;
		put_back(entry);
		entry->set = 0;
	}
	(void)protect(from, to, PROT_READ | PROT_EXEC);
}

static void unhook(const struct ky_agent_home *home, uint64_t slot)
{
	const struct ky_agent_call *call = ky_agent_call_at(home, slot);
	uint64_t hook = call ? call->hook : 0;
	if (hook)
		(void)__atomic_compare_exchange_n((uint64_t *)(uintptr_t)slot, &hook, call->returns,
						  false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Unhook the open calls, on all stacks. */
static void unhook_open(const struct ky_agent_home *home, struct ky_agent_state *state)
{
	while (state->top != KY_AGENT_NO_CALL) {
		struct ky_agent_call *call = ky_agent_call_at(home, state->top);
		if (!call || call->mark != state->mark)
			break;
		if (ky_agent_readable(state->top))
			unhook(home, state->top);
		call->mark = 0;
		state->top = call->previous;
	}
	state->top = KY_AGENT_NO_CALL;
}

/* Unhook the rest of this stack: in a forked child these are calls of its parent's. */
static void unhook_stack(const struct ky_agent_home *home, uint64_t slot)
{
	for (uint64_t at = slot; at - slot < STACK_BYTES; at += WORD_BYTES) {
		if (at % PAGE_BYTES == 0 && !ky_agent_readable(at))
			break;
		const uint64_t word = *(const uint64_t *)(uintptr_t)at;
		if (word >= home->stubs_from && word < home->stubs_to)
			unhook(home, at);
	}
}

/*
 * Report whether this thread is to do it. One that does not finish within a second belongs to another process, which
 * has forked in the meantime.
 */
static bool is_to_leave(struct ky_agent_home *home)
{
	const uint64_t wait[2] = {0, LEAVE_WAIT_NS};
	uint32_t now = KY_COUNTER_READ;
	if (__atomic_compare_exchange_n(&home->counter, &now, KY_COUNTER_LEAVING, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return true;
	for (int i = 0; i < LEAVE_TRIES; i++) {
		if (__atomic_load_n(&home->counter, __ATOMIC_ACQUIRE) == KY_COUNTER_LEFT)
			return false;
		ky_agent_system(SYS_nanosleep, (uintptr_t)wait, 0, 0, 0, 0, 0);
	}
	return true;
}

/* Send all threads' calls to the slow path. */
static void forget_threads(const struct ky_agent_home *home)
{
	for (uint32_t i = 0; i < home->states_used && i < home->states_max; i++) {
		struct ky_agent_state *state =
			(struct ky_agent_state *)(uintptr_t)(home->states + i * home->state_bytes);
		if (state->thread)
			__atomic_store_n(&state->thread, 0, __ATOMIC_RELAXED);
	}
}

static void turn_off(struct ky_agent_home *home)
{
	__atomic_store_n(&home->on, 0, __ATOMIC_RELEASE);
	take_jumps_out(home);
	forget_threads(home);
	__atomic_store_n(&home->counter, KY_COUNTER_LEFT, __ATOMIC_RELEASE);
}

/* Prepare for rdtsc to stop working in the calling thread; it still works now. */
static void leave_counter(struct ky_agent_home *home, uint64_t slot)
{
	const uint64_t mask = ky_agent_block_signals();
	if (is_to_leave(home))
		turn_off(home);
	struct ky_agent_state *state = ky_agent_state_mine(home);
	if (state)
		unhook_open(home, state);
	unhook_stack(home, slot);
	ky_agent_unblock_signals(mask);
}

/* ---- the loader and sandboxes ---- */

#define PIECE_BYTES (UINT64_C(1) << KY_AGENT_PIECE_SHIFT)
#define LOADER_TRIES 5
#define LOADER_WAIT_NS 10000000

/* Record nothing until kymo has looked at the library. */
static void give_up(struct ky_agent_home *home)
{
	uint32_t now = KY_LOADER_WAITS;
	if (!__atomic_compare_exchange_n(&home->pause, &now, KY_LOADER_GAVE_UP, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&home->on, 0, __ATOMIC_RELEASE);
	forget_threads(home);
}

/* Wait while the loader's lock is held, not longer than 50 ms. */
void ky_agent_loader(struct ky_agent_home *home)
{
	const struct r_debug *debug = (const struct r_debug *)(uintptr_t)home->r_debug;
	uint32_t now = KY_LOADER_GOES_ON;
	if (!__atomic_load_n(&home->on, __ATOMIC_RELAXED) || home->owner_pid == 0 ||
	    (debug && debug->r_state != RT_CONSISTENT) || home->pid != ky_agent_pid() ||
	    !__atomic_compare_exchange_n(&home->pause, &now, KY_LOADER_WAITS, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	const uint64_t wait[2] = {0, LOADER_WAIT_NS};
	for (int i = 0;
	     i < LOADER_TRIES && __atomic_load_n(&home->pause, __ATOMIC_ACQUIRE) == KY_LOADER_WAITS;
	     i++)
		ky_agent_system(SYS_futex, (uintptr_t)&home->pause, FUTEX_WAIT, KY_LOADER_WAITS,
				(uintptr_t)wait, 0, 0);
	give_up(home);
}

/* Report whether rdtsc is an error in this thread afterwards. */
static bool turns_counter_off(uint32_t call, uint32_t how)
{
	return (call == PR_SET_TSC && how == PR_TSC_SIGSEGV) ||
	       (call == PR_SET_SECCOMP && how == SECCOMP_MODE_STRICT) ||
	       (call == SYS_seccomp && how == SECCOMP_SET_MODE_STRICT);
}

/*
 * Report whether the program takes gs for itself: by arch_prctl(), whose first argument is no option of prctl(), or by
 * syscall().
 */
static bool sets_gs(uint64_t first, uint64_t second)
{
	return (uint32_t)first == ARCH_SET_GS ||
	       ((uint32_t)first == SYS_arch_prctl && (uint32_t)second == ARCH_SET_GS);
}

/*
 * Make no system call from before the sandbox exists; it does not matter much that the sandbox may be refused. This
 * thread gets what it needs of the kernel to be traced now, others do without.
 */
void ky_agent_sandbox(struct ky_agent_home *home, uint64_t first, uint64_t second, uint64_t slot,
		      uint64_t third)
{
	const bool numbered = (uint32_t)first == SYS_prctl;
	const uint32_t number = (uint32_t)(numbered ? second : first);
	if (turns_counter_off(number, (uint32_t)(numbered ? third : second)) ||
	    sets_gs(first, second))
		leave_counter(home, slot);
	if (number != PR_SET_SECCOMP && number != SYS_seccomp)
		return;
	if (__atomic_load_n(&home->on, __ATOMIC_RELAXED)) {
		(void)ky_agent_state_take(home);
		for (uint64_t below = 0; below < STACK_BYTES && below < slot; below += PIECE_BYTES)
			(void)ky_agent_call_at(home, slot - below);
		ky_agent_room_sealed(home);
	}
	__atomic_store_n(&home->sealed, 1, __ATOMIC_RELAXED);
}

/* ---- the unwinder ---- */

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
