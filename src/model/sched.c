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
#include "model/kernel_state.h"

#include "base/array.h"
#include "model/build.h"
#include "model/kernel.h"

/* Return the state of a CPU; NULL without memory. */
static struct ky_cpu_state *cpu_state(struct ky_trace *trace, uint32_t cpu)
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

/* Return the rows of a thread; NULL without memory. */
static struct ky_thread_rows *rows_of(struct ky_trace *trace, uint32_t thread)
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

static void open_state(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t name,
		       uint32_t cpu, uint32_t waker)
{
	struct ky_thread_rows *rows = rows_of(trace, thread);
	if (!rows || trace->threads.is_idle[thread])
		return;
	uint32_t row = ky_append(trace, &trace->thread_states);
	if (row == KY_NONE)
		return;
	struct ky_thread_states *states = &trace->thread_states;
	/* Events are missing: when that state ended is unknown, but now at the latest. Perfetto leaves it open. */
	if (rows->last && states->dur[rows->last - 1] == -1)
		ky_sched_close_state(trace, ts, rows);
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
	open_state(trace, ts, prev, prev_state, KY_NONE, KY_NONE);
	open_state(trace, ts, next, trace->build->kernel->running, cpu, KY_NONE);
}

/* Close the state of a thread that ran on the CPU, where now another one does: its next state is unknown. */
static void close_lost(struct ky_trace *trace, int64_t ts, const struct ky_cpu_state *cpu,
		       uint32_t number)
{
	const struct ky_thread_rows *const rows =
		rows_of(trace, trace->sched.thread[cpu->slice - 1]);
	if (rows && rows->last && trace->thread_states.dur[rows->last - 1] == -1 &&
	    trace->thread_states.cpu[rows->last - 1] == number)
		ky_sched_close_state(trace, ts, rows);
}

static void close_slice(struct ky_trace *trace, int64_t ts, const struct ky_cpu_state *cpu,
			const struct ky_switch *event)
{
	if (!cpu->slice)
		return;
	if (cpu->tid != event->prev_tid) {
		close_lost(trace, ts, cpu, event->cpu);
		ky_problem(trace, "mismatched_sched_switch_tids", KY_DATA_LOSS, KY_NO_PLACE,
			   "CPU %u was switched to %d, and is switched away from %d", event->cpu,
			   cpu->tid, event->prev_tid);
		return;
	}
	trace->sched.dur[cpu->slice - 1] = ts - trace->sched.ts[cpu->slice - 1];
	trace->sched.end_state[cpu->slice - 1] = event->prev_state;
}

static void open_slice(struct ky_trace *trace, int64_t ts, struct ky_cpu_state *cpu,
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
	struct ky_cpu_state *cpu = cpu_state(trace, event->cpu);
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
		open_slice(trace, ts, cpu, event, next);
	else
		cpu->slice = 0;
	switch_states(trace, ts, event->cpu, prev, event->prev_state, next);
}

void ky_sched_waking(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t waker)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	const struct ky_thread_rows *rows = rows_of(trace, thread);
	if (!rows)
		return;
	if (rows->last) {
		uint32_t name = last_state(trace, rows);
		if (name == state->running || name == state->runnable)
			return;
		ky_sched_close_state(trace, ts, rows);
	}
	open_state(trace, ts, thread, state->runnable, KY_NONE, waker);
}

void ky_sched_new(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t by)
{
	open_state(trace, ts, thread, trace->build->kernel->runnable, KY_NONE, by);
}

void ky_sched_blocked(struct ky_trace *trace, uint32_t thread, bool io_wait, uint32_t function)
{
	const struct ky_thread_rows *rows = rows_of(trace, thread);
	if (!rows || !rows->blocked)
		return;
	trace->thread_states.io_wait[rows->blocked - 1] = io_wait;
	if (function)
		trace->thread_states.blocked_function[rows->blocked - 1] = function;
}

/* ---- kernels that report one task at a time ---- */

/*
 * The tables sched and thread_states from kernels that report one task at a time, by the rules of
 * Perfetto's generic kernel events. A task stops running on a CPU when its state changes, or when another one runs
 * there; in the second case its new state may still follow, at the same time:
 *
 *   a runs ... a sleeps, b runs        a's slice ends as S
 *   a runs ... b runs, a sleeps        a's slice is left hanging, and then ends as S
 */

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
	const struct ky_thread_rows *rows = rows_of(trace, thread);
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
	const struct ky_thread_rows *rows = rows_of(trace, thread);
	if (!rows)
		return;
	ky_sched_close_state(trace, ts, rows);
	open_state(trace, ts, thread, state, cpu, KY_NONE);
}

static void runs(struct ky_trace *trace, int64_t ts, const struct ky_task_step *step,
		 struct ky_cpu_state *cpu, uint32_t thread)
{
	if (cpu->slice) {
		const uint32_t other = trace->sched.thread[cpu->slice - 1];
		struct ky_thread_rows *rows = rows_of(trace, other);
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
	open_slice(trace, ts, cpu, &event, thread);
	push_state(trace, ts, thread, trace->build->kernel->running, step->cpu);
}

/* Report whether the state is the one that the thread's hanging slice waits for. */
static bool ends_hanging(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t state)
{
	struct ky_thread_rows *rows = rows_of(trace, thread);
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
	struct ky_cpu_state *cpu = cpu_state(trace, step->cpu);
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

/* ---- letters of states ---- */

/*
 * The states of tasks: their letters from the bits of sched_switch, and rows of inputs that hold states
 * instead of switches. The meaning of the bits changed with the kernel:
 *
 *           0x01 0x02 0x04 0x08 0x10 0x20 0x40 0x80 0x100 0x200 0x400 0x800 0x1000
 *   4.14 on  S    D    T    t    X    Z    P    I    +
 *   4.8      S    D    T    t    X    Z    x    K    W     P     N           +
 *   before   S    D    T    t    X    Z    x    K    W     P     N     +
 */

struct bit_letter {
	uint16_t bit;
	char letter;
};

/* Letters in the order in which they are written. */
static const struct bit_letter modern[] = {{0x01, 'S'}, {0x02, 'D'}, {0x04, 'T'}, {0x08, 't'},
					   {0x10, 'X'}, {0x20, 'Z'}, {0x40, 'P'}, {0x80, 'I'}};
static const struct bit_letter old[] = {{0x01, 'S'}, {0x02, 'D'},  {0x04, 'T'},  {0x08, 't'},
					{0x10, 'X'}, {0x20, 'Z'},  {0x200, 'P'}, {0x40, 'x'},
					{0x80, 'K'}, {0x100, 'W'}, {0x400, 'N'}};

#define RELEASE(major, minor) ((major) << 8 | (minor))
/* An uninterruptible sleep that does not count as load: idle. */
#define OLD_IDLE 0x402u
#define OLD_BITS 0x7FFu

static uint32_t write_letters(struct ky_trace *trace, uint32_t mask, const struct bit_letter *bits,
			      size_t count)
{
	char text[16];
	size_t used = 0;
	for (size_t i = 0; i < count; i++)
		if (mask & bits[i].bit)
			text[used++] = bits[i].letter;
	return ky_string(trace, text, used);
}

uint32_t ky_task_state(struct ky_trace *trace, uint64_t mask, uint32_t release)
{
	uint32_t bits = (uint32_t)(mask & 0xFFFF);
	bool is_modern = release >= RELEASE(4, 14);
	uint32_t preempted = is_modern ? 0x100 : release >= RELEASE(4, 8) ? 0x1000 : 0x800;
	uint32_t known = is_modern ? 0xFFu : OLD_BITS;
	if (is_modern && bits & 0xFE00)
		return 0;
	if (!(bits & known))
		return ky_string_z(trace, bits & preempted ? "R+" : "R");
	if (!is_modern && (bits & OLD_BITS) == OLD_IDLE)
		return ky_string_z(trace, "I");
	return is_modern ? write_letters(trace, bits, modern, sizeof(modern) / sizeof(modern[0]))
			 : write_letters(trace, bits, old, sizeof(old) / sizeof(old[0]));
}

static void add_sched(struct ky_trace *trace, const struct ky_state_span *span)
{
	struct ky_sched *sched = &trace->sched;
	const uint32_t row = ky_append(trace, sched);
	if (row == KY_NONE)
		return;
	sched->ts[row] = span->ts;
	sched->dur[row] = span->dur;
	sched->cpu[row] = span->cpu;
	sched->thread[row] = span->thread;
	sched->end_state[row] = 0;
	sched->priority[row] = 0;
}

void ky_put_state_span(struct ky_trace *trace, const struct ky_state_span *span)
{
	struct ky_thread_states *states = &trace->thread_states;
	const char *state = ky_text_of(trace, span->state);
	const bool running = state && strcmp(state, "Running") == 0 && span->cpu != KY_NONE;
	const uint32_t row = ky_append(trace, states);

	trace->events++;
	if (row == KY_NONE)
		return;
	states->ts[row] = span->ts;
	states->dur[row] = span->dur;
	states->thread[row] = span->thread;
	states->state[row] = span->state;
	states->cpu[row] = running ? span->cpu : KY_NONE;
	states->waker[row] = KY_NONE;
	states->io_wait[row] = span->io_wait;
	states->blocked_function[row] = span->blocked_function;
	if (running)
		add_sched(trace, span);
}
