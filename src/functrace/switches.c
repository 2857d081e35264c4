/* SPDX-License-Identifier: MIT */
/*
 * switches.c: see switches.h.
 *
 *   switch_events ── out ─▶ "off CPU", "off CPU (preempted)" begins ┐
 *                 ── in ──▶ it ends                                            ├─▶ the drum of the thread's process
 *                 ── gone ▶ the thread's spans end                             ┘
 *
 *   threads: tid ─▶ 2 * drum + is off      A thread that was off when the watching began has no begin: then its
 *                                          coming back ends nothing.
 *
 * Children come by themselves, for the events are inherited: a process gets its drum with its first record.
 */
#include "switches.h"

#include "layout.h"
#include "numbers.h"
#include "span_drum.h"
#include "switch_events.h"

#include <dirent.h>
#include <errno.h>
#include <kymo/kymo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADD_PASSES 10u
#define PROCESSES_MAX 4096u
#define TOTAL_BYTES (UINT64_C(64) << 20)
#define CATEGORY "sched"
/*
 * The clocks of two drums differ by some hundred nanoseconds, and a span must not cross those of the functions around it: it is
 * told a little shorter. The thread is in the kernel then, before it is off the CPU and after.
 */
#define MARGIN_NS 500u

struct process {
	pid_t pid;
	uint32_t waiting, preempted; /* trace points */
	bool ended;
	struct ky_span_drum drum;
};

struct ky_switches {
	struct ky_switches_options options;
	struct ky_switch_events events;
	struct process **processes;
	uint32_t count, room;
	struct ky_numbers threads; /* tid: 2 * (process + 1) + whether it is off; 0: not known */
};

/* ---- processes ---- */

static struct process *find(const struct ky_switches *switches, pid_t pid, uint32_t *index)
{
	for (uint32_t i = switches->count; i-- > 0;) {
		*index = i;
		if (switches->processes[i]->pid == pid && !switches->processes[i]->ended)
			return switches->processes[i];
	}
	return NULL;
}

static bool make_room(struct ky_switches *switches)
{
	if (switches->count < switches->room)
		return true;
	const uint32_t room = switches->room ? 2 * switches->room : 8;
	struct process **const grown =
		room > PROCESSES_MAX
			? NULL
			: realloc(switches->processes, room * sizeof(struct process *));
	if (!grown)
		return false;
	switches->processes = grown;
	switches->room = room;
	return true;
}

static bool open_drum(struct process *process, const struct ky_switches_options *options)
{
	const struct ky_span_drum_options drum = {.pid = process->pid,
						  .fd = -1,
						  .functions = 2,
						  .beside = KY_DRUM_SWITCHES,
						  .ring_bytes = options->ring_bytes,
						  .total_bytes = options->total_bytes < TOTAL_BYTES
									 ? options->total_bytes
									 : TOTAL_BYTES};
	if (ky_span_drum_open(&process->drum, &drum) != 0)
		return false;
	process->waiting = ky_span_drum_site(&process->drum, KYMO_KIND_BEGIN, CATEGORY, "off CPU",
					     "", NULL, 0);
	process->preempted = ky_span_drum_site(&process->drum, KYMO_KIND_BEGIN, CATEGORY,
					       "off CPU (preempted)", "", NULL, 0);
	return true;
}

/* NULL: there is no memory for one more. */
static struct process *make(struct ky_switches *switches, pid_t pid, uint32_t *index)
{
	struct process *process = find(switches, pid, index);
	if (process || !make_room(switches))
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	if (!open_drum(process, &switches->options)) {
		free(process);
		return NULL;
	}
	*index = switches->count;
	switches->processes[switches->count++] = process;
	switches->options.drum(switches->options.context, pid, process->drum.fd);
	return process;
}

/* ---- records ---- */

static void take(void *context, const struct ky_switch *one)
{
	struct ky_switches *const switches = context;
	uint32_t index = 0;
	bool made;
	uint32_t *const thread = ky_numbers_make(&switches->threads, (uint64_t)one->tid, &made);
	/* Only what begins a span needs a drum: the last records of a process may come when it is gone. */
	const bool begins = one->kind == KY_SWITCH_WAITING || one->kind == KY_SWITCH_PREEMPTED;
	struct process *const process = !thread  ? NULL
					: begins ? make(switches, one->pid, &index)
						 : find(switches, one->pid, &index);
	if (!process)
		return;
	/* A number that is known of another process is another thread's by now. */
	const bool off = *thread == 2 * (index + 1) + 1;
	struct ky_span_drum *const drum = &process->drum;
	if (one->kind == KY_SWITCH_ENDED)
		ky_span_drum_gone(drum, one->tid, one->time_ns);
	else if (one->kind == KY_SWITCH_IN && off)
		ky_span_drum_end_span(drum, one->tid, one->time_ns - MARGIN_NS);
	else if (begins && !off)
		ky_span_drum_begin(drum, one->tid, one->time_ns + MARGIN_NS,
				   one->kind == KY_SWITCH_PREEMPTED ? process->preempted
								    : process->waiting);
	*thread = one->kind == KY_SWITCH_ENDED ? 0 : 2 * (index + 1) + begins;
}

void ky_switches_round(struct ky_switches *switches)
{
	ky_switch_events_read(&switches->events, take, switches);
}

/* ---- adding ---- */

struct adding {
	struct ky_switches *switches;
	struct ky_numbers tried;
	uint32_t opened, fresh;
	int error;
};

static void add_thread(struct adding *adding, pid_t tid)
{
	bool made;
	if (!ky_numbers_make(&adding->tried, (uint64_t)tid, &made) || !made ||
	    ky_numbers_find(&adding->switches->threads, (uint64_t)tid))
		return;
	adding->fresh++;
	const int error = ky_switch_events_thread(&adding->switches->events, tid);
	adding->opened += error == 0;
	if (error && error != -ESRCH)
		adding->error = error;
}

static void add_threads(struct adding *adding, pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
	DIR *const folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		const long tid = strtol(entry->d_name, NULL, 10);
		if (tid > 0)
			add_thread(adding, (pid_t)tid);
	}
	if (folder)
		closedir(folder);
}

/* Threads that others made meanwhile are found in the next pass; those of threads that have their events come by themselves. */
int ky_switches_add(struct ky_switches *switches, pid_t pid,
		    char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	struct adding adding = {.switches = switches};
	ky_switches_round(switches);
	for (uint32_t pass = 0; pass < ADD_PASSES; pass++) {
		adding.fresh = 0;
		add_threads(&adding, pid);
		if (!adding.fresh)
			break;
		ky_switches_round(switches);
	}
	ky_numbers_free(&adding.tried);
	if (adding.opened)
		return 0;
	const int error = adding.error ? adding.error : -ESRCH;
	if (error == -ESRCH)
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "process %ld is gone", (long)pid);
	else
		ky_switch_events_refused(error, message);
	return error;
}

/* ---- life ---- */

int ky_switches_open(struct ky_switches **out, const struct ky_switches_options *options,
		     char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	*out = NULL;
	struct ky_switches *const switches = calloc(1, sizeof(*switches));
	if (!switches) {
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "out of memory");
		return -ENOMEM;
	}
	switches->options = *options;
	const int error = ky_switch_events_open(&switches->events, message);
	if (error) {
		free(switches);
		return error;
	}
	*out = switches;
	return 0;
}

/* The number may be another process's from here on. Who reads the drum has it open himself. */
void ky_switches_ended(struct ky_switches *switches, pid_t pid)
{
	uint32_t index;
	ky_switches_round(switches);
	struct process *const process = find(switches, pid, &index);
	if (!process)
		return;
	process->ended = true;
	ky_span_drum_close(&process->drum);
}

void ky_switches_close(struct ky_switches **out)
{
	struct ky_switches *const switches = *out;
	*out = NULL;
	if (!switches)
		return;
	ky_switches_round(switches);
	for (uint32_t i = 0; i < switches->count; i++) {
		if (!switches->processes[i]->ended)
			ky_span_drum_close(&switches->processes[i]->drum);
		free(switches->processes[i]);
	}
	free(switches->processes);
	ky_numbers_free(&switches->threads);
	ky_switch_events_close(&switches->events);
	free(switches);
}
