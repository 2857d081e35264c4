/* SPDX-License-Identifier: MIT */
/* capture_snapshots.c: see capture_snapshots.h. */
#include "capture/capture_snapshots.h"

#include "os/os.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAP_TRIES 1000 /* of a millisecond */

/* ---- triggers ---- */

const struct ky_trigger *ky_capture_snapshots_trigger(const struct ky_capture_options *options,
						      enum ky_trigger_kind kind)
{
	const struct ky_trigger *last = NULL;
	for (uint32_t i = 0; i < options->triggers_count; i++) {
		if (options->triggers[i].kind == kind)
			last = &options->triggers[i];
	}
	return last;
}

void ky_capture_snapshots_fired(void *context, const struct ky_fired *fired)
{
	struct ky_capture *const capture = context;
	uint64_t since = 0;
	if (!capture->flight)
		return;
	if (fired->trigger && fired->trigger->kind == KY_TRIGGER_API) {
		const uint64_t before = capture->options->before_ns;
		since = ky_source_drums_mark(capture,
					     fired->time_ns > before ? fired->time_ns - before : 0);
	}
	ky_flight_fired(capture->flight, fired, since, 0);
}

static void write_snapshot(struct ky_capture *capture, const struct ky_bundle_snapshot *snapshot)
{
	if (capture->error)
		return;
	capture->error = ky_capture_output_keep(&capture->output, capture->message);
	ky_source_window_all(capture, snapshot->from_ns, snapshot->to_ns);
	ky_bundle_snapshot(capture->bundle, snapshot);
	ky_bundle_flush(capture->bundle);
}

void ky_capture_snapshots_write(struct ky_capture *capture, uint64_t now)
{
	const struct ky_bundle_snapshot *snapshot;
	bool any = false;
	if (!capture->flight || ky_flight_due_ns(capture->flight) > now)
		return;
	/* Read everything up to now, for all windows that are due. */
	ky_source_round_all(capture, true);
	while ((snapshot = ky_flight_due(capture->flight, now))) {
		write_snapshot(capture, snapshot);
		any = true;
	}
	if (any && ky_flight_is_done(capture->flight))
		capture->stop = true;
}

/* ---- ends ---- */

static void describe_end(char *text, size_t room, int status)
{
	if (status >= 0 && WIFSIGNALED(status))
		snprintf(text, room, "ended by SIG%s",
			 sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
	else if (status >= 0 && WIFEXITED(status))
		snprintf(text, room, "exit code %d", WEXITSTATUS(status));
	else
		snprintf(text, room, "ended");
}

/* Report whether the process was asked for, or recorded something. */
static bool end_is_of_interest(const struct ky_capture *capture, pid_t pid)
{
	if (pid == capture->child.pid)
		return true;
	for (uint32_t i = 0; i < capture->options->pids_count; i++) {
		if (capture->options->pids[i] == pid)
			return true;
	}
	return ky_source_drums_has(capture, pid);
}

/* The process ended at some time since processes were last looked for: the snapshot begins before that. */
void ky_capture_snapshots_exit(struct ky_capture *capture, pid_t pid, int status)
{
	char reason[64];
	const uint64_t now = ky_os_boottime();
	describe_end(reason, sizeof(reason), status);
	if (capture->on_exit && capture->flight)
		ky_flight_fired(capture->flight,
				&(struct ky_fired){.trigger = capture->on_exit,
						   .time_ns = now,
						   .pid = pid,
						   .reason = reason},
				0, capture->options->before_ns + (now - capture->looked_ns));
}

/* A program that is traced (by the crash watch) can be reaped a moment after it ended. */
static int status_of_program(struct ky_capture *capture, int status)
{
	for (int tries = 0; tries < REAP_TRIES && !ky_child_reap(&capture->child); tries++) {
		if (status != -1)
			ky_child_ended(&capture->child, status);
		else
			poll(NULL, 0, 1);
	}
	return capture->child.running ? -1 : capture->child.status;
}

void ky_capture_snapshots_ended(void *context, pid_t pid, int status)
{
	struct ky_capture *const capture = context;
	if (pid == capture->child.pid) {
		capture->child_told = true;
		status = status_of_program(capture, status);
	}
	ky_source_ended_all(capture, pid, status);
	if (end_is_of_interest(capture, pid))
		ky_capture_snapshots_exit(capture, pid, status);
	ky_source_drums_forget(capture, pid);
}

/* ---- signals ---- */

static const struct ky_trigger *trigger_of_signal(const struct ky_capture *capture, int number)
{
	for (uint32_t i = 0; i < capture->options->triggers_count; i++) {
		const struct ky_trigger *const trigger = &capture->options->triggers[i];
		if (trigger->kind == KY_TRIGGER_SIGNAL && trigger->signal == number)
			return trigger;
	}
	return NULL;
}

static void fire(struct ky_capture *capture, const struct ky_trigger *trigger, pid_t sender,
		 const char *reason)
{
	ky_capture_snapshots_fired(capture, &(struct ky_fired){.trigger = trigger,
							       .time_ns = ky_os_boottime(),
							       .pid = sender,
							       .reason = reason});
}

/* Handle `kymo snapshot`: in a stream, which has everything anyway, it sets a mark. */
static void requested(struct ky_capture *capture, const struct ky_signal *signal)
{
	const struct ky_trigger request = {.kind = KY_TRIGGER_SIGNAL,
					   .text = (char[]){"kymo snapshot"}};
	const uint64_t now = ky_os_boottime();
	const uint64_t before = signal->value > 0 ? (uint64_t)signal->value * 1000000 : 0;
	const struct ky_fired fired = {.trigger = &request,
				       .time_ns = now,
				       .pid = signal->sender,
				       .reason = "requested by kymo snapshot"};
	if (capture->flight) {
		ky_flight_fired(capture->flight, &fired, 0, before);
		return;
	}
	if (!capture->bundle)
		return;
	ky_bundle_snapshot(capture->bundle,
			   &(struct ky_bundle_snapshot){.time_ns = now,
							.from_ns = before < now ? now - before : 0,
							.to_ns = now,
							.pid = signal->sender,
							.trigger = request.text,
							.reason = fired.reason});
	capture->facts->snapshots++;
}

/* The terminal signals kymo's process group, which the program may have left. */
static bool reached_program(const struct ky_capture *capture, const struct ky_signal *signal)
{
	return signal->terminal && getpgid(capture->child.pid) == getpgrp();
}

/* kymo ends with the program; the second Ctrl-C kills it. */
static void interrupted(struct ky_capture *capture, const struct ky_signal *signal)
{
	if (capture->on_interrupt)
		fire(capture, capture->on_interrupt, 0, "interrupted");
	if (!capture->child.running) {
		capture->stop = true;
		return;
	}
	if (signal->terminal && ++capture->interrupts > 1)
		ky_child_pass(&capture->child, SIGKILL);
	else if (!reached_program(capture, signal))
		ky_child_pass(&capture->child, SIGINT);
}

/* Stop with the program, so that the shell gets the terminal back. */
static void stopped(struct ky_capture *capture, const struct ky_signal *signal)
{
	if (!reached_program(capture, signal))
		ky_child_pass(&capture->child, SIGTSTP);
	kill(getpid(), SIGSTOP);
}

static void on_signal(struct ky_capture *capture, const struct ky_signal *signal)
{
	const struct ky_trigger *const trigger = trigger_of_signal(capture, signal->number);
	const char *const name = sigabbrev_np(signal->number);
	char reason[64];
	if (signal->number == SIGCHLD)
		return;
	if (signal->number == KY_SIGNAL_SNAPSHOT) {
		requested(capture, signal);
	} else if (trigger) {
		snprintf(reason, sizeof(reason), "SIG%s from process %d", name ? name : "?",
			 (int)signal->sender);
		fire(capture, trigger, signal->sender, reason);
	} else if (signal->number == SIGINT) {
		interrupted(capture, signal);
	} else if (signal->number == SIGTSTP) {
		stopped(capture, signal);
	} else if (!capture->child.running) {
		capture->stop = true;
	} else if (!reached_program(capture, signal)) {
		ky_child_pass(&capture->child, signal->number);
	}
}

void ky_capture_snapshots_signals(struct ky_capture *capture)
{
	struct ky_signal signal;
	while (ky_signals_next(&capture->signals, &signal))
		on_signal(capture, &signal);
}
