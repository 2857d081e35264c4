/* SPDX-License-Identifier: MIT */
/*
 * pt_parts.h: struct ky_pt from inside, for the files that each do one thing with it.
 *
 *   ky_pt ─▶ traced ─▶ traced ─▶ NULL            a process each
 *               └ threads[]: an event and its rings each (pt_thread.h)
 */
#ifndef KY_FUNCTRACE_PT_PARTS_H
#define KY_FUNCTRACE_PT_PARTS_H

#include "functrace/pt.h"
#include "functrace/pt_process.h"
#include "functrace/pt_thread.h"

struct ky_pt_traced {
	struct ky_pt_traced *next;
	struct ky_pt_process process;
	struct ky_pt_thread *threads;
	uint32_t count, room;
	bool ended;
	bool look; /* something was mapped */
};

struct ky_pt {
	struct ky_pt_options options;
	struct ky_pt_machine machine;
	struct ky_pt_traced *first;
	uint64_t aux_bytes; /* of each thread */
	uint64_t aux_all;   /* of all, now */
	bool said_threads, said_lost, said_time, said_memory;
};

/* Once: what happens to one thread happens to many. */
void ky_pt_note_once(const struct ky_pt *pt, bool *said, const char *line);

/* ---- pt_threads.c ---- */

/* Threads that have no event yet get one. The error of the first that could not and is not gone. */
int ky_pt_threads_scan(struct ky_pt *pt, struct ky_pt_traced *traced);
void ky_pt_threads_drop(struct ky_pt *pt, struct ky_pt_traced *traced, uint32_t index);
/* What was mapped, threads that have ended. */
void ky_pt_threads_records(struct ky_pt *pt, struct ky_pt_traced *traced);

/* ---- pt_windows.c ---- */

/* Of all threads, as of the same moment. */
void ky_pt_windows_copy(struct ky_pt *pt, struct ky_pt_traced *traced);
/* Decodes what was copied of a thread. */
void ky_pt_windows_tell(struct ky_pt *pt, struct ky_pt_traced *traced, struct ky_pt_thread *thread);

#endif
