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
#include "process/perf_events.h"

#include <linux/perf_event.h>
#include <sys/types.h>

struct ky_pt_machine {
	char name[96]; /* of the CPU: "AMD EPYC" */
	bool is_virtual;
	bool listed_by_cpu; /* the CPU has it, even if the kernel does not offer it */
	struct ky_pt_cpu cpu;
	uint32_t type;   /* of the event source; 0: none */
	uint64_t config; /* of the event: with all the times that it can give */
};

/* Read the machine. root is put before the paths: "" except in tests. Return 0; -ENOTSUP with the reason. */
int ky_pt_machine_read(struct ky_pt_machine *machine, const char *root, char why[KY_MESSAGE_BYTES]);
/*
 * Return an event of one thread: its user code, with records of what it maps, makes and when it is off the CPU.
 * Disabled.
 */
struct perf_event_attr ky_pt_machine_event(const struct ky_pt_machine *machine);
/* Call perf_event_open() for a thread on any CPU. Return a descriptor, or -errno. */
int ky_pt_machine_open(const struct ky_pt_machine *machine, int tid);
/* Write why perf_event_open() failed, and what to do. */
void ky_pt_machine_why(int error, char why[KY_MESSAGE_BYTES]);

/* ---- the event of a thread ---- */

/*
 * An event of Intel PT on a thread, and its rings.
 *
 *   perf_event ─ ring of records (read as it fills) │ AUX ring (mapped for reading alone: the kernel writes over the oldest)
 *
 * Each thread has an event of its own. One for each CPU that follows a process with all its threads (inherit) would
 * need no search for new threads; but then the packets of all threads lie behind each other in a ring for each CPU,
 * and only the times of context switches separate them: a stack rebuilt from them is a guess at each switch. A
 * thread's own ring has its packets alone, in order, on all CPUs that it ran on. The kernel refuses an inherited
 * event a ring that is not of one CPU: new threads are found by their FORK records and in /proc/PID/task, and their
 * first moments until then are missing.
 *
 *   AUX ring:   │ newest, up to head │ oldest, from head on │      copied as      │ oldest ... newest │
 *
 * The kernel reports where head is in it, not how often it went around: before the first time the bytes from head on
 * are zero.
 */
struct ky_pt_thread {
	pid_t tid;
	pid_t tid_inside; /* as the process has it */
	int fd;           /* -1: not open */
	struct ky_perf_ring records;
	uint8_t *aux;
	uint64_t aux_bytes;
	uint64_t written_ns; /* its calls up to here are written */
	bool ended;
	bool last;        /* it had ended when its packets were copied */
	bool seen;        /* in the last search for threads */
	uint8_t *packets; /* packets, copied while the event was stopped; NULL: none */
	size_t packets_bytes;
};

/*
 * Open the event and begin tracing. aux_bytes is the most that is tried: it is halved until the kernel allows it.
 * Return 0 or -errno.
 */
int ky_pt_thread_open(struct ky_pt_thread *thread, const struct ky_pt_machine *machine, pid_t tid,
		      uint64_t aux_bytes);
void ky_pt_thread_close(struct ky_pt_thread *thread);

/* The packets of all threads are copied between these two: so they end at the same time. */
void ky_pt_thread_pause(struct ky_pt_thread *thread);
void ky_pt_thread_resume(struct ky_pt_thread *thread);
/* Copy the packets of an AUX ring of a power of two bytes into as many, the oldest first. Return how many there are. */
size_t ky_pt_thread_unroll(uint8_t *out, const uint8_t *ring, size_t bytes, uint64_t head);
/* Return false without memory. */
bool ky_pt_thread_copy(struct ky_pt_thread *thread);

/* Get the conversion from the counter to CLOCK_MONOTONIC, as of now; false: the kernel does not report it. */
bool ky_pt_thread_time(const struct ky_pt_thread *thread, struct ky_pt_time *time);
/* Get the same from a page that the kernel may be writing. */
bool ky_pt_thread_page_time(const struct perf_event_mmap_page *page, struct ky_pt_time *time);

#endif
