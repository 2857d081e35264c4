/* SPDX-License-Identifier: MIT */
/*
 * processes_parts.h: what the files of processes.h share: processes.c has the table, the ends and the mailbox;
 * processes_scan.c looks into /proc.
 */
#ifndef KY_CAPTURE_PROCESSES_PARTS_H
#define KY_CAPTURE_PROCESSES_PARTS_H

#include "capture/mailbox.h"
#include "capture/processes.h"

/* Drums of one process: so many are remembered, so many taken at most (each exec makes one). */
#define KY_PROCESS_DRUMS_KEPT 8u
#define KY_PROCESS_DRUMS_MAX 65536u

struct ky_process {
	pid_t pid;
	int pidfd; /* -1: a mere number (KY_PROCESSES_ALL) */
	bool appeared;
	bool hidden;           /* it may not be looked into */
	uint32_t seen;         /* the scan that met it last */
	uint64_t look_ns;      /* when to look for drums next */
	uint64_t interval_ns;  /* how long after that again */
	int64_t descriptors;   /* that it had when it was looked at */
	uint32_t looks_spared; /* since then, for it had as many */
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
	/* processes_scan.c */
	bool complete;       /* there was a first round */
	uint32_t newest;     /* process of the machine at the last scan */
	uint32_t scans;      /* so far */
	uint64_t scan_ns;    /* when to scan whatever newest says */
	uint64_t work_ns;    /* not before */
	uint32_t look_place; /* in the table, where the last round stopped */
};

uint64_t ky_processes_now(void); /* CLOCK_MONOTONIC */
struct ky_process *ky_processes_get(const struct ky_process_list *processes, pid_t pid);
/* Takes the pidfd (-1: a mere number), also on failure. NULL: no memory. */
struct ky_process *ky_processes_insert(struct ky_process_list *processes, pid_t pid, int pidfd);
/* Makes a number a process. 0, or -errno when it is gone. */
int ky_processes_hold(struct ky_process_list *processes, struct ky_process *process, int pidfd);
/* Without a word: of a number. */
void ky_processes_forget(struct ky_process_list *processes, struct ky_process *process);
/* Tells that it ended. */
void ky_processes_end(struct ky_process_list *processes, struct ky_process *process);
/* Whether the table has it. One that was there and whose number is another's by now is ended first. */
bool ky_processes_has(struct ky_process_list *processes, pid_t pid);
void ky_processes_announce(struct ky_process_list *processes, struct ky_process *process);
/* Hands a drum over if it is new; fd stays the caller's. */
void ky_processes_hand(struct ky_process_list *processes, struct ky_process *process, int fd);
bool ky_processes_knows(const struct ky_process *process, int fd);

/* Does what is due in /proc. */
void ky_processes_scan(struct ky_process_list *processes);
/* When that is due again. */
uint64_t ky_processes_due(const struct ky_process_list *processes);

#endif
