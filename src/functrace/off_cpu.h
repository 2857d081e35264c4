/* SPDX-License-Identifier: MIT */
/*
 * off_cpu.h: when the threads of processes were off the CPU: perf's context-switch records, as spans "off CPU" in a drum of
 * kymo's own, beside the function calls. Also an ordinary user's own processes.
 */
#ifndef KY_FUNCTRACE_OFF_CPU_H
#define KY_FUNCTRACE_OFF_CPU_H

#include "functrace/functions.h"

#include <sys/types.h>

struct ky_switches;
struct ky_switches_options {
	uint64_t ring_bytes, total_bytes;
	void (*drum)(void *context, pid_t pid, int fd);
	void *context;
};
int ky_switches_open(struct ky_switches **switches, const struct ky_switches_options *options,
		     char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* With the threads it has and will have. */
int ky_switches_add(struct ky_switches *switches, pid_t pid,
		    char message[KY_FUNCTRACE_MESSAGE_BYTES]);
void ky_switches_round(struct ky_switches *switches);
/* A process that has executed another program since it was asked last; 0: no more. */
pid_t ky_switches_executed(struct ky_switches *switches);
/* A process that has ended since; 0: no more. */
pid_t ky_switches_ended(struct ky_switches *switches);
void ky_switches_close(struct ky_switches **switches);

#endif
