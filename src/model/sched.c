/* SPDX-License-Identifier: MIT */
/*
 * sched.c: the tables sched (which thread runs on which CPU) and thread_states from switches and wakeups, by the
 * rules of Perfetto's trackers.
 *
 *   CPU 1    ├── init ──┤├── sh ──────────┤├── idle ...        sched: a row from switch to switch
 *   sh    R ─┤ Running           ├ S ─────┤ R ├ Running        thread_states: always one open
 *
 * A switch whose prev is not the thread that the CPU last switched to means that events were lost: the last slice
 * stays without an end. The idle task has sched slices and no states.
 */
#include "base/array.h"
#include "model/kernel_state.h"

struct ky_cpu_state *ky_sched_cpu(struct ky_trace *trace, uint32_t cpu)
{
	struct ky_kernel_state *state = trace->build->kernel;
	if (cpu >= KY_CPUS_MAX) {
		ky_problem(trace, "cpu_out_of_range", KY_ERROR, KY_NO_PLACE, "CPU %u", cpu);
		return NULL;
	}
	if (cpu >= state->cpus_room &&
	    !KY_ARRAY_GROW_ZERO(state->cpus, state->cpus_room, cpu + 1)) {
		ky_trace_no_memory(trace);
		return NULL;
	}
	return &state->cpus[cpu];
}

struct ky_thread_rows *ky_sched_rows(struct ky_trace *trace, uint32_t thread)
{
	struct ky_kernel_state *state = trace->build->kernel;
	if (thread >= trace->threads.rows.count)
		return NULL;
	if (thread >= state->threads_room &&
	    !KY_ARRAY_GROW_ZERO(state->threads, state->threads_room, thread + 1)) {
		ky_trace_no_memory(trace);
		return NULL;
	}
	return &state->threads[thread];
}

static uint32_t last_state(const struct ky_trace *trace, const struct ky_thread_rows *rows)
{
	return trace->thread_states.state[rows->last - 1];
}

bool ky_sched_runs(const struct ky_trace *trace, uint32_t thread)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	if (thread >= state->threads_room || !state->threads[thread].last)
		return false;
	return last_state(trace, &state->threads[thread]) == state->running;
}

void ky_sched_close_state(struct ky_trace *trace, int64_t ts, const struct ky_thread_rows *rows)
{
	if (rows->last)
		trace->thread_states.dur[rows->last - 1] =
			ts - trace->thread_states.ts[rows->last - 1];
}

static void remember_row(const struct ky_kernel_state *state, struct ky_thread_rows *rows,
			 uint32_t row, uint32_t name)
{
	rows->last = row + 1;
	if (name == state->running)
		rows->blocked = 0;
	else if (name != state->runnable)
		rows->blocked = row + 1;
}

void ky_sched_open_state(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t name,
			 uint32_t cpu, uint32_t waker)
{
	struct ky_thread_rows *rows = ky_sched_rows(trace, thread);
	if (!rows || trace->threads.is_idle[thread])
		return;
	uint32_t row = ky_append(trace, &trace->thread_states);
	if (row == KY_NONE)
		return;
	struct ky_thread_states *states = &trace->thread_states;
	states->ts[row] = ts;
	states->dur[row] = -1;
	states->thread[row] = thread;
	states->state[row] = name;
	states->cpu[row] = cpu;
	states->waker[row] = waker;
	states->io_wait[row] = -1;
	states->blocked_function[row] = 0;
	remember_row(trace->build->kernel, rows, row, name);
}

static void switch_states(struct ky_trace *trace, int64_t ts, uint32_t cpu, uint32_t prev,
			  uint32_t prev_state, uint32_t next)
{
	const struct ky_thread_rows *rows = ky_sched_rows(trace, prev);
	/* It was not running: events are missing, and the end of its state is unknown. */
	if (rows && rows->last && last_state(trace, rows) == trace->build->kernel->running)
		ky_sched_close_state(trace, ts, rows);
	ky_sched_open_state(trace, ts, prev, prev_state, KY_NONE, KY_NONE);
	rows = ky_sched_rows(trace, next);
	if (rows)
		ky_sched_close_state(trace, ts, rows);
	ky_sched_open_state(trace, ts, next, trace->build->kernel->running, cpu, KY_NONE);
}

static void close_slice(struct ky_trace *trace, int64_t ts, const struct ky_cpu_state *cpu,
			const struct ky_switch *event)
{
	if (!cpu->slice)
		return;
	if (cpu->tid != event->prev_tid) {
		ky_problem(trace, "mismatched_sched_switch_tids", KY_DATA_LOSS, KY_NO_PLACE,
			   "CPU %u was switched to %d, and is switched away from %d", event->cpu,
			   cpu->tid, event->prev_tid);
		return;
	}
	trace->sched.dur[cpu->slice - 1] = ts - trace->sched.ts[cpu->slice - 1];
	trace->sched.end_state[cpu->slice - 1] = event->prev_state;
}

void ky_sched_open_slice(struct ky_trace *trace, int64_t ts, struct ky_cpu_state *cpu,
			 const struct ky_switch *event, uint32_t thread)
{
	uint32_t row = ky_append(trace, &trace->sched);
	if (row == KY_NONE)
		return;
	trace->sched.ts[row] = ts;
	trace->sched.dur[row] = -1;
	trace->sched.cpu[row] = event->cpu;
	trace->sched.thread[row] = thread;
	trace->sched.end_state[row] = 0;
	trace->sched.priority[row] = event->next_priority;
	cpu->slice = row + 1;
	cpu->tid = event->next_tid;
}

void ky_sched_switch(struct ky_trace *trace, int64_t ts, const struct ky_switch *event)
{
	uint32_t next = ky_kernel_thread(trace, event->next_tid);
	uint32_t prev = ky_kernel_thread(trace, event->prev_tid);
	struct ky_cpu_state *cpu = ky_sched_cpu(trace, event->cpu);
	/* Below 0: a switch to a thread without a row (Fuchsia's idle threads). */
	if (!cpu || (next == KY_NONE && event->next_tid >= 0))
		return;
	if (!event->prev_state)
		ky_problem(trace, "task_state_invalid", KY_ERROR, KY_NO_PLACE,
			   "thread %d was switched away from with an unknown state",
			   event->prev_tid);
	ky_thread_name(trace, next, event->next_comm, KY_NAME_KERNEL);
	close_slice(trace, ts, cpu, event);
	if (prev != KY_NONE)
		ky_thread_name(trace, prev, event->prev_comm, KY_NAME_KERNEL);
	if (next != KY_NONE)
		ky_sched_open_slice(trace, ts, cpu, event, next);
	else
		cpu->slice = 0;
	switch_states(trace, ts, event->cpu, prev, event->prev_state, next);
}

void ky_sched_waking(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t waker)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	const struct ky_thread_rows *rows = ky_sched_rows(trace, thread);
	if (!rows)
		return;
	if (rows->last) {
		uint32_t name = last_state(trace, rows);
		if (name == state->running || name == state->runnable)
			return;
		ky_sched_close_state(trace, ts, rows);
	}
	ky_sched_open_state(trace, ts, thread, state->runnable, KY_NONE, waker);
}

void ky_sched_new(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t by)
{
	ky_sched_open_state(trace, ts, thread, trace->build->kernel->runnable, KY_NONE, by);
}

void ky_sched_blocked(struct ky_trace *trace, uint32_t thread, bool io_wait, uint32_t function)
{
	const struct ky_thread_rows *rows = ky_sched_rows(trace, thread);
	if (!rows || !rows->blocked)
		return;
	trace->thread_states.io_wait[rows->blocked - 1] = io_wait;
	if (function)
		trace->thread_states.blocked_function[rows->blocked - 1] = function;
}
