/* SPDX-License-Identifier: MIT */
/*
 * proc_scan.h: what /proc says about processes. Everything here is about a number that may be another process's in the
 * next moment: who must be sure holds a pidfd and asks it afterwards.
 */
#ifndef KY_CAPTURE_PROC_SCAN_H
#define KY_CAPTURE_PROC_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ky_pids {
	pid_t *at;
	uint32_t count;
	uint32_t room;
};
/* 0 or -ENOMEM. */
int ky_pids_add(struct ky_pids *pids, pid_t pid);
void ky_pids_free(struct ky_pids *pids);

struct ky_proc_stat {
	char name[64];
	char state; /* 'R', 'S', 'Z' ... */
	pid_t parent;
	uint64_t started_ns; /* CLOCK_BOOTTIME, to a hundredth of a second */
	int exit_code;       /* as waitpid() has it; of a zombie */
};
/* 0, -ESRCH or another -errno. */
int ky_proc_stat(pid_t pid, struct ky_proc_stat *stat);

/* Appends all processes, in ascending order. 0 or -errno. */
int ky_proc_all(struct ky_pids *pids);
/* Appends the children of all threads of a process. 0; -ENOTSUP: this kernel does not tell; -ESRCH ... */
int ky_proc_children(pid_t pid, struct ky_pids *pids);
/* The newest process or thread of all: while it is the same, there are no new processes. 0: not known. */
uint32_t ky_proc_newest(void);
/* How many descriptors the process has; -1: this kernel does not tell, or not this user. */
int64_t ky_proc_descriptors(pid_t pid);

/* ---- pidfds ---- */

/* -errno on failure: -ESRCH, -EINVAL when it is no process but a thread. */
int ky_pidfd_open(pid_t pid);
/* Whether the process has ended, all its threads. */
bool ky_pidfd_ended(int pidfd);
/* Whether the process has been waited for: its number may be another's. A zombie's is not. */
bool ky_pidfd_reaped(int pidfd);
/* How it ended, as waitpid() has it; -1: not known. pid is its number. */
int ky_pidfd_status(int pidfd, pid_t pid);

#endif
