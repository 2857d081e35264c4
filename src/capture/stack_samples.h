/* SPDX-License-Identifier: MIT */
/*
 * stack_samples.h: sampled call stacks, through perf_event_open: the CPU clock, user and kernel
 * frames.
 *
 * Records of the kernel's rings go as they are into a stream of the bundle (KY_KYMO_STREAM_PERF:
 * perf.data as it goes through a pipe, which the reader of perf.data reads). Times are
 * CLOCK_MONOTONIC. At the end, while the programs still exist, the addresses seen get their names,
 * files, lines and inlined functions in a stream of their own (KY_KYMO_STREAM_SYMBOLS), so that the
 * file can be read elsewhere.
 *
 *   whole machine   an event for each CPU
 *   processes       an event for each thread and CPU, inherited by new threads and children
 *
 * Without the right to see the kernel (perf_event_paranoid), its frames are left out, and the facts
 * say so.
 */
#ifndef KY_CAPTURE_STACK_SAMPLES_H
#define KY_CAPTURE_STACK_SAMPLES_H

#include "capture/bundle.h"

#include <sys/types.h>

struct ky_stack_samples;

struct ky_stack_samples_options {
	struct ky_bundle *bundle;
	uint32_t per_second;
	bool all; /* the whole machine; else the processes added */
	bool flight;
	uint64_t before_ns;
};

int ky_stack_samples_open(struct ky_stack_samples **samples,
			  const struct ky_stack_samples_options *options,
			  char message[KY_MESSAGE_BYTES]);
/* Read the last records and write the symbols. */
void ky_stack_samples_close(struct ky_stack_samples **samples);
/*
 * Sample a process with all its threads from now on. before_exec: it is a child that has not run
 * its program yet, and is sampled from its exec on. Return 0, or -errno with a message.
 */
int ky_stack_samples_add(struct ky_stack_samples *samples, pid_t pid, bool before_exec,
			 char message[KY_MESSAGE_BYTES]);

int ky_stack_samples_fd(const struct ky_stack_samples *samples); /* to poll: half a ring is full */
void ky_stack_samples_round(struct ky_stack_samples *samples, bool all);
void ky_stack_samples_window(struct ky_stack_samples *samples, uint64_t from_ns, uint64_t to_ns);
struct ky_stack_samples_facts {
	uint64_t samples;
	uint64_t lost;
	bool kernel_hidden;
};
void ky_stack_samples_facts(const struct ky_stack_samples *samples,
			    struct ky_stack_samples_facts *facts);

#endif
