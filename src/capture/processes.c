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
#include "capture/processes_parts.h"
#include "process/pidfd.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define OF_TIMER UINT64_MAX
#define OF_MAILBOX (UINT64_MAX - 1)
/* A drum that was made this long before its process began, by the clock's grain, is another process's. */
#define GRAIN_NS UINT64_C(20000000)

uint64_t ky_processes_now(void)
{
	return (uint64_t)ky_clock_monotonic();
}

/*
 * ------------------------------------------------------------------------------------------------
 * The table.
 * ------------------------------------------------------------------------------------------------
 */

/* Where the pid is, or would be. */
static uint32_t place_of(const struct ky_process_list *p, pid_t pid)
{
	uint32_t low = 0, high = p->count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (p->table[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct ky_process *ky_processes_get(const struct ky_process_list *p, pid_t pid)
{
	const uint32_t place = place_of(p, pid);
	return place < p->count && p->table[place]->pid == pid ? p->table[place] : NULL;
}

static int watch(const struct ky_process_list *p, int fd, uint64_t what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = what};
	return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

struct ky_process *ky_processes_insert(struct ky_process_list *p, pid_t pid, int pidfd)
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

int ky_processes_hold(struct ky_process_list *p, struct ky_process *process, int pidfd)
{
	const int error = pidfd < 0 ? pidfd : watch(p, pidfd, (uint64_t)process->pid);
	if (error == 0)
		process->pidfd = pidfd;
	else if (pidfd >= 0)
		close(pidfd);
	return error;
}

void ky_processes_forget(struct ky_process_list *p, struct ky_process *process)
{
	const uint32_t place = place_of(p, process->pid);
	p->count--;
	memmove(p->table + place, p->table + place + 1,
		(p->count - place) * sizeof(struct ky_process *));
	if (process->pidfd >= 0) {
		/* A child forked since then has it too: then closing it alone would not end it. */
		epoll_ctl(p->epoll, EPOLL_CTL_DEL, process->pidfd, NULL);
		close(process->pidfd);
	}
	free(process);
}

void ky_processes_announce(struct ky_process_list *p, struct ky_process *process)
{
	if (process->appeared)
		return;
	process->appeared = true;
	if (p->events.appeared)
		p->events.appeared(p->events.context, process->pid);
}

void ky_processes_end(struct ky_process_list *p, struct ky_process *process)
{
	const pid_t pid = process->pid;
	const int status = ky_pidfd_status(process->pidfd, pid);
	ky_processes_announce(p, process);
	ky_processes_forget(p, process);
	if (p->events.ended)
		p->events.ended(p->events.context, pid, status);
}

bool ky_processes_has(struct ky_process_list *p, pid_t pid)
{
	struct ky_process *const process = ky_processes_get(p, pid);
	if (!process || process->pidfd < 0 || !ky_pidfd_reaped(process->pidfd))
		return process != NULL;
	ky_processes_end(p, process);
	return false;
}

/*
 * ------------------------------------------------------------------------------------------------
 * Drums.
 * ------------------------------------------------------------------------------------------------
 */

static uint64_t identity(int fd)
{
	struct stat status;
	return fstat(fd, &status) == 0
		       ? (uint64_t)status.st_dev * 0x9e3779b97f4a7c15u ^ status.st_ino
		       : 0;
}

bool ky_processes_knows(const struct ky_process *process, int fd)
{
	const uint64_t file = identity(fd);
	for (uint32_t i = 0; i < KY_PROCESS_DRUMS_KEPT && i < process->drums_count; i++)
		if (process->drums[i] == file)
			return true;
	return false;
}

static void tell_drum(const struct ky_process_list *p, pid_t pid, int fd)
{
	if (p->events.drum)
		p->events.drum(p->events.context, pid, fd);
}

void ky_processes_hand(struct ky_process_list *p, struct ky_process *process, int fd)
{
	if (ky_processes_knows(process, fd) || process->drums_count >= KY_PROCESS_DRUMS_MAX)
		return;
	process->drums[process->drums_count++ % KY_PROCESS_DRUMS_KEPT] = identity(fd);
	ky_processes_announce(p, process);
	tell_drum(p, process->pid, fd);
}

/*
 * ------------------------------------------------------------------------------------------------
 * The mailbox.
 * ------------------------------------------------------------------------------------------------
 */

/* Kernels before 6.5 have no pidfd of a socket's peer. */
static int sender_pidfd(const struct ky_letter *letter)
{
	if (letter->pidfd >= 0)
		return fcntl(letter->pidfd, F_DUPFD_CLOEXEC, 0);
	const int pidfd = ky_pidfd_open(letter->pid);
	struct ky_proc_stat stat;
	if (pidfd >= 0 && ky_proc_stat(letter->pid, 0, &stat) == 0 &&
	    stat.started_ns <= letter->made_boottime_ns + GRAIN_NS && !ky_pidfd_reaped(pidfd))
		return pidfd;
	if (pidfd >= 0)
		close(pidfd);
	return -1;
}

static void tell_life(const struct ky_process_list *p, const struct ky_letter *letter)
{
	if (p->events.appeared)
		p->events.appeared(p->events.context, letter->pid);
	tell_drum(p, letter->pid, letter->fd);
	if (p->events.ended)
		p->events.ended(p->events.context, letter->pid, -1);
}

/* The table's process of that number has ended, and another has it by now. */
static bool is_another(const struct ky_process *process, const struct ky_letter *letter)
{
	return process->pidfd >= 0 && letter->pidfd >= 0 && ky_pidfd_reaped(process->pidfd) &&
	       !ky_pidfd_reaped(letter->pidfd);
}

static void take_letter(void *context, const struct ky_letter *letter)
{
	struct ky_process_list *const p = context;
	if (letter->pid <= 0)
		return;
	struct ky_process *process = ky_processes_get(p, letter->pid);
	if (process && is_another(process, letter)) {
		ky_processes_end(p, process);
		process = NULL;
	}
	if (!process || process->pidfd < 0) {
		const int pidfd = sender_pidfd(letter);
		if (process && ky_processes_hold(p, process, pidfd) != 0)
			process = NULL;
		else if (!process && pidfd >= 0)
			process = ky_processes_insert(p, letter->pid, pidfd);
	}
	if (process)
		ky_processes_hand(p, process, letter->fd);
	else
		tell_life(p, letter);
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

/*
 * ------------------------------------------------------------------------------------------------
 * From outside.
 * ------------------------------------------------------------------------------------------------
 */

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
		ky_processes_forget(p, p->table[p->count - 1]);
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
		return ky_capture_fail(message, -EINVAL,
				       "process %d: is a thread; give the number of its process "
				       "(Tgid in /proc/%d/status)",
				       (int)pid, (int)pid);
	if (error == -EACCES || error == -EPERM)
		return ky_capture_fail(message, error,
				       "process %d: %s; run as the user of the process, or as root",
				       (int)pid, strerror(-error));
	return ky_capture_fail(message, error, "process %d: cannot be followed: %s", (int)pid,
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
	struct ky_process *const number =
		ky_processes_has(p, pid) ? ky_processes_get(p, pid) : NULL;
	if (number && number->pidfd >= 0)
		return 0;
	const int pidfd = pid > 0 ? ky_pidfd_open(pid) : -ESRCH;
	if (pidfd < 0)
		return refuse(pidfd, pid, message);
	int error = try_access(pid);
	if (error)
		close(pidfd);
	else if (number)
		error = ky_processes_hold(p, number, pidfd);
	else
		error = ky_processes_insert(p, pid, pidfd) ? 0 : -ENOMEM;
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
	const uint64_t due = ky_processes_due(p);
	struct itimerspec when = {0};
	if (due != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(due / 1000000000u);
		when.it_value.tv_nsec = (long)(due % 1000000000u);
	}
	timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* See the head: the order of these three is what matters. */
static void take_events(struct ky_process_list *p)
{
	struct epoll_event ready[EVENTS_MAX];
	const int count = epoll_wait(p->epoll, ready, EVENTS_MAX, 0);
	if (p->mailbox)
		ky_mailbox_collect(p->mailbox, take_letter, p);
	for (int i = 0; i < count; i++) {
		const uint64_t what = ready[i].data.u64;
		struct ky_process *const process = what == OF_TIMER || what == OF_MAILBOX
							   ? NULL
							   : ky_processes_get(p, (pid_t)what);
		/* A letter may have brought another process of that number since then. */
		if (process && process->pidfd >= 0 && ky_pidfd_ended(process->pidfd))
			ky_processes_end(p, process);
	}
}

void ky_processes_round(struct ky_process_list *p)
{
	raise_limit(p);
	for (uint32_t i = 0; i < p->count; i++)
		if (p->table[i]->pidfd >= 0)
			ky_processes_announce(p, p->table[i]);
	take_events(p);
	ky_processes_scan(p);
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
