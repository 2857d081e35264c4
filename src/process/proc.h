/* SPDX-License-Identifier: MIT */
/*
 * proc.h: what /proc says about processes and threads. All files of /proc/PID are read here, but for maps (proc_maps.h).
 *
 * A pid may belong to another process a moment later: a caller that must be sure holds a pidfd and asks it afterwards. Names are the choice of the process, and may hold blanks, parentheses and newlines.
 */
#ifndef KY_PROCESS_PROC_H
#define KY_PROCESS_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* This process, also where /proc belongs to another pid namespace. */
#define KY_PROC_SELF ((pid_t)-1)

struct ky_proc_stat {
	char name[64];
	char state; /* 'R', 'S', 'Z' ... */
	pid_t parent;
	uint64_t start_ticks; /* since boot */
	uint64_t
		started_ns; /* the same as CLOCK_BOOTTIME, to a hundredth of a second; 0: unknown */
	uint64_t code_start, stack_start, heap_start;
	int exit_code; /* as waitpid() has it; of a zombie */
};
/* Read the stat file of a process, or of its thread unless tid is 0. 0, -ESRCH or another -errno. */
int ky_proc_stat(pid_t pid, pid_t tid, struct ky_proc_stat *stat);
/* Parse the text of a stat file; false when it has another form. */
bool ky_proc_stat_parse(const char *text, struct ky_proc_stat *stat);
/* Report whether a thread in this state has ended. */
static inline bool ky_proc_state_ended(char state)
{
	return state == 'Z' || state == 'X';
}

struct ky_proc_status {
	char state;
	pid_t tgid, parent, tracer;
	pid_t inner_pid, inner_tgid;       /* in the innermost pid namespace; 0: unknown */
	uint32_t user;                     /* the real one */
	uint64_t blocked, ignored, caught; /* signals: bit 0 is signal 1 */
	uint64_t capabilities;             /* the effective ones */
	uint64_t locked_kb;                /* memory that stays in memory (mlock) */
	int seccomp, seccomp_filters;
};
/* Read the status file of a process, or of its thread unless tid is 0. 0, -ESRCH or another -errno. */
int ky_proc_status(pid_t pid, pid_t tid, struct ky_proc_status *status);
/* Take what a line of a status file says. */
void ky_proc_status_line(struct ky_proc_status *status, const char *line);
/* Return the number of a process or thread in its own pid namespace, or pid where that is unknown. */
pid_t ky_proc_inner_pid(pid_t pid);

/*
 * Read the name of a process, or of its thread unless tid is 0, with a blank for each newline in it. Its bytes; -errno,
 * and an empty name.
 */
int ky_proc_comm(pid_t pid, pid_t tid, char *name, size_t room);
/* Return how long a thread of a process has run on CPUs; 0: unknown. */
uint64_t ky_proc_cpu_ns(pid_t pid, pid_t tid);
/* Read the path of the program that a process runs. Its bytes; -errno, and an empty path. */
int ky_proc_exe(pid_t pid, char *path, size_t room);
/* Open a file of /proc/PID. A descriptor, -ESRCH or another -errno. */
int ky_proc_open(pid_t pid, const char *file, int flags);
/* Return the number in a file of /proc/sys; INT32_MAX when it cannot be read. */
int ky_proc_setting(const char *path);

/* What the kernel told the program at its start. */
struct ky_proc_aux {
	uint64_t key; /* AT_ENTRY ... */
	uint64_t value;
};
#define KY_PROC_AUX_MAX 64u
/* Read the auxiliary vector of a process. How many entries there are; 0 when it cannot be read. */
uint32_t ky_proc_auxv(pid_t pid, struct ky_proc_aux vector[KY_PROC_AUX_MAX]);
/* Return the value of an entry; 0 when there is none. */
uint64_t ky_proc_aux_value(pid_t pid, uint64_t key);

/* ---- lists ---- */

/*
 * Open the list of all processes, of a process's threads, of its descriptors (as its thread has them, unless tid is 0).
 * NULL with errno set, which is ESRCH when there is no such process.
 */
DIR *ky_proc_processes(void);
DIR *ky_proc_tasks(pid_t pid);
DIR *ky_proc_fds(pid_t pid, pid_t tid);
/* Return the next number of the list; -1 at its end. list may be NULL: it is empty. */
int ky_proc_next(DIR *list);
/* Close the list; NULL is allowed. */
void ky_proc_close(DIR *list);

struct ky_pids {
	pid_t *at;
	uint32_t count;
	uint32_t room;
};
/* 0 or -ENOMEM. */
int ky_pids_add(struct ky_pids *pids, pid_t pid);
void ky_pids_free(struct ky_pids *pids);

/* Append all processes, in ascending order. 0 or -errno. */
int ky_proc_all(struct ky_pids *pids);
/* Append the children of all threads of a process. 0; -ENOTSUP: this kernel has no such list; -ESRCH ... */
int ky_proc_children(pid_t pid, struct ky_pids *pids);
/* Return the newest process or thread of all: while it is the same, there are no new processes. 0: unknown. */
uint32_t ky_proc_newest(void);
/* Return how many descriptors the process has; -1: this kernel does not say, or not to this user. */
int64_t ky_proc_descriptors(pid_t pid);

/* ---- pidfds: unlike its pid, the pidfd of a process never means another one ---- */

/* -errno on failure: -ESRCH, -EINVAL when it is a mere thread. */
int ky_proc_pidfd(pid_t pid);
/* Report whether the process has ended, with all its threads. */
bool ky_proc_pidfd_ended(int pidfd);
/* Report whether the process has been waited for, so that its pid may be another's. A zombie has not. */
bool ky_proc_pidfd_reaped(int pidfd);
/*
 * Report whether they are of two processes for certain. Before Linux 6.9 all pidfds have one inode, and this is false.
 */
bool ky_proc_pidfd_differs(int pidfd, int other);
/* Return how it ended, as waitpid() has it; -1: unknown. pid is its number. */
int ky_proc_pidfd_status(int pidfd, pid_t pid);

/*
 * Do as waitpid(), for tid or, with 0, any traced thread: return the one that has stopped or ended; 0: none; -1: there are
 * none. The stop of a thread that is to get a signal is not taken, only looked at: if kymo is killed after it has taken
 * it, the signal is lost. The end of those that leaves_end, which may be NULL, picks is left to others; *status is 0.
 */
pid_t ky_proc_next_stop(pid_t tid, bool (*leaves_end)(pid_t tid), int *status);

#endif
