/* SPDX-License-Identifier: MIT */
/*
 * drum_threads.h: the threads of a drum under the numbers that they have here. A process in a pid
 * namespace of its own writes its numbers there into its drum; kernel events and samples have ours.
 * A thread that ended before it was looked for keeps the number that the drum has; forked children that write into it
 * then have one that nobody has (KY_PID_APART).
 */
#ifndef KY_CAPTURE_DRUM_THREADS_H
#define KY_CAPTURE_DRUM_THREADS_H

#include "core/event.h"

#include <sys/types.h>

struct ky_drum_number {
	int32_t tid; /* here */
	int32_t own; /* in its namespace */
};

struct ky_drum_threads {
	pid_t pid;
	pid_t own_pid;              /* in the drum: another in a namespace of its own */
	struct ky_thread **threads; /* by index */
	uint32_t room;
	uint64_t names_left; /* bytes of names: a file keeps all that its threads ever had */
	struct ky_drum_number *numbers; /* of the threads there were at the last look, by tid */
	uint32_t numbers_count, numbers_room;
	uint32_t in_vain; /* files read in looking for threads that are not there */
};

void ky_drum_threads_open(struct ky_drum_threads *threads, pid_t pid, pid_t own_pid);
void ky_drum_threads_close(struct ky_drum_threads *threads);
/*
 * The thread as we see it, valid until the end; NULL without memory. Its name is the one given,
 * unless there were so many that it keeps the one it has.
 */
const struct ky_thread *ky_drum_threads_get(struct ky_drum_threads *threads,
					    const struct ky_thread *thread);

#endif
