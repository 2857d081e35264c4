/* SPDX-License-Identifier: MIT */
/*
 * remote.h: another process, with all its threads stopped for a moment by ptrace: its memory, its registers, system
 * calls made by one of its threads. Nothing is loaded into it and none of its functions is called: it may be stopped
 * anywhere, even in malloc.
 *
 *   ky_remote_stop()   SEIZE and INTERRUPT every thread, until no new one appears; then wait for all
 *   ...                memory is read and written through /proc/PID/mem, which also writes to code
 *   ky_remote_go()     registers are as they were, or as set; signals that came in between are delivered; DETACH
 *
 * A system call that a thread was in is restarted as after a signal without a handler: the program does not see it.
 * If kymo is killed in between, the kernel detaches and the threads go on: what is written must be right at every
 * moment.
 */
#ifndef KY_FUNCTRACE_REMOTE_H
#define KY_FUNCTRACE_REMOTE_H

#include "functrace/functions.h"

#include <sys/types.h>
#include <sys/user.h>

struct ky_remote_thread {
	pid_t tid;
	/* at the stop; written back when changed is set */
	struct user_regs_struct registers;
	bool changed;
};

struct ky_remote {
	pid_t pid;
	int memory; /* /proc/PID/mem */
	struct ky_remote_thread *threads;
	uint32_t count, room;
	bool stopped;
	uint64_t gadget;   /* the syscall gadget, see remote_call.c; 0: none yet */
	uint64_t began_ns; /* start of this stop */
	int nice;          /* our own, before it; valid while hurries */
	bool hurries;
	uint64_t stopped_ns; /* duration of the last stop */
	bool sealed; /* it is in a sandbox that may kill it for our system calls: make none */
};

/*
 * Open the process's memory without stopping it. Return 0; -EPERM with the reason and the remedy (Yama, another user,
 * another tracer and its name), -ESRCH, -ENOEXEC (32 bits), or -errno with a message.
 */
int ky_remote_open(struct ky_remote *remote, pid_t pid, char message[KY_MESSAGE_BYTES]);
void ky_remote_close(struct ky_remote *remote);
int ky_remote_stop(struct ky_remote *remote, char message[KY_MESSAGE_BYTES]);
/*
 * Give the threads the registers that were changed at once: before code is changed that relies on them. Return 0 or
 * -errno.
 */
int ky_remote_apply(struct ky_remote *remote);
void ky_remote_go(struct ky_remote *remote);
/*
 * Let go of threads that did not stop in time. Such a thread could not be let go then either: it stops, and stays so,
 * when it comes out of the kernel. Call this now and then, even when nothing is traced any more. Return how many are
 * left.
 */
uint32_t ky_remote_release_late(void);

/*
 * Read or write memory; the process need not be stopped. Return 0 or -errno; a part may have been copied on an error.
 */
int ky_remote_read(const struct ky_remote *remote, uint64_t address, void *data, size_t bytes);
int ky_remote_write(const struct ky_remote *remote, uint64_t address, const void *data,
		    size_t bytes);
/*
 * Make a system call in the first thread, while all are stopped. Return its result, or -errno as the kernel has it.
 * Without a gadget, one is put at the end of some code for as long as the call takes: this is used for the call that
 * maps the gadget.
 */
int64_t ky_remote_call(struct ky_remote *remote, long number, const uint64_t arguments[6]);
/*
 * Write the code of the syscall gadget, KY_REMOTE_GADGET_BYTES, to executable memory, and use it from then on. Return 0
 * or -errno.
 */
#define KY_REMOTE_GADGET_BYTES 256u
int ky_remote_set_gadget(struct ky_remote *remote, uint64_t address);
/*
 * Run the only thread of a program that has just started until it has a thread pointer (static programs). Return 0 or
 * -errno.
 */
int ky_remote_await_thread_pointer(struct ky_remote *remote);

/* Return free addresses for bytes, all within 2 GiB of from..to (with a margin), from /proc/PID/maps; 0: none. */
uint64_t ky_remote_find_room(const struct ky_remote *remote, uint64_t from, uint64_t to,
			     uint64_t bytes);

/*
 * Take a memfd that a call has just made there, by its number: any process that shares the descriptors may have put
 * another file in its place. Return a descriptor of an empty memfd that nobody has named or sealed; -EPERM when it is
 * something else; or -errno.
 */
int ky_remote_take_memfd(const struct ky_remote *remote, int number);

/* ---- shared by remote*.c ---- */

/*
 * Report whether a thread is in a sandbox (seccomp) that may kill it for our system calls. A sandbox that kymo is in,
 * too, does not count.
 */
bool ky_remote_sandboxed(pid_t tid);
/* Write why the process may not be traced, and what to do, to message. */
void ky_remote_refusal(pid_t pid, int error, char message[KY_MESSAGE_BYTES]);
/* Wait for a thread's next stop, of any kind, in *status. Return 0; -ESRCH: it has ended; -ETIMEDOUT. */
int ky_remote_wait(pid_t tid, uint64_t timeout_ns, int *status);
/* Bring a thread that is in any stop into a plain one with its registers up to date, and deliver signals on the way. */
int ky_remote_park(struct ky_remote_thread *thread, int signal);

#endif
