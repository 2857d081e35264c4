/* SPDX-License-Identifier: MIT */
/*
 * off_cpu_events.h: perf's records of threads that go off and on the CPU, in the order of time.
 *
 *   an event of each thread on each CPU (a dummy that counts nothing, inherited) ─▶ a ring for each CPU ─▶ batch, sorted
 *
 * A thread's records are in the rings of all CPUs that it ran on. What one round finds is only handed out up to the moment
 * when the round began: a later record may have an earlier one in a ring that was looked at before. The rest waits.
 */
#ifndef KY_FUNCTRACE_OFF_CPU_EVENTS_H
#define KY_FUNCTRACE_OFF_CPU_EVENTS_H

#include "functrace/functions.h"
#include "process/perf_record.h"
#include "process/perf_ring.h"

#include <sys/types.h>

enum ky_switch_kind {
	KY_SWITCH_IN,
	KY_SWITCH_PREEMPTED, /* it could have gone on */
	KY_SWITCH_WAITING,   /* it had to wait for something */
	KY_SWITCH_ENDED,     /* the thread is gone */
	KY_SWITCH_EXECUTED,  /* its process runs another program */
};

struct ky_switch {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t order;   /* of what has the same time */
	pid_t pid, tid;
	enum ky_switch_kind kind;
};

struct ky_switch_cpu {
	uint32_t number;
	int fd; /* of the event that the ring is of */
	struct ky_perf_ring ring;
};

struct ky_switch_events {
	struct ky_switch_cpu *cpus;
	uint32_t cpus_count;
	int *fds; /* of threads */
	uint32_t fds_count, fds_room;
	struct ky_switch *batch;
	size_t count, room;
	uint64_t order;
	uint64_t lost; /* records that found a ring full */
};

/* 0, or -errno with a message that says what to do. */
int ky_switch_events_open(struct ky_switch_events *events,
			  char message[KY_FUNCTRACE_MESSAGE_BYTES]);
void ky_switch_events_close(struct ky_switch_events *events);
/* The thread, and what it makes. 0 or -errno. */
int ky_switch_events_thread(struct ky_switch_events *events, pid_t tid);
/* Reads the rings, and calls back for what is before the call, in order. */
void ky_switch_events_read(struct ky_switch_events *events,
			   void (*take)(void *context, const struct ky_switch *one), void *context);
/* Why they cannot be had. Returns error. */
int ky_switch_events_refused(int error, char message[KY_FUNCTRACE_MESSAGE_BYTES]);

/* Take what a record says about a thread; false when it is nothing of this. */
bool ky_switch_parse(struct ky_switch *one, const struct ky_perf_record *record);

#endif
