/* SPDX-License-Identifier: MIT */
/*
 * pt.c: see pt.h.
 *
 *   round    reads records of mappings, of threads that were made and ended; looks for threads without a record
 *   decode   stops all events, copies all AUX rings, lets them go on; then decodes the copies, one after the other
 */
#include "base/array.h"
#include "functrace/pt_process.h"
#include "process/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUX_BYTES_ROOT (4u << 20)
#define AUX_BYTES_USER (128u << 10)

void ky_pt_note_once(const struct ky_pt *pt, bool *said, const char *line)
{
	if (!*said && pt->options.note)
		pt->options.note(pt->options.context, line);
	*said = true;
}

bool ky_pt_available(char why[KY_FUNCTRACE_MESSAGE_BYTES])
{
	struct ky_pt_machine machine;
	if (ky_pt_machine_read(&machine, "", why) != 0)
		return false;
	const int fd = ky_pt_machine_open(&machine, 0);
	if (fd < 0) {
		ky_pt_machine_why(fd, why);
		return false;
	}
	close(fd);
	return true;
}

int ky_pt_open(struct ky_pt **pt, const struct ky_pt_options *options,
	       char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	*pt = NULL;
	if (!ky_pt_available(message))
		return -ENOTSUP;
	struct ky_pt *new_pt = calloc(1, sizeof(*new_pt));
	if (!new_pt || ky_pt_machine_read(&new_pt->machine, "", message) != 0) {
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "out of memory for Intel PT");
		free(new_pt);
		return -ENOMEM;
	}
	new_pt->options = *options;
	new_pt->aux_bytes = options->aux_bytes;
	if (!new_pt->aux_bytes)
		new_pt->aux_bytes = geteuid() == 0 ? AUX_BYTES_ROOT : AUX_BYTES_USER;
	*pt = new_pt;
	return 0;
}

static void look_around(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	ky_pt_threads_records(pt, traced);
	const int error = traced->ended ? 0 : ky_pt_threads_scan(pt, traced);
	if (error && error != -ESRCH)
		ky_pt_note_once(pt, &pt->said_threads,
				"pt: some threads are not traced: no memory for their rings "
				"(1 GiB; for users what kernel.perf_event_mlock_kb allows)");
}

void ky_pt_round(struct ky_pt *pt)
{
	for (struct ky_pt_traced *traced = pt->first; traced; traced = traced->next)
		look_around(pt, traced);
}

/* Decode the windows of all threads. For threads that had ended when their rings were copied it is the last time. */
static void tell_windows(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	for (uint32_t i = 0; i < traced->count; i++)
		ky_pt_threads_report(pt, traced, &traced->threads[i]);
	for (uint32_t i = traced->count; i > 0; i--)
		if (traced->threads[i - 1].last || traced->ended)
			ky_pt_threads_drop(pt, traced, i - 1);
}

void ky_pt_decode(struct ky_pt *pt)
{
	for (struct ky_pt_traced *traced = pt->first; traced; traced = traced->next)
		ky_pt_threads_copy(pt, traced);
	for (struct ky_pt_traced *traced = pt->first; traced; traced = traced->next) {
		look_around(pt, traced);
		tell_windows(pt, traced);
	}
}

/* ---- processes ---- */

static void free_traced(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	while (traced->count)
		ky_pt_threads_drop(pt, traced, traced->count - 1);
	KY_ARRAY_FREE(traced->threads, traced->room);
	ky_pt_process_close(&traced->process);
	free(traced);
}

/* Begin tracing: open the threads' records first, then read the mappings, so that no mapping is missed. */
static int begin_tracing(struct ky_pt *pt, struct ky_pt_traced *traced,
			 char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	int error = ky_pt_threads_scan(pt, traced);
	if (error && !traced->count) {
		ky_pt_machine_why(error, message);
		return error;
	}
	error = ky_pt_space_look(&traced->process.space);
	if (error)
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "cannot read /proc/%d/maps, which locates the code: %s",
			 (int)traced->process.pid, strerror(-error));
	return error;
}

int ky_pt_add(struct ky_pt *pt, pid_t pid, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	const struct ky_pt_process_options options = {.selection = pt->options.selection,
						      .ring_bytes = pt->options.ring_bytes,
						      .total_bytes = pt->options.total_bytes,
						      .pid_inside = ky_proc_inner_pid(pid)};
	for (const struct ky_pt_traced *traced = pt->first; traced; traced = traced->next)
		if (traced->process.pid == pid && !traced->ended)
			return 0;
	struct ky_pt_traced *traced = calloc(1, sizeof(*traced));
	int error = traced ? ky_pt_process_open(&traced->process, pid, &options) : -ENOMEM;
	if (error) {
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "process %d cannot be traced by Intel PT: %s", (int)pid, strerror(-error));
		free(traced);
		return error;
	}
	error = begin_tracing(pt, traced, message);
	if (error) {
		free_traced(pt, traced);
		return error;
	}
	traced->next = pt->first;
	pt->first = traced;
	if (pt->options.drum)
		pt->options.drum(pt->options.context, pid, traced->process.drum.fd);
	return 0;
}

void ky_pt_ended(struct ky_pt *pt, pid_t pid)
{
	for (struct ky_pt_traced *traced = pt->first; traced; traced = traced->next) {
		if (traced->process.pid != pid || traced->ended)
			continue;
		traced->ended = true;
		traced->process.space.live = false;
		ky_pt_threads_copy(pt, traced);
		ky_pt_threads_records(pt, traced);
		tell_windows(pt, traced);
	}
}

/* Note what is missing. The trace also marks each place. */
static void say_missing(const struct ky_pt *pt, const struct ky_pt_traced *traced)
{
	const struct ky_pt_facts *facts = &traced->process.facts;
	char line[KY_FUNCTRACE_MESSAGE_BYTES];
	bool said = !facts->errors && !facts->overflows;
	snprintf(line, sizeof(line),
		 "pt: process %d: %u times packets did not match the code or the code was unknown, "
		 "%u times the CPU lost packets: instants in the trace mark these",
		 (int)traced->process.pid, facts->errors, facts->overflows);
	ky_pt_note_once(pt, &said, line);
}

void ky_pt_close(struct ky_pt **pt)
{
	if (!*pt)
		return;
	while ((*pt)->first) {
		struct ky_pt_traced *traced = (*pt)->first;
		(*pt)->first = traced->next;
		say_missing(*pt, traced);
		free_traced(*pt, traced);
	}
	free(*pt);
	*pt = NULL;
}
