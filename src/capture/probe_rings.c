/* SPDX-License-Identifier: MIT */
/*
 * probe_rings.c: the events of probes and their records, in a ring for each CPU (perf_events.h).
 *
 * The fork that made a process comes before its hits, but perhaps in another ring, which was read
 * before: hits of unknown processes wait for one more look at all rings, and so do forks of such
 * processes. Forks and ends are handled in the order of time, because those of a family come in the
 * rings of many CPUs. Hits that do not fit into a ring are counted as lost.
 */
#include "capture/probe_state.h"

#include "base/array.h"
#include "base/clock.h"
#include "process/perf_record.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/*
 * ---- arguments ----
 *
 * The registers that hold a function's first two arguments. A record has them in the order of their numbers.
 */

struct probe_args {
	uint64_t mask; /* perf's numbers; 0: unknown for this CPU, so that hits have no arguments */
	uint32_t first, second; /* which of those in a record */
};

#if defined(__x86_64__)
static const struct probe_args probe_args = {
	.mask = UINT64_C(1) << PERF_REG_X86_DI | UINT64_C(1) << PERF_REG_X86_SI,
	.first = PERF_REG_X86_DI > PERF_REG_X86_SI,
	.second = PERF_REG_X86_SI > PERF_REG_X86_DI,
};
#elif defined(__aarch64__)
static const struct probe_args probe_args = {
	.mask = UINT64_C(1) << PERF_REG_ARM64_X0 | UINT64_C(1) << PERF_REG_ARM64_X1,
	.first = 0,
	.second = 1,
};
#else
static const struct probe_args probe_args = {.mask = 0};
#endif

#define RING_BYTES (256u * 1024)
#define HITS_MAX (1u << 20) /* that wait */
/* Two hits of a thread by different events closer than this are one trap, which takes microseconds. */
#define SAME_TRAP_NS 1000000u
#define TASKS_MAX (1u << 20) /* that wait */
#define ENDS_AT_ONCE 64u     /* check who is gone after so many */

/* What a hit says, and what every record says of where and when it happened. */
#define WHERE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU)

/* ---- open and close ---- */

/* Set what all events have in common. */
static void complete(struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->sample_period = 1;
	attr->sample_type = WHERE_TYPE;
	attr->sample_id_all = 1;
	/* Waking kymo would cost the program ten times as much as the hit: the rings are read every 2 ms. */
	attr->watermark = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
}

int ky_probe_rings_open(struct ky_probes *probes)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	complete(&attr);
	return ky_perf_events_open(&probes->rings, &attr, RING_BYTES);
}

void ky_probe_rings_close(struct ky_probes *probes)
{
	for (uint64_t i = 0; i < probes->events_count; i++)
		if (probes->events[i].fd >= 0)
			close(probes->events[i].fd);
	ky_perf_events_close(&probes->rings);
	uint32_t at = 0;
	for (struct ky_pair_slot *entry; (entry = ky_pair_map_next(&probes->processes, &at));)
		free((void *)(uintptr_t)entry->value);
	ky_pair_map_free(&probes->processes);
	ky_pair_map_free(&probes->mapped);
	ky_pair_map_free(&probes->event_of);
	KY_ARRAY_FREE(probes->events, probes->events_room);
	KY_ARRAY_FREE(probes->tasks, probes->tasks_room);
	KY_ARRAY_FREE(probes->hits, probes->hits_room);
}

/* ---- events ---- */

/* Return the index of a free event, or -ENOMEM. Hits that wait may still refer to a closed one. */
static int64_t event_place(struct ky_probes *probes)
{
	if (probes->events_closed && !probes->hits_count) {
		const uint64_t index = probes->events_closed - 1;
		probes->events_closed = probes->events[index].address;
		return (int64_t)index;
	}
	if (!KY_ARRAY_NEW(probes->events, probes->events_count, probes->events_room))
		return -ENOMEM;
	return (int64_t)probes->events_count - 1;
}

static void free_event(struct ky_probes *probes, uint64_t index)
{
	probes->events[index] = (struct ky_probe_event){.fd = -1, .address = probes->events_closed};
	probes->events_closed = index + 1;
}

static int remember(struct ky_probes *probes, const struct ky_probe_event *event)
{
	bool made = false;
	const int64_t index = event_place(probes);
	if (index < 0)
		return -ENOMEM;
	uint64_t *at = ky_pair_map_add(&probes->event_of, event->id, 0, &made);
	if (!at) {
		free_event(probes, (uint64_t)index);
		return -ENOMEM;
	}
	probes->events[index] = *event;
	*at = (uint64_t)index + 1;
	return 0;
}

static bool has_image(const struct ky_probes *probes, uint64_t image)
{
	uint32_t at = 0;
	for (const struct ky_pair_slot *entry; (entry = ky_pair_map_next(&probes->processes, &at));)
		if (((const struct ky_probe_process *)(uintptr_t)entry->value)->image == image)
			return true;
	return false;
}

void ky_probe_rings_image_left(struct ky_probes *probes, uint64_t image)
{
	if (!image || probes->engine != KY_PROBE_BREAKPOINT || has_image(probes, image))
		return;
	for (uint64_t i = 0; i < probes->events_count; i++) {
		const struct ky_probe_event event = probes->events[i];
		if (event.fd < 0 || event.image != image)
			continue;
		close(event.fd);
		ky_pair_map_remove(&probes->event_of, event.id, 0);
		free_event(probes, i);
	}
}

int ky_probe_rings_event(struct ky_probes *probes, struct perf_event_attr *attr, pid_t tid,
			 const struct ky_perf_cpu *cpu, const struct ky_probe_event *event)
{
	struct ky_probe_event opened = *event;
	complete(attr);
	if (probe_args.mask) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER;
		attr->sample_regs_user = probe_args.mask;
	}
	attr->disabled = 1; /* until it has its ring */
	opened.fd = ky_perf_events_on(cpu, attr, tid);
	if (opened.fd < 0)
		return opened.fd;
	int error = ioctl(opened.fd, PERF_EVENT_IOC_ID, &opened.id) == 0 ? 0 : -errno;
	if (!error)
		error = remember(probes, &opened);
	if (error) {
		close(opened.fd);
		return error;
	}
	/* This includes those that inherited it in the meantime. */
	return ioctl(opened.fd, PERF_EVENT_IOC_ENABLE, 0) == 0 ? 0 : -errno;
}

/* ---- processes ---- */

struct ky_probe_process *ky_probe_rings_process(struct ky_probes *probes, pid_t pid)
{
	bool made = false;
	uint64_t *at = ky_pair_map_add(&probes->processes, (uint64_t)pid, 0, &made);
	if (at && !*at)
		*at = (uintptr_t)calloc(1, sizeof(struct ky_probe_process));
	return at ? (struct ky_probe_process *)(uintptr_t)*at : NULL;
}

static struct ky_probe_process *process_of(const struct ky_probes *probes, int32_t pid)
{
	const uint64_t *at = ky_pair_map_find(&probes->processes, (uint64_t)(int64_t)pid, 0);
	return at ? (struct ky_probe_process *)(uintptr_t)*at : NULL;
}

void ky_probe_rings_remove(struct ky_probes *probes, pid_t pid)
{
	struct ky_probe_process *process = process_of(probes, pid);
	if (!process)
		return;
	const uint64_t image = process->image;
	free(process);
	ky_pair_map_remove(&probes->processes, (uint64_t)pid, 0);
	ky_probe_rings_image_left(probes, image);
}

/* Give a child what its parent has, until it runs another program. Return false when the parent is unknown. */
static bool note_fork(struct ky_probes *probes, const struct ky_probe_task *task)
{
	const struct ky_probe_process *parent = process_of(probes, task->parent);
	if (!parent)
		return false;
	/* A late record must not undo what was learnt since. */
	if (task->waited && process_of(probes, task->pid))
		return true;
	struct ky_probe_process *child = ky_probe_rings_process(probes, (pid_t)task->pid);
	if (child) {
		*child = *parent;
		child->ending = false;
	}
	return true;
}

static void note_end(struct ky_probes *probes, const struct ky_probe_task *task)
{
	struct ky_probe_process *process = process_of(probes, task->pid);
	if (!process)
		return;
	process->ending = true;
	probes->ends++;
}

static bool is_waiting(const struct ky_probes *probes, int32_t pid)
{
	for (uint64_t i = 0; i < probes->hits_count; i++)
		if (probes->hits[i].pid == pid)
			return true;
	return false;
}

/* The last thread is gone when the number belongs to no process; before that, others run, or it was not waited for. */
void ky_probe_rings_sweep(struct ky_probes *probes)
{
	probes->ends = 0;
	uint32_t at = 0;
	for (const struct ky_pair_slot *entry;
	     (entry = ky_pair_map_next(&probes->processes, &at));) {
		const struct ky_probe_process *process =
			(const struct ky_probe_process *)(uintptr_t)entry->value;
		const pid_t pid = (pid_t)entry->a;
		if (!process->ending || kill(pid, 0) == 0 || errno != ESRCH ||
		    is_waiting(probes, pid))
			continue;
		ky_probe_rings_remove(probes, pid);
		at--; /* another may have taken its place */
	}
}

KY_ORDER(by_task_time, struct ky_probe_task, KY_COMPARE(a->time_ns, b->time_ns))

static void settle_tasks(struct ky_probes *probes)
{
	uint64_t waiting = 0;
	if (probes->tasks_count)
		qsort(probes->tasks, probes->tasks_count, sizeof(*probes->tasks), by_task_time);
	for (uint64_t i = 0; i < probes->tasks_count; i++) {
		struct ky_probe_task task = probes->tasks[i];
		if (task.is_end)
			note_end(probes, &task);
		else if (!note_fork(probes, &task) && !task.waited) {
			task.waited = true;
			probes->tasks[waiting++] = task;
		}
	}
	probes->tasks_count = waiting;
	if (probes->ends >= ENDS_AT_ONCE)
		ky_probe_rings_sweep(probes);
}

/* ---- records ---- */

static void note_sample(struct ky_probes *probes, const struct perf_event_header *header)
{
	const struct ky_perf_raw raw = ky_perf_record_raw(header);
	struct ky_perf_cursor cursor = {raw.body, (const uint8_t *)header + header->size,
					KY_PERF_BIG_HERE, false};
	struct ky_perf_where where;
	struct ky_perf_fields fields;
	ky_perf_record_where(&where, &raw, WHERE_TYPE, 0, KY_PERF_BIG_HERE);
	ky_perf_record_sample(&fields, &cursor, WHERE_TYPE, 0);
	const uint64_t *const event = ky_pair_map_find(&probes->event_of, where.id, 0);
	if (!event)
		return;
	struct ky_probe_hit *const hit =
		probes->hits_count < HITS_MAX
			? KY_ARRAY_NEW(probes->hits, probes->hits_count, probes->hits_room)
			: NULL;
	if (!hit) {
		probes->lost++;
		return;
	}
	*hit = (struct ky_probe_hit){.time_ns = where.time,
				     .event = *event - 1,
				     .pid = (int32_t)where.pid,
				     .tid = (int32_t)where.tid,
				     .cpu = where.cpu};
	if (!probe_args.mask || ky_perf_take_u64(&cursor) != PERF_SAMPLE_REGS_ABI_64)
		return;
	const uint64_t registers[2] = {ky_perf_take_u64(&cursor), ky_perf_take_u64(&cursor)};
	hit->args_count = 2;
	hit->args[0] = registers[probe_args.first];
	hit->args[1] = registers[probe_args.second];
}

static void note_task(struct ky_probes *probes, const struct ky_perf_record *record)
{
	const bool is_end = record->type == PERF_RECORD_EXIT;
	if (!is_end && record->pid == record->task.parent_pid)
		return;
	const struct ky_probe_task task = {.time_ns = record->task.time,
					   .pid = (int32_t)record->pid,
					   .parent = (int32_t)record->task.parent_pid,
					   .is_end = is_end};
	if (probes->tasks_count < TASKS_MAX)
		(void)KY_ARRAY_ADD(probes->tasks, probes->tasks_count, probes->tasks_room, task);
}

static void note_record(struct ky_probes *probes, const struct perf_event_header *header)
{
	struct ky_perf_record record;
	if (header->type == PERF_RECORD_SAMPLE)
		note_sample(probes, header);
	else if (!ky_perf_record_parse(&record, header, WHERE_TYPE))
		return;
	else if (record.type == PERF_RECORD_LOST)
		probes->lost += record.lost;
	else if (record.type == PERF_RECORD_FORK || record.type == PERF_RECORD_EXIT)
		note_task(probes, &record);
}

void ky_probe_rings_read(struct ky_probes *probes)
{
	for (uint32_t i = 0; i < probes->rings.cpus_count; i++) {
		struct ky_perf_ring *const ring = &probes->rings.cpus[i].ring;
		const struct perf_event_header *header;
		ky_perf_ring_begin(ring);
		while ((header = ky_perf_ring_next(ring)))
			note_record(probes, header);
		ky_perf_ring_end(ring);
	}
	settle_tasks(probes);
}

/* ---- hits ---- */

KY_ORDER(by_time, struct ky_probe_hit, KY_COMPARE(a->time_ns, b->time_ns))

static uint64_t boottime_minus_monotonic_ns(void)
{
	const int64_t monotonic = ky_clock_monotonic();
	const int64_t apart = ky_clock_boottime() - monotonic;
	/* Without a suspend they are the same clock: the difference is the time between the two calls. */
	return apart < 1000000 ? 0 : (uint64_t)apart;
}

/* Report whether another event of the same thread and address reported this hit already. */
static bool is_reported(struct ky_probes *probes, const struct ky_probe_hit *hit)
{
	const uint64_t address = probes->events[hit->event].address;
	struct ky_probe_recent *recent =
		&probes->recent[ky_hash_pair((uint64_t)hit->tid, address) & (KY_PROBE_RECENT - 1)];
	const uint64_t id = probes->events[hit->event].id;
	/* A trap is on one CPU: a thread that moved to another CPU hit again, by that CPU's event. */
	if (recent->tid == hit->tid && recent->address == address && recent->event != id &&
	    recent->cpu == hit->cpu && hit->time_ns - recent->time_ns < SAME_TRAP_NS)
		return true;
	*recent = (struct ky_probe_recent){.address = address,
					   .event = id,
					   .time_ns = hit->time_ns,
					   .tid = hit->tid,
					   .cpu = hit->cpu};
	return false;
}

static void report_hit(struct ky_probes *probes, const struct ky_probe_hit *hit, uint64_t shift_ns)
{
	const struct ky_trigger *trigger =
		&probes->options.triggers[probes->events[hit->event].trigger];
	struct ky_fired fired = {.trigger = trigger,
				 .time_ns = hit->time_ns + shift_ns,
				 .pid = hit->pid,
				 .tid = hit->tid,
				 .args_count = hit->args_count,
				 .args = {hit->args[0], hit->args[1]}};
	char reason[512];
	if (trigger->kind == KY_TRIGGER_SYMBOL)
		snprintf(reason, sizeof(reason), "%s was called", trigger->symbol);
	else
		snprintf(reason, sizeof(reason), "%s:%u was reached", trigger->file,
			 (unsigned)trigger->line);
	fired.reason = reason;
	probes->options.fired(probes->options.context, &fired);
}

bool ky_probe_rings_fire(struct ky_probes *probes)
{
	const uint64_t shift_ns = boottime_minus_monotonic_ns();
	const pid_t self = getpid(); /* only its children count */
	uint64_t waiting = 0;
	if (probes->hits_count)
		qsort(probes->hits, probes->hits_count, sizeof(*probes->hits), by_time);
	for (uint64_t i = 0; i < probes->hits_count; i++) {
		struct ky_probe_hit hit = probes->hits[i];
		const bool known = process_of(probes, hit.pid) != NULL;
		if (hit.pid == self)
			continue;
		if (known && !(probes->events[hit.event].address && is_reported(probes, &hit)))
			report_hit(probes, &hit, shift_ns);
		if (known || hit.waited)
			continue;
		hit.waited = true;
		probes->hits[waiting++] = hit;
	}
	probes->hits_count = waiting;
	return waiting != 0;
}
