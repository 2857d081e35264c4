/* SPDX-License-Identifier: MIT */
/*
 * sched_stats.h: what the scheduler did: how long threads ran, waited for a CPU and were off it, and why.
 *
 *   S ────────────┤ R ──────┤ Running ────┤ R+ ───┤ Running ──┤ S
 *                 woken     runs          preempted           switched away
 *                 ├─ delay ─┤             ├ delay ┤
 *   ├─ off the CPU ─────────┤             ├─ off ─┤           ├─ off ...
 *
 * A delay is the time from runnable to running, after a wake-up or a preemption. What a thread was doing when it left the CPU is
 * the innermost span that was open then; who ended its sleep is the waker. Times off the CPU count from a switch to the next run: those
 * that the trace sees one end of are left out.
 */
#ifndef KY_QUERY_SCHED_STATS_H
#define KY_QUERY_SCHED_STATS_H

#include "query/stats.h"

/* Times of one sort: how many, all, the longest and when that began. */
struct ky_sched_times {
	uint64_t count;
	int64_t total_ns, max_ns, max_ts;
};

struct ky_sched_thread {
	uint32_t thread;
	uint64_t runs;      /* times that it was switched to */
	uint64_t switches;  /* times that it was switched away from */
	uint64_t preempted; /* of these: it could have run on */
	uint64_t migrations;
	int64_t run_ns, runnable_ns, sleep_ns, disk_ns,
		other_ns; /* by state: Running; R; S; D; ... */
	struct ky_sched_times delay;
};

/* The time of a thread on a CPU. */
struct ky_sched_place {
	uint32_t thread, cpu;
	int64_t run_ns;
};

struct ky_sched_cpu {
	uint32_t cpu;
	uint64_t runs; /* of threads other than the idle one */
	int64_t busy_ns, idle_ns;
	int64_t waiting_ns; /* of all threads that ran here next */
	uint32_t depth_max; /* so many waited at once */
	int64_t depth_max_ts;
};

struct ky_sched_off {
	uint32_t thread;
	uint32_t state; /* string: S, D, R, R+, ... */
	uint32_t
		span; /* string: name of the innermost span when it left the CPU, 0: none was open */
	uint32_t waker; /* thread, or KY_NONE */
	struct ky_sched_times times;
};

/* A time on a CPU, and what came before it. */
struct ky_sched_run {
	int64_t ts, run_ns;
	int64_t wait_ns;  /* asleep or blocked before, -1: unknown */
	int64_t delay_ns; /* runnable before, -1: unknown */
	uint32_t cpu;     /* or KY_NONE */
	uint32_t thread;
	uint32_t state; /* string: after it; 0: unknown */
	uint32_t span;  /* when it was switched away from */
	uint32_t waker; /* that ended the wait, or KY_NONE */
};

struct ky_sched_stats {
	int64_t begin_ns, end_ns; /* of the range */
	struct ky_sched_thread *threads;
	uint32_t threads_count;
	struct ky_sched_place *places; /* by thread, then by CPU */
	uint32_t places_count, places_room;
	struct ky_sched_cpu *cpus;
	uint32_t cpus_count, cpus_room;
	struct ky_sched_off *offs; /* the most time first */
	uint32_t offs_count, offs_room;
	struct ky_sched_run *runs; /* in the order of their ends */
	uint32_t runs_count, runs_room;
	uint32_t depth_max; /* of all CPUs together */
	int64_t depth_max_ts;
};

/* Make the statistics; name and category of the filter do not count. Return 0 or -ENOMEM. */
int ky_sched_stats_make(struct ky_sched_stats *stats, const struct ky_trace *trace,
			const struct ky_stats_filter *filter);
void ky_sched_stats_free(struct ky_sched_stats *stats);

#endif
