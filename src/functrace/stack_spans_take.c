/* SPDX-License-Identifier: MIT */
/* stack_spans_take.c: what each record does to the processes and threads. */
#include "functrace/stack_spans_parts.h"

/* A process of which the begin was not seen is asked what it has mapped. */
static struct ky_stack_process *process_of(struct ky_stack_spans *spans, pid_t pid)
{
	struct ky_stack_process *process = ky_stack_process_find(spans, pid);
	if (process)
		return process;
	process = ky_stack_process_make(spans, pid);
	if (process)
		(void)ky_stack_space_read(&process->space, &spans->modules, pid);
	return process;
}

static struct ky_stack_thread *thread_of(struct ky_stack_spans *spans,
					 const struct ky_stack_record *record)
{
	struct ky_stack_process *process = process_of(spans, (pid_t)record->pid);
	return process ? ky_stack_thread_make(spans, process, (pid_t)record->tid) : NULL;
}

/* ---- samples ---- */

/* The functions of one frame, with those inlined into it, the outermost first. */
static uint32_t add_frame(struct ky_stack_spans *spans, struct ky_stack_process *process,
			  const struct ky_unwound *unwound, uint32_t count)
{
	const uint32_t *functions;
	const uint32_t found = ky_stack_names_at(&spans->names, unwound->range, unwound->pc,
						 &process->jit, &functions);
	for (uint32_t i = found; i-- > 0 && count < KY_STACK_DEPTH_MAX;)
		spans->frames[count++] =
			(struct ky_stack_frame){.function = functions[i],
						.returns = i + 1 == found ? unwound->returns : 0,
						.place = unwound->place};
	return count;
}

/* What is known of the stack: how many frames of functions. */
static uint32_t unwind(struct ky_stack_spans *spans, struct ky_stack_process *process,
		       const struct ky_stack_record *record, bool *whole)
{
	enum ky_unwind_end end = KY_UNWIND_ASTRAY;
	uint32_t left = record->has_registers
				? ky_unwinder_walk(spans->unwinder, &spans->modules,
						   &process->space, record, spans->unwound, &end)
				: 0;
	uint32_t count = 0;
	while (left-- > 0)
		count = add_frame(spans, process, &spans->unwound[left], count);
	*whole = end == KY_UNWIND_WHOLE;
	spans->facts.unwound_whole += *whole;
	spans->window_samples++;
	/* More would only help where all that was asked for was copied. */
	spans->window_cut += end == KY_UNWIND_CUT && record->stack_bytes == spans->stack_bytes;
	return count;
}

/* Between two programs (exec), and where the stack's memory is not there yet, there is no stack: nothing is learned of it. */
static bool has_stack(const struct ky_stack_record *record)
{
	return !record->has_registers ||
	       (record->registers[KY_STACK_PC] != 0 && record->stack_bytes != 0);
}

static void take_sample(struct ky_stack_spans *spans, const struct ky_stack_record *record)
{
	struct ky_stack_thread *thread = thread_of(spans, record);
	struct ky_stack_sample sample = {.ns = record->ns, .frames = spans->frames};
	spans->facts.samples++;
	if (!thread || !has_stack(record))
		return;
	sample.count = unwind(spans, thread->process, record, &sample.whole);
	struct ky_stack_writing writing = {spans, thread};
	const struct ky_stack_sink sink = ky_stack_thread_sink(&writing);
	ky_stack_join_sample(&thread->join, &sample, &sink);
}

/* ---- lives ---- */

static void take_mapping(struct ky_stack_spans *spans, const struct ky_stack_record *record)
{
	struct ky_stack_process *process = process_of(spans, (pid_t)record->pid);
	const struct ky_stack_mapping mapping = {.pid = (pid_t)record->pid,
						 .start = record->start,
						 .end = record->end,
						 .offset = record->offset,
						 .device = record->device,
						 .inode = record->inode,
						 .path = record->text};
	if (process)
		ky_stack_space_map(&process->space, &spans->modules, &mapping);
}

static void take_name(struct ky_stack_spans *spans, const struct ky_stack_record *record)
{
	struct ky_stack_process *process = ky_stack_process_find(spans, (pid_t)record->pid);
	if (process && record->exec)
		ky_stack_process_exec(spans, process, record->ns);
	struct ky_stack_thread *thread = thread_of(spans, record);
	if (!thread)
		return;
	ky_stack_thread_name(thread, record->text);
	if (record->exec)
		ky_stack_join_begin(&thread->join, record->ns);
}

static void take_begun(struct ky_stack_spans *spans, const struct ky_stack_record *record)
{
	const struct ky_stack_process *parent =
		ky_stack_process_find(spans, (pid_t)record->parent_pid);
	struct ky_stack_process *process = ky_stack_process_make(spans, (pid_t)record->pid);
	if (process && parent && process != parent)
		(void)ky_stack_space_copy(&process->space, &parent->space);
	struct ky_stack_thread *thread =
		process ? ky_stack_thread_make(spans, process, (pid_t)record->tid) : NULL;
	if (!thread)
		return;
	ky_stack_join_begin(&thread->join, record->ns);
	/* It has its maker's name at first; when it has ended meanwhile, only the maker can be asked. */
	const struct ky_stack_thread *maker =
		ky_stack_thread_find(spans, (pid_t)record->parent_tid);
	if (!thread->name[0] && maker)
		ky_stack_thread_name(thread, maker->name);
}

static void take_switch(struct ky_stack_spans *spans, const struct ky_stack_record *record)
{
	struct ky_stack_thread *thread = ky_stack_thread_find(spans, (pid_t)record->tid);
	struct ky_stack_writing writing = {spans, thread};
	const struct ky_stack_sink sink = ky_stack_thread_sink(&writing);
	if (!thread)
		return;
	if (record->out)
		ky_stack_join_off(&thread->join, record->ns,
				  record->preempted ? KY_STACK_PREEMPTED : KY_STACK_OFF_CPU, &sink);
	else
		ky_stack_join_on(&thread->join, record->ns, &sink);
}

/* Which threads it were is not known: it is marked where it was found out. */
static void take_lost(struct ky_stack_spans *spans, const struct ky_stack_record *record)
{
	struct ky_stack_thread *thread = ky_stack_thread_find(spans, (pid_t)record->tid);
	spans->facts.lost += record->lost;
	if (thread)
		ky_stack_thread_lost(spans, thread, record->ns, record->lost);
}

void ky_stack_spans_take(struct ky_stack_spans *spans, const struct perf_event_header *head)
{
	struct ky_stack_record record;
	struct ky_stack_thread *thread;
	if (!ky_stack_record_read(&record, head))
		return;
	switch (record.kind) {
	case KY_STACK_SAMPLE:
		take_sample(spans, &record);
		break;
	case KY_STACK_MAPPING:
		take_mapping(spans, &record);
		break;
	case KY_STACK_NAME:
		take_name(spans, &record);
		break;
	case KY_STACK_BEGUN:
		take_begun(spans, &record);
		break;
	case KY_STACK_ENDED:
		thread = ky_stack_thread_find(spans, (pid_t)record.tid);
		if (thread)
			ky_stack_thread_end(spans, thread, record.ns);
		break;
	case KY_STACK_SWITCH:
		take_switch(spans, &record);
		break;
	case KY_STACK_LOST:
		take_lost(spans, &record);
		break;
	}
}
