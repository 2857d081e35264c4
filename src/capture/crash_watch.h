/* SPDX-License-Identifier: MIT */
/*
 * crash_watch.h: the crash trigger: which signal ended a process, in which thread, and where that
 * thread was.
 *
 * A process of kymo's own (crash_tracer.h) traces the targets with ptrace (PTRACE_SEIZE, which does
 * not stop them), and their children and threads to come: a signal that will end the process (its
 * action is the default one) stops the thread before it dies, and its stack is read by elfutils.
 * All other signals are passed on at once. A process that is traced already (a debugger, strace),
 * or that this user may not trace, is watched by its pidfd alone: then the signal is told where the
 * kernel tells it, without a stack. SIGKILL has no stack either way; whether the kernel was out of
 * memory is told by its count of such kills.
 *
 * SIGHUP, SIGINT and SIGTERM are no crashes: by these people end programs.
 *
 * The exit status of kymo's own child, when it is traced, comes as always: by waitpid() or its
 * pidfd, for the tracer is another process. It just comes when the tracer has seen it, a moment
 * later than the pidfd says that the process ended: who waits with WNOHANG must ask again, or ask
 * ky_crash_watch_status().
 *
 * Where Yama lets a user trace only descendants (kernel.yama.ptrace_scope = 1), a program that kymo
 * starts has to allow it: between fork and exec, prctl(PR_SET_PTRACER,
 * ky_crash_watch_tracer(watch)). A program that gains rights by exec (setuid) does not gain them
 * while an ordinary user's kymo traces it, and no debugger can attach to a program that is watched.
 */
#ifndef KY_CAPTURE_CRASH_WATCH_H
#define KY_CAPTURE_CRASH_WATCH_H

#include "capture/trigger.h"

struct ky_crash_watch;

/* Forks the tracer: before other threads are made. 0 or -errno. */
int ky_crash_watch_open(struct ky_crash_watch **watch, const struct ky_trigger *trigger,
			ky_fired_fn fired, void *context);
/* Lets go of all; they go on as if nothing had been. NULL is allowed. */
void ky_crash_watch_close(struct ky_crash_watch **watch);
/*
 * 0; -EPERM, -EBUSY (traced by another) with a message: it is watched without a stack then. -ESRCH:
 * it is gone. A child of one that is watched is watched already, and may be added all the same.
 */
int ky_crash_watch_add(struct ky_crash_watch *watch, pid_t pid,
		       char message[KY_CAPTURE_MESSAGE_BYTES]);
/*
 * Lets go of the process, so that another may trace it; ky_crash_watch_add() takes it up again. Meanwhile a crash of it is told
 * without its stack. True when it was traced and is no more.
 */
bool ky_crash_watch_leave(struct ky_crash_watch *watch, pid_t pid);
/*
 * The process ended with that status (-1: not known); fires when it was a signal that nobody told
 * of yet.
 */
void ky_crash_watch_ended(struct ky_crash_watch *watch, pid_t pid, int status);
/*
 * How a process that was added ended, as waitpid() has it; false as long as the tracer has not seen
 * it.
 */
bool ky_crash_watch_status(struct ky_crash_watch *watch, pid_t pid, int *status);
pid_t ky_crash_watch_tracer(const struct ky_crash_watch *watch);
int ky_crash_watch_fd(const struct ky_crash_watch *watch); /* to poll */
void ky_crash_watch_round(struct ky_crash_watch *watch);   /* fires in the caller's thread */

#endif
