/* SPDX-License-Identifier: MIT */
/*
 * processes_scan.c: looking into /proc: for processes that are new, and for drums that are.
 *
 *   scan   children of the processes that are there, or all processes; when the machine has a new process (that is one small
 *          file to read), or once a second
 *   look   the descriptors of one process; it is due at its own time
 *
 * What a round spends here puts off the next by twenty times as long, however many processes there are. The
 * first round does everything.
 *
 * A number that was read may be another process's by the time it is opened: a child is only taken if, held by its
 * pidfd, it is a child; what was found in a process only counts if its pidfd says afterwards that it is still there.
 */
#include "capture/processes_parts.h"
#include "process/drum_find.h"
#include "process/pidfd.h"
#include "process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define SCAN_EVERY_NS (5 * MS)
#define SCAN_ANYWAY_NS (1000 * MS)
#define LOOK_FIRST_NS (2 * MS)
#define LOOK_LAST_NS (1000 * MS)
#define ROUND_NS (2 * MS)
#define REST_FACTOR 20u
#define LOOKS_SPARED_MAX 7u
#define FOUND_MAX 8u

/*
 * ------------------------------------------------------------------------------------------------
 * Looking.
 * ------------------------------------------------------------------------------------------------
 */

struct found {
	const struct ky_process *process;
	int fds[FOUND_MAX];
	uint32_t count;
};

static int keep(void *context, int fd)
{
	struct found *const found = context;
	if (ky_processes_knows(found->process, fd))
		return 0;
	const int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (kept >= 0)
		found->fds[found->count++] = kept;
	return found->count == FOUND_MAX;
}

static int stop_at_first(void *context, int fd)
{
	(void)context;
	(void)fd;
	return 1;
}

/* Whether it is a process now; a number becomes one when it has a drum. */
static bool is_held(struct ky_process_list *p, struct ky_process *process)
{
	if (process->pidfd >= 0)
		return true;
	const int drums = ky_drum_find(process->pid, stop_at_first, NULL);
	process->hidden = drums == -EACCES || drums == -EPERM;
	return drums > 0 && ky_processes_hold(p, process, ky_pidfd_open(process->pid)) == 0;
}

/* Whether anything was new. */
static bool look(struct ky_process_list *p, struct ky_process *process)
{
	if (!is_held(p, process))
		return false;
	struct found found = {.process = process};
	const int drums = ky_drum_find(process->pid, keep, &found);
	process->hidden = drums == -EACCES || drums == -EPERM;
	const bool there = !ky_pidfd_reaped(process->pidfd);
	for (uint32_t i = 0; i < found.count; i++) {
		if (there)
			ky_processes_hand(p, process, found.fds[i]);
		close(found.fds[i]);
	}
	return there && found.count;
}

/* As many descriptors as last time: then most probably the same. A drum may have taken another's number, so not for ever. */
static bool may_spare(struct ky_process *process)
{
	const int64_t descriptors = process->drums_count ? -1 : ky_proc_descriptors(process->pid);
	if (descriptors >= 0 && descriptors == process->descriptors &&
	    process->looks_spared < LOOKS_SPARED_MAX) {
		process->looks_spared++;
		return true;
	}
	process->descriptors = descriptors;
	process->looks_spared = 0;
	return false;
}

static void look_and_plan(struct ky_process_list *p, struct ky_process *process, uint64_t now)
{
	const bool any = !may_spare(process) && look(p, process);
	process->interval_ns =
		any || !process->interval_ns ? LOOK_FIRST_NS : process->interval_ns * 2;
	if (process->interval_ns > LOOK_LAST_NS)
		process->interval_ns = LOOK_LAST_NS;
	process->look_ns = now + process->interval_ns;
}

/* All that are due, or as many as there is time for: the next round goes on from there. */
static void look_around(struct ky_process_list *p, uint64_t begin)
{
	uint64_t now = begin;
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->complete && now - begin > ROUND_NS)
			return;
		if (p->look_place >= p->count)
			p->look_place = 0;
		struct ky_process *const process = p->table[p->look_place++];
		if (process->look_ns > now)
			continue;
		look_and_plan(p, process, now);
		now = ky_processes_now();
	}
}

/*
 * ------------------------------------------------------------------------------------------------
 * Scanning.
 * ------------------------------------------------------------------------------------------------
 */

/*
 * True: it is a child of a process that is there, and was not known. One that has ended is a child until its parent has
 * waited for it: it was reported already, or has nothing left to report.
 */
static bool take_child(struct ky_process_list *p, pid_t pid)
{
	if (ky_processes_has(p, pid))
		return false;
	struct ky_proc_stat stat;
	const int pidfd = ky_pidfd_open(pid);
	if (pidfd < 0)
		return false;
	if (ky_proc_stat(pid, 0, &stat) != 0 || !ky_processes_get(p, stat.parent) ||
	    ky_pidfd_ended(pidfd)) {
		close(pidfd);
		return false;
	}
	struct ky_process *const process = ky_processes_insert(p, pid, pidfd);
	if (process)
		ky_processes_announce(p, process);
	return process != NULL;
}

/* Where the kernel does not tell a process's children: every process tells its parent. */
static void scan_parents(struct ky_process_list *p)
{
	struct ky_pids all = {0};
	if (ky_proc_all(&all) == 0)
		for (uint32_t i = 0; i < all.count; i++) {
			struct ky_proc_stat stat;
			if (!ky_processes_get(p, all.at[i]) &&
			    ky_proc_stat(all.at[i], 0, &stat) == 0 &&
			    ky_processes_get(p, stat.parent))
				take_child(p, all.at[i]);
		}
	ky_pids_free(&all);
}

/* Children of children are appended to the list while it is worked off. */
static void scan_children(struct ky_process_list *p)
{
	struct ky_pids parents = {0}, children = {0};
	int error = 0;
	for (uint32_t i = 0; error == 0 && i < p->count; i++)
		error = ky_pids_add(&parents, p->table[i]->pid);
	for (uint32_t i = 0; error != -ENOMEM && error != -ENOTSUP && i < parents.count; i++) {
		children.count = 0;
		error = ky_proc_children(parents.at[i], &children);
		for (uint32_t c = 0; c < children.count; c++)
			if (take_child(p, children.at[c]))
				error = ky_pids_add(&parents, children.at[c]);
	}
	ky_pids_free(&parents);
	ky_pids_free(&children);
	if (error == -ENOTSUP)
		scan_parents(p);
}

static void forget_gone(struct ky_process_list *p)
{
	for (uint32_t i = p->count; i-- > 0;)
		if (p->table[i]->pidfd < 0 && p->table[i]->seen != p->scans)
			ky_processes_forget(p, p->table[i]);
}

static void scan_all(struct ky_process_list *p)
{
	struct ky_pids all = {0};
	const int error = ky_proc_all(&all);
	for (uint32_t i = 0; i < all.count; i++) {
		struct ky_process *process = ky_processes_get(p, all.at[i]);
		if (!process)
			process = ky_processes_insert(p, all.at[i], -1);
		if (process)
			process->seen = p->scans;
	}
	if (error == 0)
		forget_gone(p);
	ky_pids_free(&all);
}

static void scan_if_new(struct ky_process_list *p, uint64_t now)
{
	if (p->scope == KY_PROCESSES_GIVEN)
		return;
	/* Read before the scan: who comes during it is met by the next. */
	const uint32_t newest = ky_proc_newest();
	if (newest && newest == p->newest && now < p->scan_ns)
		return;
	p->newest = newest;
	p->scan_ns = now + SCAN_ANYWAY_NS;
	p->scans++;
	if (p->scope == KY_PROCESSES_ALL)
		scan_all(p);
	else
		scan_children(p);
}

void ky_processes_scan(struct ky_process_list *p)
{
	const uint64_t begin = ky_processes_now();
	if (p->complete && begin < p->work_ns)
		return;
	scan_if_new(p, begin);
	look_around(p, ky_processes_now());
	const uint64_t end = ky_processes_now();
	const uint64_t rest = (end - begin) * REST_FACTOR;
	p->work_ns = end + (rest < LOOK_LAST_NS ? rest : LOOK_LAST_NS);
	p->complete = true;
}

uint64_t ky_processes_due(const struct ky_process_list *p)
{
	uint64_t due = UINT64_MAX;
	for (uint32_t i = 0; i < p->count; i++)
		due = p->table[i]->look_ns < due ? p->table[i]->look_ns : due;
	if (p->scope != KY_PROCESSES_GIVEN) {
		const uint64_t scan = ky_processes_now() + SCAN_EVERY_NS;
		due = scan < due ? scan : due;
	}
	return due < p->work_ns ? p->work_ns : due;
}
