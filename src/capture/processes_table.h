/* SPDX-License-Identifier: MIT */
/* processes_table.h: the table of processes, shared by processes.c and processes_look.c. */
#ifndef KY_CAPTURE_PROCESSES_TABLE_H
#define KY_CAPTURE_PROCESSES_TABLE_H

#include "base/map.h"
#include "capture/process_users.h"
#include "capture/processes.h"

struct ky_mailbox;
struct ky_process_news;

/* Drums of one process: how many are remembered, and how many are taken (each exec makes one). */
#define KY_PROCESS_DRUMS_KEPT 8u
#define KY_PROCESS_DRUMS_MAX 65536u

struct ky_process {
	pid_t pid;
	int pidfd; /* -1: a mere number (KY_PROCESSES_ALL) */
	bool appeared;
	bool hidden;           /* this user may not inspect it */
	bool crowded;          /* looking into it must wait: its user's processes take too long */
	uint32_t news_round;   /* the last round in which it was looked at because of news */
	uint32_t seen;         /* the last scan that saw it */
	uint64_t look_ns;      /* when to look for drums next */
	uint64_t interval_ns;  /* how long after that again */
	int64_t descriptors;   /* that it had when it was looked at */
	uint32_t looks_spared; /* since then, because it had as many */
	uint32_t drums_count;  /* ever */
	uint64_t drums[KY_PROCESS_DRUMS_KEPT];
};

/* A fork that the kernel reported. */
struct ky_process_fork {
	pid_t parent, child;
	bool ours;    /* it comes from a process in the table */
	uint32_t age; /* in rounds: CPUs report in any order */
};

/* A drum that the kernel reported, and that was not found yet. */
struct ky_process_drum {
	pid_t pid;
	bool ours;
	bool gone; /* the process is: its letter may still come */
	uint32_t tries;
	uint64_t identity;
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
	/* the kernel's news; NULL: none */
	struct ky_process_news *news;
	bool muted;       /* they came a moment ago: the next wait until news_ns */
	uint64_t news_ns; /* 0: no hurry */
	struct ky_process_fork *forks;
	uint32_t forks_count, forks_room;
	struct ky_process_drum *mapped;
	uint32_t mapped_count, mapped_room;
	uint32_t news_rounds;
	struct ky_process_users users;
	struct ky_u64_map known; /* identities of drums that need not be looked for */
	uint64_t missed;         /* drums of processes that were gone before they were found */
	uint64_t unseen;         /* numbers that came and went between two looks, without news */
	/* scanning */
	bool complete;       /* there was a first round */
	uint32_t newest;     /* newest process of the machine at the last look */
	uint32_t scans;      /* so far */
	uint64_t scan_ns;    /* when to scan everything */
	uint64_t young_ns;   /* not before: new processes */
	uint64_t work_ns;    /* not before: all */
	uint32_t look_place; /* in the table, where the last round stopped */
};

/* Return the process of that number; NULL: none. */
struct ky_process *ky_processes_get(const struct ky_process_list *p, pid_t pid);
/* Add a process, which takes the pidfd over; -1: a mere number. NULL without memory. */
struct ky_process *ky_processes_insert(struct ky_process_list *p, pid_t pid, int pidfd);
/* Make a process of a number. Takes the pidfd over. Return 0 or -errno. */
int ky_processes_hold(struct ky_process_list *p, struct ky_process *process, int pidfd);
void ky_processes_forget(struct ky_process_list *p, struct ky_process *process);
/* Report that it appeared, once. */
void ky_processes_announce(struct ky_process_list *p, struct ky_process *process);
bool ky_processes_knows(const struct ky_process *process, int fd);
/* Report a drum, unless it is known. */
void ky_processes_hand_over(struct ky_process_list *p, struct ky_process *process, int fd);

/* ---- processes_look.c ---- */

/* Look for drums of a process. Report whether one was new. */
bool ky_processes_look(struct ky_process_list *p, struct ky_process *process);
/* Look for new processes, and for drums of those that are due. */
void ky_processes_scan(struct ky_process_list *p);
/* Return when to do that again. */
uint64_t ky_processes_due(const struct ky_process_list *p);

#endif
