/* SPDX-License-Identifier: MIT */
/*
 * crash_stack.h: the call stack of a stopped thread as text, one line for each frame, innermost
 * first.
 *
 *   skip_blanks (http.c:31, inlined)
 *   parse_header(char const*) (http.c:112)
 *   main (server.c:40)
 *   0x7f31c2029d90 (libc.so.6)
 */
#ifndef KY_CAPTURE_CRASH_STACK_H
#define KY_CAPTURE_CRASH_STACK_H

#include <stddef.h>
#include <sys/types.h>

#define KY_CRASH_STACK_BYTES 8192

/*
 * Write the stack of a thread that the calling thread stopped by ptrace. Return the number of
 * frames; with 0 the text is empty. Frames are bounded in number and, between two of them, in time:
 * a program's debug information may be gigabytes.
 */
int ky_crash_stack(pid_t pid, pid_t tid, char text[KY_CRASH_STACK_BYTES]);

#endif
