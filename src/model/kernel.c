/* SPDX-License-Identifier: MIT */
/*
 * kernel.c: kernel events on their way through the stage: packed into words when they are put, and applied in the
 * order of time. The thread of a tid is decided only then.
 *
 * A tid is one thread until sched_process_free (ky_put_task_exit) or until task_newtask gives it to another; later
 * events belong to a new row. A thread that still runs when its end is reported keeps its row until it is switched
 * away from.
 */
#include "base/array.h"
#include "model/kernel_state.h"

#include <errno.h>
#include <stdlib.h>

/* ---- putting ---- */

void ky_put_switch(struct ky_trace *trace, int64_t ts, const struct ky_switch *event)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_SWITCH, event->cpu, (uint32_t)event->prev_tid,
		      (uint32_t)event->prev_priority, event->prev_comm, event->prev_state,
		      (uint32_t)event->next_tid, (uint32_t)event->next_priority, event->next_comm);
}

void ky_put_waking(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t comm,
		   int32_t waker_tid)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_WAKING, (uint32_t)tid, comm, (uint32_t)waker_tid);
}

void ky_put_blocked(struct ky_trace *trace, int64_t ts, int32_t tid, bool io_wait,
		    uint32_t function)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_BLOCKED, (uint32_t)tid, io_wait, function);
}

void ky_put_task_new(struct ky_trace *trace, int64_t ts, int32_t by_tid, int32_t tid, uint32_t comm,
		     bool thread)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TASK_NEW, (uint32_t)by_tid, (uint32_t)tid, comm, thread);
}

void ky_put_task_rename(struct ky_trace *trace, int64_t ts, int64_t tid, uint32_t comm)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TASK_RENAME, (uint32_t)tid, comm,
		      (uint32_t)((uint64_t)tid >> 32));
}

void ky_put_task_exit(struct ky_trace *trace, int64_t ts, int32_t tid)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TASK_EXIT, (uint32_t)tid);
}

void ky_put_task_step(struct ky_trace *trace, int64_t ts, const struct ky_task_step *step)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TASK_STATE, (uint32_t)step->tid,
		      (uint32_t)((uint64_t)step->tid >> 32), step->cpu, step->comm, step->now,
		      (uint32_t)step->priority);
}

void ky_put_task_group(struct ky_trace *trace, int64_t ts, int32_t tid, int32_t tgid)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TASK_GROUP, (uint32_t)tid, (uint32_t)tgid);
}

void ky_put_task_comm(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t comm)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TASK_COMM, (uint32_t)tid, comm);
}

void ky_put_task_hint(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t comm)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TASK_HINT, (uint32_t)tid, comm);
}

static uint32_t cpu_track_name(struct ky_trace *trace, const char *what, uint32_t cpu)
{
	return ky_string_format(trace, "%s Cpu %u", what, cpu);
}

void ky_put_cpu_begin(struct ky_trace *trace, int64_t ts, uint32_t cpu, const char *what,
		      uint32_t name, uint32_t args)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_CPU_BEGIN, cpu, cpu_track_name(trace, what, cpu), name,
		      args);
}

void ky_put_cpu_end(struct ky_trace *trace, int64_t ts, uint32_t cpu, const char *what,
		    uint32_t args)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_CPU_END, cpu, cpu_track_name(trace, what, cpu), args);
}

const char *ky_softirq_name(uint64_t number)
{
	static const char *const names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
					    "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
	return number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}

void ky_put_tid_begin(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t category,
		      uint32_t name, uint32_t args)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TID_BEGIN, (uint32_t)tid, category, name, args);
}

void ky_put_tid_end(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t category,
		    uint32_t name, uint32_t args)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TID_END, (uint32_t)tid, category, name, args);
}

void ky_put_cpu_counter(struct ky_trace *trace, int64_t ts, uint32_t cpu, uint32_t name,
			double value)
{
	uint64_t bits = ky_real_bits(value);
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_CPU_COUNTER, cpu, name, KY_TWO_WORDS(bits));
}

void ky_put_raw(struct ky_trace *trace, int64_t ts, uint32_t cpu, int32_t tid, uint32_t name,
		uint32_t args)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_RAW, cpu, (uint32_t)tid, name, args);
}

void ky_put_tid_instant(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t category,
			uint32_t name, uint32_t args)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TID_INSTANT, (uint32_t)tid, category, name, args);
}

void ky_put_raw_line(struct ky_trace *trace, int64_t ts, uint32_t cpu, int32_t tid, int32_t tgid,
		     uint32_t comm, uint32_t name, uint32_t args)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_RAW_LINE, cpu, (uint32_t)tid, name, args, (uint32_t)tgid,
		      comm);
}

void ky_put_tid_sample(struct ky_trace *trace, int64_t ts, int32_t pid, int32_t tid,
		       uint32_t callsite, uint32_t cpu, enum ky_cpu_mode mode, double weight,
		       uint32_t event)
{
	uint64_t bits = ky_real_bits(weight);
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TID_SAMPLE, (uint32_t)pid, (uint32_t)tid, callsite, cpu,
		      (uint32_t)mode, KY_TWO_WORDS(bits), event);
}

void ky_put_binder_transaction(struct ky_trace *trace, int64_t ts, int32_t tid,
			       const struct ky_binder_call *call)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_BINDER_CALL, (uint32_t)tid, (uint32_t)call->id,
		      (uint32_t)call->dest_node, (uint32_t)call->dest_tgid,
		      (uint32_t)call->dest_tid, call->reply, call->flags, call->code);
}

void ky_put_binder_received(struct ky_trace *trace, int64_t ts, int32_t tid, int32_t id)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_BINDER_RECEIVED, (uint32_t)tid, (uint32_t)id);
}

void ky_put_binder_command(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t command)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_BINDER_COMMAND, (uint32_t)tid, command);
}

/* ---- whose a tid is ---- */

static bool is_thread(const struct ky_trace *trace, uint32_t thread)
{
	return thread < trace->threads.rows.count;
}

static uint32_t idle_thread(struct ky_trace *trace)
{
	uint32_t thread = ky_thread(trace, 0, 0);
	if (!is_thread(trace, thread))
		return KY_NONE;
	if (!trace->threads.is_idle[thread]) {
		trace->threads.is_idle[thread] = 1;
		ky_thread_name(trace, thread, trace->build->kernel->swapper, KY_NAME_TRACE);
	}
	return thread;
}

static bool has_ended(const struct ky_trace *trace, uint32_t thread)
{
	uint32_t process = trace->threads.process[thread];
	return trace->threads.end_ts[thread] != KY_TIME_NONE ||
	       (process != KY_NONE && trace->processes.end_ts[process] != KY_TIME_NONE);
}

uint32_t ky_kernel_thread(struct ky_trace *trace, int64_t tid)
{
	if (tid <= 0)
		return tid == 0 ? idle_thread(trace) : KY_NONE;
	uint32_t thread = ky_thread_by_tid(trace, tid);
	if (is_thread(trace, thread) && has_ended(trace, thread) && !ky_sched_runs(trace, thread))
		thread = ky_thread_new(trace, KY_NONE, tid);
	return is_thread(trace, thread) ? thread : KY_NONE;
}

uint32_t ky_kernel_thread_find(struct ky_trace *trace, int64_t tid)
{
	const uint64_t *found = ky_pair_map_find(&trace->build->thread_by_tid, (uint64_t)tid,
						 trace->build->machine);
	return found && tid > 0 && !has_ended(trace, (uint32_t)*found) ? (uint32_t)*found : KY_NONE;
}

uint32_t ky_kernel_process(struct ky_trace *trace, int64_t tgid)
{
	if (tgid == 0) {
		uint32_t idle = idle_thread(trace);
		return idle == KY_NONE ? KY_NONE : trace->threads.process[idle];
	}
	uint32_t before = trace->processes.rows.count;
	uint32_t process = ky_process(trace, tgid);
	if (process < before && trace->processes.end_ts[process] != KY_TIME_NONE)
		process = ky_process_new(trace, tgid);
	/* A process has a main thread, seen or not. */
	if (process >= before && process < trace->processes.rows.count) {
		(void)ky_kernel_thread(trace, (int32_t)tgid);
		(void)ky_thread(trace, tgid, tgid);
	}
	return process < trace->processes.rows.count ? process : KY_NONE;
}

uint32_t ky_kernel_thread_in(struct ky_trace *trace, int64_t tgid, int32_t tid)
{
	uint32_t thread = ky_kernel_thread(trace, tid);
	if (tgid <= 0 || tgid > INT32_MAX || tid <= 0 || thread == KY_NONE ||
	    has_ended(trace, thread))
		return thread;
	if (ky_kernel_process(trace, tgid) == KY_NONE)
		return thread;
	thread = ky_thread(trace, tgid, tid);
	return is_thread(trace, thread) ? thread : KY_NONE;
}

static uint32_t known_comm(const struct ky_trace *trace, uint32_t comm)
{
	return comm == trace->build->kernel->unknown_comm ? 0 : comm;
}

static void name_thread(struct ky_trace *trace, uint32_t thread, uint32_t comm)
{
	if (thread != KY_NONE && known_comm(trace, comm))
		ky_thread_name(trace, thread, comm, KY_NAME_KERNEL);
}

/* ---- tasks ---- */

static void add_kin(struct ky_trace *trace, uint32_t thread, uint32_t other, bool child)
{
	struct ky_kernel_state *state = trace->build->kernel;
	if (!KY_ARRAY_GROW_ZERO(state->kin, state->kin_room, (uint64_t)state->kin_count + 1)) {
		ky_trace_no_memory(trace);
		return;
	}
	state->kin[state->kin_count++] = (struct ky_kin){thread, other, child};
}

static void new_process(struct ky_trace *trace, int64_t ts, uint32_t by, int32_t tid, uint32_t comm)
{
	uint32_t process = ky_process_begin(trace, tid, ts);
	uint32_t thread = ky_thread_begin(trace, process, tid, ts);
	if (!is_thread(trace, thread) || process >= trace->processes.rows.count)
		return;
	trace->processes.start_ts[process] = ts;
	trace->threads.start_ts[thread] = ts;
	name_thread(trace, thread, comm);
	if (known_comm(trace, comm))
		ky_process_name(trace, process, comm, KY_NAME_SYSTEM);
	if (by != KY_NONE)
		add_kin(trace, by, process, true);
	ky_sched_new(trace, ts, thread, by);
}

static void new_thread(struct ky_trace *trace, int64_t ts, uint32_t by, int32_t tid, uint32_t comm)
{
	uint32_t process = by == KY_NONE ? KY_NONE : trace->threads.process[by];
	uint32_t thread = ky_thread_begin(trace, process, tid, ts);
	if (!is_thread(trace, thread))
		return;
	trace->threads.start_ts[thread] = ts;
	name_thread(trace, thread, comm);
	if (by != KY_NONE && process == KY_NONE)
		add_kin(trace, by, thread, false);
	ky_sched_new(trace, ts, thread, by);
}

static void new_task(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	int32_t tid = (int32_t)words[1];
	if (tid <= 0)
		return; /* idle tasks, while booting */
	uint32_t by = ky_kernel_thread(trace, (int32_t)words[0]);
	if (words[3])
		new_thread(trace, ts, by, tid, words[2]);
	else
		new_process(trace, ts, by, tid, words[2]);
}

static void rename_task(struct ky_trace *trace, int64_t tid, uint32_t comm)
{
	uint32_t thread = ky_kernel_thread(trace, tid);
	if (thread == KY_NONE || !known_comm(trace, comm))
		return;
	name_thread(trace, thread, comm);
	uint32_t process = trace->threads.process[thread];
	if (process != KY_NONE && trace->processes.pid[process] == tid)
		ky_process_name(trace, process, comm, KY_NAME_SYSTEM);
}

static void end_task(struct ky_trace *trace, int64_t ts, int32_t tid)
{
	uint32_t thread = ky_kernel_thread_find(trace, tid);
	if (thread == KY_NONE)
		return;
	trace->threads.end_ts[thread] = ts;
	uint32_t process = trace->threads.process[thread];
	if (process != KY_NONE && trace->processes.pid[process] == tid)
		trace->processes.end_ts[process] = ts;
}

static void hint_task(struct ky_trace *trace, int32_t tid, uint32_t comm)
{
	const uint64_t *found = ky_pair_map_find(&trace->build->thread_by_tid,
						 (uint64_t)(int64_t)tid, trace->build->machine);
	if (found && !trace->threads.name[*found])
		name_thread(trace, (uint32_t)*found, comm);
}

/* ---- events as they are ---- */

static void add_raw(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	uint32_t thread = ky_kernel_thread(trace, (int32_t)words[1]);
	uint32_t row = ky_append(trace, &trace->raw_events);
	if (row == KY_NONE)
		return;
	trace->raw_events.ts[row] = ts;
	trace->raw_events.cpu[row] = words[0];
	trace->raw_events.thread[row] = thread;
	trace->raw_events.name[row] = words[2];
	trace->raw_events.args[row] = words[3];
}

static void add_raw_line(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	int32_t tid = (int32_t)words[1];
	name_thread(trace, ky_kernel_thread_in(trace, (int32_t)words[4], tid), words[5]);
	add_raw(trace, ts, words);
}

static uint32_t cpu_track(struct ky_trace *trace, uint32_t cpu, uint32_t name)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_CPU, .owner = cpu, .name = name};
	return ky_track(trace, &spec);
}

static uint32_t tid_track(struct ky_trace *trace, uint32_t tid)
{
	uint32_t thread = ky_kernel_thread(trace, (int32_t)tid);
	return thread == KY_NONE ? KY_NONE : ky_track_of_thread(trace, thread);
}

static void apply_span(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words)
{
	uint32_t track = sub == KY_KERNEL_CPU_BEGIN || sub == KY_KERNEL_CPU_END
				 ? cpu_track(trace, words[0], words[1])
				 : tid_track(trace, words[0]);
	if (track == KY_NONE)
		return;
	if (sub == KY_KERNEL_CPU_BEGIN)
		ky_build_begin(trace, ts, track, trace->build->kernel->irq, words[2], words[3]);
	else if (sub == KY_KERNEL_CPU_END)
		ky_build_end(trace, ts, track, trace->build->kernel->irq, 0, words[2]);
	else if (sub == KY_KERNEL_TID_BEGIN)
		ky_build_begin(trace, ts, track, words[1], words[2], words[3]);
	else if (sub == KY_KERNEL_TID_INSTANT)
		ky_build_instant(trace, ts, track, words[1], words[2], words[3]);
	else
		ky_build_end(trace, ts, track, words[1], words[2], words[3]);
}

static void apply_counter(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	uint32_t track = ky_track_counter(trace, KY_TRACK_CPU_COUNTER, words[0], words[1]);
	ky_build_counter(trace, ts, track, ky_words_real(words + 2), 0);
}

static void apply_sample(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	int32_t pid = (int32_t)words[0];
	uint32_t thread = ky_kernel_thread_in(trace, pid, (int32_t)words[1]);
	ky_build_sample(trace, ts, thread, words[2], words[3], (uint8_t)words[4],
			ky_words_real(words + 5), words[7]);
}

/* ---- applying ---- */

static void apply_switch(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	const struct ky_switch event = {
		.cpu = words[0],
		.prev_tid = (int32_t)words[1],
		.prev_priority = (int32_t)words[2],
		.prev_comm = known_comm(trace, words[3]),
		.prev_state = words[4],
		.next_tid = (int32_t)words[5],
		.next_priority = (int32_t)words[6],
		.next_comm = known_comm(trace, words[7]),
	};
	ky_sched_switch(trace, ts, &event);
}

static void apply_waking(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	uint32_t thread = ky_kernel_thread(trace, (int32_t)words[0]);
	uint32_t waker = ky_kernel_thread(trace, (int32_t)words[2]);
	name_thread(trace, thread, words[1]);
	ky_sched_waking(trace, ts, thread, waker);
}

static void apply_task(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words)
{
	int32_t tid = (int32_t)words[0];
	switch (sub) {
	case KY_KERNEL_TASK_NEW:
		new_task(trace, ts, words);
		break;
	case KY_KERNEL_TASK_RENAME:
		rename_task(trace, (int64_t)((uint64_t)words[2] << 32 | words[0]), words[1]);
		break;
	case KY_KERNEL_TASK_EXIT:
		end_task(trace, ts, tid);
		break;
	case KY_KERNEL_TASK_GROUP:
		(void)ky_kernel_thread_in(trace, (int32_t)words[1], tid);
		break;
	case KY_KERNEL_TASK_HINT:
		hint_task(trace, tid, words[1]);
		break;
	default:
		name_thread(trace, ky_kernel_thread(trace, tid), words[1]);
		break;
	}
}

static void apply_task_step(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	const struct ky_task_step step = {
		.tid = (int64_t)ky_words_u64(words),
		.cpu = words[2],
		.comm = known_comm(trace, words[3]),
		.now = words[4],
		.priority = (int32_t)words[5],
	};
	ky_sched_task(trace, ts, &step);
}

static void apply_binder(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words)
{
	int32_t tid = (int32_t)words[0];
	if (sub == KY_KERNEL_BINDER_RECEIVED) {
		ky_binder_received(trace, ts, tid, (int32_t)words[1]);
		return;
	}
	if (sub == KY_KERNEL_BINDER_COMMAND) {
		ky_binder_command(trace, ts, tid, words[1]);
		return;
	}
	const struct ky_binder_call call = {
		.id = (int32_t)words[1],
		.dest_node = (int32_t)words[2],
		.dest_tgid = (int32_t)words[3],
		.dest_tid = (int32_t)words[4],
		.reply = words[5] != 0,
		.flags = words[6],
		.code = words[7],
	};
	ky_binder_transaction(trace, ts, tid, &call);
}

void ky_kernel_apply(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words)
{
	static void (*const plain[])(struct ky_trace * trace, int64_t ts, const uint32_t *words) = {
		[KY_KERNEL_SWITCH] = apply_switch,
		[KY_KERNEL_WAKING] = apply_waking,
		[KY_KERNEL_MARKER] = ky_marker_apply,
		[KY_KERNEL_CPU_COUNTER] = apply_counter,
		[KY_KERNEL_RAW] = add_raw,
		[KY_KERNEL_TID_SAMPLE] = apply_sample,
		[KY_KERNEL_RAW_LINE] = add_raw_line,
		[KY_KERNEL_TASK_STATE] = apply_task_step,
		[KY_KERNEL_JOB] = ky_job_apply,
	};
	if (!trace->build->kernel && ky_kernel_open(trace) != 0)
		return;
	if (sub < sizeof(plain) / sizeof(*plain) && plain[sub]) {
		plain[sub](trace, ts, words);
		return;
	}
	switch (sub) {
	case KY_KERNEL_BLOCKED:
		ky_sched_blocked(trace, ky_kernel_thread(trace, (int32_t)words[0]), words[1] != 0,
				 words[2]);
		break;
	case KY_KERNEL_BINDER_CALL:
	case KY_KERNEL_BINDER_RECEIVED:
	case KY_KERNEL_BINDER_COMMAND:
		apply_binder(trace, ts, sub, words);
		break;
	case KY_KERNEL_GAP:
		ky_window_end(trace, ts - 1);
		break;
	case KY_KERNEL_TID_COUNTER:
	case KY_KERNEL_SUM:
	case KY_KERNEL_SINCE:
	case KY_KERNEL_LANE_BEGIN:
	case KY_KERNEL_LANE_END:
		ky_series_apply(trace, ts, sub, words);
		break;
	default:
		if (sub >= KY_KERNEL_TASK_NEW && sub <= KY_KERNEL_TASK_HINT)
			apply_task(trace, ts, sub, words);
		else
			apply_span(trace, ts, sub, words);
		break;
	}
}

/* ---- around it ---- */

int ky_kernel_open(struct ky_trace *trace)
{
	if (trace->build->kernel)
		return 0;
	struct ky_kernel_state *state = calloc(1, sizeof(*state));
	if (!state) {
		ky_trace_no_memory(trace);
		return -ENOMEM;
	}
	state->running = ky_string_z(trace, "Running");
	state->runnable = ky_string_z(trace, "R");
	state->unknown_comm = ky_string_z(trace, "<...>");
	state->swapper = ky_string_z(trace, "swapper");
	state->irq = ky_string_z(trace, "irq");
	trace->build->kernel = state;
	ky_marker_open(trace);
	return 0;
}

/*
 * Resolve threads that were started by one whose process was unknown then: in the order of time, and once more
 * backwards, so that later knowledge reaches earlier threads along the whole chain.
 */
static void join_kin(struct ky_trace *trace, const struct ky_kin *kin)
{
	uint32_t process = trace->threads.process[kin->thread];
	if (kin->child) {
		if (process != KY_NONE && process != kin->other &&
		    trace->processes.parent[kin->other] == KY_NONE)
			trace->processes.parent[kin->other] = process;
		return;
	}
	uint32_t other = trace->threads.process[kin->other];
	if (process != KY_NONE && other == KY_NONE)
		ky_thread_set_process(trace, kin->other, process);
	else if (process == KY_NONE && other != KY_NONE)
		ky_thread_set_process(trace, kin->thread, other);
}

void ky_kernel_finish(struct ky_trace *trace)
{
	struct ky_kernel_state *state = trace->build->kernel;
	if (!state)
		return;
	for (uint32_t i = state->kin_count; i-- > 0;)
		join_kin(trace, &state->kin[i]);
	for (uint32_t i = 0; i < state->kin_count; i++)
		join_kin(trace, &state->kin[i]);
}

void ky_kernel_close(struct ky_trace *trace)
{
	struct ky_kernel_state *state = trace->build->kernel;
	if (!state)
		return;
	KY_ARRAY_FREE(state->cpus, state->cpus_room);
	KY_ARRAY_FREE(state->threads, state->threads_room);
	KY_ARRAY_FREE(state->kin, state->kin_room);
	ky_lanes_free(&state->lanes);
	ky_pair_map_free(&state->sums);
	ky_jobs_free(&state->jobs);
	ky_binder_free(&state->binder);
	free(state);
	trace->build->kernel = NULL;
}
