/* SPDX-License-Identifier: MIT */
/* stack_spans.c: the interface of the engine sample. See stack_spans.h and stack_spans_parts.h. */
#include "functrace/stack_spans_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int ky_stack_spans_open(struct ky_stack_spans **out, const struct ky_stack_spans_options *options,
			char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	*out = NULL;
	message[0] = '\0';
	if (!is_possible) {
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "functions: samples: stacks can be unwound on x86-64 only");
		return -ENOTSUP;
	}
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
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "functions: samples: %s",
			 strerror(-error));
	if (error && spans)
		free_spans(spans);
	*out = error ? NULL : spans;
	return error;
}

/*
 * Begin a process. Read its mappings before the first sample can be taken, and once more: they may have changed
 * before there were records of that.
 */
static int begin_process(struct ky_stack_spans *spans, pid_t pid,
			 char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	struct ky_stack_process *process = ky_stack_process_make(spans, pid);
	int error =
		process ? ky_stack_modules_read(&spans->modules, &process->space, pid) : -ENOMEM;
	if (error)
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
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

int ky_stack_spans_add(struct ky_stack_spans *spans, pid_t pid,
		       char message[KY_FUNCTRACE_MESSAGE_BYTES])
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

static void tell_loss(struct ky_stack_spans *spans)
{
	if (!spans->facts.lost || spans->loss_told || !spans->options.note)
		return;
	spans->loss_told = true;
	spans->options.note(
		spans->options.context,
		"functions: samples are lost because kymo does not get enough CPU time; "
		"they are counted and marked; use a lower --sample rate");
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
	tell_loss(spans);
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
