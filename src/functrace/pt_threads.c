/* SPDX-License-Identifier: MIT */
/*
 * pt_threads.c: the threads of a traced process: found, with an event each, until they end; and what the kernel's records say of
 * them.
 */
#include "functrace/pt_parts.h"
#include "process/perf_record.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#define AUX_BYTES_ALL (UINT64_C(1) << 30) /* of all threads: pinned memory */
#define THREADS_MAX 4096u                 /* of a process */

static void name_thread(struct ky_pt_traced *traced, const struct ky_pt_thread *thread)
{
	char name[32];
	if (ky_proc_comm(traced->process.pid, thread->tid, name, sizeof(name)) > 0)
		ky_span_drum_thread(&traced->process.drum, thread->tid_inside, name);
}

static struct ky_pt_thread *find_thread(const struct ky_pt_traced *traced, pid_t tid)
{
	for (uint32_t i = 0; i < traced->count; i++)
		if (traced->threads[i].tid == tid && !traced->threads[i].ended)
			return &traced->threads[i];
	return NULL;
}

/* Threads that have ended are told of when that is asked for; or now, when their rings are needed. */
static bool make_room(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	for (uint32_t i = 0; i < traced->count; i++)
		if (traced->threads[i].ended && ky_pt_thread_copy(&traced->threads[i])) {
			ky_pt_windows_tell(pt, traced, &traced->threads[i]);
			ky_pt_threads_drop(pt, traced, i);
			return true;
		}
	return false;
}

static bool is_full(const struct ky_pt *pt, const struct ky_pt_traced *traced)
{
	return traced->count >= THREADS_MAX || pt->aux_all + pt->aux_bytes > AUX_BYTES_ALL;
}

/* 0; -ESRCH: it is gone already; -errno. */
static int add_thread(struct ky_pt *pt, struct ky_pt_traced *traced, pid_t tid)
{
	if (is_full(pt, traced) && !make_room(pt, traced))
		return -ENOSPC;
	if (traced->count == traced->room) {
		const uint32_t room = traced->room ? 2 * traced->room : 16;
		struct ky_pt_thread *threads = realloc(traced->threads, room * sizeof(*threads));
		if (!threads)
			return -ENOMEM;
		traced->threads = threads;
		traced->room = room;
	}
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

int ky_pt_threads_scan(struct ky_pt *pt, struct ky_pt_traced *traced)
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

void ky_pt_threads_drop(struct ky_pt *pt, struct ky_pt_traced *traced, uint32_t index)
{
	struct ky_pt_thread *thread = &traced->threads[index];
	ky_span_drum_gone(&traced->process.drum, thread->tid_inside, thread->told_ns);
	pt->aux_all -= thread->aux_bytes;
	ky_pt_thread_close(thread);
	traced->threads[index] = traced->threads[--traced->count];
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
			ky_span_drum_thread(&traced->process.drum, thread->tid_inside,
					    record->comm.name);
		break;
	case PERF_RECORD_EXIT:
		thread->ended |= (pid_t)record->tid == thread->tid;
		break;
	case PERF_RECORD_LOST:
		traced->look = true;
		ky_pt_note_once(
			pt, &pt->said_lost,
			"pt: the kernel had no room for records of what was mapped: some code "
			"may not be known");
		break;
	default:
		break;
	}
}

/* New threads are looked for behind all records: the list of threads may move then. */
void ky_pt_threads_records(struct ky_pt *pt, struct ky_pt_traced *traced)
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
	/* Rings of several threads are not read in the order of time: what is mapped now decides. */
	if (traced->look && !traced->ended)
		(void)ky_pt_space_look(&traced->process.space);
	traced->look = false;
}
