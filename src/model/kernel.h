/* SPDX-License-Identifier: MIT */
/*
 * kernel.h: intake of kernel events: scheduling, tasks, lines that programs wrote to trace_marker, and raw
 * events. For all formats that carry ftrace (text, trace.dat, raw pages,
 * Perfetto's bundles, LTTng's kernel traces, perf sched).
 *
 * All of it is staged: the thread of a tid is decided in the order of time, so that reused tids get rows of their
 * own. comm strings may be 0; "<...>" is no name.
 */
#ifndef KY_MODEL_KERNEL_H
#define KY_MODEL_KERNEL_H

#include "model/intake.h"

struct ky_switch {
	uint32_t cpu;
	int32_t prev_tid;
	int32_t prev_priority;
	uint32_t prev_comm;
	uint32_t prev_state; /* string: "S", "R+", ...; ky_task_state() makes it of a bit mask */
	int32_t next_tid;    /* -1: to a task that is not shown */
	int32_t next_priority;
	uint32_t next_comm;
};

void ky_put_switch(struct ky_trace *trace, int64_t ts, const struct ky_switch *event);
/* sched_waking, or sched_wakeup without it: waker_tid (-1: unknown) makes tid runnable. */
void ky_put_waking(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t comm,
		   int32_t waker_tid);
/* sched_blocked_reason. */
void ky_put_blocked(struct ky_trace *trace, int64_t ts, int32_t tid, bool io_wait,
		    uint32_t function);
/* task_newtask; thread: it is a thread of by_tid's process (CLONE_THREAD). */
void ky_put_task_new(struct ky_trace *trace, int64_t ts, int32_t by_tid, int32_t tid, uint32_t comm,
		     bool thread);
void ky_put_task_rename(struct ky_trace *trace, int64_t ts, int64_t tid, uint32_t comm);
/* sched_process_free: from here on the tid belongs to another task. */
void ky_put_task_exit(struct ky_trace *trace, int64_t ts, int32_t tid);

/*
 * The state of a task from now on, from kernels that report one task at a time instead of switches.
 * A switch is then two events in any order: one task runs, and the other one does something else.
 */
enum ky_task_now {
	KY_TASK_CREATED = 1,
	KY_TASK_RUNNABLE,
	KY_TASK_RUNNING,
	KY_TASK_SLEEPS,
	KY_TASK_SLEEPS_DEEP, /* uninterruptible */
	KY_TASK_STOPPED,
	KY_TASK_DEAD,
	KY_TASK_DESTROYED
};
struct ky_task_step {
	int64_t tid;
	uint32_t cpu;
	uint32_t comm;
	uint32_t now; /* enum ky_task_now; other values are counted as problems */
	int32_t priority;
};
void ky_put_task_step(struct ky_trace *trace, int64_t ts, const struct ky_task_step *step);

/* A tgid seen beside a tid. */
void ky_put_task_group(struct ky_trace *trace, int64_t ts, int32_t tid, int32_t tgid);
/* A comm seen beside a tid (the task column of text output). */
void ky_put_task_comm(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t comm);
/* Name a tid's thread if it has no name: from a list made at the end. */
void ky_put_task_hint(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t comm);

/*
 * A line written to trace_marker, such as "B|pid|name" (docs/formats/ftrace.md). Any other line
 * becomes a log message of the thread.
 */
void ky_put_marker(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t text);
/* Do the same with bytes that are no string of the trace. */
void ky_put_marker_text(struct ky_trace *trace, int64_t ts, int32_t tid, const char *text,
			size_t bytes);

/* Begin or end something on a CPU. Its track is named for what it is: "Irq" is on "Irq Cpu 0". */
void ky_put_cpu_begin(struct ky_trace *trace, int64_t ts, uint32_t cpu, const char *what,
		      uint32_t name, uint32_t args);
void ky_put_cpu_end(struct ky_trace *trace, int64_t ts, uint32_t cpu, const char *what,
		    uint32_t args);
/* Return the name of a soft interrupt; NULL: there is no such number. */
const char *ky_softirq_name(uint64_t number);
/* Begin or end a thread's span that the kernel reports: system calls, function_graph. */
void ky_put_tid_begin(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t category,
		      uint32_t name, uint32_t args);
void ky_put_tid_end(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t category,
		    uint32_t name, uint32_t args);
void ky_put_tid_instant(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t category,
			uint32_t name, uint32_t args);
/* "cpufreq", "cpuidle" of a CPU. */
void ky_put_cpu_counter(struct ky_trace *trace, int64_t ts, uint32_t cpu, uint32_t name,
			double value);

/* Put a counter of the thread, or (kind) of its process at that time; of the thread while the process is unknown. */
void ky_put_tid_counter(struct ky_trace *trace, int64_t ts, int32_t tid, enum ky_track_kind kind,
			uint32_t name, double value, uint32_t args);
/* Put a counter of a running sum: add is added to it, and whole units are shown. */
void ky_put_sum(struct ky_trace *trace, int64_t ts, uint32_t track, uint64_t add, uint32_t unit,
		uint32_t args);

/*
 * Put a value that covers the time since the last one on that track, and is shown from there on.
 * After the newest the value is 0.
 */
void ky_put_counter_since(struct ky_trace *trace, int64_t ts, uint32_t track, double value);

/* Work that threads submit to a device: jobs.c. */
enum ky_job_step {
	KY_JOB_QUEUED, /* by tid: an instant */
	KY_JOB_TAKEN,  /* back by tid: an instant, with a flow from the other */
	KY_JOB_RUNS,   /* is in line on the track, or first there */
	KY_JOB_DONE,   /* the first in line of the track where run is */
	KY_FENCE_INIT,
	KY_FENCE_EMIT,
	KY_FENCE_SIGNALED
};
struct ky_job {
	uint64_t key;  /* with the track its identity; for fences, the number in their timeline */
	uint64_t run;  /* its identity among all that run */
	uint32_t step; /* enum ky_job_step */
	int32_t tid;
	uint32_t track;
	uint32_t category;
	uint32_t name;
	uint32_t args;
};
void ky_put_job(struct ky_trace *trace, int64_t ts, const struct ky_job *job);

/* A span of which many exist at once (buffers, commands): each has a track while it lasts. */
struct ky_lane_span {
	uint32_t type;  /* string: of the tracks */
	uint32_t track; /* string: their name */
	int64_t cookie;
	uint32_t category; /* string */
	uint32_t name;
	uint32_t args;
	uint32_t latency; /* a counter's track, one too high, of how long it took; 0: none */
};
void ky_put_lane(struct ky_trace *trace, int64_t ts, bool begins, const struct ky_lane_span *span);

/* Android's binder: binder_transaction, binder_transaction_received, and binder_command or binder_return. */
struct ky_binder_call {
	int32_t id;
	int32_t dest_node;
	int32_t dest_tgid;
	int32_t dest_tid;
	bool reply;
	uint32_t flags;
	uint32_t code; /* string: "0x3 Java Layer Dependent" */
};
void ky_put_binder_transaction(struct ky_trace *trace, int64_t ts, int32_t tid,
			       const struct ky_binder_call *call);
void ky_put_binder_received(struct ky_trace *trace, int64_t ts, int32_t tid, int32_t id);
void ky_put_binder_command(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t command);

/* Put a raw event. tid may be -1. */
void ky_put_raw(struct ky_trace *trace, int64_t ts, uint32_t cpu, int32_t tid, uint32_t name,
		uint32_t args);

/* Do the same with the comm (0: none) and tgid (0: unknown) beside it in text, as one record instead of three. */
void ky_put_raw_line(struct ky_trace *trace, int64_t ts, uint32_t cpu, int32_t tid, int32_t tgid,
		     uint32_t comm, uint32_t name, uint32_t args);

/*
 * Put the state of a thread, from formats without switches: "Running" with a CPU is a row of sched as well. For traces
 * without other kernel events; unlike all else these must come in the order of time.
 */
struct ky_state_span {
	int64_t ts;
	int64_t dur;
	uint64_t order; /* the caller's */
	uint32_t thread;
	uint32_t state;            /* string */
	uint32_t blocked_function; /* string */
	uint32_t cpu;              /* or KY_NONE */
	int8_t io_wait;            /* -1: not known */
};
void ky_put_state_span(struct ky_trace *trace, const struct ky_state_span *span);

/* Return the letters of a prev_state; release is the kernel's, major << 8 | minor, 0: unknown (taken as 4.4). */
uint32_t ky_task_state(struct ky_trace *trace, uint64_t mask, uint32_t release);

/* Put a sample of the thread that has the tid at that time. */
void ky_put_tid_sample(struct ky_trace *trace, int64_t ts, int32_t pid, int32_t tid,
		       uint32_t callsite, uint32_t cpu, enum ky_cpu_mode mode, double weight,
		       uint32_t event);

#endif
