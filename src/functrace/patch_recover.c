/* SPDX-License-Identifier: MIT */
/*
 * patch_recover.c: jumps are taken out again: those of this kymo, and what one that was killed left behind. See patch_parts.h.
 *
 * The table in the process says what was there before and what is there now: only where the latter is found the former is
 * put back. So it is right at whatever moment the other was killed.
 */
#if defined(__x86_64__)
#include "patch_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_data(const struct ky_agent_patch *entry)
{
	return entry->pad == KY_STUB_CYG_ENTER || entry->pad == KY_STUB_CYG_EXIT;
}

static bool is_undone(const struct ky_agent_patch *entry, enum ky_patch_undone which)
{
	if (!entry->set || !entry->bytes)
		return false;
	return which == KY_PATCH_UNDO_ALL ||
	       (which == KY_PATCH_UNDO_UNWINDER) == (entry->pad == KY_STUB_FIND_FDE);
}

int ky_patch_undo_prepare(struct ky_patch *patch, struct ky_patch_edits *edits,
			  enum ky_patch_undone which)
{
	for (uint32_t i = 0; i < patch->table_count; i++) {
		const struct ky_agent_patch *entry = &patch->table[i];
		if (!is_undone(entry, which))
			continue;
		struct ky_patch_edit *edit = ky_patch_edits_add(edits);
		if (!edit)
			return -ENOMEM;
		edit->address = entry->address;
		edit->entry = i;
		edit->bytes = edit->checked = edit->window = entry->bytes;
		edit->data = is_data(entry);
		memcpy(edit->expect, entry->after, entry->bytes);
		memcpy(edit->put, entry->before, entry->bytes);
	}
	return ky_patch_edits_prepare(edits, &patch->remote);
}

int ky_patch_undo(struct ky_patch *patch, struct ky_patch_edits *edits)
{
	const int error = ky_patch_edits_write(edits, &patch->remote);
	for (uint32_t i = 0; !error && i < edits->count; i++)
		patch->table[edits->items[i].entry].set = 0;
	return error;
}

static uint32_t count_good(const struct ky_patch_edits *edits)
{
	uint32_t good = 0;
	for (uint32_t i = 0; i < edits->count; i++)
		good += edits->items[i].good;
	return good;
}

/* 1: jumps were there and are no longer; 0: none; -errno. */
static int undo_all(struct ky_patch *patch, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	struct ky_patch_edits edits = {0};
	int error = ky_patch_undo_prepare(patch, &edits, KY_PATCH_UNDO_ALL);
	const uint32_t good = count_good(&edits);
	if (!error && (good || patch->home.on)) {
		error = ky_remote_stop(&patch->remote, message);
		if (!error) {
			error = ky_patch_undo(patch, &edits);
			ky_patch_home_off(patch);
			const bool busy = ky_patch_threads_unhook(patch) ||
					  ky_patch_threads_interrupted(patch);
			ky_patch_home_give_back(patch, busy);
			ky_remote_go(&patch->remote);
			if (!error)
				error = ky_patch_table_write(patch);
		}
	}
	ky_patch_edits_free(&edits);
	return error ? error : good > 0;
}

static void release(struct ky_patch *patch)
{
	ky_remote_close(&patch->remote);
	free(patch->table);
	free(patch->spots);
	free(patch->by_address);
	free(patch);
}

/* ours: what this kymo set is undone, else what nobody is responsible for. */
static int recover(pid_t pid, bool ours, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	struct ky_patch *patch = calloc(1, sizeof(*patch));
	if (!patch)
		return -ENOMEM;
	message[0] = '\0';
	int error = ky_remote_open(&patch->remote, pid, message);
	if (!error)
		error = ky_patch_home_read(patch);
	if (error == -ENOENT || (!error && !patch->home.version)) {
		release(patch);
		return 0;
	}
	const bool mine = patch->home.owner_pid == (uint32_t)getpid() &&
			  patch->home.owner_started == ky_patch_started(getpid());
	if (!error && (ours ? mine : !ky_patch_home_owned(&patch->home)))
		error = undo_all(patch, message);
	if (error < 0 && !message[0])
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "Cannot undo what another kymo left in process %d: %s", (int)pid,
			 error == -EPROTO ? "it was another version" : strerror(-error));
	release(patch);
	return error;
}

int ky_patch_recover(pid_t pid, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	return ky_patch_home_find(pid) ? recover(pid, false, message) : 0;
}

void ky_patch_close_children(void)
{
	char message[KY_FUNCTRACE_MESSAGE_BYTES];
	DIR *folder = opendir("/proc");
	if (!folder)
		return;
	for (struct dirent *entry; (entry = readdir(folder));) {
		const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (isdigit((unsigned char)entry->d_name[0]) && ky_patch_home_find(pid))
			(void)recover(pid, true, message);
	}
	closedir(folder);
}
#else
typedef int ky_patch_recover_is_for_x86_64; /* an empty file is none in C */
#endif
