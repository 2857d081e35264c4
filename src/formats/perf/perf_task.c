/* SPDX-License-Identifier: MIT */
/*
 * perf_task.c: names, begins and ends of processes and threads. perf records the end of a thread when it begins to
 * end: samples of what it still does come later. So its end waits until its tid is used again, or for
 * the end of the recording, and is then at the last that was seen of it.
 */
#include "base/array.h"
#include "formats/perf/perf_session.h"

#include "model/kernel.h"

#include <errno.h>

struct ky_perf_ending {
	uint32_t tid;
	bool over; /* the tid was used again, and the end was put */
	uint64_t time;
};

/* The comm that a new task has from the one that made it. */
static uint32_t comm_of(const struct ky_perf *perf, uint32_t tid)
{
	const uint32_t *comm = ky_u64_map_find(&perf->comm_of, tid);
	return comm ? *comm : 0;
}

static void set_comm(struct ky_perf *perf, uint32_t tid, uint32_t comm)
{
	bool made;
	uint32_t *slot = ky_u64_map_add(&perf->comm_of, tid, &made);
	if (slot)
		*slot = comm;
}

static struct ky_perf_ending *ending_of(const struct ky_perf *perf, uint32_t tid)
{
	const uint32_t *number =
		perf->endings_count ? ky_u64_map_find(&perf->ending_of, tid) : NULL;
	return number && *number != KY_NONE ? &perf->endings[*number] : NULL;
}

void ky_perf_task_seen(struct ky_perf *perf, const struct ky_perf_where *where)
{
	struct ky_perf_ending *ending = ending_of(perf, where->tid);
	if (ending && !ending->over && where->time > ending->time)
		ending->time = where->time;
}

/* perf records an exit before the last switches of the thread, ftrace after them. */
static void put_end(struct ky_perf *perf, struct ky_perf_ending *ending)
{
	if (!ending->over && !ky_trace_is_kernel_twice(perf->trace))
		ky_put_task_exit(perf->trace, (int64_t)ending->time, (int32_t)ending->tid);
	ending->over = true;
}

void ky_perf_task_end(struct ky_perf *perf)
{
	for (uint32_t i = 0; i < perf->endings_count; i++)
		put_end(perf, &perf->endings[i]);
}

void ky_perf_task_comm(struct ky_perf *perf, const struct ky_perf_raw *raw,
		       const struct ky_perf_where *where)
{
	struct ky_perf_record record;
	if (!ky_perf_record_body(&record, raw, where->trailer_bytes, perf->big) ||
	    (int32_t)record.tid < 0 || (int32_t)record.pid < 0) {
		ky_perf_record_short(perf, raw);
		return;
	}
	const uint32_t pid = record.pid, tid = record.tid;
	const uint32_t comm = ky_string(perf->trace, record.comm.name, record.comm.bytes);
	set_comm(perf, tid, comm);
	if (record.comm.exec)
		ky_perf_space_exec(perf, pid);
	if (where->timed && where->time) {
		ky_put_task_group(perf->trace, (int64_t)where->time, (int32_t)tid, (int32_t)pid);
		ky_put_task_rename(perf->trace, (int64_t)where->time, (int32_t)tid, comm);
	} else if (tid) {
		const uint32_t thread = ky_thread(perf->trace, pid, tid);
		ky_thread_name(perf->trace, thread, comm, KY_NAME_KERNEL);
		if (pid == tid)
			ky_process_name(perf->trace, ky_process(perf->trace, pid), comm,
					KY_NAME_SYSTEM);
	}
}

static void begin(struct ky_perf *perf, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid,
		  uint64_t time)
{
	const bool thread = pid == ppid;
	struct ky_perf_ending *ending = ending_of(perf, tid);
	if (ending)
		put_end(perf, ending);
	const uint32_t comm = comm_of(perf, ptid);
	set_comm(perf, tid, comm);
	if (!thread)
		ky_perf_space_fork(perf, ppid, pid);
	if (!time) {
		if (tid)
			ky_thread(perf->trace, pid, tid);
		return;
	}
	ky_put_task_group(perf->trace, (int64_t)time, (int32_t)ptid, (int32_t)ppid);
	ky_put_task_new(perf->trace, (int64_t)time, (int32_t)ptid, (int32_t)tid, comm, thread);
}

static void end(struct ky_perf *perf, uint32_t tid, uint64_t time)
{
	bool made;
	if (!tid || !time)
		return;
	uint32_t *number = ky_u64_map_add(&perf->ending_of, tid, &made);
	if (number && made)
		*number = KY_NONE;
	if (number && *number == KY_NONE) {
		if (!KY_ARRAY_GROW_ZERO(perf->endings, perf->endings_room,
					perf->endings_count + 1)) {
			perf->trace->error = -ENOMEM;
			return;
		}
		*number = perf->endings_count++;
	}
	if (!number)
		return;
	perf->endings[*number] = (struct ky_perf_ending){.tid = tid, .time = time};
}

void ky_perf_task(struct ky_perf *perf, const struct ky_perf_raw *raw,
		  const struct ky_perf_where *where)
{
	struct ky_perf_record record;
	if (!ky_perf_record_body(&record, raw, 0, perf->big) || (int32_t)record.pid < 0 ||
	    (int32_t)record.tid < 0 || (int32_t)record.task.parent_tid < 0 ||
	    (int32_t)record.task.parent_pid < 0) {
		ky_perf_record_short(perf, raw);
		return;
	}
	uint64_t time = where->time;
	if (!where->timed)
		time = record.task.time ? ky_perf_trace_time(perf, record.task.time) : 0;
	if (raw->type == PERF_RECORD_FORK)
		begin(perf, record.pid, record.task.parent_pid, record.tid, record.task.parent_tid,
		      time);
	else
		end(perf, record.tid, time);
}

/* ---- switches ---- */

static int32_t running_on(const struct ky_perf *perf, uint32_t cpu)
{
	const uint32_t *tid = ky_u64_map_find(&perf->switched_to, cpu);
	return tid ? (int32_t)*tid : -1;
}

static void put(struct ky_perf *perf, const struct ky_perf_where *where, int32_t prev, int32_t next,
		bool preempted)
{
	bool made;
	const struct ky_switch event = {
		.cpu = where->cpu,
		.prev_tid = prev,
		.prev_priority = 0,
		.prev_state = ky_string_z(perf->trace, preempted   ? "R+"
						       : prev == 0 ? "R"
								   : "S"),
		.next_tid = next,
	};
	ky_put_switch(perf->trace, (int64_t)where->time, &event);
	uint32_t *tid = ky_u64_map_add(&perf->switched_to, where->cpu, &made);
	if (tid)
		*tid = (uint32_t)next;
}

void ky_perf_switch(struct ky_perf *perf, const struct ky_perf_raw *raw,
		    const struct ky_perf_where *where)
{
	struct ky_perf_record record;
	if (where->cpu == KY_NONE || where->tid == KY_NONE || perf->has_sched_switch)
		return;
	if (!ky_perf_record_body(&record, raw, where->trailer_bytes, perf->big)) {
		ky_perf_record_short(perf, raw);
		return;
	}
	const bool cpu_wide = record.type == PERF_RECORD_SWITCH_CPU_WIDE;
	const int32_t other = (int32_t)record.switched.other_tid;
	const int32_t now = running_on(perf, where->cpu);
	if (record.switched.out)
		put(perf, where, (int32_t)where->tid, other < 0 ? 0 : other,
		    record.switched.preempted);
	else if (now != (int32_t)where->tid)
		put(perf, where, cpu_wide ? other : now, (int32_t)where->tid, false);
}
