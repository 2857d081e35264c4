/* SPDX-License-Identifier: MIT */
/*
 * capture_sources.c: the sources of a capture: opened, given processes, read round by round,
 * closed.
 *
 * Order of opening: signals before any thread begins, so that none takes them; the file, in which
 * all write; the processes, whose mailbox the program is told of; the program itself, waiting; then
 * what is set on it. Closing is the other way round, the file last.
 */
#include "capture/capture_parts.h"

#include "capture/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)
/* Windows are written a little after they end. */
#define SLACK_NS (200 * MILLISECOND)
#define KERNEL_EVERY_NS (100 * MILLISECOND)
#define GONE_EVERY_NS (100 * MILLISECOND)
/* Triggers are found within 10 ms. */
#define WATCH_EVERY_NS (2 * MILLISECOND)
#define REST_NS (50 * MILLISECOND)
#define PROBES_REST_NS (2 * MILLISECOND)
/* A program may wait for a library that it has loaded to be patched. */
#define FUNCTIONS_REST_NS (5 * MILLISECOND)

/* ---- opening ---- */

static int open_output(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	struct ky_bundle_options bundle = {
		.fd = o->fd, .max_bytes = o->max_bytes, .files_max = o->files_max};
	capture->output.fd = -1;
	capture->output.kept = !o->path;
	if (o->path) {
		const int error = ky_capture_output_open(&capture->output, o->path, o->keep_old,
							 capture->message);
		if (error)
			return error;
		bundle.fd = capture->output.fd;
		bundle.path = bundle.fd >= 0 ? NULL : o->path;
	}
	return ky_bundle_open(&capture->bundle, &bundle, capture->message);
}

/* What the user wants, and what the triggers must see. NULL is all. */
static int choose_categories(struct ky_capture *capture)
{
	const char *const given = capture->options->categories;
	const char *const wanted = given && *given ? given : NULL;
	const char *const watched = capture->watch ? ky_watch_categories(capture->watch) : NULL;
	if (!wanted && !watched)
		return 0;
	/* "*" is not quite all: some are on only when they are named. */
	if (asprintf(&capture->categories, "%s%s%s", wanted ? wanted : "*", watched ? "," : "",
		     watched ? watched : "") >= 0)
		return 0;
	capture->categories = NULL;
	return -ENOMEM;
}

/* Or may do so: the engine is chosen with the first process. */
static bool patches_functions(const struct ky_capture_options *o)
{
	return o->functions && o->functions->engine != KY_FUNCTRACE_PT &&
	       o->functions->engine != KY_FUNCTRACE_SAMPLE;
}

/*
 * A uprobe executes the instruction that the file has there, and goes on behind it: in the middle of a jump that the patch
 * engine has written. A breakpoint stops before whatever is there.
 */
static enum ky_probe_engine engine_of_probes(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	if (!patches_functions(o))
		return o->probe_engine;
	if (o->probe_engine == KY_PROBE_UPROBE)
		ky_capture_note(capture,
				"symbol: and line: triggers are breakpoints: a uprobe would crash "
				"a program whose functions are patched");
	return KY_PROBE_BREAKPOINT;
}

static int open_probes(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	const struct ky_probes_options options = {.triggers = o->triggers,
						  .count = o->triggers_count,
						  .engine = engine_of_probes(capture),
						  .patched = patches_functions(o),
						  .fired = ky_capture_fired,
						  .context = capture};
	const int error = ky_probes_open(&capture->probes, &options);
	if (!error)
		return 0;
	if (o->probe_engine == KY_PROBE_UPROBE)
		return ky_capture_fail(
			capture->message, error,
			"--engine uprobe: %s; uprobes need root and a kernel that has them, "
			"--engine breakpoint does not",
			strerror(-error));
	return ky_capture_fail(
		capture->message, error,
		"symbol: and line: triggers: perf_event_open: %s; be root, or have "
		"kernel.perf_event_paranoid at most 2; a container's seccomp profile "
		"must allow it",
		strerror(-error));
}

static const struct ky_trigger *last_trigger(const struct ky_capture_options *o,
					     enum ky_trigger_kind kind)
{
	const struct ky_trigger *last = NULL;
	for (uint32_t i = 0; i < o->triggers_count; i++) {
		if (o->triggers[i].kind == kind)
			last = &o->triggers[i];
	}
	return last;
}

static bool needs(const struct ky_capture_options *o, enum ky_trigger_finder finder)
{
	return ky_trigger_needs(o->triggers, o->triggers_count, finder);
}

static int open_triggers(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	int error = 0;
	capture->on_exit = last_trigger(o, KY_TRIGGER_EXIT);
	capture->on_interrupt = last_trigger(o, KY_TRIGGER_INTERRUPT);
	if (o->triggers_count)
		error = ky_flight_open(
			&capture->flight,
			&(struct ky_flight_options){.before_ns = o->before_ns,
						    .after_ns = o->after_ns,
						    .cooldown_ns = o->cooldown_ns,
						    .snapshots_max = o->snapshots_max});
	if (!error && needs(o, KY_TRIGGER_BY_WATCH))
		error = ky_watch_open(&capture->watch, o->triggers, o->triggers_count,
				      ky_capture_fired, capture);
	if (!error && needs(o, KY_TRIGGER_BY_CRASH_WATCH))
		error = ky_crash_watch_open(&capture->crash, last_trigger(o, KY_TRIGGER_CRASH),
					    ky_capture_fired, capture);
	if (!error && needs(o, KY_TRIGGER_BY_PROBES))
		error = open_probes(capture);
	return error ? error : choose_categories(capture);
}

static int open_processes(struct ky_capture *capture)
{
	const struct ky_processes_events events = {.appeared = ky_capture_appeared,
						   .drum = ky_capture_drum,
						   .ended = ky_capture_ended,
						   .context = capture};
	return ky_processes_open(&capture->processes, capture->options->scope, &events);
}

/* How far back the sources must reach. */
static uint64_t reach_ns(const struct ky_capture_options *o)
{
	return o->before_ns + o->after_ns + SLACK_NS;
}

static int open_drums(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	if (!o->drums)
		return 0;
	/* Snapshots that the program asks for come in any case. */
	const char *const watched = capture->watch ? ky_watch_categories(capture->watch) : NULL;
	return ky_drums_open(
		&capture->drums,
		&(struct ky_drums_options){.bundle = capture->bundle,
					   .categories = capture->categories,
					   .flight = capture->flight != NULL,
					   .switch_on = true,
					   .ring_bytes = o->ring_bytes ? o->ring_bytes
								       : KY_CAPTURE_RING_BYTES,
					   .total_bytes = KY_CAPTURE_TOTAL_BYTES,
					   .before_ns = reach_ns(o),
					   .event = capture->watch ? ky_watch_event : NULL,
					   .event_categories = watched ? watched : "-*",
					   .context = capture->watch,
					   .child = ky_capture_child,
					   .child_context = capture});
}

static int fork_program(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	const char *mailbox = NULL;
	if (!o->command)
		return 0;
	if (o->drums) {
		mailbox = ky_processes_mailbox(capture->processes);
		if (!mailbox)
			ky_capture_note(capture,
					"the program's events are looked for in /proc, for its "
					"mailbox cannot be opened: %s",
					strerror(errno));
	}
	const struct ky_child_options child = {
		.command = o->command,
		.mailbox = mailbox,
		.categories = !o->drums             ? NULL
			      : capture->categories ? capture->categories
						    : "*",
		.ring_bytes = o->ring_bytes,
		.output = !o->path && o->fd == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO,
		.tracer = capture->crash ? ky_crash_watch_tracer(capture->crash) : 0,
		.hold = capture->probes || capture->crash || capture->functions,
		.mask = &capture->signals.mask_before,
		.child_action = &capture->signals.child_before,
	};
	return ky_child_fork(&capture->child, &child, capture->message);
}

/* What cannot be had is said, and left out. */
static void open_kernel(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	if (!o->kernel_count)
		return;
	const pid_t *const pids = o->command ? &capture->child.pid : o->pids;
	const bool all = o->scope == KY_PROCESSES_ALL;
	const struct ky_kernel_trace_options kernel = {
		.bundle = capture->bundle,
		.events = o->kernel,
		.events_count = o->kernel_count,
		.buffer_bytes = o->buffer_bytes,
		.flight = capture->flight != NULL,
		.before_ns = reach_ns(o),
		.pids = all ? NULL : pids,
		.pids_count = all          ? 0
			      : o->command ? 1
					   : o->pids_count,
	};
	const int error = ky_kernel_trace_open(&capture->kernel, &kernel, message);
	if (error)
		ky_capture_note(capture, "no kernel events: %s",
				message[0] ? message : strerror(-error));
	else if (message[0])
		ky_capture_note(capture, "%s", message);
}

static void open_samples(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	if (!o->samples_per_second)
		return;
	const struct ky_stack_samples_options samples = {
		.bundle = capture->bundle,
		.per_second = o->samples_per_second,
		.all = o->scope == KY_PROCESSES_ALL,
		.flight = capture->flight != NULL,
		.before_ns = reach_ns(o),
	};
	int error = ky_stack_samples_open(&capture->samples, &samples, message);
	if (!error && capture->child.pid) {
		error = ky_stack_samples_add(capture->samples, capture->child.pid, true, message);
		if (error)
			ky_stack_samples_close(&capture->samples);
	}
	if (error)
		ky_capture_note(capture, "no samples: %s", message[0] ? message : strerror(-error));
}

static void open_program_probes(struct ky_capture *capture)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	if (!capture->probes || !capture->child.pid)
		return;
	const int placed = ky_probes_add_file(capture->probes, capture->program, message);
	capture->probes_placed = placed > 0;
	if (placed > 0)
		ky_capture_note_probes(capture, ky_probes_why(capture->probes));
}

static int find_program(struct ky_capture *capture)
{
	char *const *const command = capture->options->command;
	if (!command)
		return 0;
	const int error = ky_child_find(command[0], capture->program, sizeof(capture->program));
	capture->facts->exec_failed = error != 0;
	if (error == -ENOENT && !strchr(command[0], '/'))
		return ky_capture_fail(capture->message, error,
				       "cannot run %s: there is no such program in PATH",
				       command[0]);
	return error ? ky_capture_fail(capture->message, error, "cannot run %s: %s", command[0],
				       strerror(-error))
		     : 0;
}

int ky_capture_open(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	capture->signals.fd = capture->output.fd = -1;
	capture->child.go = capture->child.failed = -1;
	capture->begin_ns = ky_capture_now();
	int error = find_program(capture);
	if (!error)
		error = ky_signals_open(&capture->signals, o->command != NULL, o->triggers,
					o->triggers_count);
	if (!error)
		error = open_output(capture);
	if (!error)
		error = open_processes(capture);
	if (!error)
		error = open_triggers(capture);
	if (!error)
		error = ky_capture_open_functions(capture);
	if (!error)
		error = fork_program(capture);
	if (!error)
		error = open_drums(capture);
	if (!error) {
		open_kernel(capture);
		open_samples(capture);
		open_program_probes(capture);
	}
	return error;
}

/* ---- starting ---- */

static int start_program(struct ky_capture *capture)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	if (ky_processes_add(capture->processes, capture->child.pid, message))
		ky_capture_note(capture, "the program's children are not followed: %s", message);
	const bool hold = capture->probes || capture->crash || capture->functions;
	int error = ky_child_exec(&capture->child, capture->options->command[0], hold,
				  capture->message);
	capture->facts->exec_failed = error != 0;
	if (error)
		return error;
	error = ky_capture_add_functions(capture, capture->child.pid, capture->message);
	if (error) {
		ky_child_end(&capture->child);
		return error;
	}
	capture->facts->started = true;
	capture->facts->given = 1;
	ky_capture_add_probes(capture, capture->child.pid);
	ky_capture_add_crash_watch(capture, capture->child.pid);
	ky_child_release(&capture->child);
	return 0;
}

static int start_given(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	int error = 0;
	for (uint32_t i = 0; i < o->pids_count; i++) {
		int refused = ky_processes_add(capture->processes, o->pids[i], message);
		if (!refused)
			refused = ky_capture_add_functions(capture, o->pids[i], message);
		if (!refused) {
			capture->facts->given++;
			continue;
		}
		error = refused;
		if (o->pids_count > 1)
			ky_capture_note(capture, "%s", message);
	}
	if (capture->facts->given || !o->pids_count)
		return 0;
	if (o->pids_count > 1)
		return ky_capture_fail(capture->message, error,
				       "none of the %" PRIu32 " processes can be recorded",
				       o->pids_count);
	return ky_capture_fail(capture->message, error, "%s", message);
}

int ky_capture_start(struct ky_capture *capture)
{
	const int error = capture->options->command ? start_program(capture) : start_given(capture);
	if (error || capture->flight)
		return error;
	/* A stream has its file from the beginning, so that it is there when kymo is killed. */
	return ky_capture_output_keep(&capture->output, capture->message);
}

/* ---- rounds ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void round_kernel(struct ky_capture *capture, bool all)
{
	const uint64_t now = ky_capture_now();
	if (!all && now < capture->kernel_ns)
		return;
	capture->kernel_ns = now + KERNEL_EVERY_NS;
	if (capture->kernel)
		ky_kernel_trace_round(capture->kernel, all);
	if (capture->samples)
		ky_stack_samples_round(capture->samples, all);
}

/* Processes that came and went between two looks at what there is. */
static void end_gone(struct ky_capture *capture, uint64_t now)
{
	if (now < capture->gone_ns)
		return;
	capture->gone_ns = now + GONE_EVERY_NS;
	for (pid_t pid; (pid = ky_drums_gone(capture->drums));) {
		if (capture->functions)
			ky_functrace_ended(capture->functions, pid);
		ky_drums_ended(capture->drums, pid);
	}
}

/* The watch must have seen all events up to the time that it is told. */
static uint64_t round_drums(struct ky_capture *capture, bool all)
{
	const uint64_t now = ky_capture_now();
	uint64_t next = REST_NS;
	if (capture->drums) {
		end_gone(capture, now);
		ky_capture_try_drums(capture);
		next = ky_drums_round(capture->drums, all || capture->watch) * UINT64_C(1000);
	}
	if (!capture->watch)
		return next;
	ky_watch_tick(capture->watch, now);
	return least(next, WATCH_EVERY_NS);
}

uint64_t ky_capture_round(struct ky_capture *capture, bool all)
{
	if (capture->crash)
		ky_crash_watch_round(capture->crash);
	ky_capture_round_functions(capture, all);
	const uint64_t looked_ns = ky_capture_now();
	ky_processes_round(capture->processes);
	capture->looked_ns = looked_ns;
	const uint64_t next = round_drums(capture, all);
	round_kernel(capture, all);
	if (capture->probes)
		ky_probes_round(capture->probes);
	return least(next, capture->probes      ? PROBES_REST_NS
			   : capture->functions ? FUNCTIONS_REST_NS
						: REST_NS);
}

void ky_capture_window(struct ky_capture *capture, uint64_t from_ns, uint64_t to_ns)
{
	if (capture->drums)
		ky_drums_window(capture->drums, from_ns, to_ns);
	if (capture->kernel)
		ky_kernel_trace_window(capture->kernel, from_ns, to_ns);
	if (capture->samples)
		ky_stack_samples_window(capture->samples, from_ns, to_ns);
}

/* ---- facts and the end ---- */

static void gather_drums(struct ky_capture *capture)
{
	struct ky_capture_facts *const facts = capture->facts;
	struct ky_drums_facts drum;
	facts->events_lost = facts->damaged = 0;
	for (uint32_t i = 0; i < ky_drums_count(capture->drums); i++) {
		if (!ky_drums_facts(capture->drums, i, &drum))
			continue;
		facts->events_lost += drum.lost;
		facts->damaged += drum.damaged;
	}
}

static void gather_kernel(struct ky_capture *capture)
{
	struct ky_capture_facts *const facts = capture->facts;
	if (capture->kernel) {
		struct ky_kernel_trace_facts kernel;
		ky_kernel_trace_facts(capture->kernel, &kernel);
		facts->kernel_on = true;
		facts->kernel_pages = kernel.pages;
		facts->kernel_lost = kernel.lost;
	}
	if (capture->samples) {
		struct ky_stack_samples_facts samples;
		ky_stack_samples_facts(capture->samples, &samples);
		facts->samples_on = true;
		facts->samples = samples.samples;
		facts->samples_lost = samples.lost;
	}
}

void ky_capture_gather(struct ky_capture *capture)
{
	struct ky_capture_facts *const facts = capture->facts;
	struct ky_bundle_facts bundle = {0};
	facts->elapsed_ns = ky_capture_now() - capture->begin_ns;
	if (capture->bundle)
		ky_bundle_facts(capture->bundle, &bundle);
	facts->events = bundle.events;
	facts->bytes = bundle.bytes;
	facts->files = bundle.files;
	const char *const path = capture->output.fd >= 0 ? capture->output.path : bundle.path;
	snprintf(facts->path, sizeof(facts->path), "%s", path ? path : "");
	if (capture->processes) {
		struct ky_processes_facts processes;
		ky_processes_facts(capture->processes, &processes);
		facts->processes = ky_processes_count(capture->processes);
		facts->hidden = processes.hidden;
		facts->mailbox_overflow = processes.mailbox_overflow || capture->drums_refused;
	}
	if (capture->drums)
		gather_drums(capture);
	gather_kernel(capture);
	ky_capture_gather_functions(capture);
	if (capture->flight) {
		facts->snapshots = ky_flight_count(capture->flight);
		facts->snapshots_passed_over = ky_flight_passed_over(capture->flight);
	}
}

static void close_sources(struct ky_capture *capture)
{
	ky_capture_take_out_functions(capture);
	ky_probes_close(&capture->probes);
	ky_crash_watch_close(&capture->crash);
	/*
	 * These still write. Looking for the names of samples may take seconds, in which a user may
	 * well press Ctrl-C again: by then the kernel's instance and the drums' slots are given back.
	 */
	ky_kernel_trace_close(&capture->kernel);
	ky_drums_close(&capture->drums);
	ky_stack_samples_close(&capture->samples);
	ky_processes_close(&capture->processes);
	ky_watch_close(&capture->watch);
}

static int write_failed(struct ky_capture *capture, int error)
{
	if (error == -EPIPE && !capture->options->path)
		return 0;
	return ky_capture_fail(
		capture->message, error, "cannot write %s: %s; what was written before is whole",
		capture->facts->path[0] ? capture->facts->path : "the capture", strerror(-error));
}

void ky_capture_close(struct ky_capture *capture)
{
	uint64_t events = 0;
	if (capture->processes) {
		ky_capture_round(capture, true);
		if (capture->facts->started && !capture->child.running && !capture->child_told)
			ky_capture_ended(capture, capture->child.pid, capture->child.status);
		if (capture->flight) {
			ky_flight_cut(capture->flight, ky_capture_now());
			ky_capture_snapshots(capture, ky_capture_now());
		}
	}
	if (!capture->probes_placed)
		ky_capture_note_probes(capture, capture->probes_missing);
	if (capture->watch && ky_watch_dropped(capture->watch))
		ky_capture_note(capture,
				"triggers: %" PRIu64
				" events were not looked at: too many threads, "
				"nested or asynchronous spans, or counters at once",
				ky_watch_dropped(capture->watch));
	ky_capture_tell_missing(capture);
	ky_capture_gather(capture);
	close_sources(capture);
	if (capture->bundle) {
		struct ky_bundle_facts bundle = {0};
		ky_bundle_facts(capture->bundle, &bundle);
		events = bundle.events;
		const int error = ky_bundle_close(&capture->bundle);
		if (error && !capture->error)
			capture->error = write_failed(capture, error);
	}
	capture->facts->events = events;
	capture->facts->kept = capture->output.kept;
	ky_capture_output_close(&capture->output);
	ky_flight_close(&capture->flight);
	ky_capture_forget_processes(capture);
	free(capture->categories);
}
