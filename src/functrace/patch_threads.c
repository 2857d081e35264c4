/* SPDX-License-Identifier: MIT */
/*
 * patch_threads.c: what is done to threads while they are stopped: see patch_parts.h.
 *
 *   gs       leads to the states; must have been 0, or ours. fs:0 must be the thread's own address, by which states know it
 *   rip      inside what will be overwritten: goes on in the moved copy
 *   stack    a word that leads inside what will be overwritten was put there by a signal: that function is left alone.
 *            A word that leads into a stub is a hook, when its frame says so: the return address can be put back
 */
#if defined(__x86_64__)
#include "patch_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USER_CODE 0x33u /* cs of a thread in 64-bit mode */
#define STACK_MAX (UINT64_C(64) << 20)
#define CHUNK_BYTES 65536u

static bool is_ours(const struct ky_patch *patch, uint64_t gs)
{
	const struct ky_agent_home *home = &patch->home;
	return home->states && gs - home->states < home->states_max * home->state_bytes;
}

int ky_patch_threads_check(struct ky_patch *patch, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		const struct user_regs_struct *r = &patch->remote.threads[i].registers;
		uint64_t self = 0;
		const char *why = NULL;
		if (r->cs != USER_CODE)
			why = "runs 32-bit code";
		else if (r->gs || (r->gs_base && !is_ours(patch, r->gs_base)))
			why = "uses the gs register itself (as Wine does)";
		else if (!r->fs_base ||
			 ky_remote_read(&patch->remote, r->fs_base, &self, sizeof(self)) ||
			 self != r->fs_base)
			why = "has no thread pointer of the usual kind (as Go programs)";
		if (!why)
			continue;
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "Cannot patch process %d: thread %d %s; use --engine sample",
			 (int)patch->remote.pid, (int)patch->remote.threads[i].tid, why);
		return -ENOTSUP;
	}
	return 0;
}

void ky_patch_threads_gs(struct ky_patch *patch)
{
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		struct ky_remote_thread *thread = &patch->remote.threads[i];
		/* A thread may be in the middle of a stub: its state stays. */
		if (is_ours(patch, thread->registers.gs_base))
			continue;
		thread->registers.gs_base = patch->home.states;
		thread->changed = true;
	}
}

/* ---- stacks ---- */

typedef void (*word_fn)(struct ky_patch *patch, void *context, uint64_t at, uint64_t word);

struct stacks {
	struct {
		uint64_t from, to;
	} * mappings; /* that can be written to */
	uint32_t count;
};

static void read_mappings(struct stacks *stacks, pid_t pid)
{
	char line[512], permissions[5];
	uint64_t from, to;
	*stacks = (struct stacks){0};
	snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(line, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, permissions) != 3 ||
		    permissions[1] != 'w')
			continue;
		if ((stacks->count & (stacks->count - 1)) == 0) {
			const size_t room = stacks->count ? stacks->count * 2u : 1;
			void *grown = realloc(stacks->mappings, room * sizeof(stacks->mappings[0]));
			if (!grown)
				break;
			stacks->mappings = grown;
		}
		stacks->mappings[stacks->count].from = from;
		stacks->mappings[stacks->count++].to = to;
	}
	if (maps)
		fclose(maps);
}

static uint64_t end_of(const struct stacks *stacks, uint64_t address)
{
	for (uint32_t i = 0; i < stacks->count; i++)
		if (address >= stacks->mappings[i].from && address < stacks->mappings[i].to)
			return stacks->mappings[i].to;
	return address;
}

/* Each word of a stack that lies between two values. */
static void scan(struct ky_patch *patch, uint64_t from, uint64_t to, const uint64_t range[2],
		 word_fn word, void *context)
{
	static uint64_t words[CHUNK_BYTES / 8];
	from &= ~UINT64_C(7);
	if (to - from > STACK_MAX)
		to = from + STACK_MAX;
	for (uint64_t at = from; at < to; at += CHUNK_BYTES) {
		const size_t bytes = to - at < CHUNK_BYTES ? to - at : CHUNK_BYTES;
		if (ky_remote_read(&patch->remote, at, words, bytes))
			return;
		for (size_t i = 0; i < bytes / 8; i++)
			if (words[i] >= range[0] && words[i] < range[1])
				word(patch, context, at + i * 8, words[i]);
	}
}

static void scan_all(struct ky_patch *patch, const uint64_t range[2], word_fn word, void *context)
{
	struct stacks stacks;
	read_mappings(&stacks, patch->remote.pid);
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		const uint64_t rsp = patch->remote.threads[i].registers.rsp;
		scan(patch, rsp, end_of(&stacks, rsp), range, word, context);
	}
	free(stacks.mappings);
}

/* ---- moving ---- */

struct moving {
	struct ky_patch_edits *edits;
	uint32_t left_alone;
};

static void drop(struct ky_patch *patch, struct moving *moving, struct ky_patch_edit *edit)
{
	ky_patch_edits_drop(moving->edits, edit);
	ky_patch_table_set(patch, edit->entry, false);
	patch->spots[edit->entry].wanted = false;
	moving->left_alone++;
}

static void leave_alone(struct ky_patch *patch, void *context, uint64_t at, uint64_t word)
{
	struct moving *moving = context;
	struct ky_patch_edit *edit = ky_patch_edits_inside(moving->edits, word);
	(void)at;
	if (edit)
		drop(patch, moving, edit);
}

void ky_patch_threads_move(struct ky_patch *patch, struct ky_patch_edits *edits)
{
	struct moving moving = {.edits = edits};
	if (!edits->count)
		return;
	const uint64_t range[2] = {edits->items[0].address,
				   edits->items[edits->count - 1].address + KY_WINDOW_MAX};
	scan_all(patch, range, leave_alone, &moving);
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		struct ky_remote_thread *thread = &patch->remote.threads[i];
		struct ky_patch_edit *edit = ky_patch_edits_inside(edits, thread->registers.rip);
		if (!edit)
			continue;
		const uint64_t moved =
			ky_patch_stub_moved(patch, edit->entry, thread->registers.rip);
		if (!moved) {
			drop(patch, &moving, edit);
			continue;
		}
		thread->registers.rip = moved;
		thread->changed = true;
	}
	patch->facts.left_out[KY_WHY_STRANGE] += moving.left_alone;
	if (moving.left_alone)
		ky_patch_note(patch,
			      "%u functions are not traced: a thread was just inside their first "
			      "instructions",
			      moving.left_alone);
}

/* ---- hooks ---- */

/* Whether a thread is in a stub or in the agent. */
static bool is_inside(const struct ky_patch *patch, uint64_t rip)
{
	const struct ky_agent_home *home = &patch->home;
	if (rip - home->code_at < home->code_bytes)
		return true;
	for (uint32_t i = 0; i < patch->keep.regions_count; i++)
		if (rip - patch->keep.regions[i].at < patch->keep.regions[i].used)
			return true;
	return false;
}

/* Whether a word is the hook of a slot, and that slot's frame. */
static bool is_hook_of(const struct ky_patch *patch, uint64_t slot, uint64_t word,
		       struct ky_agent_frame *frame)
{
	uint64_t piece = 0;
	const uint64_t index = slot >> KY_AGENT_PIECE_SHIFT;
	return is_inside(patch, word) && index < KY_AGENT_PIECES && slot % 8 == 0 &&
	       !ky_remote_read(&patch->remote, patch->home.directory + index * sizeof(piece),
			       &piece, sizeof(piece)) &&
	       piece && !ky_remote_read(&patch->remote, piece + slot * 4, frame, sizeof(*frame)) &&
	       frame->hook == word;
}

static void unhook(struct ky_patch *patch, void *context, uint64_t at, uint64_t word)
{
	struct ky_agent_frame frame;
	(void)context;
	if (is_hook_of(patch, at, word, &frame))
		(void)ky_remote_write(&patch->remote, at, &frame.returns, sizeof(frame.returns));
}

/* libgcc's struct _Unwind_Context has the CFA, which is S + 8, and then the address that it asks about next. */
static void see_context(struct ky_patch *patch, void *context, uint64_t at, uint64_t word)
{
	struct ky_agent_frame frame;
	uint64_t cfa = 0;
	if (!ky_remote_read(&patch->remote, at - sizeof(cfa), &cfa, sizeof(cfa)) &&
	    is_hook_of(patch, cfa - 8, word, &frame))
		*(bool *)context = true;
}

/* On its way from there into the question. */
static bool holds_hook(const struct ky_patch *patch, const struct user_regs_struct *r)
{
	const uint64_t all[] = {r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->rbp, r->r8,
				r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (is_inside(patch, all[i]))
			return true;
	return false;
}

bool ky_patch_threads_unwinding(struct ky_patch *patch)
{
	const uint64_t range[2] = {patch->home.stubs_from, patch->home.stubs_to};
	bool seen = false;
	if (patch->home.directory && patch->home.stubs_to > patch->home.stubs_from)
		scan_all(patch, range, see_context, &seen);
	for (uint32_t i = 0; !seen && i < patch->remote.count; i++)
		seen = holds_hook(patch, &patch->remote.threads[i].registers);
	return seen;
}

/* A thread that ended in the agent leaves its state busy for good. Another pid namespace has other numbers: who knows. */
static bool is_alive(const struct ky_patch *patch, uint32_t tid)
{
	if (patch->home.pid != (uint32_t)patch->remote.pid)
		return true;
	for (uint32_t i = 0; i < patch->remote.count; i++)
		if ((uint32_t)patch->remote.threads[i].tid == tid)
			return true;
	return false;
}

bool ky_patch_threads_interrupted(const struct ky_patch *patch)
{
	const struct ky_agent_home *home = &patch->home;
	uint32_t used = 0;
	bool busy = false;
	(void)ky_remote_read(&patch->remote,
			     patch->home_at + offsetof(struct ky_agent_home, states_used), &used,
			     sizeof(used));
	for (uint32_t i = 1; !busy && i < used && i < home->states_max; i++) {
		struct ky_agent_state state;
		busy = !ky_remote_read(&patch->remote, home->states + i * home->state_bytes, &state,
				       offsetof(struct ky_agent_state, ring)) &&
		       state.busy && is_alive(patch, state.tid);
	}
	return busy;
}

bool ky_patch_threads_unhook(struct ky_patch *patch)
{
	const uint64_t range[2] = {patch->home.stubs_from, patch->home.stubs_to};
	bool busy = false;
	if (patch->home.directory && patch->home.stubs_to > patch->home.stubs_from)
		scan_all(patch, range, unhook, NULL);
	for (uint32_t i = 0; i < patch->remote.count; i++)
		busy |= is_inside(patch, patch->remote.threads[i].registers.rip);
	return busy;
}
#else
typedef int ky_patch_threads_is_for_x86_64; /* an empty file is none in C */
#endif
