/* SPDX-License-Identifier: MIT */
/*
 * off_cpu.c: see off_cpu.h.
 *
 *   an event of each thread on each CPU (a dummy that counts nothing, inherited) ─▶ a ring for each CPU ─▶ batch, sorted
 *   batch ── out ──▶ "off CPU", "off CPU (preempted)" begins ┐
 *         ── in ───▶ it ends                                 ├─▶ a drum of all processes
 *         ── gone ─▶ that ends, too; "thread ended"          ┘
 *
 *   threads: tid ─▶ is off      A thread that was off at the start of watching has no beginning: its coming back ends nothing.
 *
 * A thread's records are in the rings of all CPUs that it ran on. A round hands out only records from before its
 * start: a later record may have an earlier one in a ring that was read before. The rest waits. Children come
 * automatically, because the events are inherited.
 */
#include "functrace/off_cpu.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/layout.h"
#include "functrace/made_drum.h"
#include "process/perf_events.h"
#include "process/proc.h"
#include "process/thread_ends.h"

#include <kymo/kymo.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With those of --sample and of the engine sample it is still within what an ordinary user may lock for each CPU. */
#define RING_BYTES (128u << 10)

#define SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

#define ADD_PASSES 10u
#define PIDS_MAX 4096u /* processes, between two rounds */
#define RETRY_NS UINT64_C(100000000)
#define TOTAL_BYTES (UINT64_C(256) << 20)
#define CATEGORY "sched"
/*
 * The clocks of two drums differ by some hundred nanoseconds, and a span must not cross those of the functions around
 * it: it is shown a little shorter. The thread is in the kernel then, before it is off the CPU and after.
 */
#define MARGIN_NS 500u

enum { NOT_KNOWN, ON, OFF };

struct ky_off_cpu {
	struct ky_functrace_options options;
	struct ky_perf_events rings;
	struct ky_perf_set set;
	struct ky_off_cpu_event *batch;
	size_t count, room;
	uint64_t order;
	struct ky_made_drum drum;           /* of all processes; no base: not made yet */
	uint64_t retry_ns;                  /* it could not be made: do not try before this */
	uint32_t waiting, preempted, ended; /* trace points */
	struct ky_u64_map threads;          /* by tid: NOT_KNOWN, ON, OFF */
	pid_t executed[PIDS_MAX], ended_pids[PIDS_MAX];
	uint32_t executed_count, ended_count;
};

/* ---- records ---- */

bool ky_off_cpu_parse(struct ky_off_cpu_event *one, const struct ky_perf_record *record)
{
	*one = (struct ky_off_cpu_event){
		.time_ns = record->time, .pid = (pid_t)record->pid, .tid = (pid_t)record->tid};
	if (record->type == PERF_RECORD_EXIT)
		one->kind = KY_OFF_CPU_ENDED;
	else if (record->type == PERF_RECORD_COMM && record->comm.exec)
		one->kind = KY_OFF_CPU_EXECUTED;
	else if (record->type != PERF_RECORD_SWITCH)
		return false;
	else if (record->switched.out)
		one->kind = record->switched.preempted ? KY_OFF_CPU_PREEMPTED : KY_OFF_CPU_WAITING;
	return one->pid > 0 && one->tid > 0;
}

static void keep(struct ky_off_cpu *switches, const struct perf_event_header *head)
{
	struct ky_perf_record record;
	struct ky_off_cpu_event one;
	if (!ky_perf_record_parse(&record, head, SAMPLE_TYPE))
		return;
	if (!ky_off_cpu_parse(&one, &record))
		return;
	one.order = switches->order++;
	(void)KY_ARRAY_ADD(switches->batch, switches->count, switches->room, one);
}

KY_ORDER(by_time, struct ky_off_cpu_event,
	 KY_COMPARE_THEN(a->time_ns, b->time_ns, KY_COMPARE(a->order, b->order)))

/* Open the drum. Its own process is the first one with an event. */
static bool open_drum(struct ky_off_cpu *switches, pid_t pid, uint64_t now_ns)
{
	const struct ky_functrace_options *const options = &switches->options;
	const struct ky_made_drum_options drum = {.pid = pid,
						  .fd = -1,
						  .functions = 3,
						  .layer = KY_DRUM_SWITCHES,
						  .ring_bytes = options->ring_bytes,
						  .total_bytes = options->total_bytes < TOTAL_BYTES
									 ? options->total_bytes
									 : TOTAL_BYTES};
	if (switches->drum.drum.base)
		return true;
	if (now_ns < switches->retry_ns || ky_made_drum_open(&switches->drum, &drum) != 0) {
		switches->retry_ns = now_ns + RETRY_NS;
		return false;
	}
	switches->waiting = ky_made_drum_site(&switches->drum, KYMO_KIND_BEGIN, CATEGORY, "off CPU",
					      "", NULL, 0);
	switches->preempted = ky_made_drum_site(&switches->drum, KYMO_KIND_BEGIN, CATEGORY,
						"off CPU (preempted)", "", NULL, 0);
	switches->ended = ky_made_drum_site(&switches->drum, KYMO_KIND_INSTANT, CATEGORY,
					    KY_THREAD_ENDED, "", NULL, 0);
	options->drum(options->context, pid, switches->drum.fd);
	return true;
}

static void take(struct ky_off_cpu *switches, const struct ky_off_cpu_event *one)
{
	struct ky_made_drum *const drum = &switches->drum;
	bool made;
	uint32_t *const thread = ky_u64_map_add(&switches->threads, (uint64_t)one->tid, &made);
	if (!thread || !open_drum(switches, one->pid, one->time_ns))
		return;
	const bool begins = one->kind == KY_OFF_CPU_WAITING || one->kind == KY_OFF_CPU_PREEMPTED;
	if (one->kind == KY_OFF_CPU_EXECUTED) {
		if (switches->executed_count < PIDS_MAX)
			switches->executed[switches->executed_count++] = one->pid;
		ky_made_drum_process(drum, one->tid, one->pid);
		ky_made_drum_instant(drum, one->tid, one->time_ns, switches->ended);
		return;
	}
	if (one->kind == KY_OFF_CPU_ENDED) {
		if (one->tid == one->pid && switches->ended_count < PIDS_MAX)
			switches->ended_pids[switches->ended_count++] = one->pid;
		ky_made_drum_process(drum, one->tid, one->pid);
		ky_made_drum_instant(drum, one->tid, one->time_ns, switches->ended);
		ky_made_drum_gone(drum, one->tid, one->time_ns);
	} else if (one->kind == KY_OFF_CPU_IN && *thread == OFF) {
		ky_made_drum_end_span(drum, one->tid, one->time_ns - MARGIN_NS);
	} else if (begins && *thread != OFF) {
		ky_made_drum_process(drum, one->tid, one->pid);
		ky_made_drum_begin(drum, one->tid, one->time_ns + MARGIN_NS,
				   one->kind == KY_OFF_CPU_PREEMPTED ? switches->preempted
								     : switches->waiting);
	}
	*thread = one->kind == KY_OFF_CPU_ENDED ? NOT_KNOWN : begins ? OFF : ON;
}

/* Read the rings, and take the records from before the call, in order. */
void ky_off_cpu_round(struct ky_off_cpu *switches)
{
	const uint64_t until = (uint64_t)ky_clock_monotonic();
	size_t at = 0;
	for (uint32_t i = 0; i < switches->rings.cpus_count; i++) {
		struct ky_perf_ring *const ring = &switches->rings.cpus[i].ring;
		ky_perf_ring_begin(ring);
		for (const struct perf_event_header *record; (record = ky_perf_ring_next(ring));)
			keep(switches, record);
		ky_perf_ring_end(ring);
	}
	if (!switches->count)
		return;
	qsort(switches->batch, switches->count, sizeof(*switches->batch), by_time);
	for (; at < switches->count && switches->batch[at].time_ns < until; at++)
		take(switches, &switches->batch[at]);
	switches->count -= at;
	memmove(switches->batch, switches->batch + at, switches->count * sizeof(*switches->batch));
}

pid_t ky_off_cpu_executed(struct ky_off_cpu *switches)
{
	return switches->executed_count ? switches->executed[--switches->executed_count] : 0;
}

pid_t ky_off_cpu_ended(struct ky_off_cpu *switches)
{
	return switches->ended_count ? switches->ended_pids[--switches->ended_count] : 0;
}

/* ---- adding ---- */

static int refuse(int error, char message[KY_MESSAGE_BYTES])
{
	return ky_perf_events_refused(error, "off-CPU times", 2, message);
}

struct adding {
	struct ky_off_cpu *switches;
	struct ky_u64_map tried;
	uint32_t opened, fresh;
	int error;
};

static void add_thread(struct adding *adding, pid_t tid)
{
	bool made;
	if (!ky_u64_map_add(&adding->tried, (uint64_t)tid, &made) || !made ||
	    ky_u64_map_find(&adding->switches->threads, (uint64_t)tid))
		return;
	adding->fresh++;
	const struct ky_perf_events *const rings = &adding->switches->rings;
	const int error = ky_perf_set_add(&adding->switches->set, rings, &rings->attr, tid);
	adding->opened += error == 0;
	if (error && error != -ESRCH)
		adding->error = error;
}

static void add_threads(struct adding *adding, pid_t pid)
{
	DIR *const tasks = ky_proc_tasks(pid);
	for (pid_t tid; (tid = ky_proc_next(tasks)) > 0;)
		add_thread(adding, tid);
	ky_proc_close(tasks);
}

/*
 * Add a process. Threads that others make in the meantime are found in the next pass; those of threads that have
 * their events come automatically.
 */
int ky_off_cpu_add(struct ky_off_cpu *switches, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	struct adding adding = {.switches = switches};
	ky_off_cpu_round(switches);
	for (uint32_t pass = 0; pass < ADD_PASSES; pass++) {
		adding.fresh = 0;
		add_threads(&adding, pid);
		if (!adding.fresh)
			break;
		ky_off_cpu_round(switches);
	}
	ky_u64_map_free(&adding.tried);
	if (adding.opened)
		return 0;
	const int error = adding.error ? adding.error : -ESRCH;
	if (error == -ESRCH)
		snprintf(message, KY_MESSAGE_BYTES, "process %ld is gone", (long)pid);
	else
		refuse(error, message);
	return error;
}

/* ---- open and close ---- */

int ky_off_cpu_open(struct ky_off_cpu **out, const struct ky_functrace_options *options,
		    char message[KY_MESSAGE_BYTES])
{
	/* They contain nothing of the kernel's own: users may have them of their own processes. */
	const struct perf_event_attr attr = {.size = sizeof(attr),
					     .type = PERF_TYPE_SOFTWARE,
					     .config = PERF_COUNT_SW_DUMMY,
					     .sample_type = SAMPLE_TYPE,
					     .sample_id_all = 1,
					     .use_clockid = 1,
					     .clockid = CLOCK_MONOTONIC,
					     .exclude_kernel = 1,
					     .exclude_hv = 1,
					     .watermark = 1,
					     .inherit = 1,
					     .context_switch = 1,
					     .task = 1,
					     .comm = 1,
					     .comm_exec = 1};
	*out = NULL;
	struct ky_off_cpu *const switches = calloc(1, sizeof(*switches));
	if (!switches)
		return ky_fail(message, -ENOMEM, "out of memory");
	switches->options = *options;
	const int error = ky_perf_events_open(&switches->rings, &attr, RING_BYTES);
	if (error) {
		free(switches);
		return refuse(error, message);
	}
	*out = switches;
	return 0;
}

void ky_off_cpu_close(struct ky_off_cpu **out)
{
	struct ky_off_cpu *const switches = *out;
	*out = NULL;
	if (!switches)
		return;
	ky_off_cpu_round(switches);
	if (switches->drum.drum.base)
		ky_made_drum_close(&switches->drum);
	ky_u64_map_free(&switches->threads);
	ky_perf_set_close(&switches->set);
	ky_perf_events_close(&switches->rings);
	KY_ARRAY_FREE(switches->batch, switches->room);
	free(switches);
}
