/* SPDX-License-Identifier: MIT */
/*
 * pt.c: see pt.h.
 *
 *   round    reads records of mappings, of threads that were made and ended; looks for threads without a record
 *   decode   stops all events, copies all AUX rings, lets them go on; then decodes the copies, one after the other
 *
 * Each thread of a traced process has an event until it ends.
 */
#include "base/array.h"
#include "functrace/pt_machine.h"
#include "functrace/pt_process.h"
#include "process/perf_record.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUX_BYTES_ROOT (4u << 20)
#define AUX_BYTES_USER (128u << 10)

#define AUX_BYTES_ALL (UINT64_C(1) << 30) /* of all threads: pinned memory */
#define THREADS_MAX 4096u                 /* of a process */

static void note_once(const struct ky_pt *pt, bool *noted, const char *line)
{
	if (!*noted && pt->options.note)
		pt->options.note(pt->options.context, line);
	*noted = true;
}

/* ---- copies of the rings ---- */

static void note_memory(struct ky_pt *pt)
{
	note_once(pt, &pt->noted_memory,
		  "pt: out of memory while decoding: some calls are missing");
}

static void copy_rings(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	for (uint32_t i = 0; i < traced->count; i++)
		ky_pt_thread_pause(&traced->threads[i]);
	for (uint32_t i = 0; i < traced->count; i++)
		if (!ky_pt_thread_copy(&traced->threads[i]))
			note_memory(pt);
	for (uint32_t i = 0; i < traced->count; i++)
		if (!traced->threads[i].ended)
			ky_pt_thread_resume(&traced->threads[i]);
}

static void report_thread(struct ky_pt *pt, struct ky_pt_traced *traced,
			  struct ky_pt_thread *thread)
{
	struct ky_pt_packets packets = {.aux = thread->packets,
					.bytes = thread->packets_bytes,
					.cpu = pt->machine.cpu,
					.since_ns = thread->written_ns};
	uint64_t until = 0;
	if (!thread->packets)
		return;
	if (!ky_pt_thread_time(thread, &packets.time))
		note_once(
			pt, &pt->noted_time,
			"pt: the kernel does not report how the CPU's counter relates to its clock "
			"(is the clock source tsc?): nothing can be decoded");
	else if (ky_pt_process_write(&traced->process, thread->tid_inside, &packets, &until) != 0)
		note_memory(pt);
	if (until)
		thread->written_ns = until + 1;
	free(thread->packets);
	thread->packets = NULL;
}

/* ---- threads ---- */

static void drop_thread(struct ky_pt *pt, struct ky_pt_traced *traced, uint32_t index)
{
	struct ky_pt_thread *thread = &traced->threads[index];
	ky_made_drum_gone(&traced->process.drum, thread->tid_inside, thread->written_ns);
	pt->aux_all -= thread->aux_bytes;
	ky_pt_thread_close(thread);
	traced->threads[index] = traced->threads[--traced->count];
}

static void name_thread(struct ky_pt_traced *traced, const struct ky_pt_thread *thread)
{
	char name[32];
	if (ky_proc_comm(traced->process.pid, thread->tid, name, sizeof(name)) > 0)
		ky_made_drum_thread(&traced->process.drum, thread->tid_inside, name);
}

static struct ky_pt_thread *find_thread(const struct ky_pt_traced *traced, pid_t tid)
{
	for (uint32_t i = 0; i < traced->count; i++)
		if (traced->threads[i].tid == tid && !traced->threads[i].ended)
			return &traced->threads[i];
	return NULL;
}

/* Make room. Threads that have ended are decoded when the owner asks for it; or now, when their rings are needed. */
static bool make_room(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	for (uint32_t i = 0; i < traced->count; i++)
		if (traced->threads[i].ended && ky_pt_thread_copy(&traced->threads[i])) {
			report_thread(pt, traced, &traced->threads[i]);
			drop_thread(pt, traced, i);
			return true;
		}
	return false;
}

static bool is_full(const struct ky_pt *pt, const struct ky_pt_traced *traced)
{
	return traced->count >= THREADS_MAX || pt->aux_all + pt->aux_bytes > AUX_BYTES_ALL;
}

/* Return 0; -ESRCH: it is gone already; or -errno. */
static int add_thread(struct ky_pt *pt, struct ky_pt_traced *traced, pid_t tid)
{
	if (is_full(pt, traced) && !make_room(pt, traced))
		return -ENOSPC;
	if (!KY_ARRAY_GROW(traced->threads, traced->room, traced->count + 1))
		return -ENOMEM;
	struct ky_pt_thread *thread = &traced->threads[traced->count];
	const int error = ky_pt_thread_open(thread, &pt->machine, tid, pt->aux_bytes);
	if (error)
		return error;
	thread->tid_inside = ky_proc_inner_pid(tid);
	pt->aux_all += thread->aux_bytes;
	thread->seen = true;
	traced->count++;
	name_thread(traced, thread);
	return 0;
}

static int scan_threads(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	int error = 0;
	DIR *const tasks = ky_proc_tasks(traced->process.pid);
	if (!tasks)
		return -ESRCH;
	for (uint32_t i = 0; i < traced->count; i++)
		traced->threads[i].seen = false;
	for (pid_t tid; (tid = ky_proc_next(tasks)) > 0;) {
		struct ky_pt_thread *thread = find_thread(traced, tid);
		if (thread)
			thread->seen = true;
		if (thread)
			continue;
		const int failed = add_thread(pt, traced, tid);
		if (failed && failed != -ESRCH && !error)
			error = failed;
	}
	ky_proc_close(tasks);
	/* Their records may have been lost. */
	for (uint32_t i = 0; i < traced->count; i++)
		traced->threads[i].ended |= !traced->threads[i].seen;
	return error;
}

/* ---- records ---- */

static void take_record(struct ky_pt *pt, struct ky_pt_traced *traced, struct ky_pt_thread *thread,
			const struct ky_perf_record *record)
{
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		(void)ky_pt_space_map(&traced->process.space, &record->map);
		traced->look = true;
		break;
	case PERF_RECORD_COMM:
		if ((pid_t)record->tid == thread->tid)
			ky_made_drum_thread(&traced->process.drum, thread->tid_inside,
					    record->comm.name);
		break;
	case PERF_RECORD_EXIT:
		thread->ended |= (pid_t)record->tid == thread->tid;
		break;
	case PERF_RECORD_LOST:
		traced->look = true;
		note_once(pt, &pt->noted_lost,
			  "pt: the kernel lost records of mappings: some code "
			  "may be unknown");
		break;
	default:
		break;
	}
}

/* Take the records. Look for new threads after all records: the list of threads may move then. */
static void take_records(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	const uint64_t sample_type = ky_pt_machine_event(&pt->machine).sample_type;
	for (uint32_t i = 0; i < traced->count; i++) {
		struct ky_pt_thread *thread = &traced->threads[i];
		struct ky_perf_record record;
		const struct perf_event_header *header;
		ky_perf_ring_begin(&thread->records);
		while ((header = ky_perf_ring_next(&thread->records)))
			if (ky_perf_record_parse(&record, header, sample_type))
				take_record(pt, traced, thread, &record);
		ky_perf_ring_end(&thread->records);
	}
	/* Rings of several threads are not read in the order of time: the present mappings decide. */
	if (traced->look && !traced->ended)
		(void)ky_pt_space_look(&traced->process.space);
	traced->look = false;
}

/* ---- the engine ---- */

bool ky_pt_available(char why[KY_MESSAGE_BYTES])
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

int ky_pt_open(struct ky_pt **pt, const struct ky_functrace_options *options,
	       char message[KY_MESSAGE_BYTES])
{
	*pt = NULL;
	if (!ky_pt_available(message))
		return -ENOTSUP;
	struct ky_pt *new_pt = calloc(1, sizeof(*new_pt));
	if (!new_pt || ky_pt_machine_read(&new_pt->machine, "", message) != 0) {
		free(new_pt);
		return ky_fail(message, -ENOMEM, "out of memory for Intel PT");
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
	take_records(pt, traced);
	const int error = traced->ended ? 0 : scan_threads(pt, traced);
	if (error && error != -ESRCH)
		note_once(pt, &pt->noted_threads,
			  "pt: some threads are not traced: no memory for their rings "
			  "(1 GiB; for users what kernel.perf_event_mlock_kb allows)");
}

void ky_pt_round(struct ky_pt *pt)
{
	for (struct ky_pt_traced *traced = pt->first; traced; traced = traced->next)
		look_around(pt, traced);
}

/* Decode the packets of all threads. For threads that had ended when their rings were copied it is the last time. */
static void write_packets(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	for (uint32_t i = 0; i < traced->count; i++)
		report_thread(pt, traced, &traced->threads[i]);
	for (uint32_t i = traced->count; i > 0; i--)
		if (traced->threads[i - 1].last || traced->ended)
			drop_thread(pt, traced, i - 1);
}

void ky_pt_decode(struct ky_pt *pt)
{
	for (struct ky_pt_traced *traced = pt->first; traced; traced = traced->next)
		copy_rings(pt, traced);
	for (struct ky_pt_traced *traced = pt->first; traced; traced = traced->next) {
		look_around(pt, traced);
		write_packets(pt, traced);
	}
}

/* ---- processes ---- */

static void free_traced(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	while (traced->count)
		drop_thread(pt, traced, traced->count - 1);
	KY_ARRAY_FREE(traced->threads, traced->room);
	ky_pt_process_close(&traced->process);
	free(traced);
}

/* Begin tracing: open the threads' records first, then read the mappings, so that no mapping is missed. */
static int begin_tracing(struct ky_pt *pt, struct ky_pt_traced *traced,
			 char message[KY_MESSAGE_BYTES])
{
	int error = scan_threads(pt, traced);
	if (error && !traced->count) {
		ky_pt_machine_why(error, message);
		return error;
	}
	error = ky_pt_space_look(&traced->process.space);
	if (error)
		snprintf(message, KY_MESSAGE_BYTES,
			 "cannot read /proc/%d/maps, which locates the code: %s",
			 (int)traced->process.pid, strerror(-error));
	return error;
}

int ky_pt_add(struct ky_pt *pt, pid_t pid, char message[KY_MESSAGE_BYTES])
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
		free(traced);
		return ky_fail(message, error, "process %d cannot be traced by Intel PT: %s",
			       (int)pid, strerror(-error));
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
		copy_rings(pt, traced);
		take_records(pt, traced);
		write_packets(pt, traced);
	}
}

/* Note what is missing. The trace also marks each place. */
static void note_missing(const struct ky_pt *pt, const struct ky_pt_traced *traced)
{
	const struct ky_pt_facts *facts = &traced->process.facts;
	char line[KY_MESSAGE_BYTES];
	bool noted = !facts->errors && !facts->overflows;
	snprintf(line, sizeof(line),
		 "pt: process %d: %u times packets did not match the code or the code was unknown, "
		 "%u times the CPU lost packets: instants in the trace mark these",
		 (int)traced->process.pid, facts->errors, facts->overflows);
	note_once(pt, &noted, line);
}

void ky_pt_close(struct ky_pt **pt)
{
	if (!*pt)
		return;
	while ((*pt)->first) {
		struct ky_pt_traced *traced = (*pt)->first;
		(*pt)->first = traced->next;
		note_missing(*pt, traced);
		free_traced(*pt, traced);
	}
	free(*pt);
	*pt = NULL;
}
