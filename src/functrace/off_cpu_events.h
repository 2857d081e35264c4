/* SPDX-License-Identifier: MIT */
/*
 * off_cpu_events.h: perf's records of threads that go off and on the CPU, in the order of time.
 *
 *   an event of each thread on each CPU (a dummy that counts nothing, inherited) ─▶ a ring for each CPU ─▶ batch, sorted
 *
 * A thread's records are in the rings of all CPUs that it ran on. A round hands out only records from before its
 * start: a later record may have an earlier one in a ring that was read before. The rest waits.
 */
#ifndef KY_FUNCTRACE_OFF_CPU_EVENTS_H
#define KY_FUNCTRACE_OFF_CPU_EVENTS_H

#include "process/perf_events.h"
#include "process/perf_record.h"

#include <sys/types.h>

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

struct ky_off_cpu_events {
	struct ky_perf_events rings;
	struct ky_perf_set set;
	struct ky_off_cpu_event *batch;
	size_t count, room;
	uint64_t order;
	uint64_t lost; /* records that found a ring full */
};

/* Open the rings. Return 0 or -errno. */
int ky_off_cpu_events_open(struct ky_off_cpu_events *events);
void ky_off_cpu_events_close(struct ky_off_cpu_events *events);
/* Watch the thread, and those that it makes. Return 0 or -errno. */
int ky_off_cpu_events_thread(struct ky_off_cpu_events *events, pid_t tid);
/* Read the rings, and call back for the records from before the call, in order. */
void ky_off_cpu_events_read(struct ky_off_cpu_events *events,
			    void (*take)(void *context, const struct ky_off_cpu_event *one),
			    void *context);

/* Decode a record about a thread; return false for other records. */
bool ky_off_cpu_events_parse(struct ky_off_cpu_event *one, const struct ky_perf_record *record);

#endif
