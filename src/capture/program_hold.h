/* SPDX-License-Identifier: MIT */
/*
 * program_hold.h: a program that was just started, stopped before its first instruction.
 *
 * At its entry point the loader has mapped all libraries that it is linked with, and nothing has run but what these do
 * when they are loaded (constructors): so a probe on a function of a library, and the watch for a crash, can be set before
 * the program begins. The way there is traced with a breakpoint; then the program is let go by the tracer and stopped with
 * SIGSTOP, so that another may trace it. Should kymo be killed then, the kernel lets the program go on.
 */
#ifndef KY_CAPTURE_PROGRAM_HOLD_H
#define KY_CAPTURE_PROGRAM_HOLD_H

#include <sys/types.h>

/* In the child, before exec. */
void ky_program_hold_prepare(void);
/* A child of this thread that has not called exec yet. 0 or -errno: then the rest is not to be called. */
int ky_program_hold_begin(pid_t pid);
/*
 * After it may call exec. 1: it is stopped at the program's entry point. 0: it runs, unstopped. -ECHILD: it ended, and
 * *status is as waitpid() has it.
 */
int ky_program_hold_at_entry(pid_t pid, int *status);
/* Lets it run. */
void ky_program_hold_end(pid_t pid);

#endif
