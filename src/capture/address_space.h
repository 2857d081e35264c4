/* SPDX-License-Identifier: MIT */
/*
 * address_space.h: processes, threads, their names and what code they have mapped, kept up to date by perf's own records: what is
 * needed to understand the samples that come. It is told again at the begin of each file (a rotation) and of
 * what a flight recorder writes, and it says which file an address is in.
 *
 * A process that has ended is forgotten two rounds later: until then samples of it may come.
 */
#ifndef KY_CAPTURE_ADDRESS_SPACE_H
#define KY_CAPTURE_ADDRESS_SPACE_H

#include "capture/sample_modules.h"

/* A range of a process's addresses. */
struct ky_sample_range {
	uint64_t start, end, offset;
	uint32_t module;
	uint32_t protection, flags;
};

struct ky_sample_process {
	uint32_t pid;
	uint32_t threads;               /* alive */
	struct ky_sample_range *ranges; /* in order, none over another */
	uint32_t count, room;
	uint32_t ended; /* rounds since its last thread ended, or 0 */
};

struct ky_sample_thread {
	uint32_t pid, tid;
	bool alive;
	char comm[16];
};

struct ky_sample_spaces {
	struct ky_sample_modules *modules; /* the owner's */
	struct ky_sample_process *processes;
	uint32_t processes_count, processes_room;
	struct ky_u64_map process_of; /* pid */
	struct ky_sample_thread *threads;
	uint32_t threads_count, threads_room;
	struct ky_u64_map thread_of; /* tid */
};

void ky_sample_spaces_free(struct ky_sample_spaces *spaces);
/* A record of the kernel's or of perf_records.h; those that say nothing of this are passed over. */
void ky_sample_spaces_take(struct ky_sample_spaces *spaces, const struct perf_event_header *record);
void ky_sample_spaces_round(struct ky_sample_spaces *spaces);
/* Whether that process is known and has not ended. */
bool ky_sample_spaces_has(const struct ky_sample_spaces *spaces, uint32_t pid);
bool ky_sample_spaces_has_thread(const struct ky_sample_spaces *spaces, uint32_t tid);
/* What is mapped at an address; NULL: nothing is known. Until the next record. */
const struct ky_sample_range *ky_sample_spaces_find(const struct ky_sample_spaces *spaces,
						    uint32_t pid, uint64_t address);
/* Writes records that make all of it. */
void ky_sample_spaces_tell(const struct ky_sample_spaces *spaces, struct ky_perf_out *out);

/* Whether a record is one of those that are taken. */
bool ky_sample_spaces_wants(const struct perf_event_header *record);

#endif
