/* SPDX-License-Identifier: MIT */
/*
 * processes.c: see processes.h. The table of processes, how they end, and what the mailbox and the kernel bring;
 * processes_look.c looks into /proc.
 *
 * Order. What a process sent before it ended is in the mailbox when poll() reports its end. So ends are asked for first,
 * then the mailbox is emptied, then the ends are reported: a drum comes before the end of its process. A letter from
 * a process that is gone and was never in the table is reported as a whole life: it appeared, its drum, it ended.
 *
 * The kernel's news are read before the mailbox, and acted upon after it: a process whose drum is mapped and that is gone
 * then has sent its letter, or is missed.
 */
#include "capture/processes.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/fail.h"
#include "capture/mailbox.h"
#include "capture/process_news.h"
#include "capture/processes_table.h"

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

#define KNOWN_MAX 1000000u
#define EVENTS_MAX 256
#define OF_TIMER UINT64_MAX
#define OF_MAILBOX (UINT64_MAX - 1)
#define OF_NEWS (UINT64_MAX - 2)
/* A drum that was made this long before its process began belongs to another: the clock is coarse. */
#define GRAIN_NS UINT64_C(20000000)

/* ---- the table ---- */

/* Return the place of the pid in the table, or where it belongs. */
static uint32_t place_of(const struct ky_process_list *p, pid_t pid)
{
	return KY_ARRAY_SEARCH(0, p->count, at, p->table[at]->pid < pid);
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
		/* A child that was forked in between has it too: then closing it alone would not end it. */
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

static void end_process(struct ky_process_list *p, struct ky_process *process)
{
	const pid_t pid = process->pid;
	const int status = ky_proc_pidfd_status(process->pidfd, pid);
	ky_processes_announce(p, process);
	ky_processes_forget(p, process);
	if (p->events.ended)
		p->events.ended(p->events.context, pid, status);
}

/* Report the end of one that is gone. */
static bool has_process(struct ky_process_list *p, pid_t pid)
{
	struct ky_process *const process = ky_processes_get(p, pid);
	if (!process || process->pidfd < 0 || !ky_proc_pidfd_reaped(process->pidfd))
		return process != NULL;
	end_process(p, process);
	return false;
}

/* ---- drums ---- */

static uint64_t identity(int fd)
{
	struct stat status;
	return fstat(fd, &status) == 0 ? ky_process_news_identity(status.st_dev, status.st_ino) : 0;
}

/* The kernel's news of this drum say nothing new. */
static void know(struct ky_process_list *p, uint64_t file)
{
	bool made;
	if (!p->news)
		return;
	if (p->known.table.count >= KNOWN_MAX)
		ky_u64_map_free(&p->known);
	(void)ky_u64_map_add(&p->known, file, &made);
}

void ky_processes_know(struct ky_process_list *p, int fd)
{
	know(p, identity(fd));
}

bool ky_processes_knows(const struct ky_process *process, int fd)
{
	const uint64_t file = identity(fd);
	for (uint32_t i = 0; i < KY_PROCESS_DRUMS_KEPT && i < process->drums_count; i++)
		if (process->drums[i] == file)
			return true;
	return false;
}

static void report_drum(struct ky_process_list *p, pid_t pid, int fd)
{
	know(p, identity(fd));
	if (p->events.drum)
		p->events.drum(p->events.context, pid, fd);
}

void ky_processes_hand_over(struct ky_process_list *p, struct ky_process *process, int fd)
{
	if (ky_processes_knows(process, fd) || process->drums_count >= KY_PROCESS_DRUMS_MAX)
		return;
	process->drums[process->drums_count++ % KY_PROCESS_DRUMS_KEPT] = identity(fd);
	ky_processes_announce(p, process);
	report_drum(p, process->pid, fd);
}

#define MS UINT64_C(1000000)
/* News are read this long after the last ones; a drum that was reported is looked for so often. */
#define NEWS_EVERY_NS (2 * MS)
#define MAPPED_TRIES 100u
#define MAPPED_MAX 16384u
/* Of one process: a program that maps more than this without being found has no drums. */
#define MAPPED_A_PROCESS 64u

/* ---- the kernel's news ---- */

static void fork_reported(void *context, pid_t parent, pid_t child)
{
	struct ky_process_list *const p = context;
	const struct ky_process_fork one = {.parent = parent, .child = child};
	if (p->scope == KY_PROCESSES_CHILDREN && p->forks_count < MAPPED_MAX)
		(void)KY_ARRAY_ADD(p->forks, p->forks_count, p->forks_room, one);
}

static void drum_reported(void *context, pid_t pid, uint64_t file)
{
	struct ky_process_list *const p = context;
	const struct ky_process_drum one = {
		.pid = pid, .identity = file, .ours = p->scope == KY_PROCESSES_ALL};
	if (ky_u64_map_find(&p->known, file) || p->mapped_count >= MAPPED_MAX)
		return;
	/* It is mapped part by part, and other programs may look at it. */
	uint32_t same = 0;
	for (uint32_t i = 0; i < p->mapped_count; i++) {
		same += p->mapped[i].pid == pid;
		if (p->mapped[i].identity == file || same == MAPPED_A_PROCESS)
			return;
	}
	(void)KY_ARRAY_ADD(p->mapped, p->mapped_count, p->mapped_room, one);
}

static bool is_ours(const struct ky_process_list *p, pid_t pid)
{
	if (ky_processes_get(p, pid))
		return true;
	for (uint32_t i = 0; i < p->forks_count; i++)
		if (p->forks[i].child == pid && p->forks[i].ours)
			return true;
	return false;
}

/* A child may be gone, and its own children not. */
static void take_fork(struct ky_process_list *p, struct ky_process_fork *one)
{
	one->ours = true;
	const struct ky_process *const known = ky_processes_get(p, one->child);
	/* The end of one that had this number is reported in order; then a scan finds this one. */
	if (known && known->pidfd >= 0 && ky_proc_pidfd_reaped(known->pidfd))
		p->scan_ns = 0;
	const int pidfd = known ? -1 : ky_proc_pidfd(one->child);
	if (pidfd < 0)
		return;
	if (ky_proc_pidfd_ended(pidfd)) {
		close(pidfd);
		return;
	}
	struct ky_process *const process = ky_processes_insert(p, one->child, pidfd);
	if (process)
		ky_processes_announce(p, process);
}

static void take_forks(struct ky_process_list *p)
{
	uint32_t kept = 0;
	for (bool any = true; any;) {
		any = false;
		for (uint32_t i = 0; i < p->forks_count; i++) {
			struct ky_process_fork *const one = &p->forks[i];
			if (one->ours || !is_ours(p, one->parent))
				continue;
			take_fork(p, one);
			any = true;
		}
	}
	for (uint32_t i = 0; i < p->forks_count; i++)
		if (p->forks[i].age++ == 0)
			p->forks[kept++] = p->forks[i];
	p->forks_count = kept;
}

static bool is_gone(const struct ky_process *process, pid_t pid)
{
	struct ky_proc_stat stat;
	if (process && process->pidfd >= 0)
		return ky_proc_pidfd_ended(process->pidfd);
	return ky_proc_stat(pid, 0, &stat) != 0 || stat.state == 'Z';
}

/* Look for a drum that was reported. Return false when it is settled. */
static bool take_mapped(struct ky_process_list *p, struct ky_process_drum *one)
{
	one->ours |= is_ours(p, one->pid);
	if (!one->ours || ky_u64_map_find(&p->known, one->identity))
		return false;
	if (one->gone) {
		p->missed++;
		return false;
	}
	struct ky_process *process = ky_processes_get(p, one->pid);
	/* A look finds all drums of a process. */
	const bool looked = process && process->news_round == p->news_rounds;
	one->gone = !looked && is_gone(process, one->pid);
	if (one->gone)
		return true;
	if (!process && p->scope == KY_PROCESSES_ALL)
		process = ky_processes_insert(p, one->pid, -1);
	if (process && !looked) {
		process->news_round = p->news_rounds;
		(void)ky_processes_look(p, process);
	}
	if (ky_u64_map_find(&p->known, one->identity))
		return false;
	if (++one->tries < MAPPED_TRIES)
		return true;
	/* Another's, which this process only looks at. */
	know(p, one->identity);
	return false;
}

static void read_news(struct ky_process_list *p)
{
	const struct ky_process_news_events events = {
		.forked = fork_reported, .mapped = drum_reported, .context = p};
	const uint64_t now = (uint64_t)ky_clock_monotonic();
	struct epoll_event interest = {.events = EPOLLIN, .data.u64 = OF_NEWS};
	uint64_t lost = 0;
	if (!p->news)
		return;
	if (p->muted && now >= p->news_ns) {
		epoll_ctl(p->epoll, EPOLL_CTL_MOD, ky_process_news_fd(p->news), &interest);
		p->muted = false;
	}
	p->news_ns = p->muted ? p->news_ns : 0;
	const uint64_t count = ky_process_news_take(p->news, &events, &lost);
	if (lost)
		p->scan_ns = p->work_ns = 0;
	p->unseen += lost;
	if (count && !p->muted) {
		interest.events = 0;
		epoll_ctl(p->epoll, EPOLL_CTL_MOD, ky_process_news_fd(p->news), &interest);
		p->muted = true;
		p->news_ns = now + NEWS_EVERY_NS;
	}
}

static void act_on_news(struct ky_process_list *p)
{
	uint32_t kept = 0;
	if (!p->news)
		return;
	take_forks(p);
	p->news_rounds++;
	for (uint32_t i = 0; i < p->mapped_count; i++)
		if (take_mapped(p, &p->mapped[i]))
			p->mapped[kept++] = p->mapped[i];
	p->mapped_count = kept;
	if (kept && !p->news_ns)
		p->news_ns = (uint64_t)ky_clock_monotonic() + NEWS_EVERY_NS / 2;
}

int ky_processes_listen(struct ky_process_list *p)
{
	int error = ky_process_news_open(&p->news, p->scope == KY_PROCESSES_CHILDREN);
	if (!error && p->scope == KY_PROCESSES_ALL && !ky_process_news_of_all(p->news))
		error = -EACCES;
	if (!error)
		error = watch(p, ky_process_news_fd(p->news), OF_NEWS);
	if (error)
		ky_process_news_close(&p->news);
	return error;
}

/* Without news, this process and its children are looked for in /proc. */
static void listen_to(struct ky_process_list *p, pid_t pid)
{
	if (!p->news || ky_process_news_add(p->news, pid) == 0)
		return;
	epoll_ctl(p->epoll, EPOLL_CTL_DEL, ky_process_news_fd(p->news), NULL);
	ky_process_news_close(&p->news);
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

static void report_whole_life(struct ky_process_list *p, const struct ky_letter *letter)
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
	struct ky_process *process = ky_processes_get(p, letter->pid);
	if (process && is_another(process, letter)) {
		end_process(p, process);
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
		ky_processes_hand_over(p, process, letter->fd);
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
		ky_processes_forget(p, p->table[p->count - 1]);
	KY_ARRAY_FREE(p->table, p->room);
	ky_mailbox_close(&p->mailbox);
	ky_process_news_close(&p->news);
	KY_ARRAY_FREE(p->forks, p->forks_room);
	KY_ARRAY_FREE(p->mapped, p->mapped_room);
	ky_u64_map_free(&p->known);
	if (p->timer >= 0)
		close(p->timer);
	if (p->epoll >= 0)
		close(p->epoll);
	free(p);
}

static int refuse(int error, pid_t pid, char *message)
{
	if (error == -ESRCH)
		return ky_fail(message, error,
			       "no process with PID %d; "
			       "'kymo list' shows those that trace",
			       (int)pid);
	if (error == -EINVAL || error == -ENOENT)
		return ky_fail(
			message, -EINVAL,
			"process %d is a thread: use the number of its process (Tgid in /proc/%d/status)",
			(int)pid, (int)pid);
	if (error == -EACCES || error == -EPERM)
		return ky_fail(message, error,
			       "process %d: %s; run as the user of the process, or as root",
			       (int)pid, strerror(-error));
	return ky_fail(message, error, "process %d cannot be followed: %s", (int)pid,
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

int ky_processes_add(struct ky_process_list *p, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	struct ky_process *const number = has_process(p, pid) ? ky_processes_get(p, pid) : NULL;
	if (number && number->pidfd >= 0)
		return 0;
	const int pidfd = pid > 0 ? ky_proc_pidfd(pid) : -ESRCH;
	if (pidfd < 0)
		return refuse(pidfd, pid, message);
	int error = try_access(pid);
	if (error)
		close(pidfd);
	else if (number)
		error = ky_processes_hold(p, number, pidfd);
	else
		error = ky_processes_insert(p, pid, pidfd) ? 0 : -ENOMEM;
	if (!error)
		listen_to(p, pid);
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

/* The order of these matters: see the head. */
static void take_events(struct ky_process_list *p)
{
	struct epoll_event ready[EVENTS_MAX];
	const int count = epoll_wait(p->epoll, ready, EVENTS_MAX, 0);
	read_news(p);
	if (p->mailbox)
		ky_mailbox_collect(p->mailbox, take_letter, p);
	act_on_news(p);
	for (int i = 0; i < count; i++) {
		const uint64_t what = ready[i].data.u64;
		struct ky_process *const process =
			what >= OF_NEWS ? NULL : ky_processes_get(p, (pid_t)what);
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
		.missed = p->missed,
		.unseen = p->unseen,
	};
	for (uint32_t i = 0; i < p->mapped_count; i++)
		facts->missed += p->mapped[i].gone;
	for (uint32_t i = 0; i < p->count; i++) {
		facts->hidden += p->table[i]->hidden;
		facts->crowded += p->table[i]->crowded;
	}
}
