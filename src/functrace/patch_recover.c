/* SPDX-License-Identifier: MIT */
/*
 * patch_recover.c: processes with jumps that nobody answers for: children of traced ones, and what a kymo that was killed left
 * behind, in a process and in those that were forked meanwhile. See patch_parts.h.
 */
#if defined(__x86_64__)
#include "functrace/patch_parts.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void release(struct ky_patch *patch)
{
	ky_remote_close(&patch->remote);
	free(patch->table);
	free(patch->spots);
	free(patch->by_address);
	free(patch);
}

/* ours: what this kymo set is undone, else what nobody answers for. 1: it was so; 0; or -errno. */
static int recover(pid_t pid, bool ours, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	struct ky_patch *patch = calloc(1, sizeof(*patch));
	if (!patch)
		return -ENOMEM;
	message[0] = '\0';
	int error = ky_remote_open(&patch->remote, pid, message);
	if (!error)
		error = ky_patch_home_read(patch);
	/* What is of another version, or not to be looked into, is not ours. */
	if (error == -ENOENT || (!error && !patch->home.version) || (error && ours)) {
		release(patch);
		return 0;
	}
	const bool mine = patch->home.owner_pid == (uint32_t)getpid() &&
			  patch->home.owner_started == ky_patch_started(getpid());
	const bool wanted = ours ? mine : !ky_patch_home_owned(&patch->home);
	const bool needed = !error && wanted && ky_patch_undo_needed(patch);
	if (needed)
		error = ky_patch_undo(patch, message);
	if (error && !message[0])
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "Cannot undo what another kymo left in process %d: %s", (int)pid,
			 error == -EPROTO ? "it was another version" : strerror(-error));
	release(patch);
	return error ? error : needed;
}

/* Of a process that need not be stopped; all zeros: it has none. */
static void peek(pid_t pid, struct ky_agent_home *home)
{
	memset(home, 0, sizeof(*home));
	const uint64_t at = ky_patch_home_find(pid);
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
	return home.on && home.owner_pid == (uint32_t)getpid() &&
	       home.owner_started == ky_patch_started(getpid());
}

int ky_patch_recover(pid_t pid, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	return ky_patch_home_find(pid) ? recover(pid, false, message) : 0;
}

/* Calls back for each process with a home; how often that said yes. */
static uint32_t visit(bool (*one)(void *context, pid_t pid), void *context)
{
	uint32_t count = 0;
	DIR *const processes = ky_proc_processes();
	for (pid_t pid; (pid = ky_proc_next(processes)) > 0;)
		if (ky_patch_home_find(pid))
			count += one(context, pid);
	ky_proc_close(processes);
	return count;
}

struct closing {
	void (*child)(void *context, pid_t pid, int error, const char *message);
	void *context;
};

static bool close_child(void *context, pid_t pid)
{
	const struct closing *closing = context;
	char message[KY_FUNCTRACE_MESSAGE_BYTES];
	const int error = recover(pid, true, message);
	const bool gone = error < 0 && kill(pid, 0) != 0 && errno == ESRCH;
	if (error == 0 || gone)
		return false;
	closing->child(closing->context, pid, error, message);
	return true;
}

uint32_t ky_patch_close_children(void (*child)(void *context, pid_t pid, int error,
					       const char *message),
				 void *context)
{
	struct closing closing = {child, context};
	return visit(close_child, &closing);
}

static bool recover_left(void *context, pid_t pid)
{
	const struct ky_agent_home *left = context;
	char message[KY_FUNCTRACE_MESSAGE_BYTES];
	struct ky_agent_home home;
	peek(pid, &home);
	return home.owner_pid == left->owner_pid && home.owner_started == left->owner_started &&
	       recover(pid, false, message) == 1;
}

void ky_patch_recover_left(const struct ky_agent_home *left)
{
	struct ky_agent_home copy = *left;
	(void)visit(recover_left, &copy);
}
#else
typedef int ky_patch_recover_is_for_x86_64; /* an empty file is none in C */
#endif
