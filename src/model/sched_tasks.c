/* SPDX-License-Identifier: MIT */
/*
 * sched_tasks.c: the tables sched and thread_states from kernels that report one task at a time, by the rules of
 * Perfetto's generic kernel events. A task stops running on a CPU when its state changes, or when another one runs
 * there; in the second case its new state may still follow, at the same time:
 *
 *   a runs ... a sleeps, b runs        a's slice ends as S
 *   a runs ... b runs, a sleeps        a's slice is left hanging, and then ends as S
 */
#include "model/kernel_state.h"

/* The words of thread_states, by enum ky_task_now. */
static const char *const words[] = {NULL, "Created", "R", "Running", "S", "D", "T", "Z", "X"};

static bool out_of_order(struct ky_trace *trace, const struct ky_task_step *step)
{
	ky_problem(trace, "generic_task_state_invalid_order", KY_ERROR, KY_NO_PLACE,
		   "thread %lld cannot become %s now", (long long)step->tid, words[step->now]);
	return false;
}

static uint32_t created(struct ky_trace *trace, int64_t ts, const struct ky_task_step *step)
{
	uint32_t thread = ky_thread_new(trace, KY_NONE, step->tid);
	if (thread >= trace->threads.rows.count)
		return KY_NONE;
	trace->threads.start_ts[thread] = ts;
	return thread;
}

/* Report whether the state may follow the thread's current one. */
static bool may_follow(struct ky_trace *trace, const struct ky_task_step *step, uint32_t thread)
{
	const struct ky_thread_rows *rows = ky_sched_rows(trace, thread);
	if (!rows || !rows->last)
		return rows != NULL;
	const uint32_t state = trace->thread_states.state[rows->last - 1];
	if (state == ky_string_z(trace, words[KY_TASK_DEAD]))
		return out_of_order(trace, step);
	if (step->now == KY_TASK_RUNNING && state == trace->build->kernel->running)
		return out_of_order(trace, step);
	return true;
}

/* Return the thread of an event, or KY_NONE to drop it. */
static uint32_t thread_of(struct ky_trace *trace, int64_t ts, const struct ky_task_step *step)
{
	uint32_t thread = ky_kernel_thread_find(trace, step->tid);
	if (step->now == KY_TASK_CREATED) {
		if (thread != KY_NONE) {
			(void)out_of_order(trace, step);
			return KY_NONE;
		}
		thread = created(trace, ts, step);
	} else if (thread == KY_NONE) {
		thread = ky_kernel_thread(trace, step->tid);
	} else if (step->now != KY_TASK_DESTROYED && !may_follow(trace, step, thread)) {
		return KY_NONE;
	}
	if (thread == KY_NONE)
		return KY_NONE;
	if (step->comm)
		ky_thread_name(trace, thread, step->comm, KY_NAME_KERNEL);
	if (step->now == KY_TASK_DESTROYED)
		trace->threads.end_ts[thread] = ts;
	return thread;
}

static void end_slice(struct ky_trace *trace, int64_t ts, uint32_t slice, uint32_t state)
{
	trace->sched.dur[slice - 1] = ts - trace->sched.ts[slice - 1];
	trace->sched.end_state[slice - 1] = state;
}

static void push_state(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t state,
		       uint32_t cpu)
{
	const struct ky_thread_rows *rows = ky_sched_rows(trace, thread);
	if (!rows)
		return;
	ky_sched_close_state(trace, ts, rows);
	ky_sched_open_state(trace, ts, thread, state, cpu, KY_NONE);
}

static void runs(struct ky_trace *trace, int64_t ts, const struct ky_task_step *step,
		 struct ky_cpu_state *cpu, uint32_t thread)
{
	if (cpu->slice) {
		const uint32_t other = trace->sched.thread[cpu->slice - 1];
		struct ky_thread_rows *rows = ky_sched_rows(trace, other);
		end_slice(trace, ts, cpu->slice, 0);
		if (rows)
			rows->hanging = cpu->slice;
		push_state(trace, ts, other, 0, KY_NONE);
	}
	const struct ky_switch event = {
		.cpu = step->cpu,
		.next_tid = (int32_t)step->tid,
		.next_priority = step->priority,
	};
	ky_sched_open_slice(trace, ts, cpu, &event, thread);
	push_state(trace, ts, thread, trace->build->kernel->running, step->cpu);
}

/* Report whether the state is the one that the thread's hanging slice waits for. */
static bool ends_hanging(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t state)
{
	struct ky_thread_rows *rows = ky_sched_rows(trace, thread);
	if (!rows || !rows->hanging)
		return false;
	const uint32_t slice = rows->hanging - 1;
	if (trace->sched.ts[slice] + trace->sched.dur[slice] != ts)
		return false;
	trace->sched.end_state[slice] = state;
	rows->hanging = 0;
	if (rows->last)
		trace->thread_states.state[rows->last - 1] = state;
	return true;
}

void ky_sched_task(struct ky_trace *trace, int64_t ts, const struct ky_task_step *step)
{
	if (step->now < KY_TASK_CREATED || step->now > KY_TASK_DESTROYED) {
		ky_problem(trace, "task_state_invalid", KY_ERROR, KY_NO_PLACE,
			   "thread %lld has an unknown state: %u", (long long)step->tid, step->now);
		return;
	}
	struct ky_cpu_state *cpu = ky_sched_cpu(trace, step->cpu);
	const uint32_t thread = cpu ? thread_of(trace, ts, step) : KY_NONE;
	if (thread == KY_NONE)
		return;
	if (step->now == KY_TASK_RUNNING) {
		runs(trace, ts, step, cpu, thread);
		return;
	}
	const uint32_t state = ky_string_z(trace, words[step->now]);
	if (cpu->slice && trace->sched.thread[cpu->slice - 1] == thread) {
		end_slice(trace, ts, cpu->slice, state);
		cpu->slice = 0;
	} else if (ends_hanging(trace, ts, thread, state)) {
		return;
	}
	push_state(trace, ts, thread, state, KY_NONE);
}
