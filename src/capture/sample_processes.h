/* SPDX-License-Identifier: MIT */
/*
 * sample_processes.h: processes, threads, their names and what code they have mapped, kept up to date by perf's own records:
 * what is needed to understand the samples that come. It is written again at the beginning of each file (a rotation) and of
 * what a flight recorder writes.
 *
 * A process that has ended is forgotten two rounds later: until then samples of it may come.
 */
#ifndef KY_CAPTURE_SAMPLE_PROCESSES_H
#define KY_CAPTURE_SAMPLE_PROCESSES_H

#include "capture/sample_modules.h"
#include "process/address_space.h"

struct ky_sample_process {
	uint32_t pid;
	uint32_t threads; /* alive */
	struct ky_address_space space;
	uint32_t ended; /* rounds since its last thread ended, or 0 */
};

struct ky_sample_thread {
	uint32_t pid, tid;
	bool alive;
	char comm[16];
};

struct ky_sample_processes {
	struct ky_sample_modules *modules; /* the owner's */
	struct ky_sample_process *processes;
	uint32_t processes_count, processes_room;
	struct ky_u64_map process_of; /* pid */
	struct ky_sample_thread *threads;
	uint32_t threads_count, threads_room;
	struct ky_u64_map thread_of; /* tid */
};

void ky_sample_processes_free(struct ky_sample_processes *known);
/* Report whether a record is one of those that are taken. */
bool ky_sample_processes_wants(const struct perf_event_header *head);
/* Take a record of the kernel's or of perf_out.h; others are passed over. */
void ky_sample_processes_take(struct ky_sample_processes *known,
			      const struct perf_event_header *head);
/* Forget what has ended. */
void ky_sample_processes_round(struct ky_sample_processes *known);
/* Report whether that process is known and has not ended. */
bool ky_sample_processes_has(const struct ky_sample_processes *known, uint32_t pid);
bool ky_sample_processes_has_thread(const struct ky_sample_processes *known, uint32_t tid);
/* Return what is mapped at an address; NULL: nothing is known. Valid until the next record. */
const struct ky_address_range *ky_sample_processes_find(const struct ky_sample_processes *known,
							uint32_t pid, uint64_t address);
/* Write records that make all of it. */
void ky_sample_processes_tell(const struct ky_sample_processes *known, struct ky_perf_out *out);

#endif
