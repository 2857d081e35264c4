/* SPDX-License-Identifier: MIT */
/*
 * counter.c: handles a program that is about to make the kernel refuse it the CPU's counter, by prctl(PR_SET_TSC) or
 * a strict sandbox: the next stub's first instructions would kill it.
 *
 *   jumps     of calls are taken out, as kymo does it from outside, but while other threads run; home is off from then on.
 *             Those of the unwinder, the loader, sandboxes and -finstrument-functions stay: off, they read no counter.
 *   hooks     are taken off the stacks of the calling thread: the right to read the counter is a thread's own, inherited by
 *             those that it makes. Others return through their hooks, and come here themselves before they do the same.
 */
#include "functrace/agent/parts.h"

#include "functrace/stub.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE_BYTES UINT64_C(4096)
#define LINE_BYTES UINT64_C(64)
#define WORD_BYTES sizeof(uint64_t)
#define JUMP_TO_ITSELF 0xfeeb
/* Nothing further up than this is the thread's stack. */
#define STACK_BYTES (UINT64_C(8) << 20)
#define WAITS 100
#define WAIT_NS 10000000

/* Report whether memory is readable. The kernel reads the set before it finds that it has nothing to do with it. */
static bool is_readable(uint64_t address)
{
	const uint64_t nothing = UINT64_MAX;
	return ky_agent_system(SYS_rt_sigprocmask, nothing, address & ~(WORD_BYTES - 1), 0,
			       WORD_BYTES, 0, 0) == -EINVAL;
}

/* ---- jumps ---- */

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
			if (!is_readable(first_page) || !is_readable(last))
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

/* ---- hooks ---- */

static void unhook(const struct ky_agent_home *home, uint64_t slot)
{
	const struct ky_agent_frame *frame = ky_agent_frame_at(home, slot);
	uint64_t hook = frame ? frame->hook : 0;
	if (hook)
		(void)__atomic_compare_exchange_n((uint64_t *)(uintptr_t)slot, &hook,
						  frame->returns, false, __ATOMIC_RELAXED,
						  __ATOMIC_RELAXED);
}

/* Unhook the open calls, on all stacks. */
static void unhook_open(const struct ky_agent_home *home, struct ky_agent_state *state)
{
	while (state->top != KY_AGENT_NO_CALL) {
		struct ky_agent_frame *frame = ky_agent_frame_at(home, state->top);
		if (!frame || frame->mark != state->mark)
			break;
		if (is_readable(state->top))
			unhook(home, state->top);
		frame->mark = 0;
		state->top = frame->previous;
	}
	state->top = KY_AGENT_NO_CALL;
}

/* Unhook the rest of this stack: in a forked child these are calls of its parent's. */
static void unhook_stack(const struct ky_agent_home *home, uint64_t slot)
{
	for (uint64_t at = slot; at - slot < STACK_BYTES; at += WORD_BYTES) {
		if (at % PAGE_BYTES == 0 && !is_readable(at))
			break;
		const uint64_t word = *(const uint64_t *)(uintptr_t)at;
		if (word >= home->stubs_from && word < home->stubs_to)
			unhook(home, at);
	}
}

/* ---- both ---- */

/*
 * Report whether this thread is to do it. One that does not finish within a second belongs to another process, which
 * has forked in the meantime.
 */
static bool begin(struct ky_agent_home *home)
{
	const uint64_t wait[2] = {0, WAIT_NS};
	uint32_t now = KY_COUNTER_READ;
	if (__atomic_compare_exchange_n(&home->counter, &now, KY_COUNTER_LEAVING, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return true;
	for (int i = 0; i < WAITS; i++) {
		if (__atomic_load_n(&home->counter, __ATOMIC_ACQUIRE) == KY_COUNTER_LEFT)
			return false;
		ky_agent_system(SYS_nanosleep, (uintptr_t)wait, 0, 0, 0, 0, 0);
	}
	return true;
}

static void turn_off(struct ky_agent_home *home)
{
	__atomic_store_n(&home->on, 0, __ATOMIC_RELEASE);
	take_jumps_out(home);
	for (uint32_t i = 0; i < home->states_used && i < home->states_max; i++) {
		struct ky_agent_state *state =
			(struct ky_agent_state *)(uintptr_t)(home->states + i * home->state_bytes);
		if (state->thread)
			__atomic_store_n(&state->thread, 0, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&home->counter, KY_COUNTER_LEFT, __ATOMIC_RELEASE);
}

void ky_agent_leave_counter(struct ky_agent_home *home, uint64_t slot)
{
	const uint64_t mask = ky_agent_block_signals();
	if (begin(home))
		turn_off(home);
	struct ky_agent_state *state = ky_agent_state_mine(home);
	if (state)
		unhook_open(home, state);
	unhook_stack(home, slot);
	ky_agent_unblock_signals(mask);
}
