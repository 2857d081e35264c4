/* SPDX-License-Identifier: MIT */
/*
 * drum_find.h: the drums of a running process, among its open descriptors (/proc/PID/fd), and the counter that they have
 * their times of. The kernel decides who may look: those who may trace the process with ptrace.
 *
 * A child has its parent's descriptors until it runs another program, and so the parent's drum: the pid
 * in a drum says whose it is. Processes of one machine share the counter, so a reader of a drum can read the clocks for it.
 */
#ifndef KY_PROCESS_DRUM_FIND_H
#define KY_PROCESS_DRUM_FIND_H

#include "core/event.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Report whether a link of this text names a drum: "/memfd:kymo-drum (deleted)", or ".../kymo-PID.drum". */
bool ky_drum_find_names(const char *link);
/* Report whether a descriptor that was sent to this process is a drum, by its name, kind and magic. */
bool ky_drum_find_check(int fd);

/*
 * Open a descriptor of another process, an entry of its /proc/PID/fd, if it is a regular file (a memfd is one) of this
 * machine to which that process can write: for reading and, where that is wanted and allowed, for writing. Anything else is not
 * even opened: a FIFO or a device could do something or wait, a file system in user space (FUSE) too. Return a descriptor,
 * -EINVAL when it is something else, -errno.
 */
int ky_drum_find_open(int folder, const char *number, bool writable);
/*
 * Report whether the file can be read and mapped without harm: the server of a FUSE file system may be the process itself, and
 * touching a huge page ends the one who does when there is none left.
 */
bool ky_drum_find_is_local(int fd);

/*
 * Called with an open drum of the process, writable where allowed, and closed after the call. A result other than
 * 0 ends the search.
 */
typedef int (*ky_drum_find_fn)(void *context, int fd);
/*
 * Visit the process's own drums. Their number; or -ESRCH, -EACCES ... when it may not be looked into. The pid is
 * not held: a caller that must be sure holds a pidfd and asks it afterwards.
 */
int ky_drum_find(pid_t pid, ky_drum_find_fn visit, void *context);

/* ---- the counter of its drums ---- */

/* Report whether this machine has the counter (enum ky_tick_source). */
bool ky_tick_source_is_here(uint32_t tick_source);
/* Read the counter, and with it the system's clocks. It must be here. */
uint64_t ky_tick_source_ticks(uint32_t tick_source);
struct ky_tick_reading ky_tick_source_now(uint32_t tick_source);

/* Report whether both readings are of one boot of one machine, and in one time namespace. */
bool ky_tick_source_same_boot(const struct ky_tick_reading *then,
			      const struct ky_tick_reading *now);

#endif
