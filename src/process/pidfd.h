/* SPDX-License-Identifier: MIT */
/* pidfd.h: a hold on a process: unlike its pid, its pidfd never means another one. */
#ifndef KY_PROCESS_PIDFD_H
#define KY_PROCESS_PIDFD_H

#include <stdbool.h>
#include <sys/types.h>

/* -errno on failure: -ESRCH, -EINVAL when it is a mere thread. */
int ky_pidfd_open(pid_t pid);
/* Report whether the process has ended, with all its threads. */
bool ky_pidfd_ended(int pidfd);
/* Report whether the process has been waited for, so that its pid may be another's. A zombie has not. */
bool ky_pidfd_reaped(int pidfd);
/* Return how it ended, as waitpid() has it; -1: unknown. pid is its number. */
int ky_pidfd_status(int pidfd, pid_t pid);

#endif
