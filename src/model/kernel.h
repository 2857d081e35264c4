/* SPDX-License-Identifier: MIT */
/*
 * kernel.h: intake of what the kernel says: scheduling, tasks, markers that programs wrote to
 * trace_marker, and events as they are. For all formats that carry ftrace (text, trace.dat, raw pages,
 * Perfetto's bundles, LTTng's kernel traces, perf sched).
 *
 * All of it is staged: whose a tid is gets decided in the order of time, so that tids that are used
 * again are told apart. comm strings may be 0; "<...>" is no name.
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
	int32_t next_tid;    /* -1: to none that is to be shown */
	int32_t next_priority;
	uint32_t next_comm;
};

void ky_put_switch(struct ky_trace *trace, int64_t ts, const struct ky_switch *event);
/* sched_waking, or sched_wakeup where there is no waking: tid becomes runnable, by waker_tid (-1: not known). */
void ky_put_waking(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t comm,
		   int32_t waker_tid);
/* sched_blocked_reason. */
void ky_put_blocked(struct ky_trace *trace, int64_t ts, int32_t tid, bool io_wait,
		    uint32_t function);
/* task_newtask: thread says that it is a thread of by_tid's process (CLONE_THREAD). */
void ky_put_task_new(struct ky_trace *trace, int64_t ts, int32_t by_tid, int32_t tid, uint32_t comm,
		     bool thread);
void ky_put_task_rename(struct ky_trace *trace, int64_t ts, int64_t tid, uint32_t comm);
/* sched_process_free: from here on the tid is another's. */
void ky_put_task_exit(struct ky_trace *trace, int64_t ts, int32_t tid);

/*
 * What a task does from now on, of kernels that tell of one task at a time instead of switches. A switch is then
 * two events in any order: that one runs, and what the other does now.
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
	uint32_t now; /* enum ky_task_now; others are a problem that is counted */
	int32_t priority;
};
void ky_put_task_step(struct ky_trace *trace, int64_t ts, const struct ky_task_step *step);

/* A tgid column, seen beside a tid. */
void ky_put_task_group(struct ky_trace *trace, int64_t ts, int32_t tid, int32_t tgid);
/* A comm seen beside a tid (the task column of text). */
void ky_put_task_comm(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t comm);
/* A name for that tid's thread, when there is one that has none: of a list that was made at the end. */
void ky_put_task_hint(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t comm);

/*
 * A line that was written to trace_marker: "B|pid|name" and its kin (docs/formats/ftrace.md). What is none of
 * these becomes a log of the thread, with the text as its message.
 */
void ky_put_marker(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t text);
/* The same of bytes, which need not become a string of the trace. */
void ky_put_marker_text(struct ky_trace *trace, int64_t ts, int32_t tid, const char *text,
			size_t bytes);

/* Begin and end of something on a CPU: irq, softirq, ... track is e.g. "Irq Cpu 0". */
void ky_put_cpu_begin(struct ky_trace *trace, int64_t ts, uint32_t cpu, uint32_t track,
		      uint32_t name, uint32_t args);
void ky_put_cpu_end(struct ky_trace *trace, int64_t ts, uint32_t cpu, uint32_t track,
		    uint32_t args);
/* A span of a thread that the kernel tells of: system calls, function_graph. */
void ky_put_tid_begin(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t category,
		      uint32_t name, uint32_t args);
void ky_put_tid_end(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t category,
		    uint32_t name, uint32_t args);
void ky_put_tid_instant(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t category,
			uint32_t name, uint32_t args);
/* "cpufreq", "cpuidle" of a CPU. */
void ky_put_cpu_counter(struct ky_trace *trace, int64_t ts, uint32_t cpu, uint32_t name,
			double value);

/* A counter of the thread, or (kind) of the process that it is of at that time; the thread's while that is not known. */
void ky_put_tid_counter(struct ky_trace *trace, int64_t ts, int32_t tid, enum ky_track_kind kind,
			uint32_t name, double value, uint32_t args);
/* A counter of what has come in all until then: add more of it, shown in whole units of so many. */
void ky_put_sum(struct ky_trace *trace, int64_t ts, uint32_t track, uint64_t add, uint32_t unit,
		uint32_t args);

/* A value of the time since the last one on that track: it is shown from there on. The newest is 0 until the next. */
void ky_put_counter_since(struct ky_trace *trace, int64_t ts, uint32_t track, double value);

/* Work that threads hand to a device: jobs.c. */
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
	uint64_t key;  /* with the track tells it apart; of fences, their number in the timeline */
	uint64_t run;  /* tells it apart among all that run */
	uint32_t step; /* enum ky_job_step */
	int32_t tid;
	uint32_t track;
	uint32_t category;
	uint32_t name;
	uint32_t args;
};
void ky_put_job(struct ky_trace *trace, int64_t ts, const struct ky_job *job);

/* A span of something that many are of at once (buffers, commands): each has a track while it lasts. */
struct ky_lane_span {
	uint32_t type;  /* string: of the tracks */
	uint32_t track; /* string: their name */
	int64_t cookie;
	uint32_t category; /* string */
	uint32_t name;
	uint32_t args;
	uint32_t latency; /* a counter's track, one too high, of how long it took; 0: none */
};
void ky_put_lane_begin(struct ky_trace *trace, int64_t ts, const struct ky_lane_span *span);
void ky_put_lane_end(struct ky_trace *trace, int64_t ts, const struct ky_lane_span *span);

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

/* The event as it is. tid may be -1. */
void ky_put_raw(struct ky_trace *trace, int64_t ts, uint32_t cpu, int32_t tid, uint32_t name,
		uint32_t args);

/* The same with what stands beside it in text: comm (0: none) and tgid (0: not known). One record, not three. */
void ky_put_raw_line(struct ky_trace *trace, int64_t ts, uint32_t cpu, int32_t tid, int32_t tgid,
		     uint32_t comm, uint32_t name, uint32_t args);

/*
 * A state of a thread as formats have it that know no switches: "Running" with a CPU is a row of sched as
 * well. For traces without other kernel events; must come in the order of time, unlike all else.
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

/* The letters of a prev_state; release is the kernel's, major << 8 | minor, 0: not known (taken as 4.4). */
uint32_t ky_task_state(struct ky_trace *trace, uint64_t mask, uint32_t release);

/*
 * Samples of a thread that is found by its tid in the order of time.
 */
void ky_put_tid_sample(struct ky_trace *trace, int64_t ts, int32_t pid, int32_t tid,
		       uint32_t callsite, uint32_t cpu, enum ky_cpu_mode mode, double weight,
		       uint32_t event);

#endif
