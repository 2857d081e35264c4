/* SPDX-License-Identifier: MIT */
/*
 * kernel_state.h: state between kernel events while they are applied in the order of time. Private to kernel.c and
 * the files below.
 *
 *   kernel.c  packs and unpacks the staged words, finds the thread of a tid
 *   sched.c   CPUs: the sched slice that is open; threads: the state that is open
 *   jobs.c    what devices do one after the other
 *   series.c  counters of threads, sums, and lanes: which track of a set an async span has
 *   marker.c  lines of trace_marker
 *   binder.c  Android's calls
 */
#ifndef KY_MODEL_KERNEL_STATE_H
#define KY_MODEL_KERNEL_STATE_H

#include "model/build.h"
#include "model/kernel.h"

/* Kinds of staged records; ky_put_*() packs their words. */
enum ky_kernel_sub {
	KY_KERNEL_SWITCH,
	KY_KERNEL_WAKING,
	KY_KERNEL_BLOCKED,
	KY_KERNEL_TASK_NEW,
	KY_KERNEL_TASK_RENAME,
	KY_KERNEL_TASK_EXIT,
	KY_KERNEL_TASK_GROUP,
	KY_KERNEL_TASK_COMM,
	KY_KERNEL_TASK_HINT,
	KY_KERNEL_MARKER,
	KY_KERNEL_CPU_BEGIN,
	KY_KERNEL_CPU_END,
	KY_KERNEL_TID_BEGIN,
	KY_KERNEL_TID_END,
	KY_KERNEL_CPU_COUNTER,
	KY_KERNEL_RAW,
	KY_KERNEL_TID_SAMPLE,
	KY_KERNEL_TID_INSTANT,
	KY_KERNEL_RAW_LINE,
	KY_KERNEL_BINDER_CALL,
	KY_KERNEL_BINDER_RECEIVED,
	KY_KERNEL_BINDER_COMMAND,
	KY_KERNEL_TASK_STATE,
	KY_KERNEL_TID_COUNTER,
	KY_KERNEL_SUM,
	KY_KERNEL_SINCE,
	KY_KERNEL_LANE_BEGIN,
	KY_KERNEL_LANE_END,
	KY_KERNEL_JOB,
	KY_KERNEL_GAP /* the end of a window */
};

#define KY_PUT_KERNEL(trace, ts, sub, ...)                                                         \
	ky_stage_kernel(trace, ts, sub, (const uint32_t[]){__VA_ARGS__},                           \
			(uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

/* CPUs above are damage: a row for each is kept. */
#define KY_CPUS_MAX 65536u

/* Row numbers are kept one too high, so that 0 means no row. */
struct ky_cpu_state {
	uint32_t slice;
	int32_t tid;
};

struct ky_thread_rows {
	uint32_t last;    /* thread state that is open */
	uint32_t blocked; /* its last blocked state, until it runs */
	uint32_t
		hanging; /* sched slice that ended because another thread ran: its end state is still to come */
};

/* End everything that is open at the end of a window (intake.c). */
void ky_window_end(struct ky_trace *trace, int64_t ts);

/* Two threads of one process that is still unknown, or (child) a process whose parent is that thread's. */
struct ky_kin {
	uint32_t thread;
	uint32_t other;
	bool child;
};

/* The owner of a set of lanes, and a span of it. */
struct ky_lane_key {
	uint32_t type; /* string: of the tracks */
	uint32_t process;
	uint32_t name; /* of the tracks */
	int64_t cookie;
};

struct ky_lane {
	uint32_t track;
	uint32_t open; /* begun and not ended */
	uint32_t next; /* free one below, one too high */
	/* For spans that do not nest: begins since the last end. For devices: 1 when it is timed. */
	uint32_t begins;
	int64_t last_begin_ts;
};

struct ky_lanes {
	struct ky_pair_map sets; /* type and process, name: number of the set */
	struct ky_pair_map held; /* set, cookie: lane, one too high */
	struct ky_lane *lanes;
	uint64_t lanes_room;
	uint32_t *free; /* by set: the free lane on top, one too high */
	uint64_t free_room;
	uint32_t sets_count, lanes_count;
};

/* A call that was sent and not received. */
struct ky_binder_open {
	uint32_t slice;
	uint32_t args;
	bool reply;
	bool one_way;
};

struct ky_binder_frame {
	uint32_t below; /* frame, one too high */
	uint8_t state;
	bool ends_slice; /* it has a slice that a failure must end */
	bool one_way;
};

struct ky_binder {
	struct ky_pair_map open_by_id; /* transaction: number in open, one too high */
	struct ky_binder_open *open;
	uint64_t open_room;
	struct ky_pair_map tops; /* tid: frame on top, one too high */
	struct ky_binder_frame *frames;
	uint64_t frames_room;
	uint32_t open_count, frames_count;
};

/* A job in line; numbers are one too high. */
struct ky_job_entry {
	uint64_t key;
	uint32_t name;
	uint32_t args;
	uint32_t next;
};

struct ky_line {
	uint32_t track;
	uint32_t first, last;
	bool emits; /* fences: the driver reports when they are emitted */
};

struct ky_jobs {
	struct ky_pair_map line_by_track;
	struct ky_line *lines;
	uint64_t lines_room;
	struct ky_job_entry *entries;
	uint64_t entries_room;
	uint32_t lines_count, entries_count, free;
	struct ky_pair_map queued; /* track, key: the slice where it was queued */
	struct ky_pair_map busy;   /* run: the track */
};

struct ky_kernel_state {
	struct ky_cpu_state *cpus;
	uint64_t cpus_room;
	struct ky_thread_rows *threads;
	uint64_t threads_room;
	struct ky_kin *kin;
	uint64_t kin_room;
	uint32_t kin_count;
	struct ky_lanes lanes;
	struct ky_binder binder;
	struct ky_jobs jobs;
	uint64_t gap_rows; /* looked at for the ends of windows */
	struct ky_pair_map
		sums; /* (track, 0): a counter's sum; (track, 1): its last row, one too high */
	/* strings */
	uint32_t running, runnable, unknown_comm, swapper, irq;
	struct {
		uint32_t cookie, utid, end_utid, begins, last_begin;
		uint32_t async_slice, async_slice_for_track, print;
		uint32_t kill, lmk, lmk_track, lmk_type, oom_score;
	} marker;
};

/* Return the thread that a tid is now, made on first use; KY_NONE for a tid below 0. */
uint32_t ky_kernel_thread(struct ky_trace *trace, int64_t tid);
/* Return the living thread of a tid, or KY_NONE. */
uint32_t ky_kernel_thread_find(struct ky_trace *trace, int64_t tid);
/* Do the same with a known process; a tgid of 0 is unknown. */
uint32_t ky_kernel_thread_in(struct ky_trace *trace, int64_t tgid, int32_t tid);
uint32_t ky_kernel_process(struct ky_trace *trace, int64_t tgid);

void ky_sched_switch(struct ky_trace *trace, int64_t ts, const struct ky_switch *event);
void ky_sched_waking(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t waker);
void ky_sched_new(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t by);
void ky_sched_blocked(struct ky_trace *trace, uint32_t thread, bool io_wait, uint32_t function);
/* Report whether a CPU is known to run the thread. */
bool ky_sched_runs(const struct ky_trace *trace, uint32_t thread);

/* End the state that is open. */
void ky_sched_close_state(struct ky_trace *trace, int64_t ts, const struct ky_thread_rows *rows);
void ky_sched_task(struct ky_trace *trace, int64_t ts, const struct ky_task_step *step);

void ky_job_apply(struct ky_trace *trace, int64_t ts, const uint32_t *words);
void ky_jobs_free(struct ky_jobs *jobs);
void ky_series_apply(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words);

void ky_marker_open(struct ky_trace *trace);
void ky_marker_apply(struct ky_trace *trace, int64_t ts, const uint32_t *words);

void ky_binder_transaction(struct ky_trace *trace, int64_t ts, int32_t tid,
			   const struct ky_binder_call *call);
void ky_binder_received(struct ky_trace *trace, int64_t ts, int32_t tid, int32_t id);
void ky_binder_command(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t command);
void ky_binder_free(struct ky_binder *binder);

/*
 * Return the lane of a span with that cookie, valid until the next call; NULL without memory
 * (begin) or when none is open (end).
 */
struct ky_lane *ky_lane_begin(struct ky_trace *trace, const struct ky_lane_key *key);
struct ky_lane *ky_lane_end(struct ky_trace *trace, const struct ky_lane_key *key);
void ky_lanes_free(struct ky_lanes *lanes);

#endif
