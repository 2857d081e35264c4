/* SPDX-License-Identifier: MIT */
/*
 * source.c: the table of sources, each step of a capture over all of them, and the sources that only forward to the part
 * that they are; see source.h.
 */
#include "capture/source.h"

#include "capture/crash_watch.h"
#include "capture/kernel_trace.h"
#include "capture/stack_samples.h"
#include "os/os.h"
#include "process/proc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Windows are written a little after they end. */
#define SLACK_NS UINT64_C(200000000)
/* How often samples and kernel pages are read when no ring is half full. */
#define PERIOD_NS UINT64_C(100000000)

static const struct ky_source_ops *const all_ops[KY_SOURCES_COUNT] = {
	[KY_SOURCE_SAMPLES] = &ky_source_samples,     [KY_SOURCE_KERNEL] = &ky_source_kernel,
	[KY_SOURCE_FUNCTIONS] = &ky_source_functions, [KY_SOURCE_PROCESSES] = &ky_source_processes,
	[KY_SOURCE_DRUMS] = &ky_source_drums,         [KY_SOURCE_PROBES] = &ky_source_probes,
	[KY_SOURCE_CRASH] = &ky_source_crash,
};

/* ---- one source ---- */

void *ky_source_state(const struct ky_capture *capture, enum ky_source_id id)
{
	return capture->sources[id].state;
}

void ky_source_close(struct ky_capture *capture, enum ky_source_id id)
{
	struct ky_source *const source = &capture->sources[id];
	if (source->state)
		source->ops->close(source);
	source->state = NULL;
}

/* Report whether a source that is polled or due every period_ns is to be read now. */
static bool is_due(struct ky_source *source, uint64_t period_ns)
{
	const uint64_t now = ky_os_boottime();
	if (!source->ready && now < source->due_ns)
		return false;
	source->due_ns = now + period_ns;
	return true;
}

uint64_t ky_source_reach_ns(const struct ky_capture_options *options)
{
	return options->before_ns + options->after_ns + SLACK_NS;
}

void ky_source_note(struct ky_capture *capture, const char *format, ...)
{
	char line[KY_MESSAGE_BYTES + 128];
	va_list list;
	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	if (capture->options->note)
		capture->options->note(capture->options->context, line);
	if (capture->bundle)
		ky_bundle_note(capture->bundle, "%s", line);
}

void ky_source_unmatched(struct ky_capture *capture, const char *line)
{
	capture->facts->unmatched++;
	ky_source_note(capture, "%s", line);
}

/* ---- all sources ---- */

int ky_source_open_all(struct ky_capture *capture)
{
	int error = 0;
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++)
		capture->sources[i] =
			(struct ky_source){.ops = all_ops[i], .capture = capture, .fd = -1};
	for (uint32_t i = KY_SOURCES_COUNT; !error && i-- > 0;) {
		if (all_ops[i]->open)
			error = all_ops[i]->open(&capture->sources[i]);
	}
	return error;
}

void ky_source_forked_all(struct ky_capture *capture)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		if (all_ops[i]->forked)
			all_ops[i]->forked(&capture->sources[i], capture->child.pid);
	}
}

int ky_source_add_all(struct ky_capture *capture, pid_t pid, enum ky_source_process how,
		      char message[KY_MESSAGE_BYTES])
{
	int error = 0;
	for (uint32_t i = 0; !error && i < KY_SOURCES_COUNT; i++) {
		struct ky_source *const source = &capture->sources[i];
		message[0] = '\0';
		if (source->state && source->ops->add)
			error = source->ops->add(source, pid, how, message);
	}
	return error;
}

uint64_t ky_source_round_all(struct ky_capture *capture, bool all)
{
	uint64_t next = KY_SOURCE_REST_NS;
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		struct ky_source *const source = &capture->sources[i];
		if (!source->state)
			continue;
		const uint64_t due = source->ops->round(source, all);
		source->ready = false;
		next = due < next ? due : next;
	}
	return next;
}

void ky_source_window_all(struct ky_capture *capture, uint64_t from_ns, uint64_t to_ns)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		struct ky_source *const source = &capture->sources[i];
		if (source->state && source->ops->window)
			source->ops->window(source, from_ns, to_ns);
	}
}

void ky_source_ended_all(struct ky_capture *capture, pid_t pid, int status)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		struct ky_source *const source = &capture->sources[i];
		if (source->state && source->ops->ended)
			source->ops->ended(source, pid, status);
	}
}

void ky_source_facts_all(struct ky_capture *capture)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		const struct ky_source *const source = &capture->sources[i];
		if (source->state && source->ops->facts)
			source->ops->facts(source, capture->facts);
	}
}

void ky_source_close_all(struct ky_capture *capture)
{
	for (uint32_t i = KY_SOURCES_COUNT; i-- > 0;)
		ky_source_close(capture, (enum ky_source_id)i);
}

bool ky_source_any_holds(const struct ky_capture *capture)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		if (capture->sources[i].state && all_ops[i]->holds)
			return true;
	}
	return false;
}

/* ---- samples: call stacks (stack_samples.h); children inherit the events ---- */

static void open_samples(struct ky_source *source, pid_t program)
{
	struct ky_capture *const capture = source->capture;
	const struct ky_capture_options *const o = capture->options;
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_stack_samples *samples = NULL;
	if (!o->samples_per_second)
		return;
	const struct ky_stack_samples_options options = {
		.bundle = capture->bundle,
		.per_second = o->samples_per_second,
		.all = o->scope == KY_PROCESSES_ALL,
		.flight = capture->flight != NULL,
		.before_ns = ky_source_reach_ns(o),
	};
	int error = ky_stack_samples_open(&samples, &options, message);
	if (!error && program) {
		error = ky_stack_samples_add(samples, program, true, message);
		if (error)
			ky_stack_samples_close(&samples);
	}
	source->state = samples;
	source->fd = samples ? ky_stack_samples_fd(samples) : -1;
	if (error)
		ky_source_note(capture, "no samples: %s", message[0] ? message : strerror(-error));
}

static int samples_add(struct ky_source *source, pid_t pid, enum ky_source_process how,
		       char message[KY_MESSAGE_BYTES])
{
	if (how != KY_SOURCE_EXISTING)
		return 0;
	const int error = ky_stack_samples_add(source->state, pid, false, message);
	if (error && error != -ESRCH)
		ky_source_note(source->capture, "%s", message);
	return 0;
}

static uint64_t samples_round(struct ky_source *source, bool all)
{
	if (is_due(source, PERIOD_NS) || all)
		ky_stack_samples_round(source->state, all);
	return KY_SOURCE_REST_NS;
}

static void samples_window(struct ky_source *source, uint64_t from_ns, uint64_t to_ns)
{
	ky_stack_samples_window(source->state, from_ns, to_ns);
}

static void samples_facts(const struct ky_source *source, struct ky_capture_facts *facts)
{
	struct ky_stack_samples_facts samples;
	ky_stack_samples_facts(source->state, &samples);
	facts->samples_on = true;
	facts->samples = samples.samples;
	facts->samples_lost = samples.lost;
}

static void close_samples(struct ky_source *source)
{
	struct ky_stack_samples *samples = source->state;
	ky_stack_samples_close(&samples);
}

const struct ky_source_ops ky_source_samples = {
	.forked = open_samples,
	.add = samples_add,
	.round = samples_round,
	.window = samples_window,
	.facts = samples_facts,
	.close = close_samples,
};

/* ---- kernel: the kernel's events (kernel_trace.h); children are followed by ftrace ---- */

static void open_kernel(struct ky_source *source, pid_t program)
{
	struct ky_capture *const capture = source->capture;
	const struct ky_capture_options *const o = capture->options;
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_kernel_trace *kernel = NULL;
	if (!o->kernel_count)
		return;
	const bool all = o->scope == KY_PROCESSES_ALL;
	const struct ky_kernel_trace_options options = {
		.bundle = capture->bundle,
		.events = o->kernel,
		.events_count = o->kernel_count,
		.buffer_bytes = o->buffer_bytes,
		.flight = capture->flight != NULL,
		.before_ns = ky_source_reach_ns(o),
		.pids = all       ? NULL
			: program ? &program
				  : o->pids,
		.pids_count = all       ? 0
			      : program ? 1
					: o->pids_count,
	};
	const int error = ky_kernel_trace_open(&kernel, &options, message);
	source->state = kernel;
	source->fd = kernel ? ky_kernel_trace_fd(kernel) : -1;
	capture->facts->unmatched += error == -ENOENT;
	if (error)
		ky_source_note(capture, "no kernel events: %s",
			       message[0] ? message : strerror(-error));
	else if (message[0])
		ky_source_note(capture, "%s", message);
}

static int kernel_add(struct ky_source *source, pid_t pid, enum ky_source_process how,
		      char message[KY_MESSAGE_BYTES])
{
	(void)message;
	if (how == KY_SOURCE_EXISTING)
		ky_kernel_trace_add(source->state, pid);
	return 0;
}

static uint64_t kernel_round(struct ky_source *source, bool all)
{
	if (is_due(source, PERIOD_NS) || all)
		ky_kernel_trace_round(source->state, all);
	return KY_SOURCE_REST_NS;
}

static void kernel_window(struct ky_source *source, uint64_t from_ns, uint64_t to_ns)
{
	ky_kernel_trace_window(source->state, from_ns, to_ns);
}

static void kernel_facts(const struct ky_source *source, struct ky_capture_facts *facts)
{
	struct ky_kernel_trace_facts kernel;
	ky_kernel_trace_facts(source->state, &kernel);
	facts->kernel_on = true;
	facts->kernel_pages = kernel.pages;
	facts->kernel_lost = kernel.lost;
}

static void close_kernel(struct ky_source *source)
{
	struct ky_kernel_trace *kernel = source->state;
	ky_kernel_trace_close(&kernel);
}

const struct ky_source_ops ky_source_kernel = {
	.forked = open_kernel,
	.add = kernel_add,
	.round = kernel_round,
	.window = kernel_window,
	.facts = kernel_facts,
	.close = close_kernel,
};

/* ---- processes (processes.h) ---- */

/*
 * Each that appears is added to all sources, its drums are handed over, and its end is reported. A process may be gone
 * before anything is set on it: that is no error.
 */

static enum ky_source_process how_it_came(const struct ky_capture *capture, pid_t pid)
{
	struct ky_proc_stat stat;
	/* What records all processes has it already. */
	if (capture->options->scope == KY_PROCESSES_ALL)
		return KY_SOURCE_NEW;
	return ky_proc_stat(pid, 0, &stat) == 0 && stat.started_ns < capture->begin_ns
		       ? KY_SOURCE_EXISTING
		       : KY_SOURCE_NEW;
}

static void processes_appeared(void *context, pid_t pid)
{
	struct ky_capture *const capture = context;
	char message[KY_MESSAGE_BYTES] = "";
	/* The program is added when it is held at its entry point. */
	if (pid != capture->child.pid)
		(void)ky_source_add_all(capture, pid, how_it_came(capture, pid), message);
}

static int open_processes(struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	const struct ky_processes_events events = {.appeared = processes_appeared,
						   .drum = ky_source_drums_found,
						   .ended = ky_snapshots_ended,
						   .context = capture};
	const int error = ky_processes_open(&capture->processes, capture->options->scope, &events);
	source->state = capture->processes;
	source->fd = error ? -1 : ky_processes_fd(capture->processes);
	/* A program that kymo starts hands its drum over itself. */
	if (!error && capture->options->drums && !capture->options->command)
		(void)ky_processes_listen(capture->processes);
	return error;
}

static uint64_t processes_round(struct ky_source *source, bool all)
{
	const uint64_t now = ky_os_boottime();
	(void)all;
	ky_processes_round(source->state);
	source->capture->looked_ns = now;
	return KY_SOURCE_REST_NS;
}

static void processes_facts(const struct ky_source *source, struct ky_capture_facts *facts)
{
	struct ky_processes_facts processes;
	ky_processes_facts(source->state, &processes);
	facts->processes = ky_processes_count(source->state);
	facts->hidden = processes.hidden;
	facts->crowded = processes.crowded;
	facts->mailbox_overflow |= processes.mailbox_overflow;
	facts->missed = processes.missed;
	facts->unseen = source->capture->options->scope == KY_PROCESSES_ALL ? processes.unseen : 0;
}

static void close_processes(struct ky_source *source)
{
	ky_processes_close(&source->capture->processes);
}

const struct ky_source_ops ky_source_processes = {
	.open = open_processes,
	.round = processes_round,
	.facts = processes_facts,
	.close = close_processes,
};

/* ---- crash: the crash trigger (crash_watch.h) ---- */

static int open_crash(struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	struct ky_crash_watch *watch = NULL;
	const struct ky_capture_options *const o = capture->options;
	if (!ky_trigger_needs(o->triggers, o->triggers_count, KY_TRIGGER_BY_CRASH_WATCH))
		return 0;
	const int error = ky_crash_watch_open(&watch, o->triggers, o->triggers_count,
					      ky_snapshots_fired, capture);
	source->state = watch;
	source->fd = watch ? ky_crash_watch_fd(watch) : -1;
	return error;
}

static int crash_add(struct ky_source *source, pid_t pid, enum ky_source_process how,
		     char message[KY_MESSAGE_BYTES])
{
	if (how == KY_SOURCE_GIVEN)
		return 0;
	const int error = ky_crash_watch_add(source->state, pid, message);
	if (error && error != -ESRCH && message[0])
		ky_source_note(source->capture, "%s", message);
	return 0;
}

static uint64_t crash_round(struct ky_source *source, bool all)
{
	(void)all;
	ky_crash_watch_round(source->state);
	return KY_SOURCE_REST_NS;
}

static void crash_ended(struct ky_source *source, pid_t pid, int status)
{
	/* The tracer's report is better than the status. */
	ky_crash_watch_round(source->state);
	ky_crash_watch_ended(source->state, pid, status);
}

static void close_crash(struct ky_source *source)
{
	struct ky_crash_watch *watch = source->state;
	ky_crash_watch_close(&watch);
}

pid_t ky_source_crash_tracer(const struct ky_capture *capture)
{
	const struct ky_crash_watch *const watch = ky_source_state(capture, KY_SOURCE_CRASH);
	return watch ? ky_crash_watch_tracer(watch) : 0;
}

void ky_source_crash_pause(struct ky_capture *capture, pid_t pid, bool begins)
{
	struct ky_source *const source = &capture->sources[KY_SOURCE_CRASH];
	char message[KY_MESSAGE_BYTES] = "";
	if (!source->state)
		return;
	/* Only a process that was let go of is added again. */
	if (begins)
		source->paused = ky_crash_watch_leave(source->state, pid) ? pid : 0;
	else if (source->paused == pid)
		(void)ky_crash_watch_add(source->state, pid, message);
	if (!begins)
		source->paused = 0;
}

const struct ky_source_ops ky_source_crash = {
	.open = open_crash,
	.add = crash_add,
	.round = crash_round,
	.ended = crash_ended,
	.close = close_crash,
	.holds = true,
};
