/* SPDX-License-Identifier: MIT */
/*
 * drum_threads.h: the threads of a drum under the numbers that they have here. A process in a pid
 * namespace of its own writes its inner numbers into its drum; kernel events and samples have ours.
 * A thread that ended before it was looked up keeps its inner number; forked children that write
 * into the drum then get a number that no process has (KY_PID_APART). So does a thread or a child that a drum claims to have
 * and that is another process's.
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
	pid_t own_pid;              /* in the drum; differs in a namespace of its own */
	ino_t inode;                /* of the drum */
	struct ky_thread **threads; /* by index */
	uint32_t room;
	uint64_t names_left; /* bytes of names: a file keeps all names that its threads ever had */
	struct ky_drum_number *numbers; /* of the threads at the last look, by tid */
	uint32_t numbers_count, numbers_room;
	uint32_t in_vain; /* files read while looking for threads that do not exist */
};

void ky_drum_threads_open(struct ky_drum_threads *threads, pid_t pid, pid_t own_pid, ino_t inode);
void ky_drum_threads_close(struct ky_drum_threads *threads);
/*
 * Return the thread as we see it, valid until the end; NULL without memory. It has the name given,
 * unless there were too many names.
 */
const struct ky_thread *ky_drum_threads_get(struct ky_drum_threads *threads,
					    const struct ky_thread *thread);

#endif
