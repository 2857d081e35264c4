/* SPDX-License-Identifier: MIT */
/*
 * perf_out.h: records of perf.data that the kernel does not write: the head of a stream as it goes through a pipe, and what
 * was there before the recording began. All are of the one event of stack_samples.c, and end as its own records do:
 *
 *   sample   head │ id │ ip │ pid, tid │ time │ cpu │ period │ call chain
 *   others   head │ what it says │ pid, tid │ time │ cpu │ id
 */
#ifndef KY_CAPTURE_PERF_OUT_H
#define KY_CAPTURE_PERF_OUT_H

#include "process/perf_record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define KY_PERF_SAMPLE_TYPE                                                                        \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

/* The beginning of a sample. */
struct ky_perf_sample_head {
	struct perf_event_header head;
	uint64_t id;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, pad;
	uint64_t period;
	uint64_t chain_words; /* they follow */
};

/* The end of all other records. */
struct ky_perf_trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, pad;
	uint64_t id;
};

/* Records, one after the other. */
struct ky_perf_out {
	uint8_t *bytes;
	size_t used;
	size_t room;
	bool failed; /* without memory */
};

void ky_perf_out_free(struct ky_perf_out *out);
void ky_perf_out_add(struct ky_perf_out *out, const void *bytes, size_t count);

/* The thread and time of a record. */
struct ky_perf_who {
	uint32_t pid, tid;
	uint64_t time;
};

/* Write the magic, the event, the machine. */
void ky_perf_out_head(struct ky_perf_out *out, const struct perf_event_attr *attr);
/* Write where the kernel's code begins, which is its symbol _text. */
void ky_perf_out_kernel(struct ky_perf_out *out, uint64_t text);
void ky_perf_out_comm(struct ky_perf_out *out, struct ky_perf_who who, const char *comm);
/* Write a thread of the process. */
void ky_perf_out_thread(struct ky_perf_out *out, struct ky_perf_who who);
void ky_perf_out_mapping(struct ky_perf_out *out, struct ky_perf_who who,
			 const struct ky_proc_mapping *mapping);
/* Write the end of a round: the records before it may be sorted. */
void ky_perf_out_round(struct ky_perf_out *out);

/* ---- processes that run already when sampling begins, from /proc ---- */

/* Write a process's threads, their names, and its executable mappings as far as this user may see them. */
void ky_perf_out_process(struct ky_perf_out *out, pid_t pid, uint64_t time);
/* Write all processes. */
void ky_perf_out_all(struct ky_perf_out *out, uint64_t time);
/* Call back for each thread of a process; return how many. */
uint32_t ky_perf_out_threads(pid_t pid, void (*thread)(void *context, pid_t tid), void *context);
/* Return where the kernel's code begins; 0 when this user may not know. */
uint64_t ky_perf_out_kernel_text(void);

#endif
