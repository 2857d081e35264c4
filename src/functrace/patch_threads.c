/* SPDX-License-Identifier: MIT */
/*
 * patch_threads.c: changes to threads while they are stopped: see patch_parts.h.
 *
 *   gs       leads to the states; must have been 0, or ours. fs:0 must be the thread's own address, by which states know it
 *   rip      inside the bytes to overwrite: goes on in the moved copy
 *   stack    a word that leads inside the bytes to overwrite was put there by a signal: that function is not patched
 */
#include "base/array.h"
#include "functrace/patch_parts.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

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

void ky_patch_stacks_read(struct ky_patch_stacks *stacks, pid_t pid)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	*stacks = (struct ky_patch_stacks){0};
	(void)ky_proc_maps_open(&maps, pid);
	while (ky_proc_maps_next(&maps, &mapping)) {
		if (!(mapping.protection & PROT_WRITE))
			continue;
		if (!KY_ARRAY_GROW(stacks->mappings, stacks->room, stacks->count + 1))
			break;
		stacks->mappings[stacks->count].from = mapping.start;
		stacks->mappings[stacks->count++].to = mapping.end;
	}
	ky_proc_maps_close(&maps);
}

static uint64_t end_of(const struct ky_patch_stacks *stacks, uint64_t address)
{
	for (uint32_t i = 0; i < stacks->count; i++)
		if (address >= stacks->mappings[i].from && address < stacks->mappings[i].to)
			return stacks->mappings[i].to;
	return address;
}

void ky_patch_stacks_free(struct ky_patch_stacks *stacks)
{
	KY_ARRAY_FREE(stacks->mappings, stacks->room);
}

void ky_patch_stacks_scan(struct ky_patch *patch, const struct ky_patch_stacks *stacks,
			  uint64_t from, const uint64_t range[2], ky_patch_word_fn word,
			  void *context)
{
	static uint64_t words[CHUNK_BYTES / 8];
	uint64_t to = end_of(stacks, from);
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
				   edits->items[edits->count - 1].address + KY_PROLOGUE_MAX};
	struct ky_patch_stacks stacks;
	ky_patch_stacks_read(&stacks, patch->remote.pid);
	for (uint32_t i = 0; i < patch->remote.count; i++)
		ky_patch_stacks_scan(patch, &stacks, patch->remote.threads[i].registers.rsp, range,
				     leave_alone, &moving);
	ky_patch_stacks_free(&stacks);
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
