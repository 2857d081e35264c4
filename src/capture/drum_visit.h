/* SPDX-License-Identifier: MIT */
/*
 * drum_visit.h: opening the drums of a running process, among its open descriptors (/proc/PID/fd). The kernel decides who
 * may look: whoever might trace the process with ptrace.
 */
#ifndef KY_CAPTURE_DRUM_VISIT_H
#define KY_CAPTURE_DRUM_VISIT_H

#include <stdbool.h>
#include <sys/types.h>

/* A drum of the process's own, for reading and, where that is allowed, for writing; closed after the call. Not 0 ends. */
typedef int (*ky_drum_visit_fn)(void *context, int fd);
/*
 * Visits the process's own drums, not those that it inherited. The number of them; or -ESRCH, -EACCES ... when it may not be
 * looked into. The pid is not held: who must be sure that it did not become another's meanwhile, asks a pidfd afterwards.
 */
int ky_drum_visit(pid_t pid, ky_drum_visit_fn visit, void *context);

/* Whether a descriptor of this process, that somebody sent, is a drum: by its name, its kind and its magic. */
bool ky_drum_visit_check(int fd);

#endif
