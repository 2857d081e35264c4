/* SPDX-License-Identifier: MIT */
/*
 * program_hold.h: hold a program that was just started before its first instruction.
 *
 * At its entry point the loader has mapped all libraries that it is linked with, and nothing has
 * run but their constructors. So a probe on a function of a library, and the watch for a crash, can
 * be set before the program begins. The way there is traced with a breakpoint; then the tracer
 * releases the program, stopped by SIGSTOP, so that another may trace it. If kymo is killed then,
 * the kernel lets the program continue.
 */
#ifndef KY_CAPTURE_PROGRAM_HOLD_H
#define KY_CAPTURE_PROGRAM_HOLD_H

#include <sys/types.h>

/* Prepare the child, in it, before exec. */
void ky_program_hold_prepare(void);
/*
 * Begin with a child of this thread that has not called exec yet. Return 0, or -errno: then do not
 * call the rest.
 */
int ky_program_hold_begin(pid_t pid);
/*
 * Wait, after it was let go. Return 1 when it is stopped at the program's entry point; 0 when it
 * runs; -ECHILD when it ended, with *status as waitpid() has it.
 */
int ky_program_hold_at_entry(pid_t pid, int *status);
/* Let the program run. */
void ky_program_hold_end(pid_t pid);

#endif
