/* SPDX-License-Identifier: MIT */
/* processes_look.c: see processes.h: looking into /proc for processes and their drums. */
#include "base/clock.h"
#include "capture/processes_table.h"
#include "process/drum_find.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define SCAN_EVERY_NS (5 * MS)
#define SCAN_ANYWAY_NS (1000 * MS)
#define LOOK_FIRST_NS (2 * MS)
#define LOOK_LAST_NS (1000 * MS)
#define ROUND_NS (2 * MS)
#define REST_FACTOR 40u
/* A process is young until it is looked at as seldom as this. */
#define YOUNG_NS (64 * MS)
/* More new numbers than this are looked for by listing all. */
#define NUMBERS_MAX 1024u
#define LOOKS_SPARED_MAX 7u
#define FOUND_MAX 8u

/* ---- looking ---- */

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
	return drums > 0 && ky_processes_hold(p, process, ky_proc_pidfd(process->pid)) == 0;
}

static bool look_into(struct ky_process_list *p, struct ky_process *process)
{
	if (!is_held(p, process))
		return false;
	struct found found = {.process = process};
	const int drums = ky_drum_find(process->pid, keep, &found);
	process->hidden = drums == -EACCES || drums == -EPERM;
	const bool there = !ky_proc_pidfd_reaped(process->pidfd);
	for (uint32_t i = 0; i < found.count; i++) {
		if (there)
			ky_processes_hand_over(p, process, found.fds[i]);
		close(found.fds[i]);
	}
	return there && found.count;
}

bool ky_processes_look(struct ky_process_list *p, struct ky_process *process)
{
	const pid_t pid = process->pid;
	const uint64_t now = (uint64_t)ky_clock_monotonic();
	process->crowded = !ky_process_users_may_look(&p->users, pid, now);
	if (process->crowded)
		return false;
	const uint64_t began = ky_process_users_clock();
	const bool any = look_into(p, process);
	ky_process_users_charge(&p->users, pid, ky_process_users_clock() - began, now);
	return any;
}

/* With as many descriptors as last time they are most probably the same. A drum may have taken another's number, so look now and then. */
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
	const bool any = !may_spare(process) && ky_processes_look(p, process);
	process->interval_ns =
		any || !process->interval_ns ? LOOK_FIRST_NS : process->interval_ns * 2;
	if (process->interval_ns > LOOK_LAST_NS)
		process->interval_ns = LOOK_LAST_NS;
	process->look_ns = now + process->interval_ns;
}

/* Look at all that are due, or as many as there is time for: the next round continues there. */
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
		now = (uint64_t)ky_clock_monotonic();
	}
}

/* Look at those that began a moment ago: most programs make their drum then. */
static void look_at_young(struct ky_process_list *p, uint64_t begin)
{
	uint64_t now = begin;
	for (uint32_t i = p->count; i-- > 0 && now - begin <= ROUND_NS;) {
		/* One that ends while it is looked at leaves the table. */
		if (i >= p->count)
			continue;
		struct ky_process *const process = p->table[i];
		if (process->interval_ns > YOUNG_NS || process->look_ns > now)
			continue;
		look_and_plan(p, process, now);
		now = (uint64_t)ky_clock_monotonic();
	}
}

/* ---- scanning ---- */

/*
 * True: it is a child of a process that is there, and was not known. One that has ended is a child until its parent has
 * waited for it: it was reported already, or has nothing to report any more.
 */
static bool take_child(struct ky_process_list *p, pid_t pid)
{
	const struct ky_process *const known = ky_processes_get(p, pid);
	if (known) {
		/* Its last letter may still be in the mailbox: its end is reported in order, then the next scan comes. */
		if (known->pidfd >= 0 && ky_proc_pidfd_reaped(known->pidfd))
			p->scan_ns = 0;
		return false;
	}
	struct ky_proc_stat stat;
	const int pidfd = ky_proc_pidfd(pid);
	if (pidfd < 0)
		return false;
	if (ky_proc_stat(pid, 0, &stat) != 0 || !ky_processes_get(p, stat.parent) ||
	    ky_proc_pidfd_ended(pidfd)) {
		close(pidfd);
		return false;
	}
	struct ky_process *const process = ky_processes_insert(p, pid, pidfd);
	if (process)
		ky_processes_announce(p, process);
	return process != NULL;
}

/* Where the kernel does not list a process's children, ask every process for its parent. */
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

/* Children of children are appended to the list while it is processed. */
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

/* Take the numbers that were given to processes and threads since the last look. */
static void take_numbers(struct ky_process_list *p, uint32_t first, uint32_t last)
{
	for (uint32_t number = first; number <= last; number++) {
		const int pidfd = ky_proc_pidfd((pid_t)number);
		p->unseen += pidfd == -ESRCH && !p->news;
		if (pidfd < 0)
			continue;
		close(pidfd);
		if (p->scope == KY_PROCESSES_CHILDREN)
			take_child(p, (pid_t)number);
		else if (!ky_processes_get(p, (pid_t)number))
			(void)ky_processes_insert(p, (pid_t)number, -1);
	}
}

static void scan_everything(struct ky_process_list *p, uint64_t now)
{
	p->scan_ns = now + SCAN_ANYWAY_NS; /* or sooner: take_child() */
	p->scans++;
	if (p->scope == KY_PROCESSES_ALL)
		scan_all(p);
	else
		scan_children(p);
}

static void scan_new(struct ky_process_list *p)
{
	/* Read before the scan: a process that comes during it is seen by the next. */
	const uint32_t newest = p->scope == KY_PROCESSES_GIVEN ? 0 : ky_proc_newest();
	const uint32_t before = p->newest;
	p->newest = newest;
	if (!newest || newest == before || !before)
		return;
	/* Numbers go up, and begin again when there are no more. */
	if (newest > before && newest - before <= NUMBERS_MAX)
		take_numbers(p, before + 1, newest);
	else
		p->scan_ns = 0;
	if (newest > before && newest - before > NUMBERS_MAX && !p->news)
		p->unseen += newest - before;
}

/* Return when to go on after work that began then: a fortieth of the time is spent on it. */
static uint64_t rest(uint64_t begin)
{
	const uint64_t end = (uint64_t)ky_clock_monotonic();
	const uint64_t rest_ns = (end - begin) * REST_FACTOR;
	return end + (rest_ns < LOOK_LAST_NS ? rest_ns : LOOK_LAST_NS);
}

void ky_processes_scan(struct ky_process_list *p)
{
	uint64_t begin = (uint64_t)ky_clock_monotonic();
	if (!p->complete || begin >= p->young_ns) {
		scan_new(p);
		if (p->complete)
			look_at_young(p, (uint64_t)ky_clock_monotonic());
		p->young_ns = rest(begin);
	}
	begin = (uint64_t)ky_clock_monotonic();
	if (!p->complete || begin >= p->work_ns) {
		if (p->scope != KY_PROCESSES_GIVEN && begin >= p->scan_ns)
			scan_everything(p, begin);
		look_around(p, (uint64_t)ky_clock_monotonic());
		p->work_ns = rest(begin);
	}
	p->complete = true;
}

uint64_t ky_processes_due(const struct ky_process_list *p)
{
	const uint64_t now = (uint64_t)ky_clock_monotonic();
	uint64_t young = UINT64_MAX, due = UINT64_MAX;
	for (uint32_t i = 0; i < p->count; i++) {
		const struct ky_process *const process = p->table[i];
		uint64_t *const kind = process->interval_ns > YOUNG_NS ? &due : &young;
		*kind = process->look_ns < *kind ? process->look_ns : *kind;
	}
	if (p->scope != KY_PROCESSES_GIVEN) {
		const uint64_t look = now + (p->news ? SCAN_ANYWAY_NS : SCAN_EVERY_NS);
		young = look < young ? look : young;
		due = p->scan_ns < due ? p->scan_ns : due;
	}
	young = young < p->young_ns ? p->young_ns : young;
	due = due < p->work_ns ? p->work_ns : due;
	due = due < young ? due : young;
	return p->news_ns && p->news_ns < due ? p->news_ns : due;
}
