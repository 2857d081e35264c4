/* SPDX-License-Identifier: MIT */
/* stack_spans.c: see stack_spans.h. The records of the kernel, applied to the processes and threads; the interface. */
#include "functrace/stack_spans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- records, applied to the processes and threads ---- */

/* Return the process; read its maps if its start was not seen. */
static struct ky_stack_process *process_of(struct ky_stack_spans *spans, pid_t pid)
{
	struct ky_stack_process *process = ky_stack_process_find(spans, pid);
	if (process)
		return process;
	process = ky_stack_process_make(spans, pid);
	if (process)
		(void)ky_stack_modules_read(&spans->modules, &process->space, pid);
	return process;
}

static struct ky_stack_thread *thread_of(struct ky_stack_spans *spans, uint32_t pid, uint32_t tid)
{
	struct ky_stack_process *process = process_of(spans, (pid_t)pid);
	return process ? ky_stack_thread_make(spans, process, (pid_t)tid) : NULL;
}

/* ---- samples ---- */

/* Add the functions of one frame, with those inlined into it, the outermost first. */
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

/* Unwind the known part of the stack. Return how many frames of functions. */
static uint32_t unwind(struct ky_stack_spans *spans, struct ky_stack_process *process,
		       const struct ky_stack_dump *dump, bool *whole)
{
	enum ky_unwind_end end = KY_UNWIND_ASTRAY;
	uint32_t left = dump->has_registers
				? ky_unwinder_walk(spans->unwinder, &spans->modules,
						   &process->space, dump, spans->unwound, &end)
				: 0;
	uint32_t count = 0;
	while (left-- > 0)
		count = add_frame(spans, process, &spans->unwound[left], count);
	*whole = end == KY_UNWIND_WHOLE;
	spans->facts.unwound_whole += *whole;
	spans->recent_samples++;
	/* A larger copy would only help where all the bytes asked for were copied. */
	spans->recent_cut += end == KY_UNWIND_CUT && dump->stack_bytes == spans->stack_bytes;
	return count;
}

/*
 * Report whether there is a stack: between two programs (exec), and where the stack's memory does not exist yet,
 * there is none, and the sample says nothing.
 */
static bool has_stack(const struct ky_stack_dump *dump)
{
	return !dump->has_registers ||
	       (dump->registers[KY_STACK_PC] != 0 && dump->stack_bytes != 0);
}

static void take_sample(struct ky_stack_spans *spans, const struct ky_stack_dump *dump)
{
	struct ky_stack_thread *thread = thread_of(spans, dump->pid, dump->tid);
	struct ky_stack_sample sample = {.ns = dump->ns, .frames = spans->frames};
	spans->facts.samples++;
	if (!thread || !has_stack(dump))
		return;
	sample.count = unwind(spans, thread->process, dump, &sample.whole);
	struct ky_stack_writing writing = {spans, thread};
	const struct ky_stack_sink sink = ky_stack_thread_sink(&writing);
	ky_stack_join_sample(&thread->join, &sample, &sink);
}

/* ---- threads and processes ---- */

static void take_mapping(struct ky_stack_spans *spans, const struct ky_perf_record *record)
{
	const pid_t pid = (pid_t)record->pid;
	struct ky_stack_process *process = process_of(spans, pid);
	if (process)
		ky_stack_modules_map(&spans->modules, &process->space, pid, &record->map);
}

static void take_name(struct ky_stack_spans *spans, const struct ky_perf_record *record)
{
	struct ky_stack_process *process = ky_stack_process_find(spans, (pid_t)record->pid);
	if (process && record->comm.exec)
		ky_stack_process_exec(spans, process, record->time);
	struct ky_stack_thread *thread = thread_of(spans, record->pid, record->tid);
	if (!thread)
		return;
	ky_stack_thread_name(thread, record->comm.name);
	if (record->comm.exec)
		ky_stack_join_begin(&thread->join, record->time);
}

static void take_begun(struct ky_stack_spans *spans, const struct ky_perf_record *record)
{
	const struct ky_stack_process *parent =
		ky_stack_process_find(spans, (pid_t)record->task.parent_pid);
	struct ky_stack_process *process = ky_stack_process_make(spans, (pid_t)record->pid);
	if (process && parent && process != parent)
		(void)ky_address_space_copy(&process->space, &parent->space);
	struct ky_stack_thread *thread =
		process ? ky_stack_thread_make(spans, process, (pid_t)record->tid) : NULL;
	if (!thread)
		return;
	ky_stack_join_begin(&thread->join, record->time);
	/* It has its maker's name at first; when it has ended since, only the maker is known. */
	const struct ky_stack_thread *maker =
		ky_stack_thread_find(spans, (pid_t)record->task.parent_tid);
	if (!thread->name[0] && maker)
		ky_stack_thread_name(thread, maker->name);
}

static void take_switch(struct ky_stack_spans *spans, const struct ky_perf_record *record)
{
	struct ky_stack_thread *thread = ky_stack_thread_find(spans, (pid_t)record->tid);
	struct ky_stack_writing writing = {spans, thread};
	const struct ky_stack_sink sink = ky_stack_thread_sink(&writing);
	if (!thread)
		return;
	if (record->switched.out)
		ky_stack_join_off(
			&thread->join, record->time,
			record->switched.preempted ? KY_STACK_PREEMPTED : KY_STACK_OFF_CPU, &sink);
	else
		ky_stack_join_on(&thread->join, record->time, &sink);
}

/* Mark lost samples at the time when the loss was found: the threads are unknown. */
static void take_lost(struct ky_stack_spans *spans, const struct ky_perf_record *record)
{
	struct ky_stack_thread *thread = ky_stack_thread_find(spans, (pid_t)record->tid);
	spans->facts.lost += record->lost;
	if (thread)
		ky_stack_thread_lost(spans, thread, record->time, record->lost);
}

static void take_ended(struct ky_stack_spans *spans, const struct ky_perf_record *record)
{
	struct ky_stack_thread *thread = ky_stack_thread_find(spans, (pid_t)record->tid);
	if (thread)
		ky_stack_thread_end(spans, thread, record->time);
}

void ky_stack_spans_take(struct ky_stack_spans *spans, const struct perf_event_header *head)
{
	struct ky_stack_dump dump;
	struct ky_perf_record record;
	if (head->type == PERF_RECORD_SAMPLE) {
		if (ky_stack_dump_read(&dump, head))
			take_sample(spans, &dump);
		return;
	}
	if (!ky_perf_record_parse(&record, head, KY_STACK_SAMPLE_TYPE))
		return;
	switch (record.type) {
	case PERF_RECORD_MMAP2:
		take_mapping(spans, &record);
		break;
	case PERF_RECORD_COMM:
		take_name(spans, &record);
		break;
	case PERF_RECORD_FORK:
		take_begun(spans, &record);
		break;
	case PERF_RECORD_EXIT:
		take_ended(spans, &record);
		break;
	case PERF_RECORD_SWITCH:
		take_switch(spans, &record);
		break;
	case PERF_RECORD_LOST:
		take_lost(spans, &record);
		break;
	default:
		break;
	}
}

/* ---- the interface ---- */

#ifdef __x86_64__
static const bool is_possible = true;
#else
/* Registers and the rules for saving them are those of x86-64. */
static const bool is_possible = false;
#endif

static void free_spans(struct ky_stack_spans *spans)
{
	ky_perf_set_close(&spans->set);
	ky_perf_events_close(&spans->events);
	ky_unwinder_close(&spans->unwinder);
	ky_stack_names_close(&spans->names);
	ky_stack_modules_close(&spans->modules);
	free(spans->pending);
	pthread_mutex_destroy(&spans->lock);
	free(spans);
}

static int open_parts(struct ky_stack_spans *spans)
{
	int error = ky_stack_modules_open(&spans->modules);
	if (!error)
		error = ky_stack_names_open(&spans->names, &spans->modules,
					    spans->options.selection);
	if (!error)
		error = ky_unwinder_open(&spans->unwinder);
	return error ? error : ky_stack_spans_start(spans);
}

int ky_stack_spans_open(struct ky_stack_spans **out, const struct ky_functrace_options *options,
			char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	message[0] = '\0';
	if (!is_possible)
		return ky_fail(message, -ENOTSUP,
			       "functions: samples: stacks can be unwound on x86-64 only");
	struct ky_stack_spans *spans = calloc(1, sizeof(*spans));
	int error = spans ? 0 : -ENOMEM;
	if (spans) {
		spans->options = *options;
		spans->events.poll_fd = -1;
		pthread_mutex_init(&spans->lock, NULL);
		error = ky_stack_spans_open_events(spans, message);
		if (!error)
			error = open_parts(spans);
	}
	if (error && !message[0])
		snprintf(message, KY_MESSAGE_BYTES, "functions: samples: %s", strerror(-error));
	if (error && spans)
		free_spans(spans);
	*out = error ? NULL : spans;
	return error;
}

/*
 * Begin a process. Read its mappings before the first sample can be taken, and once more: they may have changed
 * before there were records of that.
 */
static int begin_process(struct ky_stack_spans *spans, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	struct ky_stack_process *process = ky_stack_process_make(spans, pid);
	int error =
		process ? ky_stack_modules_read(&spans->modules, &process->space, pid) : -ENOMEM;
	if (error)
		snprintf(message, KY_MESSAGE_BYTES,
			 "functions: samples: cannot read the mappings of process %d: %s%s",
			 (int)pid, strerror(-error),
			 error == -EACCES || error == -EPERM
				 ? "; run kymo as root, or as the process's user"
				 : "");
	else
		error = ky_stack_spans_watch(spans, process, message);
	process = ky_stack_process_find(spans, pid);
	if (process && error)
		ky_stack_process_end(spans, process, ky_stack_spans_now());
	else if (process)
		(void)ky_stack_modules_read(&spans->modules, &process->space, pid);
	return error;
}

int ky_stack_spans_add(struct ky_stack_spans *spans, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	int error = 0;
	message[0] = '\0';
	pthread_mutex_lock(&spans->lock);
	/* A child of a sampled process is sampled, too: its start is in the rings. */
	ky_stack_spans_drain(spans, true);
	if (!ky_stack_process_find(spans, pid))
		error = begin_process(spans, pid, message);
	pthread_mutex_unlock(&spans->lock);
	return error;
}

static void report_loss(struct ky_stack_spans *spans)
{
	if (!spans->facts.lost || spans->loss_reported || !spans->options.note)
		return;
	spans->loss_reported = true;
	spans->options.note(
		spans->options.context,
		"functions: samples are lost because kymo does not get enough CPU time; "
		"they are counted and marked; use a lower --sample rate");
}

static void report_restless(struct ky_stack_spans *spans)
{
	if (!spans->restless || spans->restless_reported || !spans->options.note)
		return;
	spans->restless_reported = true;
	spans->options.note(
		spans->options.context,
		"functions: a process executes one program after the other; only the first ones have spans");
}

void ky_stack_spans_round(struct ky_stack_spans *spans, bool all)
{
	/* The thread may be reading a library's debug information: a periodic round does not wait for that. */
	if (!all && pthread_mutex_trylock(&spans->lock) != 0)
		return;
	if (all) {
		pthread_mutex_lock(&spans->lock);
		ky_stack_spans_drain(spans, true);
		ky_stack_spans_flush(spans);
	}
	ky_stack_spans_report_drums(spans);
	report_loss(spans);
	report_restless(spans);
	pthread_mutex_unlock(&spans->lock);
}

void ky_stack_spans_ended(struct ky_stack_spans *spans, pid_t pid)
{
	pthread_mutex_lock(&spans->lock);
	ky_stack_spans_drain(spans, true);
	struct ky_stack_process *process = ky_stack_process_find(spans, pid);
	if (process)
		ky_stack_process_end(spans, process, ky_stack_spans_now());
	ky_stack_spans_report_drums(spans);
	pthread_mutex_unlock(&spans->lock);
}

void ky_stack_spans_facts(struct ky_stack_spans *spans, struct ky_stack_spans_facts *facts)
{
	pthread_mutex_lock(&spans->lock);
	*facts = spans->facts;
	pthread_mutex_unlock(&spans->lock);
}

void ky_stack_spans_close(struct ky_stack_spans **out, struct ky_stack_spans_facts *facts)
{
	struct ky_stack_spans *spans = *out;
	*out = NULL;
	if (!spans)
		return;
	ky_stack_spans_stop(spans);
	ky_perf_set_close(&spans->set);
	ky_stack_spans_drain(spans, true);
	ky_stack_spans_free_all(spans, ky_stack_spans_now());
	if (facts)
		*facts = spans->facts;
	free_spans(spans);
}
