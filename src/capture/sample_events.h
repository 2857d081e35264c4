/* SPDX-License-Identifier: MIT */
/*
 * sample_events.h: the perf events of stack_samples.c: a clock that takes a call stack so many times a second of the CPU's
 * time, on threads or on whole CPUs.
 */
#ifndef KY_CAPTURE_SAMPLE_EVENTS_H
#define KY_CAPTURE_SAMPLE_EVENTS_H

#include "capture/bundle.h"
#include "process/perf_events.h"

#include <sys/types.h>

struct ky_sample_events {
	struct ky_perf_events rings;
	struct ky_perf_set clocks;
};

/* Finds out what is allowed, and makes the rings. 0 or -errno with a message. */
int ky_sample_events_open(struct ky_sample_events *events, uint32_t per_second,
			  char message[KY_CAPTURE_MESSAGE_BYTES]);
void ky_sample_events_close(struct ky_sample_events *events);
/* On that thread and those it makes; after_exec: when it has begun a new program. 0 or -errno. */
int ky_sample_events_thread(struct ky_sample_events *events, pid_t tid, bool after_exec);
/* On everything that runs. 0 or -errno with a message. */
int ky_sample_events_all(struct ky_sample_events *events, char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Write why events of what ("process 12") are unavailable, and what to do. Return error. */
int ky_sample_events_refused(int error, const char *what, char message[KY_CAPTURE_MESSAGE_BYTES]);

#endif
