/* SPDX-License-Identifier: MIT */
/*
 * remote.h: another process, all its threads stopped for a moment by ptrace: its memory, its registers, system calls made by
 * one of its threads. Nothing is loaded into it and no function of it is called: it may be anywhere, also in malloc.
 *
 *   ky_remote_stop()   SEIZE and INTERRUPT every thread, until no new one appears; then wait for all
 *   ...                memory is read and written through /proc/PID/mem, which also writes to code
 *   ky_remote_go()     registers are as they were, or as set; signals that came meanwhile are delivered; DETACH
 *
 * A system call that a thread was in is restarted as after a signal that nobody handles: not seen by the program.
 * Should kymo be killed meanwhile, the kernel detaches and the threads go on: what is written must be right at every moment.
 */
#ifndef KY_FUNCTRACE_REMOTE_H
#define KY_FUNCTRACE_REMOTE_H

#include "functrace/functions.h"

#include <sys/types.h>
#include <sys/user.h>

struct ky_remote_thread {
	pid_t tid;
	struct user_regs_struct
		registers; /* when it was stopped; written back when changed is set */
	bool changed;
};

struct ky_remote {
	pid_t pid;
	int memory; /* /proc/PID/mem */
	struct ky_remote_thread *threads;
	uint32_t count;
	bool stopped;
	uint64_t syscall_at; /* a syscall instruction that is executable there */
	uint64_t gadget;     /* code that makes system calls, see remote_call.c; 0: none yet */
	uint64_t began_ns;   /* of this stop */
	int nice;            /* our own, before it; valid while hurries */
	bool hurries;
	uint64_t stopped_ns; /* how long the last stop was */
	bool sealed; /* it is in a sandbox that may kill it for our system calls: none is made */
};

/*
 * Opens the process's memory; does not stop it. 0; -EPERM with the reason and the remedy (Yama, another user, another
 * tracer and its name), -ESRCH, -ENOEXEC (32 bits), -errno with a message.
 */
int ky_remote_open(struct ky_remote *remote, pid_t pid, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
void ky_remote_close(struct ky_remote *remote);
int ky_remote_stop(struct ky_remote *remote, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Gives the threads the registers that were changed at once: before code is changed that relies on them. 0 or -errno. */
int ky_remote_apply(struct ky_remote *remote);
void ky_remote_go(struct ky_remote *remote);
/*
 * A thread that did not stop in time could not be let go either: it will stop, and stay so, when it comes out of the kernel. To
 * be called now and then, also when nothing is traced any more: lets go of those that have. How many are left.
 */
uint32_t ky_remote_release_late(void);

/* Memory; the process need not be stopped. 0 or -errno; all or nothing is not promised. */
int ky_remote_read(const struct ky_remote *remote, uint64_t address, void *data, size_t bytes);
int ky_remote_write(const struct ky_remote *remote, uint64_t address, const void *data,
		    size_t bytes);
/*
 * A system call made by the first thread; all are stopped. The result, or -errno as the kernel has it. Without a gadget the
 * registers are set for it and put back by kymo, which must not be killed in between: so it is for the call that maps the
 * gadget.
 */
int64_t ky_remote_call(struct ky_remote *remote, long number, const uint64_t arguments[6]);
/* Writes the gadget's code, KY_REMOTE_GADGET_BYTES, to where it may be executed, and uses it from then on. 0 or -errno. */
#define KY_REMOTE_GADGET_BYTES 256u
int ky_remote_set_gadget(struct ky_remote *remote, uint64_t address);
/*
 * The only thread of a program that has just begun has no thread pointer yet (static programs): lets it run until it has. 0
 * or -errno.
 */
int ky_remote_await_thread_pointer(struct ky_remote *remote);

/* Free addresses for bytes, all within 2 GiB of from..to (with a margin), from /proc/PID/maps; 0: none. */
uint64_t ky_remote_find_room(const struct ky_remote *remote, uint64_t from, uint64_t to,
			     uint64_t bytes);

/* ---- between remote*.c ---- */

/* Whether a thread is in a sandbox (seccomp) that may kill it for our system calls. One that kymo is in, too, is not its own. */
bool ky_remote_sandboxed(pid_t tid);
/* Why the process may not be traced, and what to do. */
void ky_remote_refusal(pid_t pid, int error, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Waits for a thread's next stop, whatever it is, in *status. 0; -ESRCH: it has ended; -ETIMEDOUT. */
int ky_remote_wait(pid_t tid, uint64_t timeout_ns, int *status);
/* Brings a thread that is in any stop into a plain one with its registers up to date; signals are delivered on the way. */
int ky_remote_park(struct ky_remote_thread *thread, int signal);

#endif
