/* SPDX-License-Identifier: MIT */
/*
 * capture.c: a capture from its beginning to its end; see capture.h, and source.h for its sources.
 *
 *   open ─▶ start ─▶ ┌ poll ─ signals ─ round of all sources ─ snapshots ┐ ─▶ close ─▶ wait
 *                    └──────────────── until it stops ◀──────────────────┘
 *
 * Order of opening: signals before any thread begins, so that none takes them; the file, in which all sources write; the
 * sources; the program, waiting; then what is set on it. Closing is the other way round, the file last.
 *
 * A capture stops when the program or all processes have ended, when it is stopped, when its time is over or its file is
 * full, when it has all snapshots, or when nothing can be written any more. A program that still runs then continues, and
 * kymo ends with it.
 */
#include "capture/source.h"

#include "base/fail.h"
#include "os/os.h"
#include "sink/path.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_EVERY_NS UINT64_C(100000000)
#define FLUSH_EVERY_NS UINT64_C(500000000)

/* ---- the file ---- */

static int cannot_write(const char *path, int error, char message[KY_MESSAGE_BYTES])
{
	return ky_fail(message, -error, "cannot write %s: %s; choose another file with -o", path,
		       strerror(error));
}

int ky_capture_output_open(struct ky_capture_output *output, const char *path, bool keep_old,
			   char message[KY_MESSAGE_BYTES])
{
	*output = (struct ky_capture_output){.fd = -1, .file = {.fd = -1, .place.dir = -1}};
	if (ky_path_rotates(path)) {
		output->kept = true;
		return 0;
	}
	int error = ky_path_expand(output->path, sizeof(output->path), path, (int32_t)getpid(), 0);
	if (error >= 0)
		error = ky_path_is_plain(output->path)
				? ky_file_replacer_open(&output->file, output->path)
				: 0;
	if (error)
		return cannot_write(path, -error, message);
	output->file.keep_old = keep_old;
	output->fd = output->file.fd;
	output->kept = output->fd < 0;
	return 0;
}

int ky_capture_output_keep(struct ky_capture_output *output, char message[KY_MESSAGE_BYTES])
{
	const char *what = NULL;
	if (output->kept)
		return 0;
	output->kept = true;
	const int error = ky_file_replacer_name(&output->file, &what);
	output->nameless = error != 0;
	if (error && strcmp(what, KY_FILE_KEEP) == 0)
		return ky_fail(message, error,
			       "cannot keep %s as %s.old: %s; choose another file with -o",
			       output->path, output->path, strerror(-error));
	return error ? cannot_write(output->path, -error, message) : 0;
}

void ky_capture_output_close(struct ky_capture_output *output)
{
	ky_file_replacer_abandon(&output->file);
	output->fd = -1;
}

/* ---- opening ---- */

static int find_program(struct ky_capture *capture)
{
	char *const *const command = capture->options->command;
	if (!command)
		return 0;
	const int error = ky_child_find(command[0], capture->program, sizeof(capture->program));
	capture->facts->exec_failed = error != 0;
	if (error == -ENOENT && !strchr(command[0], '/'))
		return ky_fail(capture->message, error, "cannot run %s: no such program in PATH",
			       command[0]);
	return error ? ky_fail(capture->message, error, "cannot run %s: %s", command[0],
			       strerror(-error))
		     : 0;
}

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

static int open_flight(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	capture->on_exit = ky_trigger_find(o->triggers, o->triggers_count, KY_TRIGGER_EXIT);
	capture->on_interrupt =
		ky_trigger_find(o->triggers, o->triggers_count, KY_TRIGGER_INTERRUPT);
	if (!o->triggers_count && !o->event)
		return 0;
	const struct ky_snapshots_options options = {.before_ns = o->before_ns,
						     .after_ns = o->after_ns,
						     .cooldown_ns = o->cooldown_ns,
						     .snapshots_max = o->snapshots_max};
	return ky_snapshots_open(&capture->flight, &options);
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
			ky_source_note(
				capture,
				"looking for the program's events in /proc: its mailbox cannot be opened: %s",
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
		.tracer = ky_source_crash_tracer(capture),
		.hold = ky_source_any_holds(capture),
		.mask = &capture->signals.mask_before,
		.child_action = &capture->signals.child_before,
	};
	return ky_child_fork(&capture->child, &child, capture->message);
}

static int open_all(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	capture->signals.fd = capture->output.fd = -1;
	capture->output.file = (struct ky_file_replacer){.fd = -1, .place.dir = -1};
	capture->child.go = capture->child.failed = -1;
	capture->begin_ns = ky_os_boottime();
	int error = find_program(capture);
	if (!error)
		error = ky_signals_open(&capture->signals, o->command != NULL, o->triggers,
					o->triggers_count);
	if (!error)
		error = open_output(capture);
	if (!error)
		error = open_flight(capture);
	if (!error)
		error = ky_source_open_all(capture);
	if (!error)
		error = fork_program(capture);
	if (!error)
		ky_source_forked_all(capture);
	return error;
}

/* ---- starting ---- */

/*
 * Trace the program that is about to begin, where a source needs it held at its entry point. Return -errno with a
 * message when that is forbidden and a source cannot do without: then the program must not run.
 */
static int hold_program(struct ky_capture *capture)
{
	if (!ky_source_any_holds(capture))
		return 0;
	const int error = ky_child_hold(&capture->child);
	return error ? ky_source_functions_unheld(capture, error) : 0;
}

/* A program that ended before a source was ready has run all the same: its exit code is the answer. */
static bool ended_early(struct ky_capture *capture, int error, const char *message)
{
	if (error != -ESRCH || !ky_child_reap(&capture->child))
		return false;
	ky_source_note(capture, "the program ended before it could be traced: %s", message);
	return true;
}

static int start_program(struct ky_capture *capture)
{
	char message[KY_MESSAGE_BYTES] = "";
	if (ky_processes_add(capture->processes, capture->child.pid, message))
		ky_source_note(capture, "the program's children are not followed: %s", message);
	int error = hold_program(capture);
	if (error)
		return error;
	error = ky_child_exec(&capture->child, capture->options->command[0],
			      ky_source_any_holds(capture), capture->message);
	capture->facts->exec_failed = error != 0;
	if (error)
		return error;
	error = ky_source_add_all(capture, capture->child.pid, KY_SOURCE_PROGRAM, message);
	if (error && !ended_early(capture, error, message)) {
		ky_child_end(&capture->child);
		return ky_fail(capture->message, error, "%s", message);
	}
	capture->facts->started = true;
	capture->facts->given = 1;
	ky_child_release(&capture->child);
	return 0;
}

static int start_given(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	char message[KY_MESSAGE_BYTES] = "";
	int error = 0;
	for (uint32_t i = 0; i < o->pids_count; i++) {
		int refused = ky_processes_add(capture->processes, o->pids[i], message);
		if (!refused)
			refused = ky_source_add_all(capture, o->pids[i], KY_SOURCE_GIVEN, message);
		if (!refused) {
			capture->facts->given++;
			continue;
		}
		error = refused;
		if (o->pids_count > 1)
			ky_source_note(capture, "%s", message);
	}
	if (capture->facts->given || !o->pids_count)
		return 0;
	if (o->pids_count > 1)
		return ky_fail(capture->message, error,
			       "none of the %" PRIu32 " processes can be recorded", o->pids_count);
	return ky_fail(capture->message, error, "%s", message);
}

static int start(struct ky_capture *capture)
{
	const int error = capture->options->command ? start_program(capture) : start_given(capture);
	if (error || capture->flight)
		return error;
	/* A stream has its file from the beginning, so that it exists if kymo is killed. */
	return ky_capture_output_keep(&capture->output, capture->message);
}

/* ---- facts ---- */

static void gather_facts(struct ky_capture *capture)
{
	struct ky_capture_facts *const facts = capture->facts;
	struct ky_bundle_facts bundle = {0};
	facts->elapsed_ns = ky_os_boottime() - capture->begin_ns;
	if (capture->bundle)
		ky_bundle_facts(capture->bundle, &bundle);
	facts->events = bundle.events;
	facts->events_removed = bundle.events_removed;
	facts->bytes = bundle.bytes;
	facts->files = bundle.files;
	const char *const path = capture->output.fd >= 0 ? capture->output.path : bundle.path;
	snprintf(facts->path, sizeof(facts->path), "%s", path ? path : "");
	ky_source_facts_all(capture);
	if (capture->flight) {
		facts->snapshots = ky_snapshots_count(capture->flight);
		facts->snapshots_passed_over = ky_snapshots_passed_over(capture->flight);
	}
}

/* ---- when it is over ---- */

static bool has_ended(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	if (o->command)
		return ky_child_reap(&capture->child);
	return o->pids_count && ky_processes_count(capture->processes) == 0;
}

static void check_file(struct ky_capture *capture)
{
	const int error = capture->error ? capture->error : ky_bundle_error(capture->bundle);
	if (error || ky_bundle_is_full(capture->bundle))
		capture->stop = true;
}

static void report_progress(struct ky_capture *capture, uint64_t now)
{
	if (now < capture->progress_ns)
		return;
	capture->progress_ns = now + PROGRESS_EVERY_NS;
	gather_facts(capture);
	if (capture->options->progress &&
	    capture->options->progress(capture->options->context, capture->facts))
		capture->stop = true;
}

static void flush(struct ky_capture *capture, uint64_t now)
{
	if (now < capture->flush_ns)
		return;
	capture->flush_ns = now + FLUSH_EVERY_NS;
	ky_bundle_flush(capture->bundle);
}

static bool is_over(struct ky_capture *capture, uint64_t now)
{
	const uint64_t duration = capture->options->duration_ns;
	check_file(capture);
	return capture->stop || has_ended(capture) ||
	       (duration && now >= capture->begin_ns + duration);
}

/* ---- the loop ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Return how long to sleep at most: rest_ns, or until something is due. */
static uint64_t time_to_sleep(const struct ky_capture *capture, uint64_t rest_ns)
{
	const uint64_t now = ky_os_boottime();
	uint64_t until = earlier(now + rest_ns, capture->progress_ns);
	if (capture->options->duration_ns)
		until = earlier(until, capture->begin_ns + capture->options->duration_ns);
	if (capture->flight)
		until = earlier(until, ky_snapshots_due_ns(capture->flight));
	return until > now ? until - now : 0;
}

static void sleep_until_news(struct ky_capture *capture, uint64_t rest_ns)
{
	struct pollfd fds[1 + KY_SOURCES_COUNT];
	const uint64_t sleep_ns = time_to_sleep(capture, rest_ns);
	const struct timespec timeout = {.tv_sec = (time_t)(sleep_ns / 1000000000),
					 .tv_nsec = (long)(sleep_ns % 1000000000)};
	fds[KY_SOURCES_COUNT] = (struct pollfd){.fd = capture->signals.fd, .events = POLLIN};
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		const struct ky_source *const source = &capture->sources[i];
		fds[i] = (struct pollfd){.fd = source->state ? source->fd : -1, .events = POLLIN};
	}
	if (ppoll(fds, 1 + KY_SOURCES_COUNT, &timeout, NULL) <= 0)
		return;
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++)
		capture->sources[i].ready = fds[i].revents != 0;
}

static bool has_other_sources(const struct ky_capture *capture)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		if (i != KY_SOURCE_PROCESSES && i != KY_SOURCE_DRUMS && capture->sources[i].state)
			return true;
	}
	return false;
}

/* A process may still get its first trace points, but the user should know that it has none. */
static void note_silence(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	if (!o->pids_count || !o->drums || capture->facts->drums)
		return;
	ky_source_note(capture, "%s no events so far: no kymo trace points, or none ran; %s",
		       o->pids_count == 1 ? "the process has" : "the processes have",
		       has_other_sources(capture) ? "the rest is recorded"
						  : "waiting for the first");
}

static void loop(struct ky_capture *capture)
{
	capture->begin_ns = capture->looked_ns = ky_os_boottime();
	uint64_t rest_ns = ky_source_round_all(capture, false);
	note_silence(capture);
	while (!is_over(capture, ky_os_boottime())) {
		sleep_until_news(capture, rest_ns);
		ky_snapshots_signals(capture);
		rest_ns = ky_source_round_all(capture, false);
		const uint64_t now = ky_os_boottime();
		ky_snapshots_write(capture, now);
		flush(capture, now);
		report_progress(capture, now);
	}
}

/* ---- closing ---- */

static int write_failed(struct ky_capture *capture, int error)
{
	if (error == -EPIPE && !capture->options->path)
		return 0;
	return ky_fail(
		capture->message, error, "cannot write %s: %s; the file is valid up to there",
		capture->facts->path[0] ? capture->facts->path : "the capture", strerror(-error));
}

static void read_the_rest(struct ky_capture *capture)
{
	ky_source_round_all(capture, true);
	if (capture->facts->started && !capture->child.running && !capture->child_end_reported)
		ky_snapshots_ended(capture, capture->child.pid, capture->child.status);
	if (capture->flight) {
		ky_snapshots_cut(capture->flight, ky_os_boottime());
		ky_snapshots_write(capture, ky_os_boottime());
	}
}

static void close_all(struct ky_capture *capture)
{
	struct ky_bundle_facts bundle = {0};
	if (capture->processes && (capture->began || capture->facts->started))
		read_the_rest(capture);
	gather_facts(capture);
	ky_source_close_all(capture);
	if (capture->bundle) {
		ky_bundle_facts(capture->bundle, &bundle);
		const int error = ky_bundle_close(&capture->bundle);
		if (error && !capture->error)
			capture->error = write_failed(capture, error);
	}
	capture->facts->events = bundle.events;
	capture->facts->events_removed = bundle.events_removed;
	capture->facts->kept = capture->output.kept && !capture->output.nameless;
	ky_capture_output_close(&capture->output);
	ky_snapshots_close(&capture->flight);
	free(capture->categories);
}

/* The capture is over but the program is not: pass on its signals until it ends. */
static void wait_for_program(struct ky_capture *capture)
{
	if (capture->child.running)
		ky_source_note(capture, "%s; the program continues",
			       capture->error ? capture->message : "the capture is finished");
	while (!ky_child_reap(&capture->child)) {
		struct pollfd fd = {.fd = capture->signals.fd, .events = POLLIN};
		poll(&fd, 1, -1);
		ky_snapshots_signals(capture);
	}
}

int ky_capture(const struct ky_capture_options *options, struct ky_capture_facts *facts,
	       char message[KY_MESSAGE_BYTES])
{
	struct ky_capture capture = {.options = options, .facts = facts, .message = message};
	*facts = (struct ky_capture_facts){.status = -1};
	message[0] = '\0';
	capture.error = open_all(&capture);
	if (!capture.error)
		capture.error = start(&capture);
	capture.began = !capture.error;
	if (capture.began)
		loop(&capture);
	/* The signal that ended the program reached kymo, too, perhaps after it last looked. */
	if (capture.began)
		ky_snapshots_signals(&capture);
	/* Restore the programs before another Ctrl-C may end kymo. */
	ky_source_close(&capture, KY_SOURCE_FUNCTIONS);
	if (capture.signals.fd >= 0 && !capture.child.running)
		ky_signals_let_interrupt(&capture.signals);
	close_all(&capture);
	ky_source_functions_restore(&capture);
	if (facts->started) {
		wait_for_program(&capture);
		facts->status = capture.child.status;
	}
	ky_child_close(&capture.child);
	ky_signals_close(&capture.signals);
	if (capture.error && !message[0])
		ky_fail(message, capture.error, "the capture failed: %s", strerror(-capture.error));
	return capture.error;
}
