/* SPDX-License-Identifier: MIT */
/*
 * patch_undo.c: takes jumps out, those of this kymo and those that another left: see patch_parts.h.
 *
 * The table in the process has the bytes before and after each change: the former are put back only where the latter
 * are found. So the result is right no matter when another kymo was killed.
 *
 *   stopped      home is ours from here on; jumps of calls out; off: no hook is new from here on
 *                return addresses put back, of threads that do not unwind
 *   runs, stopped, again and again, until no thread unwinds and none is in a stub
 *   stopped      jump of the unwinder out; the drum's memory is given back; home has no owner
 */
#include "base/clock.h"
#include "functrace/patch_parts.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS UINT64_C(500000)
#define BREAKPOINT 0xcc
#define NOTES_MAX 8u

static bool is_data(const struct ky_agent_patch *entry)
{
	return entry->pad == KY_STUB_CYG_ENTER || entry->pad == KY_STUB_CYG_EXIT;
}

static bool is_undone(const struct ky_agent_patch *entry, bool unwinder)
{
	if (!entry->set || !entry->bytes)
		return false;
	return unwinder == (entry->pad == KY_STUB_FIND_FDE);
}

static int prepare(struct ky_patch *patch, struct ky_patch_edits *edits, bool unwinder)
{
	for (uint32_t i = 0; i < patch->table_count; i++) {
		const struct ky_agent_patch *entry = &patch->table[i];
		if (!is_undone(entry, unwinder))
			continue;
		struct ky_patch_edit *edit = ky_patch_edits_add(
			edits, entry->address, i, entry->after, entry->before, entry->bytes);
		if (!edit)
			return -ENOMEM;
		edit->data = is_data(entry);
	}
	return ky_patch_edits_prepare(edits, &patch->remote);
}

/*
 * Mend a place whose bytes are not ours any more. A uprobe may have replaced the first one by a breakpoint, and puts the
 * file's back when it is taken out: the others must be the file's then. Return false when other bytes are there.
 */
static bool mend(const struct ky_patch *patch, const struct ky_agent_patch *entry)
{
	uint8_t now[sizeof(entry->after)];
	if (ky_remote_read(&patch->remote, entry->address, now, entry->bytes))
		return true; /* nothing is there any more */
	const bool probed = now[0] == BREAKPOINT || now[0] == entry->before[0];
	const size_t rest = entry->bytes - 1u;
	if (probed && memcmp(now + 1, entry->before + 1, rest) == 0)
		return true;
	return probed && memcmp(now + 1, entry->after + 1, rest) == 0 &&
	       !ky_remote_write(&patch->remote, entry->address + 1, entry->before + 1, rest);
}

static int write_out(struct ky_patch *patch, struct ky_patch_edits *edits)
{
	const int error = ky_patch_edits_write(edits, &patch->remote);
	for (uint32_t i = 0; !error && i < edits->count; i++) {
		const struct ky_patch_edit *edit = &edits->items[i];
		struct ky_agent_patch *entry = &patch->table[edit->entry];
		if (!edit->good && !edit->data && !mend(patch, entry) &&
		    patch->facts.strange++ < NOTES_MAX)
			ky_patch_note(patch,
				      "process %d: the code at 0x%" PRIx64
				      " is neither kymo's nor its file's: it was left as it is",
				      (int)patch->remote.pid, entry->address);
		entry->set = 0;
	}
	return error;
}

/* Prepare it only now: calls may have been taken out of the same page. */
static int take_unwinder_out(struct ky_patch *patch)
{
	struct ky_patch_edits edits = {0};
	int error = prepare(patch, &edits, true);
	if (!error)
		error = write_out(patch, &edits);
	ky_patch_edits_free(&edits);
	return error;
}

bool ky_patch_undo_needed(const struct ky_patch *patch)
{
	bool needed = patch->home.on;
	for (uint32_t i = 0; !needed && i < patch->table_count; i++)
		needed = patch->table[i].set;
	return needed;
}

int ky_patch_undo_check(const struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	struct ky_agent_home now = {0};
	const uint64_t at = ky_agent_memory_find(patch->remote.pid);
	const int error = at ? ky_remote_read(&patch->remote, at, &now, sizeof(now)) : 0;
	if (error || (at == patch->home_at && now.owner_started == patch->home.owner_started &&
		      now.version == patch->home.version && now.owner_pid == patch->home.owner_pid))
		return error;
	return ky_fail(
		message, -EBUSY,
		"Cannot patch process %d: another kymo attached to it at the same time; end that "
		"first, or try again",
		(int)patch->remote.pid);
}

void ky_patch_undo_pause(uint32_t tries)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)(PAUSE_NS * (1 + tries / 10))}, NULL);
}

/* Do the first part, while all threads are stopped for the first time. */
static int begin(struct ky_patch *patch, struct ky_patch_edits *calls,
		 char message[KY_MESSAGE_BYTES])
{
	int error = ky_patch_undo_check(patch, message);
	if (error)
		return error;
	ky_agent_memory_own(patch, true);
	error = write_out(patch, calls);
	if (!error)
		ky_agent_memory_off(patch);
	return error;
}

/* Put back what is possible, while all threads are stopped. Return 1 when it was the last time, 0, or -errno. */
static int try(struct ky_patch *patch, uint32_t tries)
{
	const bool quiet =
		ky_patch_threads_unhook(patch, tries) && !ky_patch_threads_interrupted(patch);
	const bool last = quiet || tries == KY_PATCH_QUIET_TRIES - 1;
	const int error = last ? take_unwinder_out(patch) : 0;
	if (tries == 0 || last)
		ky_agent_memory_give_back(patch, !quiet);
	if (last && !error)
		ky_agent_memory_unguard(patch);
	if (quiet && !error)
		ky_agent_memory_trim(patch);
	if (last && !error)
		ky_agent_memory_own(patch, false);
	return error ? error : last;
}

int ky_patch_undo(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	struct ky_patch_edits calls = {0};
	int result = prepare(patch, &calls, false);
	for (uint32_t tries = 0; result == 0; tries++) {
		if (tries)
			ky_patch_undo_pause(tries);
		result = ky_patch_stop(patch, message);
		if (result)
			break;
		if (tries == 0)
			result = begin(patch, &calls, message);
		if (result == 0)
			result = try(patch, tries);
		ky_patch_go(patch);
		if (patch->remote.stopped_ns > patch->facts.unstopped_ns)
			patch->facts.unstopped_ns = patch->remote.stopped_ns;
	}
	ky_patch_edits_free(&calls);
	return result < 0 ? result : ky_patch_table_write(patch);
}

/* ---- leftovers of a killed kymo ---- */

/*
 * Undo a process. ours: what this kymo set; otherwise what a kymo left that is gone. Return 1: done; 0: nothing
 * there; or -errno.
 */
static int recover(pid_t pid, bool ours, char message[KY_MESSAGE_BYTES])
{
	struct ky_patch *patch = calloc(1, sizeof(*patch));
	if (!patch)
		return -ENOMEM;
	message[0] = '\0';
	int error = ky_remote_open(&patch->remote, pid, message);
	if (!error)
		error = ky_agent_memory_read(patch);
	/* A home of another version, or an unreadable one, is not ours. */
	if (error == -ENOENT || (!error && !patch->home.version) || (error && ours)) {
		ky_patch_free(patch);
		return 0;
	}
	const bool wanted =
		ours ? ky_agent_memory_is_mine(&patch->home) : !ky_agent_memory_owned(&patch->home);
	if (!error && wanted)
		error = ky_patch_table_read(patch);
	const bool needed = !error && wanted && ky_patch_undo_needed(patch);
	if (needed)
		error = ky_patch_undo(patch, message);
	if (error && !message[0])
		snprintf(message, KY_MESSAGE_BYTES,
			 "Cannot undo what another kymo left in process %d: %s", (int)pid,
			 error == -EPROTO ? "it was another version" : strerror(-error));
	ky_patch_free(patch);
	return error ? error : needed;
}

/* Read home of a process that need not be stopped; all zeros: it has none. */
static void peek(pid_t pid, struct ky_agent_home *home)
{
	memset(home, 0, sizeof(*home));
	const uint64_t at = ky_agent_memory_find(pid);
	const int memory = at ? ky_proc_open(pid, "mem", O_RDONLY) : -1;
	if (memory < 0)
		return;
	if (pread(memory, home, sizeof(*home), (off_t)at) != sizeof(*home) ||
	    home->magic != KY_AGENT_MAGIC)
		memset(home, 0, sizeof(*home));
	close(memory);
}

bool ky_patch_is_ours(pid_t pid)
{
	struct ky_agent_home home;
	peek(pid, &home);
	return home.on && ky_agent_memory_is_mine(&home);
}

int ky_patch_recover(pid_t pid, char message[KY_MESSAGE_BYTES])
{
	return ky_agent_memory_find(pid) ? recover(pid, false, message) : 0;
}

/* ---- the processes of the machine ---- */

/*
 * Any process can have a mapping with that name, and as many mappings as it likes: looking at them takes a limited time,
 * and a signal that asks kymo to end shortens it. What is known to be kymo's own is always undone.
 */
#define LOOK_MAX_NS UINT64_C(10000000000)
#define LOOK_LEAST_NS UINT64_C(1000000000)

static bool is_asked_to_end(void)
{
	static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t pending;
	bool asked = false;
	if (sigpending(&pending))
		return false;
	for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++)
		asked |= sigismember(&pending, asking[i]) == 1;
	return asked;
}

static bool has_home(pid_t pid, uint64_t since, uint64_t *looked_ns)
{
	const uint64_t began = (uint64_t)ky_clock_monotonic();
	const bool has = ky_patch_started(pid) >= since && ky_agent_memory_find(pid);
	*looked_ns += (uint64_t)ky_clock_monotonic() - began;
	return has;
}

/*
 * Call back for each process with a home that began at a time, as in /proc/PID/stat, or later. Return how often the
 * callback returned true. whole: no process was left out for lack of time.
 */
static uint32_t visit(uint64_t since, bool (*one)(void *context, pid_t pid), void *context,
		      bool *whole)
{
	uint32_t count = 0;
	uint64_t looked_ns = 0;
	DIR *const processes = ky_proc_processes();
	*whole = true;
	for (pid_t pid; *whole && (pid = ky_proc_next(processes)) > 0;) {
		if (has_home(pid, since, &looked_ns))
			count += one(context, pid);
		*whole = looked_ns < LOOK_LEAST_NS ||
			 (looked_ns < LOOK_MAX_NS && !is_asked_to_end());
	}
	ky_proc_close(processes);
	return count;
}

struct closing {
	ky_patch_child_fn child;
	void *context;
};

/* Undo a child, while signals wait: kymo must not be ended in the middle. */
static int close_safely(pid_t pid, char message[KY_MESSAGE_BYTES])
{
	struct ky_agent_home home;
	sigset_t all, before;
	peek(pid, &home);
	if (!ky_agent_memory_is_mine(&home))
		return 0;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	const int error = recover(pid, true, message);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return error;
}

static bool close_child(void *context, pid_t pid)
{
	const struct closing *closing = context;
	char message[KY_MESSAGE_BYTES];
	const int error = close_safely(pid, message);
	/* It may have ended without its parent having asked for it yet. */
	const bool gone = error == -ESRCH || (error < 0 && kill(pid, 0) != 0 && errno == ESRCH);
	if (error == 0 || gone)
		return false;
	closing->child(closing->context, pid, error, message);
	return true;
}

uint32_t ky_patch_close_children(uint64_t since, ky_patch_child_fn child, void *context,
				 bool *whole)
{
	struct closing closing = {child, context};
	return visit(since, close_child, &closing, whole);
}

static bool recover_left(void *context, pid_t pid)
{
	const struct ky_agent_home *left = context;
	char message[KY_MESSAGE_BYTES];
	struct ky_agent_home home;
	peek(pid, &home);
	return home.owner_pid == left->owner_pid && home.owner_started == left->owner_started &&
	       recover(pid, false, message) == 1;
}

void ky_patch_recover_left(const struct ky_agent_home *left)
{
	struct ky_agent_home copy = *left;
	bool whole;
	(void)visit(left->owner_started, recover_left, &copy, &whole);
}
