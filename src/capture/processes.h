/* SPDX-License-Identifier: MIT */
/*
 * processes.h: which processes a capture is about, and how it learns of their drums.
 *
 *   run      the mailbox: a program started with KYMO_DRUM_MAIL hands over a descriptor of its drum when it makes it,
 *            and so does each of its children: also one that lives for a millisecond. Children that cannot
 *            are found as by attach
 *   attach   the processes given; with follow their children too
 *   record   all processes that this user may look into
 *
 * Of the latter two the kernel reports forks and new drums at once (process_news.h), and each is then looked for in /proc; a
 * program that is gone by then is counted. Where the kernel does not report to this user, new numbers of processes are looked
 * at every few milliseconds.
 *
 * A process is a pidfd: the end of one is noticed, and its number is never mistaken for another's. With KY_PROCESSES_ALL
 * a process appears when it has a drum; all others are mere numbers, for there may be thousands.
 *
 * /proc is only looked at as far as something can be new there, and the more that costs, the less often: a twentieth of a
 * CPU at most. A process may make a drum at any time, and exec gives it another: it is looked at again and again, at
 * intervals that grow to a second.
 */
#ifndef KY_CAPTURE_PROCESSES_H
#define KY_CAPTURE_PROCESSES_H

#include "capture/bundle.h"
#include "process/proc.h"

#include <sys/types.h>

struct ky_process_list;

enum ky_processes_scope {
	KY_PROCESSES_GIVEN,    /* those added */
	KY_PROCESSES_CHILDREN, /* and what comes from them */
	KY_PROCESSES_ALL
};

/*
 * What ky_processes_round() alone calls back with: appeared once, then its drums, then that it ended. drum: fd is closed
 * after the call. ended: status as waitpid() has it, -1: unknown; nobody has to wait for it before. Members may be NULL.
 */
struct ky_processes_events {
	void (*appeared)(void *context, pid_t pid);
	void (*drum)(void *context, pid_t pid, int fd);
	void (*ended)(void *context, pid_t pid, int status);
	void *context;
};

int ky_processes_open(struct ky_process_list **processes, enum ky_processes_scope scope,
		      const struct ky_processes_events *events);
void ky_processes_close(struct ky_process_list **processes);

/* Follow a process; one that is there already stays (the end of an earlier one of that number is reported first). 0; -ESRCH, -EACCES ... with a message. */
int ky_processes_add(struct ky_process_list *processes, pid_t pid, char message[KY_MESSAGE_BYTES]);
/* Opens the mailbox; its name for KYMO_DRUM_MAIL is valid as long as processes is. NULL and errno on failure. */
const char *ky_processes_mailbox(struct ky_process_list *processes);

/* Have the kernel report new processes and drums, before any is added. Return 0, or -errno: /proc has to do. */
int ky_processes_listen(struct ky_process_list *processes);
/* A drum in these processes that is not their own: one that kymo made. */
void ky_processes_know(struct ky_process_list *processes, int fd);

/* A descriptor to poll: readable when ky_processes_round() has something to do at once, or is due to look into /proc. */
int ky_processes_fd(const struct ky_process_list *processes);
/* Looks for what is new, in the mailbox, among the pidfds and (every few milliseconds) in /proc. The first is complete. */
void ky_processes_round(struct ky_process_list *processes);
/* How many are alive; and each. */
uint32_t ky_processes_count(const struct ky_process_list *processes);
pid_t ky_processes_pid(const struct ky_process_list *processes, uint32_t index);

struct ky_processes_facts {
	uint32_t hidden; /* that this user may not look into, now */
	uint32_t
		crowded; /* whose user has so many descriptors that looking into all takes too long */
	uint64_t letters; /* drums that came through the mailbox */
	uint64_t refused; /* and what was no drum */
	uint64_t
		missed; /* drums that the kernel reported, of processes that were gone before they were found */
	uint64_t
		unseen; /* numbers of processes or threads that came and went unseen; reports that the kernel lost */
	bool mailbox_overflow; /* it was full once: drums of children that lived shortly may be missing */
};
void ky_processes_facts(const struct ky_process_list *processes, struct ky_processes_facts *facts);

/*
 * Append the processes that `-p` names: by a number; by a name as in /proc/PID/comm or of the program's file; or, if no
 * process has it, by the name that a process gave itself. Return 0,
 * -ESRCH with a message that lists those there are, or -ECHILD with a message: it is a zombie.
 */
int ky_processes_find(const char *text, struct ky_pids *pids, char message[KY_MESSAGE_BYTES]);

#endif
