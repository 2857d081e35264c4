/* SPDX-License-Identifier: MIT */
/*
 * tasks.c: processes and threads. When a pid or tid is used again, ky_process_new() or
 * ky_thread_new() adds a row, and from then on the number means that row.
 */
#include "model/build.h"

/* Two sources report the same moment at most this far apart. */
#define STARTED_AGAIN_NS 10000000

static uint64_t machine_of(const struct ky_trace *trace)
{
	return trace->build->machine;
}

uint32_t ky_process_new(struct ky_trace *trace, int64_t pid)
{
	struct ky_processes *processes = &trace->processes;
	bool made;
	uint64_t *current = ky_pair_map_add(&trace->build->process_by_pid, (uint64_t)pid,
					    machine_of(trace), &made);
	const uint32_t row = current ? ky_append(trace, processes) : KY_NONE;
	if (row == KY_NONE) {
		ky_trace_no_memory(trace);
		return 0;
	}
	*current = row;
	processes->pid[row] = pid;
	processes->name[row] = 0;
	processes->cmdline[row] = 0;
	processes->parent[row] = KY_NONE;
	processes->start_ts[row] = KY_TIME_NONE;
	processes->end_ts[row] = KY_TIME_NONE;
	processes->args[row] = 0;
	processes->machine[row] = trace->build->machine;
	processes->uid[row] = -1;
	processes->sort_index[row] = 0;
	processes->name_from[row] = KY_NAME_NONE;
	return row;
}

uint32_t ky_process(struct ky_trace *trace, int64_t pid)
{
	const uint64_t *current =
		ky_pair_map_find(&trace->build->process_by_pid, (uint64_t)pid, machine_of(trace));
	return current ? (uint32_t)*current : ky_process_new(trace, pid);
}

void ky_process_name(struct ky_trace *trace, uint32_t process, uint32_t name,
		     enum ky_name_from from)
{
	struct ky_processes *processes = &trace->processes;
	if (!name || process >= processes->rows.count || from < processes->name_from[process])
		return;
	processes->name[process] = name;
	processes->name_from[process] = (uint8_t)from;
}

/* Register the thread with its process, by its tid. */
static void join_process(struct ky_trace *trace, uint32_t thread, uint32_t process)
{
	struct ky_threads *threads = &trace->threads;
	threads->process[thread] = process;
	if (process == KY_NONE)
		return;
	threads->is_main[thread] = threads->tid[thread] == trace->processes.pid[process];
	bool made;
	uint64_t *slot = ky_pair_map_add(&trace->build->thread_by_process,
					 (uint64_t)threads->tid[thread], process, &made);
	if (slot)
		*slot = thread;
	else
		ky_trace_no_memory(trace);
}

uint32_t ky_thread_new(struct ky_trace *trace, uint32_t process, int64_t tid)
{
	struct ky_threads *threads = &trace->threads;
	bool made;
	uint64_t *current = ky_pair_map_add(&trace->build->thread_by_tid, (uint64_t)tid,
					    machine_of(trace), &made);
	const uint32_t row = current ? ky_append(trace, threads) : KY_NONE;
	if (row == KY_NONE) {
		ky_trace_no_memory(trace);
		return 0;
	}
	*current = row;
	threads->tid[row] = tid;
	threads->name[row] = 0;
	threads->start_ts[row] = KY_TIME_NONE;
	threads->end_ts[row] = KY_TIME_NONE;
	threads->machine[row] = trace->build->machine;
	threads->sort_index[row] = 0;
	threads->is_main[row] = 0;
	threads->name_from[row] = KY_NAME_NONE;
	threads->is_idle[row] = 0;
	join_process(trace, row, process < trace->processes.rows.count ? process : KY_NONE);
	return row;
}

uint32_t ky_thread_by_tid(struct ky_trace *trace, int64_t tid)
{
	const uint64_t *current =
		ky_pair_map_find(&trace->build->thread_by_tid, (uint64_t)tid, machine_of(trace));
	return current ? (uint32_t)*current : ky_thread_new(trace, KY_NONE, tid);
}

uint32_t ky_thread(struct ky_trace *trace, int64_t pid, int64_t tid)
{
	const uint32_t process = ky_process(trace, pid);
	const uint64_t *found =
		ky_pair_map_find(&trace->build->thread_by_process, (uint64_t)tid, process);
	if (found)
		return (uint32_t)*found;
	const uint64_t *current =
		ky_pair_map_find(&trace->build->thread_by_tid, (uint64_t)tid, machine_of(trace));
	if (!current || trace->threads.process[*current] != KY_NONE)
		return ky_thread_new(trace, process, tid);
	join_process(trace, (uint32_t)*current, process);
	return (uint32_t)*current;
}

void ky_thread_set_process(struct ky_trace *trace, uint32_t thread, uint32_t process)
{
	if (thread < trace->threads.rows.count && process < trace->processes.rows.count &&
	    trace->threads.process[thread] != process)
		join_process(trace, thread, process);
}

void ky_thread_name(struct ky_trace *trace, uint32_t thread, uint32_t name, enum ky_name_from from)
{
	struct ky_threads *threads = &trace->threads;
	if (!name || thread >= threads->rows.count || from < threads->name_from[thread])
		return;
	threads->name[thread] = name;
	threads->name_from[thread] = (uint8_t)from;
}

static void expect(struct ky_trace *trace, uint32_t row, uint64_t kind, int64_t ts)
{
	bool made;
	uint64_t *first = ky_pair_map_add(&trace->build->expected, row, kind, &made);
	if (!first)
		ky_trace_no_memory(trace);
	else if (made || ts < (int64_t)*first)
		*first = (uint64_t)ts;
}

void ky_thread_expect(struct ky_trace *trace, uint32_t thread, int64_t first_ts)
{
	if (thread >= trace->threads.rows.count)
		return;
	expect(trace, thread, KY_EXPECTED_THREAD, first_ts);
	if (trace->threads.process[thread] != KY_NONE)
		expect(trace, trace->threads.process[thread], KY_EXPECTED_PROCESS, first_ts);
}

void ky_trace_kernel_twice(struct ky_trace *trace)
{
	trace->build->kernel_twice = true;
}

bool ky_trace_is_kernel_twice(const struct ky_trace *trace)
{
	return trace->build->kernel_twice;
}

/* Report whether a row that started at start_ts, if known, is the task that starts now. */
static bool is_same_task(const struct ky_trace *trace, uint32_t row, uint64_t kind,
			 int64_t start_ts, int64_t end_ts, int64_t ts)
{
	const uint64_t *first = ky_pair_map_find(&trace->build->expected, row, kind);
	if (end_ts != KY_TIME_NONE)
		return false;
	if (first && (int64_t)*first >= ts)
		return true;
	return trace->build->kernel_twice && start_ts != KY_TIME_NONE &&
	       ts - start_ts <= STARTED_AGAIN_NS;
}

uint32_t ky_process_begin(struct ky_trace *trace, int64_t pid, int64_t ts)
{
	const struct ky_processes *processes = &trace->processes;
	const uint64_t *current =
		ky_pair_map_find(&trace->build->process_by_pid, (uint64_t)pid, machine_of(trace));
	if (current && is_same_task(trace, (uint32_t)*current, KY_EXPECTED_PROCESS,
				    processes->start_ts[*current], processes->end_ts[*current], ts))
		return (uint32_t)*current;
	return ky_process_new(trace, pid);
}

uint32_t ky_thread_begin(struct ky_trace *trace, uint32_t process, int64_t tid, int64_t ts)
{
	const struct ky_threads *threads = &trace->threads;
	const uint64_t *current =
		ky_pair_map_find(&trace->build->thread_by_tid, (uint64_t)tid, machine_of(trace));
	if (current && (process == KY_NONE || threads->process[*current] == process) &&
	    is_same_task(trace, (uint32_t)*current, KY_EXPECTED_THREAD, threads->start_ts[*current],
			 threads->end_ts[*current], ts))
		return (uint32_t)*current;
	return ky_thread_new(trace, process, tid);
}

void ky_trace_machine(struct ky_trace *trace, uint32_t machine)
{
	trace->build->machine = machine;
}
