/* SPDX-License-Identifier: MIT */
/*
 * drum_find.h: the drums of a running process, among its open descriptors (/proc/PID/fd). The kernel decides who may
 * look: whoever might trace the process with ptrace.
 *
 * A child has its parent's descriptors until it runs another program, and so the parent's drum: a process's own is
 * told by its pid in it.
 */
#ifndef KY_PROCESS_DRUM_FIND_H
#define KY_PROCESS_DRUM_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether a descriptor that links there is a drum: "/memfd:kymo-drum (deleted)", or ".../kymo-PID.drum". */
bool ky_drum_find_names(const char *link);
/* Whether a descriptor of this process, that somebody sent, is a drum: by its name, its kind and its magic. */
bool ky_drum_find_check(int fd);

/* A drum of the process's own, for reading and, where that is allowed, for writing; closed after the call. Not 0 ends. */
typedef int (*ky_drum_find_fn)(void *context, int fd);
/*
 * Visits the process's own drums. The number of them; or -ESRCH, -EACCES ... when it may not be looked into. The pid is not
 * held: who must be sure that it did not become another's meanwhile, asks a pidfd afterwards.
 */
int ky_drum_find(pid_t pid, ky_drum_find_fn visit, void *context);

#endif
