/* SPDX-License-Identifier: MIT */
/*
 * off_cpu.h: the times when the threads of processes were off the CPU: perf's context-switch records, as spans "off
 * CPU" in a drum of kymo's own, beside the function calls. Ordinary users may use it on their own processes.
 */
#ifndef KY_FUNCTRACE_OFF_CPU_H
#define KY_FUNCTRACE_OFF_CPU_H

#include "functrace/functions.h"
#include "process/perf_record.h"

struct ky_off_cpu;
int ky_off_cpu_open(struct ky_off_cpu **switches, const struct ky_functrace_options *options,
		    char message[KY_MESSAGE_BYTES]);
/* Watch a process, with its present and future threads. */
int ky_off_cpu_add(struct ky_off_cpu *switches, pid_t pid, char message[KY_MESSAGE_BYTES]);
void ky_off_cpu_round(struct ky_off_cpu *switches);
/* Return a process that has executed another program since the last call; 0: no more. */
pid_t ky_off_cpu_executed(struct ky_off_cpu *switches);
/* Return a process that has ended since; 0: no more. */
pid_t ky_off_cpu_ended(struct ky_off_cpu *switches);
void ky_off_cpu_close(struct ky_off_cpu **switches);

/* ---- records ---- */

enum ky_off_cpu_kind {
	KY_OFF_CPU_IN,
	KY_OFF_CPU_PREEMPTED, /* it could have gone on */
	KY_OFF_CPU_WAITING,   /* it had to wait for something */
	KY_OFF_CPU_ENDED,     /* the thread is gone */
	KY_OFF_CPU_EXECUTED,  /* its process runs another program */
};

struct ky_off_cpu_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t order;   /* sorts records of the same time */
	pid_t pid, tid;
	enum ky_off_cpu_kind kind;
};

/* Decode a record about a thread; return false for other records. */
bool ky_off_cpu_parse(struct ky_off_cpu_event *one, const struct ky_perf_record *record);

#endif
