/* SPDX-License-Identifier: MIT */
/*
 * kernel_trace.h: the kernel's own events, through ftrace.
 *
 * A capture has an instance of its own in tracefs (instances/kymo-PID-START-NAMESPACE), with the clock set to
 * "boot", so that its times are those of the drums. Pages of per_cpu/cpuN/trace_pipe_raw go as they
 * are into a stream of the bundle (KY_KYMO_STREAM_FTRACE: an archive of a copy of tracefs, which
 * the reader of ftrace-pages reads). The instance is removed at the end; one that a killed kymo
 * left is removed by the next kymo.
 *
 * flight: pages wait in memory, those older than before_ns are dropped, and
 * ky_kernel_trace_window() writes them.
 */
#ifndef KY_CAPTURE_KERNEL_TRACE_H
#define KY_CAPTURE_KERNEL_TRACE_H

#include "base/fail.h"
#include "capture/bundle.h"

#include <sys/types.h>

struct ky_kernel_trace;

struct ky_kernel_trace_options {
	struct ky_bundle *bundle;
	/* "sched" is the default set: switch, waking, new tasks, exits, renames. "syscalls": all raw system calls. "print":
	 * what programs write to trace_marker. Else SYSTEM:EVENT, SYSTEM, or a glob of either. */
	const char *const *events;
	uint32_t events_count;
	uint64_t buffer_bytes; /* per CPU; 0: 4 MiB */
	bool flight;
	uint64_t before_ns;
	/* Only these processes and their children (set_event_pid, event-fork); NULL: all. */
	const pid_t *pids;
	uint32_t pids_count;
};

/*
 * Return 0, or -errno with one line: what is missing and the remedy; the rest of the capture continues without. The
 * message is empty on success, unless something that was requested is missing ("print" on an old kernel).
 */
int ky_kernel_trace_open(struct ky_kernel_trace **trace,
			 const struct ky_kernel_trace_options *options,
			 char message[KY_MESSAGE_BYTES]);
/* Take the last pages and remove the instance. */
void ky_kernel_trace_close(struct ky_kernel_trace **trace);
/* Add a process to those that are recorded (with pids). */
void ky_kernel_trace_add(struct ky_kernel_trace *trace, pid_t pid);

int ky_kernel_trace_fd(const struct ky_kernel_trace *trace); /* to poll: pages are ready */
void ky_kernel_trace_round(struct ky_kernel_trace *trace, bool all);
void ky_kernel_trace_window(struct ky_kernel_trace *trace, uint64_t from_ns, uint64_t to_ns);
struct ky_kernel_trace_facts {
	uint64_t pages;
	uint64_t lost;   /* events that the kernel overwrote before they were read */
	uint32_t events; /* tracepoints that are on */
};
void ky_kernel_trace_facts(const struct ky_kernel_trace *trace,
			   struct ky_kernel_trace_facts *facts);

/* ---- the instance of a capture ---- */

struct tracefs_instance;

/* Write a value to a file of it. Return 0, or -errno with a message, which may be NULL. */
int ky_kernel_trace_set(struct tracefs_instance *instance, const char *file, const char *value,
			char message[KY_MESSAGE_BYTES]);
/* Remove the instances that killed kymos left; return how many. */
uint32_t ky_kernel_trace_clean(void);
/* Count them, for `kymo doctor`, which removes nothing. */
uint32_t ky_kernel_trace_left_over(void);

#endif
