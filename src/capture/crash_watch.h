/* SPDX-License-Identifier: MIT */
/*
 * crash_watch.h: the crash trigger: which signal ended a process, in which thread, and where that
 * thread was.
 *
 * A process of kymo's own (crash_tracer.h) traces the targets with ptrace (PTRACE_SEIZE, which does
 * not stop them), and their children and threads to come: a signal that will end the process (its
 * action is the default one) stops the thread before it dies, and its stack is read by elfutils.
 * A fault that the program handles itself is a crash when its handler does not come back, and then it is reported as of the fault.
 * All other signals are passed on at once. A process that is traced already (a debugger, strace),
 * or that this user may not trace, is watched by its pidfd alone: then the signal is reported where
 * the kernel reports it, without a stack. SIGKILL never has a stack; the kernel's count of such
 * kills shows whether memory was short.
 *
 * SIGHUP, SIGINT and SIGTERM are not crashes: users end programs with them.
 *
 * The exit status of kymo's own child, when it is traced, comes by waitpid() or its pidfd as always,
 * because the tracer is another process. But it comes when the tracer has seen it, a moment after
 * the pidfd reports the end: a caller that waits with WNOHANG must ask again.
 *
 * Where Yama lets a user trace descendants only (kernel.yama.ptrace_scope = 1), a program that kymo
 * starts must permit it: between fork and exec, prctl(PR_SET_PTRACER,
 * ky_crash_watch_tracer(watch)). A program that gains rights by exec (setuid) does not gain them
 * while an ordinary user's kymo traces it, and no debugger can attach to a program that is watched.
 */
#ifndef KY_CAPTURE_CRASH_WATCH_H
#define KY_CAPTURE_CRASH_WATCH_H

#include "capture/trigger.h"

struct ky_crash_watch;

/*
 * Fork the tracer, before other threads are made. triggers stay the caller's; those of other kinds
 * are ignored. Return 0 or -errno.
 */
int ky_crash_watch_open(struct ky_crash_watch **watch, const struct ky_trigger *triggers,
			uint32_t count, ky_fired_fn fired, void *context);
/* Release all processes. NULL is allowed. */
void ky_crash_watch_close(struct ky_crash_watch **watch);
/*
 * Watch a process. Return 0; -EPERM or -EBUSY (traced by another) with a message when it is watched without a stack;
 * -ESRCH when it is gone. A child of a watched process is watched already, and may be added too.
 */
int ky_crash_watch_add(struct ky_crash_watch *watch, pid_t pid, char message[KY_MESSAGE_BYTES]);
/*
 * Release the process, so that another may trace it, until ky_crash_watch_add(). A crash in between
 * is reported without its stack. Return true when it was traced and no longer is.
 */
bool ky_crash_watch_leave(struct ky_crash_watch *watch, pid_t pid);
/* Note that the process ended with that status (-1: unknown), and fire if it was a signal that was not reported yet. */
void ky_crash_watch_ended(struct ky_crash_watch *watch, pid_t pid, int status);
pid_t ky_crash_watch_tracer(const struct ky_crash_watch *watch);
int ky_crash_watch_fd(const struct ky_crash_watch *watch); /* to poll */
void ky_crash_watch_round(struct ky_crash_watch *watch);   /* fires in the caller's thread */

#endif
