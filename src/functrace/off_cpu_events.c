/* SPDX-License-Identifier: MIT */
/* off_cpu_events.c: see off_cpu_events.h. */
#include "functrace/off_cpu_events.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/compare.h"

#include <stdlib.h>
#include <string.h>

/* With those of --sample and of the engine sample it is still within what an ordinary user may lock for each CPU. */
#define RING_BYTES (128u << 10)

#define SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* ---- records ---- */

bool ky_off_cpu_events_parse(struct ky_off_cpu_event *one, const struct ky_perf_record *record)
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

static void keep(struct ky_off_cpu_events *events, const struct perf_event_header *head)
{
	struct ky_perf_record record;
	struct ky_off_cpu_event one;
	if (!ky_perf_record_parse(&record, head, SAMPLE_TYPE))
		return;
	events->lost += record.type == PERF_RECORD_LOST ? record.lost : 0;
	if (!ky_off_cpu_events_parse(&one, &record))
		return;
	one.order = events->order++;
	if (!KY_ARRAY_ADD(events->batch, events->count, events->room, one))
		events->lost++;
}

static int by_time(const void *a, const void *b)
{
	const struct ky_off_cpu_event *const x = a, *const y = b;
	return KY_COMPARE_THEN(x->time_ns, y->time_ns, KY_COMPARE(x->order, y->order));
}

void ky_off_cpu_events_read(struct ky_off_cpu_events *events,
			    void (*take)(void *context, const struct ky_off_cpu_event *one),
			    void *context)
{
	const uint64_t until = (uint64_t)ky_clock_monotonic();
	size_t at = 0;
	for (uint32_t i = 0; i < events->rings.cpus_count; i++) {
		struct ky_perf_ring *const ring = &events->rings.cpus[i].ring;
		ky_perf_ring_begin(ring);
		for (const struct perf_event_header *record; (record = ky_perf_ring_next(ring));)
			keep(events, record);
		ky_perf_ring_end(ring);
	}
	if (!events->count)
		return;
	qsort(events->batch, events->count, sizeof(*events->batch), by_time);
	for (; at < events->count && events->batch[at].time_ns < until; at++)
		take(context, &events->batch[at]);
	events->count -= at;
	memmove(events->batch, events->batch + at, events->count * sizeof(*events->batch));
}

/* ---- events ---- */

/* Open the events. They contain nothing of the kernel's own: users may have them of their own processes. */
int ky_off_cpu_events_open(struct ky_off_cpu_events *events)
{
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
	*events = (struct ky_off_cpu_events){0};
	return ky_perf_events_open(&events->rings, &attr, RING_BYTES);
}

void ky_off_cpu_events_close(struct ky_off_cpu_events *events)
{
	ky_perf_set_close(&events->set);
	ky_perf_events_close(&events->rings);
	KY_ARRAY_FREE(events->batch, events->room);
	*events = (struct ky_off_cpu_events){.rings.poll_fd = -1};
}

int ky_off_cpu_events_thread(struct ky_off_cpu_events *events, pid_t tid)
{
	return ky_perf_set_add(&events->set, &events->rings, &events->rings.attr, tid);
}
