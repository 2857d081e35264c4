/* SPDX-License-Identifier: MIT */
/*
 * snapshots.c: see snapshots.h. Snapshots that wait for the end of their window are in a list in the
 * order in which they fired, which is nearly that of their ends. The list is bounded: a trigger
 * that fires faster than snapshots are written is counted.
 */
#include "capture/snapshots.h"

#include "capture/source.h"
#include "os/os.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAITING_MAX 1024u
#define REAP_TRIES 1000 /* of a millisecond */

struct waiting_snapshot {
	struct ky_bundle_snapshot snapshot;
	char *trigger, *reason, *stack;
	struct waiting_snapshot *next;
};

struct ky_snapshots {
	struct ky_snapshots_options options;
	struct waiting_snapshot *first, **last;
	struct waiting_snapshot *handed; /* the caller has it */
	uint32_t waiting;
	uint32_t taken;
	uint32_t written;
	uint64_t passed_over;
	uint64_t last_ns; /* when the last was taken */
};

int ky_snapshots_open(struct ky_snapshots **out, const struct ky_snapshots_options *options)
{
	struct ky_snapshots *const flight = calloc(1, sizeof(*flight));
	*out = flight;
	if (!flight)
		return -ENOMEM;
	flight->options = *options;
	flight->last = &flight->first;
	return 0;
}

static void waiting_free(struct waiting_snapshot *one)
{
	if (!one)
		return;
	free(one->trigger);
	free(one->reason);
	free(one->stack);
	free(one);
}

void ky_snapshots_close(struct ky_snapshots **at)
{
	struct ky_snapshots *const flight = *at;
	if (!flight)
		return;
	while (flight->first) {
		struct waiting_snapshot *const one = flight->first;
		flight->first = one->next;
		waiting_free(one);
	}
	waiting_free(flight->handed);
	free(flight);
	*at = NULL;
}

static bool is_wanted(const struct ky_snapshots *flight, uint64_t time_ns)
{
	const struct ky_snapshots_options *const o = &flight->options;
	if (o->snapshots_max && flight->taken >= o->snapshots_max)
		return false;
	if (flight->waiting >= WAITING_MAX)
		return false;
	/* Two that fire at once may be reported in any order. */
	const uint64_t apart = time_ns > flight->last_ns ? time_ns - flight->last_ns : 0;
	return !flight->taken || !o->cooldown_ns || apart >= o->cooldown_ns;
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static struct waiting_snapshot *waiting_new(const struct ky_fired *fired)
{
	struct waiting_snapshot *const one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->trigger = copy(fired->trigger ? fired->trigger->text : NULL);
	one->reason = copy(fired->reason);
	one->stack = copy(fired->stack);
	one->snapshot = (struct ky_bundle_snapshot){
		.time_ns = fired->time_ns,
		.noticed_ns = ky_os_boottime(),
		.pid = fired->pid,
		.tid = fired->tid,
		.args_count = fired->args_count < 2 ? fired->args_count : 2,
		.args = {fired->args[0], fired->args[1]},
		.trigger = one->trigger ? one->trigger : "snapshot",
		.reason = one->reason ? one->reason : "",
		.stack = one->stack,
	};
	return one;
}

bool ky_snapshots_take(struct ky_snapshots *flight, const struct ky_fired *what, uint64_t since_ns,
		       uint64_t before_ns)
{
	/* A program may write any time into its drum. A time in the future would be waited for and delay the others. */
	const uint64_t now_ns = ky_os_boottime();
	struct ky_fired now = *what;
	now.time_ns = what->time_ns < now_ns ? what->time_ns : now_ns;
	const struct ky_fired *const fired = &now;
	struct waiting_snapshot *const one =
		is_wanted(flight, fired->time_ns) ? waiting_new(fired) : NULL;
	if (!one) {
		flight->passed_over++;
		return false;
	}
	const uint64_t before = before_ns ? before_ns : flight->options.before_ns;
	uint64_t from = fired->time_ns > before ? fired->time_ns - before : 0;
	if (since_ns > from && since_ns <= fired->time_ns)
		from = since_ns;
	one->snapshot.from_ns = from;
	one->snapshot.to_ns = fired->time_ns + flight->options.after_ns;
	*flight->last = one;
	flight->last = &one->next;
	flight->waiting++;
	flight->taken++;
	flight->last_ns = fired->time_ns;
	return true;
}

const struct ky_bundle_snapshot *ky_snapshots_due(struct ky_snapshots *flight, uint64_t now_ns)
{
	waiting_free(flight->handed);
	flight->handed = NULL;
	for (struct waiting_snapshot **at = &flight->first; *at; at = &(*at)->next) {
		struct waiting_snapshot *const one = *at;
		if (one->snapshot.to_ns > now_ns)
			continue;
		*at = one->next;
		if (flight->last == &one->next)
			flight->last = at;
		flight->waiting--;
		flight->written++;
		flight->handed = one;
		return &one->snapshot;
	}
	return NULL;
}

uint64_t ky_snapshots_due_ns(const struct ky_snapshots *flight)
{
	uint64_t due = UINT64_MAX;
	for (const struct waiting_snapshot *one = flight->first; one; one = one->next) {
		if (one->snapshot.to_ns < due)
			due = one->snapshot.to_ns;
	}
	return due;
}

void ky_snapshots_cut(struct ky_snapshots *flight, uint64_t now_ns)
{
	for (struct waiting_snapshot *one = flight->first; one; one = one->next) {
		if (one->snapshot.to_ns > now_ns)
			one->snapshot.to_ns = now_ns;
	}
}

uint32_t ky_snapshots_count(const struct ky_snapshots *flight)
{
	return flight->written;
}

uint64_t ky_snapshots_passed_over(const struct ky_snapshots *flight)
{
	return flight->passed_over;
}

bool ky_snapshots_is_done(const struct ky_snapshots *flight)
{
	const uint32_t most = flight->options.snapshots_max;
	return most && flight->written >= most;
}

/* ---- triggers ---- */

void ky_snapshots_fired(void *context, const struct ky_fired *fired)
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
	ky_snapshots_take(capture->flight, fired, since, 0);
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

void ky_snapshots_write(struct ky_capture *capture, uint64_t now)
{
	const struct ky_bundle_snapshot *snapshot;
	bool any = false;
	if (!capture->flight || ky_snapshots_due_ns(capture->flight) > now)
		return;
	/* Read everything up to now, for all windows that are due. */
	ky_source_round_all(capture, true);
	while ((snapshot = ky_snapshots_due(capture->flight, now))) {
		write_snapshot(capture, snapshot);
		any = true;
	}
	if (any && ky_snapshots_is_done(capture->flight))
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
void ky_snapshots_exit(struct ky_capture *capture, pid_t pid, int status)
{
	char reason[64];
	const uint64_t now = ky_os_boottime();
	describe_end(reason, sizeof(reason), status);
	if (capture->on_exit && capture->flight)
		ky_snapshots_take(capture->flight,
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

void ky_snapshots_ended(void *context, pid_t pid, int status)
{
	struct ky_capture *const capture = context;
	if (pid == capture->child.pid) {
		capture->child_end_reported = true;
		status = status_of_program(capture, status);
	}
	ky_source_ended_all(capture, pid, status);
	if (end_is_of_interest(capture, pid))
		ky_snapshots_exit(capture, pid, status);
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
	ky_snapshots_fired(capture, &(struct ky_fired){.trigger = trigger,
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
		ky_snapshots_take(capture->flight, &fired, 0, before);
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

void ky_snapshots_signals(struct ky_capture *capture)
{
	struct ky_signal signal;
	while (ky_signals_next(&capture->signals, &signal))
		on_signal(capture, &signal);
}
