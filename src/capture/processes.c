/* SPDX-License-Identifier: MIT */
/*
 * processes.c: see processes.h. The table of processes, how they end, and what the mailbox brings.
 *
 * Order. What a process sent before it ended is in the mailbox when poll() reports its end. So ends are asked for first,
 * then the mailbox is emptied, then the ends are reported: a drum comes before the end of its process. A letter from
 * a process that is gone and was never in the table is reported as a whole life: it appeared, its drum, it ended.
 */
#include "capture/processes.h"

#include "base/array.h"
#include "base/clock.h"
#include "capture/fail.h"
#include "capture/mailbox.h"
#include "process/drum_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Drums of one process: how many are remembered, and how many are taken (each exec makes one). */
#define KY_PROCESS_DRUMS_KEPT 8u
#define KY_PROCESS_DRUMS_MAX 65536u

struct ky_process {
	pid_t pid;
	int pidfd; /* -1: a mere number (KY_PROCESSES_ALL) */
	bool appeared;
	bool hidden;           /* this user may not inspect it */
	uint32_t seen;         /* the last scan that saw it */
	uint64_t look_ns;      /* when to look for drums next */
	uint64_t interval_ns;  /* how long after that again */
	int64_t descriptors;   /* that it had when it was looked at */
	uint32_t looks_spared; /* since then, because it had as many */
	uint32_t drums_count;  /* ever */
	uint64_t drums[KY_PROCESS_DRUMS_KEPT];
};

struct ky_process_list {
	enum ky_processes_scope scope;
	struct ky_processes_events events;
	int epoll;
	int timer;
	struct ky_mailbox *mailbox;
	struct ky_process **table; /* by pid, ascending */
	uint32_t count, room;
	bool limit_raised;
	/* scanning */
	bool complete;       /* there was a first round */
	uint32_t newest;     /* newest process of the machine at the last scan */
	uint32_t scans;      /* so far */
	uint64_t scan_ns;    /* when to scan even if newest is the same */
	uint64_t work_ns;    /* not before */
	uint32_t look_place; /* in the table, where the last round stopped */
};

#define EVENTS_MAX 256
#define OF_TIMER UINT64_MAX
#define OF_MAILBOX (UINT64_MAX - 1)
/* A drum that was made this long before its process began belongs to another: the clock is coarse. */
#define GRAIN_NS UINT64_C(20000000)

/* ---- the table ---- */

/* Return the place of the pid in the table, or where it belongs. */
static uint32_t place_of(const struct ky_process_list *p, pid_t pid)
{
	return KY_ARRAY_SEARCH(0, p->count, at, p->table[at]->pid < pid);
}

static struct ky_process *get_process(const struct ky_process_list *p, pid_t pid)
{
	const uint32_t place = place_of(p, pid);
	return place < p->count && p->table[place]->pid == pid ? p->table[place] : NULL;
}

static int watch(const struct ky_process_list *p, int fd, uint64_t what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = what};
	return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static struct ky_process *insert(struct ky_process_list *p, pid_t pid, int pidfd)
{
	struct ky_process *const process =
		KY_ARRAY_GROW(p->table, p->room, p->count + 1) ? calloc(1, sizeof(*process)) : NULL;
	if (!process || (pidfd >= 0 && watch(p, pidfd, (uint64_t)pid) != 0)) {
		free(process);
		if (pidfd >= 0)
			close(pidfd);
		return NULL;
	}
	*process = (struct ky_process){.pid = pid, .pidfd = pidfd, .descriptors = -1};
	const uint32_t place = place_of(p, pid);
	memmove(p->table + place + 1, p->table + place,
		(p->count - place) * sizeof(struct ky_process *));
	p->table[place] = process;
	p->count++;
	return process;
}

static int hold_process(struct ky_process_list *p, struct ky_process *process, int pidfd)
{
	const int error = pidfd < 0 ? pidfd : watch(p, pidfd, (uint64_t)process->pid);
	if (error == 0)
		process->pidfd = pidfd;
	else if (pidfd >= 0)
		close(pidfd);
	return error;
}

static void forget(struct ky_process_list *p, struct ky_process *process)
{
	const uint32_t place = place_of(p, process->pid);
	p->count--;
	memmove(p->table + place, p->table + place + 1,
		(p->count - place) * sizeof(struct ky_process *));
	if (process->pidfd >= 0) {
		/* A child that was forked in between has it too: then closing it alone would not end it. */
		epoll_ctl(p->epoll, EPOLL_CTL_DEL, process->pidfd, NULL);
		close(process->pidfd);
	}
	free(process);
}

static void announce(struct ky_process_list *p, struct ky_process *process)
{
	if (process->appeared)
		return;
	process->appeared = true;
	if (p->events.appeared)
		p->events.appeared(p->events.context, process->pid);
}

static void end_process(struct ky_process_list *p, struct ky_process *process)
{
	const pid_t pid = process->pid;
	const int status = ky_proc_pidfd_status(process->pidfd, pid);
	announce(p, process);
	forget(p, process);
	if (p->events.ended)
		p->events.ended(p->events.context, pid, status);
}

static bool has_process(struct ky_process_list *p, pid_t pid)
{
	struct ky_process *const process = get_process(p, pid);
	if (!process || process->pidfd < 0 || !ky_proc_pidfd_reaped(process->pidfd))
		return process != NULL;
	end_process(p, process);
	return false;
}

/* ---- drums ---- */

static uint64_t identity(int fd)
{
	struct stat status;
	return fstat(fd, &status) == 0
		       ? (uint64_t)status.st_dev * 0x9e3779b97f4a7c15u ^ status.st_ino
		       : 0;
}

static bool knows(const struct ky_process *process, int fd)
{
	const uint64_t file = identity(fd);
	for (uint32_t i = 0; i < KY_PROCESS_DRUMS_KEPT && i < process->drums_count; i++)
		if (process->drums[i] == file)
			return true;
	return false;
}

static void report_drum(const struct ky_process_list *p, pid_t pid, int fd)
{
	if (p->events.drum)
		p->events.drum(p->events.context, pid, fd);
}

static void hand_over(struct ky_process_list *p, struct ky_process *process, int fd)
{
	if (knows(process, fd) || process->drums_count >= KY_PROCESS_DRUMS_MAX)
		return;
	process->drums[process->drums_count++ % KY_PROCESS_DRUMS_KEPT] = identity(fd);
	announce(p, process);
	report_drum(p, process->pid, fd);
}

#define MS UINT64_C(1000000)
#define SCAN_EVERY_NS (5 * MS)
#define SCAN_ANYWAY_NS (1000 * MS)
#define LOOK_FIRST_NS (2 * MS)
#define LOOK_LAST_NS (1000 * MS)
#define ROUND_NS (2 * MS)
#define REST_FACTOR 20u
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
	if (knows(found->process, fd))
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
	return drums > 0 && hold_process(p, process, ky_proc_pidfd(process->pid)) == 0;
}

/* Look for drums of a process. Report whether one was new. */
static bool look(struct ky_process_list *p, struct ky_process *process)
{
	if (!is_held(p, process))
		return false;
	struct found found = {.process = process};
	const int drums = ky_drum_find(process->pid, keep, &found);
	process->hidden = drums == -EACCES || drums == -EPERM;
	const bool there = !ky_proc_pidfd_reaped(process->pidfd);
	for (uint32_t i = 0; i < found.count; i++) {
		if (there)
			hand_over(p, process, found.fds[i]);
		close(found.fds[i]);
	}
	return there && found.count;
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
	const bool any = !may_spare(process) && look(p, process);
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

/* ---- scanning ---- */

/*
 * True: it is a child of a process that is there, and was not known. One that has ended is a child until its parent has
 * waited for it: it was reported already, or has nothing to report any more.
 */
static bool take_child(struct ky_process_list *p, pid_t pid)
{
	const struct ky_process *const known = get_process(p, pid);
	if (known) {
		/* Its last letter may still be in the mailbox: its end is reported in order, then the next scan comes. */
		if (known->pidfd >= 0 && ky_proc_pidfd_reaped(known->pidfd))
			p->newest = 0;
		return false;
	}
	struct ky_proc_stat stat;
	const int pidfd = ky_proc_pidfd(pid);
	if (pidfd < 0)
		return false;
	if (ky_proc_stat(pid, 0, &stat) != 0 || !get_process(p, stat.parent) ||
	    ky_proc_pidfd_ended(pidfd)) {
		close(pidfd);
		return false;
	}
	struct ky_process *const process = insert(p, pid, pidfd);
	if (process)
		announce(p, process);
	return process != NULL;
}

/* Where the kernel does not list a process's children, ask every process for its parent. */
static void scan_parents(struct ky_process_list *p)
{
	struct ky_pids all = {0};
	if (ky_proc_all(&all) == 0)
		for (uint32_t i = 0; i < all.count; i++) {
			struct ky_proc_stat stat;
			if (!get_process(p, all.at[i]) && ky_proc_stat(all.at[i], 0, &stat) == 0 &&
			    get_process(p, stat.parent))
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
			forget(p, p->table[i]);
}

static void scan_all(struct ky_process_list *p)
{
	struct ky_pids all = {0};
	const int error = ky_proc_all(&all);
	for (uint32_t i = 0; i < all.count; i++) {
		struct ky_process *process = get_process(p, all.at[i]);
		if (!process)
			process = insert(p, all.at[i], -1);
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
	/* Read before the scan: a process that comes during it is seen by the next. */
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

static void scan(struct ky_process_list *p)
{
	const uint64_t begin = (uint64_t)ky_clock_monotonic();
	if (p->complete && begin < p->work_ns)
		return;
	scan_if_new(p, begin);
	look_around(p, (uint64_t)ky_clock_monotonic());
	const uint64_t end = (uint64_t)ky_clock_monotonic();
	const uint64_t rest = (end - begin) * REST_FACTOR;
	p->work_ns = end + (rest < LOOK_LAST_NS ? rest : LOOK_LAST_NS);
	p->complete = true;
}

static uint64_t next_due(const struct ky_process_list *p)
{
	uint64_t due = UINT64_MAX;
	for (uint32_t i = 0; i < p->count; i++)
		due = p->table[i]->look_ns < due ? p->table[i]->look_ns : due;
	if (p->scope != KY_PROCESSES_GIVEN) {
		const uint64_t scan = (uint64_t)ky_clock_monotonic() + SCAN_EVERY_NS;
		due = scan < due ? scan : due;
	}
	return due < p->work_ns ? p->work_ns : due;
}

/* ---- the mailbox ---- */

/* Kernels before 6.5 have no pidfd of a socket's peer. */
static int sender_pidfd(const struct ky_letter *letter)
{
	if (letter->pidfd >= 0)
		return fcntl(letter->pidfd, F_DUPFD_CLOEXEC, 0);
	const int pidfd = ky_proc_pidfd(letter->pid);
	struct ky_proc_stat stat;
	if (pidfd >= 0 && ky_proc_stat(letter->pid, 0, &stat) == 0 &&
	    stat.started_ns <= letter->made_boottime_ns + GRAIN_NS && !ky_proc_pidfd_reaped(pidfd))
		return pidfd;
	if (pidfd >= 0)
		close(pidfd);
	return -1;
}

static void report_whole_life(const struct ky_process_list *p, const struct ky_letter *letter)
{
	if (p->events.appeared)
		p->events.appeared(p->events.context, letter->pid);
	report_drum(p, letter->pid, letter->fd);
	if (p->events.ended)
		p->events.ended(p->events.context, letter->pid, -1);
}

/* Report whether another process had the number of one in the table, which has ended; the other may have, too. */
static bool is_another(const struct ky_process *process, const struct ky_letter *letter)
{
	return process->pidfd >= 0 && letter->pidfd >= 0 && ky_proc_pidfd_reaped(process->pidfd) &&
	       (ky_proc_pidfd_differs(process->pidfd, letter->pidfd) ||
		!ky_proc_pidfd_reaped(letter->pidfd));
}

static void take_letter(void *context, const struct ky_letter *letter)
{
	struct ky_process_list *const p = context;
	if (letter->pid <= 0)
		return;
	struct ky_process *process = get_process(p, letter->pid);
	if (process && is_another(process, letter)) {
		end_process(p, process);
		process = NULL;
	}
	if (!process || process->pidfd < 0) {
		const int pidfd = sender_pidfd(letter);
		if (process && hold_process(p, process, pidfd) != 0)
			process = NULL;
		else if (!process && pidfd >= 0)
			process = insert(p, letter->pid, pidfd);
	}
	if (process)
		hand_over(p, process, letter->fd);
	else
		report_whole_life(p, letter);
}

const char *ky_processes_mailbox(struct ky_process_list *p)
{
	int error = 0;
	if (!p->mailbox) {
		error = ky_mailbox_open(&p->mailbox);
		if (error == 0)
			error = watch(p, ky_mailbox_fd(p->mailbox), OF_MAILBOX);
		if (error)
			ky_mailbox_close(&p->mailbox);
	}
	errno = -error;
	return p->mailbox ? ky_mailbox_address(p->mailbox) : NULL;
}

/* ---- from outside ---- */

int ky_processes_open(struct ky_process_list **out, enum ky_processes_scope scope,
		      const struct ky_processes_events *events)
{
	*out = NULL;
	struct ky_process_list *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->scope = scope;
	p->events = *events;
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int error = p->epoll < 0 || p->timer < 0 ? -errno : watch(p, p->timer, OF_TIMER);
	if (error)
		ky_processes_close(&p);
	*out = p;
	return error;
}

void ky_processes_close(struct ky_process_list **processes)
{
	struct ky_process_list *const p = *processes;
	*processes = NULL;
	if (!p)
		return;
	while (p->count)
		forget(p, p->table[p->count - 1]);
	KY_ARRAY_FREE(p->table, p->room);
	ky_mailbox_close(&p->mailbox);
	if (p->timer >= 0)
		close(p->timer);
	if (p->epoll >= 0)
		close(p->epoll);
	free(p);
}

static int refuse(int error, pid_t pid, char *message)
{
	if (error == -ESRCH)
		return ky_capture_fail(message, error,
				       "no process with PID %d; "
				       "'kymo list' shows those that trace",
				       (int)pid);
	if (error == -EINVAL || error == -ENOENT)
		return ky_capture_fail(
			message, -EINVAL,
			"process %d is a thread: use the number of its process (Tgid in /proc/%d/status)",
			(int)pid, (int)pid);
	if (error == -EACCES || error == -EPERM)
		return ky_capture_fail(message, error,
				       "process %d: %s; run as the user of the process, or as root",
				       (int)pid, strerror(-error));
	return ky_capture_fail(message, error, "process %d cannot be followed: %s", (int)pid,
			       strerror(-error));
}

/* Whether it may be looked into at all. */
static int try_access(pid_t pid)
{
	DIR *const descriptors = ky_proc_fds(pid, 0);
	const int error = descriptors ? 0 : -errno;
	ky_proc_close(descriptors);
	return error;
}

int ky_processes_add(struct ky_process_list *p, pid_t pid, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	struct ky_process *const number = has_process(p, pid) ? get_process(p, pid) : NULL;
	if (number && number->pidfd >= 0)
		return 0;
	const int pidfd = pid > 0 ? ky_proc_pidfd(pid) : -ESRCH;
	if (pidfd < 0)
		return refuse(pidfd, pid, message);
	int error = try_access(pid);
	if (error)
		close(pidfd);
	else if (number)
		error = hold_process(p, number, pidfd);
	else
		error = insert(p, pid, pidfd) ? 0 : -ENOMEM;
	return error ? refuse(error, pid, message) : 0;
}

int ky_processes_fd(const struct ky_process_list *p)
{
	return p->epoll;
}

/*
 * Every process and every drum takes descriptors. This is not done when processes is opened: a program that is
 * started after that is to have the limit that it would have without kymo.
 */
static void raise_limit(struct ky_process_list *p)
{
	struct rlimit limit;
	if (!p->limit_raised && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	p->limit_raised = true;
}

static void set_timer(const struct ky_process_list *p)
{
	const uint64_t due = next_due(p);
	struct itimerspec when = {0};
	if (due != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(due / 1000000000u);
		when.it_value.tv_nsec = (long)(due % 1000000000u);
	}
	timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* The order of these three matters: see the head. */
static void take_events(struct ky_process_list *p)
{
	struct epoll_event ready[EVENTS_MAX];
	const int count = epoll_wait(p->epoll, ready, EVENTS_MAX, 0);
	if (p->mailbox)
		ky_mailbox_collect(p->mailbox, take_letter, p);
	for (int i = 0; i < count; i++) {
		const uint64_t what = ready[i].data.u64;
		struct ky_process *const process =
			what == OF_TIMER || what == OF_MAILBOX ? NULL : get_process(p, (pid_t)what);
		/* A letter may have brought another process of that number since then. */
		if (process && process->pidfd >= 0 && ky_proc_pidfd_ended(process->pidfd))
			end_process(p, process);
	}
}

void ky_processes_round(struct ky_process_list *p)
{
	raise_limit(p);
	for (uint32_t i = 0; i < p->count; i++)
		if (p->table[i]->pidfd >= 0)
			announce(p, p->table[i]);
	take_events(p);
	scan(p);
	set_timer(p);
}

uint32_t ky_processes_count(const struct ky_process_list *p)
{
	uint32_t alive = 0;
	for (uint32_t i = 0; i < p->count; i++)
		alive += p->table[i]->pidfd >= 0;
	return alive;
}

pid_t ky_processes_pid(const struct ky_process_list *p, uint32_t index)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->table[i]->pidfd >= 0 && index-- == 0)
			return p->table[i]->pid;
	return 0;
}

void ky_processes_facts(const struct ky_process_list *p, struct ky_processes_facts *facts)
{
	struct ky_mailbox_facts mail = {0};
	if (p->mailbox)
		ky_mailbox_facts(p->mailbox, &mail);
	*facts = (struct ky_processes_facts){
		.letters = mail.letters,
		.refused = mail.refused,
		.mailbox_overflow = mail.overrun,
	};
	for (uint32_t i = 0; i < p->count; i++)
		facts->hidden += p->table[i]->hidden;
}
