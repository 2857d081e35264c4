/* SPDX-License-Identifier: MIT */
/*
 * thread_ends.h: when threads ended, or their process went on with another program. The drum of threads off the CPU has it, and
 * is read before the others: a function that never returns (_exit, execve, whatever a killed program was in) lasts until
 * then, not to the end of the trace; and a number of a thread that is used again is another thread's.
 */
#ifndef KY_PROCESS_THREAD_ENDS_H
#define KY_PROCESS_THREAD_ENDS_H

#include <stdbool.h>
#include <stdint.h>

/* What such a drum calls the instant. */
#define KY_THREAD_ENDED "thread ended"

struct ky_thread_end {
	int64_t pid, tid, ns;
};

struct ky_thread_ends {
	struct ky_thread_end *ends; /* by pid, tid and time when they are sorted */
	uint32_t count, room;
};

/* False without memory. */
bool ky_thread_ends_add(struct ky_thread_ends *ends, const struct ky_thread_end *end);
void ky_thread_ends_sort(struct ky_thread_ends *ends);
/* Return the first end of the thread that is not before ns; INT64_MAX: none. */
int64_t ky_thread_ends_after(const struct ky_thread_ends *ends, int64_t pid, int64_t tid,
			     int64_t ns);
void ky_thread_ends_free(struct ky_thread_ends *ends);

#endif
