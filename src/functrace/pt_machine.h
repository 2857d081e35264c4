/* SPDX-License-Identifier: MIT */
/*
 * pt_machine.h: the machine's Intel PT, and the event that asks the kernel for it.
 *
 *   /proc/cpuinfo                                      the CPU
 *   /sys/bus/event_source/devices/intel_pt/type        its number among the kernel's event sources: absent, no Intel PT
 *                               .../format/cyc, ...    the meaning of config's bits: "config:1"
 *                               .../caps/psb_cyc, ...  capabilities of this CPU
 *                               .../tsc_art_ratio      the counter's ticks to the crystal's: "176:2"
 */
#ifndef KY_FUNCTRACE_PT_MACHINE_H
#define KY_FUNCTRACE_PT_MACHINE_H

#include "functrace/functions.h"
#include "functrace/pt_decode.h"

#include <linux/perf_event.h>

struct ky_pt_machine {
	char name[96]; /* of the CPU: "AMD EPYC" */
	bool is_virtual;
	bool says_so; /* the CPU has it, even if the kernel does not offer it */
	struct ky_pt_cpu cpu;
	uint32_t type;   /* of the event source; 0: none */
	uint64_t config; /* of the event: with all the times that it can give */
};

/* Read the machine. root is put before the paths: "" except in tests. Return 0; -ENOTSUP with the reason. */
int ky_pt_machine_read(struct ky_pt_machine *machine, const char *root,
		       char why[KY_FUNCTRACE_MESSAGE_BYTES]);
/*
 * Return an event of one thread: its user code, with records of what it maps, makes and when it is off the CPU.
 * Disabled.
 */
struct perf_event_attr ky_pt_machine_event(const struct ky_pt_machine *machine);
/* Call perf_event_open() for a thread on any CPU. Return a descriptor, or -errno. */
int ky_pt_machine_open(const struct ky_pt_machine *machine, int tid);
/* Write why perf_event_open() failed, and what to do. */
void ky_pt_machine_why(int error, char why[KY_FUNCTRACE_MESSAGE_BYTES]);

#endif
