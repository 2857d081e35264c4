/* SPDX-License-Identifier: MIT */
/* stack_spans_process.c: the processes and threads that are sampled, and the way of their spans into drums. */
#include "functrace/stack_spans.h"

#include "base/array.h"
#include "core/layout.h"
#include "process/proc.h"

#include <kymo/kymo.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define FUNCTIONS_ROOM 65536u
/* A process that executes programs all the time would make drums faster than they can be read. */
#define DRUMS_A_PROCESS 64u
#define SWITCH_CATEGORY "sched" /* as in off_cpu.c */

static uint32_t bucket_of(pid_t number)
{
	return (uint32_t)number % KY_STACK_BUCKETS;
}

/* ---- drums ---- */

/* Make a drum. It is named by the first thread with an event: the process may have ended already. */
static struct ky_stack_drum *make_drum(struct ky_stack_spans *spans, pid_t pid, const char *name)
{
	struct ky_stack_drum *drum = calloc(1, sizeof(*drum));
	const struct ky_made_drum_options options = {.pid = ky_proc_inner_pid(pid),
						     .fd = -1,
						     .functions = FUNCTIONS_ROOM,
						     .layer = KY_DRUM_FUNCTIONS,
						     .ring_bytes = spans->options.ring_bytes,
						     .total_bytes = spans->options.total_bytes,
						     .name = name};
	if (!drum || ky_made_drum_open(&drum->drum, &options) != 0) {
		free(drum);
		return NULL;
	}
	drum->full_site = ky_made_drum_site(&drum->drum, KYMO_KIND_BEGIN, NULL,
					    "[no room for its name]", NULL, NULL, 0);
	drum->pid = pid;
	struct ky_stack_drum **last = &spans->drums;
	while (*last)
		last = &(*last)->next;
	return *last = drum;
}

static void free_drum(struct ky_stack_drum *drum)
{
	ky_made_drum_close(&drum->drum);
	KY_ARRAY_FREE(drum->sites, drum->sites_room);
	free(drum);
}

static uint32_t make_site(const struct ky_stack_spans *spans, struct ky_stack_drum *drum,
			  uint32_t number)
{
	const struct ky_stack_function *function = &spans->names.functions[number];
	const struct ky_strings *strings = &spans->names.strings;
	const bool own = function->module == KY_NO_MODULE;
	const char *module = !own ? spans->modules.items[function->module].name
			     : number == KY_STACK_TRUNCATED ? NULL
							    : SWITCH_CATEGORY;
	const char *name = ky_strings_text(strings, function->name);
	return ky_made_drum_site(&drum->drum, KYMO_KIND_BEGIN, module, name, own ? "" : name,
				 function->file ? ky_strings_text(strings, function->file) : NULL,
				 function->line);
}

static uint32_t site_of(const struct ky_stack_spans *spans, struct ky_stack_drum *drum,
			uint32_t function)
{
	if (!KY_ARRAY_GROW_ZERO(drum->sites, drum->sites_room, function + 1))
		return drum->full_site;
	uint32_t *site = &drum->sites[function];
	if (!*site)
		*site = make_site(spans, drum, function);
	if (!*site)
		*site = drum->full_site;
	return *site;
}

/* ---- spans ---- */

static struct ky_stack_drum *drum_of(struct ky_stack_spans *spans, struct ky_stack_thread *thread)
{
	struct ky_stack_process *process = thread->process;
	if (!process->drum) {
		const struct ky_stack_thread *first = ky_stack_thread_find(spans, process->pid);
		if (process->drums == DRUMS_A_PROCESS) {
			spans->restless = true;
			return NULL;
		}
		process->drums++;
		process->drum = make_drum(spans, process->pid, (first ? first : thread)->name);
	}
	if (process->drum && !thread->named) {
		thread->named = true;
		ky_made_drum_thread(&process->drum->drum, thread->tid, thread->name);
	}
	return process->drum;
}

static void on_begin(void *context, uint64_t ns, uint32_t function)
{
	const struct ky_stack_writing *writing = context;
	struct ky_stack_drum *drum = drum_of(writing->spans, writing->thread);
	if (drum)
		ky_made_drum_begin(&drum->drum, writing->thread->tid, ns,
				   site_of(writing->spans, drum, function));
}

static void on_end(void *context, uint64_t ns)
{
	const struct ky_stack_writing *writing = context;
	struct ky_stack_drum *drum = drum_of(writing->spans, writing->thread);
	if (drum)
		ky_made_drum_end_span(&drum->drum, writing->thread->tid, ns);
}

struct ky_stack_sink ky_stack_thread_sink(struct ky_stack_writing *writing)
{
	return (struct ky_stack_sink){.begin = on_begin, .end = on_end, .context = writing};
}

void ky_stack_thread_lost(struct ky_stack_spans *spans, struct ky_stack_thread *thread, uint64_t ns,
			  uint64_t lost)
{
	char text[64];
	struct ky_stack_drum *drum = drum_of(spans, thread);
	if (!drum)
		return;
	snprintf(text, sizeof(text), "samples lost: %" PRIu64, lost);
	ky_made_drum_instant(
		&drum->drum, thread->tid, ns,
		ky_made_drum_site(&drum->drum, KYMO_KIND_INSTANT, NULL, text, NULL, NULL, 0));
}

/* ---- threads ---- */

struct ky_stack_thread *ky_stack_thread_find(const struct ky_stack_spans *spans, pid_t tid)
{
	struct ky_stack_thread *thread = spans->threads[bucket_of(tid)];
	while (thread && thread->tid != tid)
		thread = thread->next;
	return thread;
}

struct ky_stack_thread *ky_stack_thread_make(struct ky_stack_spans *spans,
					     struct ky_stack_process *process, pid_t tid)
{
	struct ky_stack_thread *thread = ky_stack_thread_find(spans, tid);
	if (thread && thread->process == process)
		return thread;
	/* Its end was lost, and the number is another's now. */
	if (thread)
		ky_stack_thread_end(spans, thread, thread->join.sent_ns);
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	thread->process = process;
	process->threads++;
	thread->next = spans->threads[bucket_of(tid)];
	spans->threads[bucket_of(tid)] = thread;
	(void)ky_proc_comm(process->pid, tid, thread->name, sizeof(thread->name));
	return thread;
}

static void forget_thread(struct ky_stack_spans *spans, struct ky_stack_thread *thread, uint64_t ns)
{
	struct ky_stack_writing writing = {spans, thread};
	const struct ky_stack_sink sink = ky_stack_thread_sink(&writing);
	struct ky_stack_thread **link = &spans->threads[bucket_of(thread->tid)];
	ky_stack_join_end(&thread->join, ns, &sink);
	if (thread->process->drum)
		ky_made_drum_gone(&thread->process->drum->drum, thread->tid, ns);
	while (*link != thread)
		link = &(*link)->next;
	*link = thread->next;
	ky_stack_join_free(&thread->join);
	free(thread);
}

void ky_stack_thread_end(struct ky_stack_spans *spans, struct ky_stack_thread *thread, uint64_t ns)
{
	struct ky_stack_process *process = thread->process;
	forget_thread(spans, thread, ns);
	if (--process->threads == 0)
		ky_stack_process_end(spans, process, ns);
}

void ky_stack_thread_name(struct ky_stack_thread *thread, const char *name)
{
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	thread->named = false;
}

/* ---- processes ---- */

struct ky_stack_process *ky_stack_process_find(const struct ky_stack_spans *spans, pid_t pid)
{
	struct ky_stack_process *process = spans->processes[bucket_of(pid)];
	while (process && process->pid != pid)
		process = process->next;
	return process;
}

struct ky_stack_process *ky_stack_process_make(struct ky_stack_spans *spans, pid_t pid)
{
	struct ky_stack_process *process = ky_stack_process_find(spans, pid);
	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = process->jit.pid = pid;
	process->next = spans->processes[bucket_of(pid)];
	spans->processes[bucket_of(pid)] = process;
	return process;
}

static void end_threads(struct ky_stack_spans *spans, const struct ky_stack_process *process,
			uint64_t ns)
{
	for (uint32_t i = 0; i < KY_STACK_BUCKETS; i++)
		for (struct ky_stack_thread *thread = spans->threads[i], *next; thread;
		     thread = next) {
			next = thread->next;
			if (thread->process == process)
				forget_thread(spans, thread, ns);
		}
}

void ky_stack_process_end(struct ky_stack_spans *spans, struct ky_stack_process *process,
			  uint64_t ns)
{
	struct ky_stack_process **link = &spans->processes[bucket_of(process->pid)];
	end_threads(spans, process, ns);
	while (*link != process)
		link = &(*link)->next;
	*link = process->next;
	if (process->drum)
		process->drum->closed = true;
	ky_address_space_free(&process->space);
	ky_stack_jit_free(&process->jit);
	free(process);
}

void ky_stack_process_exec(struct ky_stack_spans *spans, struct ky_stack_process *process,
			   uint64_t ns)
{
	end_threads(spans, process, ns);
	process->threads = 0;
	if (process->drum)
		process->drum->closed = true;
	process->drum = NULL;
	ky_address_space_free(&process->space);
	ky_stack_jit_free(&process->jit);
}

/* ---- all ---- */

void ky_stack_spans_flush(struct ky_stack_spans *spans)
{
	for (uint32_t i = 0; i < KY_STACK_BUCKETS; i++)
		for (struct ky_stack_thread *thread = spans->threads[i]; thread;
		     thread = thread->next) {
			struct ky_stack_writing writing = {spans, thread};
			const struct ky_stack_sink sink = ky_stack_thread_sink(&writing);
			ky_stack_join_settle(&thread->join, &sink);
		}
}

/* End the drum of a process that is gone: it is read at once, and to its end, so the end must be in it. */
static void end_gone(struct ky_stack_spans *spans, const struct ky_stack_drum *drum)
{
	if (drum->closed || kill(drum->pid, 0) == 0 || errno != ESRCH)
		return;
	ky_stack_spans_drain(spans, true);
	struct ky_stack_process *process = ky_stack_process_find(spans, drum->pid);
	if (process)
		ky_stack_process_end(spans, process, ky_stack_spans_now());
}

static void report_drum(struct ky_stack_spans *spans, struct ky_stack_drum *drum)
{
	if (drum->reported)
		return;
	end_gone(spans, drum);
	drum->reported = true;
	if (spans->options.drum)
		spans->options.drum(spans->options.context, drum->pid, drum->drum.fd);
}

void ky_stack_spans_report_drums(struct ky_stack_spans *spans)
{
	for (struct ky_stack_drum **link = &spans->drums, *drum; (drum = *link);) {
		report_drum(spans, drum);
		if (!drum->closed) {
			link = &drum->next;
			continue;
		}
		*link = drum->next;
		free_drum(drum);
	}
}

void ky_stack_spans_free_all(struct ky_stack_spans *spans, uint64_t ns)
{
	for (uint32_t i = 0; i < KY_STACK_BUCKETS; i++)
		while (spans->processes[i])
			ky_stack_process_end(spans, spans->processes[i], ns);
	ky_stack_spans_report_drums(spans);
}
