/* SPDX-License-Identifier: MIT */
/*
 * process_identity.h: who holds a recorder's slot in a drum, and whether that process still lives. A
 * pid says that only together with the process's start, since pids are used again, and only in the
 * namespaces where both were read: another's cannot be judged from here.
 */
#ifndef KY_CAPTURE_PROCESS_IDENTITY_H
#define KY_CAPTURE_PROCESS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct ky_recorder_life {
	uint32_t pid;
	uint64_t started_ns; /* since boot; 0: unknown */
	uint64_t namespaces; /* of pids and of time; 0: unknown */
};

/* Return the identity of this process. */
struct ky_recorder_life ky_recorder_life_own(void);
/* Report whether it is certain that the process is gone. own is this process's. */
bool ky_recorder_life_is_over(const struct ky_recorder_life *life,
			      const struct ky_recorder_life *own);

#endif
