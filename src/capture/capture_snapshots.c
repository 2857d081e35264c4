/* SPDX-License-Identifier: MIT */
/*
 * capture_snapshots.c: what happens in a capture: signals, processes that end, triggers that fire, and
 * the snapshots that come of it.
 */
#include "capture/capture_parts.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAP_TRIES 1000 /* of a millisecond */

/* ---- triggers ---- */

void ky_capture_fired(void *context, const struct ky_fired *fired)
{
	struct ky_capture *const capture = context;
	uint64_t since = 0;
	if (!capture->flight)
		return;
	if (fired->trigger && fired->trigger->kind == KY_TRIGGER_API && capture->drums) {
		const uint64_t before = capture->options->before_ns;
		since = ky_drums_mark(capture->drums,
				      fired->time_ns > before ? fired->time_ns - before : 0);
	}
	ky_flight_fired(capture->flight, fired, since, 0);
}

static void write_snapshot(struct ky_capture *capture, const struct ky_bundle_snapshot *snapshot)
{
	if (capture->error)
		return;
	capture->error = ky_capture_output_keep(&capture->output, capture->message);
	ky_capture_window(capture, snapshot->from_ns, snapshot->to_ns);
	ky_bundle_snapshot(capture->bundle, snapshot);
	ky_bundle_flush(capture->bundle);
}

void ky_capture_snapshots(struct ky_capture *capture, uint64_t now)
{
	const struct ky_bundle_snapshot *snapshot;
	bool any = false;
	if (!capture->flight || ky_flight_due_ns(capture->flight) > now)
		return;
	/* What was recorded up to now, for all windows that are due. */
	ky_capture_round(capture, true);
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

/* Of those that were asked for, and those that had something to say. */
static bool end_is_of_interest(const struct ky_capture *capture, pid_t pid)
{
	if (pid == capture->child.pid)
		return true;
	for (uint32_t i = 0; i < capture->options->pids_count; i++) {
		if (capture->options->pids[i] == pid)
			return true;
	}
	for (uint32_t i = 0; i < capture->recorded_count; i++) {
		if (capture->recorded[i] == pid)
			return true;
	}
	return false;
}

static void forget_recorded(struct ky_capture *capture, pid_t pid)
{
	for (uint32_t i = 0; i < capture->recorded_count; i++) {
		if (capture->recorded[i] == pid)
			capture->recorded[i--] = capture->recorded[--capture->recorded_count];
	}
}

/* It ended at some time since it was last looked for: what is kept is before that. */
static void fire_exit(struct ky_capture *capture, pid_t pid, int status)
{
	char reason[64];
	const uint64_t now = ky_capture_now();
	describe_end(reason, sizeof(reason), status);
	if (capture->flight)
		ky_flight_fired(capture->flight,
				&(struct ky_fired){.trigger = capture->on_exit,
						   .time_ns = now,
						   .pid = pid,
						   .reason = reason},
				0, capture->options->before_ns + (now - capture->looked_ns));
}

/* A program that is traced (the crash watch) can be reaped a moment after it ended. */
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

void ky_capture_ended(void *context, pid_t pid, int status)
{
	struct ky_capture *const capture = context;
	if (pid == capture->child.pid) {
		capture->child_told = true;
		status = status_of_program(capture, status);
	}
	if (capture->functions)
		ky_functrace_ended(capture->functions, pid);
	/* To its last event first: what fires in there comes before the end. */
	if (capture->drums)
		ky_drums_ended(capture->drums, pid);
	if (capture->watch)
		ky_watch_ended(capture->watch, pid);
	if (capture->probes)
		ky_probes_ended(capture->probes, pid);
	if (capture->crash) {
		/* What the tracer saw is better than what the status tells. */
		ky_crash_watch_round(capture->crash);
		ky_crash_watch_ended(capture->crash, pid, status);
	}
	if (capture->on_exit && end_is_of_interest(capture, pid))
		fire_exit(capture, pid, status);
	forget_recorded(capture, pid);
}

void ky_capture_child_ends(struct ky_capture *capture, pid_t pid)
{
	if (capture->watch)
		ky_watch_ended(capture->watch, pid);
	if (capture->on_exit)
		fire_exit(capture, pid, -1);
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
	ky_capture_fired(capture, &(struct ky_fired){.trigger = trigger,
						     .time_ns = ky_capture_now(),
						     .pid = sender,
						     .reason = reason});
}

/* `kymo snapshot`: in a stream, which has everything anyway, it is a mark. */
static void asked_for(struct ky_capture *capture, const struct ky_signal *signal)
{
	const struct ky_trigger asked = {.kind = KY_TRIGGER_SIGNAL,
					 .text = (char[]){"kymo snapshot"}};
	const uint64_t now = ky_capture_now();
	const uint64_t before = signal->value > 0 ? (uint64_t)signal->value * 1000000 : 0;
	const struct ky_fired fired = {.trigger = &asked,
				       .time_ns = now,
				       .pid = signal->sender,
				       .reason = "asked for by kymo snapshot"};
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
							.trigger = asked.text,
							.reason = fired.reason});
	capture->facts->snapshots++;
}

/* What the terminal sends goes to kymo's process group, which the program may have left. */
static bool reached_program(const struct ky_capture *capture, const struct ky_signal *signal)
{
	return signal->terminal && getpgid(capture->child.pid) == getpgrp();
}

/* Of the terminal: kymo ends with the program. The second time it has to. */
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

/* kymo stops with its program, so that the shell gets the terminal back. */
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
		asked_for(capture, signal);
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

void ky_capture_signals(struct ky_capture *capture)
{
	struct ky_signal signal;
	while (ky_signals_next(&capture->signals, &signal))
		on_signal(capture, &signal);
}
