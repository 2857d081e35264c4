/* SPDX-License-Identifier: MIT */
/* sample_processes.c: see sample_processes.h. */
#include "capture/sample_processes.h"

#include "base/array.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS_AFTER_END 2u

void ky_sample_processes_free(struct ky_sample_processes *known)
{
	for (uint32_t i = 0; i < known->processes_count; i++)
		ky_address_space_free(&known->processes[i].space);
	KY_ARRAY_FREE(known->processes, known->processes_room);
	KY_ARRAY_FREE(known->threads, known->threads_room);
	ky_u64_map_free(&known->process_of);
	ky_u64_map_free(&known->thread_of);
	*known = (struct ky_sample_processes){.modules = known->modules};
}

static struct ky_sample_process *find_process(const struct ky_sample_processes *known, uint32_t pid)
{
	const uint32_t *const number = ky_u64_map_find(&known->process_of, pid);
	return number ? &known->processes[*number] : NULL;
}

static struct ky_sample_thread *find_thread(const struct ky_sample_processes *known, uint32_t tid)
{
	const uint32_t *const number = ky_u64_map_find(&known->thread_of, tid);
	return number ? &known->threads[*number] : NULL;
}

static struct ky_sample_process *make_process(struct ky_sample_processes *known, uint32_t pid)
{
	bool made;
	if (!KY_ARRAY_GROW(known->processes, known->processes_room, known->processes_count + 1))
		return NULL;
	uint32_t *const number = ky_u64_map_add(&known->process_of, pid, &made);
	if (number && made) {
		*number = known->processes_count++;
		known->processes[*number] = (struct ky_sample_process){.pid = pid};
	}
	return number ? &known->processes[*number] : NULL;
}

/* Return the thread, alive and of that process. */
static struct ky_sample_thread *make_thread(struct ky_sample_processes *known, uint32_t pid,
					    uint32_t tid)
{
	bool made;
	if (!KY_ARRAY_GROW(known->threads, known->threads_room, known->threads_count + 1))
		return NULL;
	uint32_t *const number = ky_u64_map_add(&known->thread_of, tid, &made);
	if (!number)
		return NULL;
	if (made) {
		*number = known->threads_count++;
		known->threads[*number] = (struct ky_sample_thread){.tid = tid};
	}
	struct ky_sample_thread *const thread = &known->threads[*number];
	struct ky_sample_process *const process = make_process(known, pid);
	if (process && (!thread->alive || thread->pid != pid)) {
		process->threads++;
		process->ended = 0;
	}
	thread->alive = process != NULL;
	thread->pid = pid;
	return thread;
}

/* ---- records ---- */

static void take_mapping(struct ky_sample_processes *known, const struct ky_perf_record *record)
{
	struct ky_sample_process *const process = make_process(known, record->pid);
	const struct ky_address_range range = {
		.start = record->map.start,
		.end = record->map.end,
		.offset = record->map.offset,
		.module = ky_sample_modules_of(known->modules, &record->map),
		.protection = record->map.protection,
		.flags = record->map.flags,
	};
	if (process && range.module != KY_NO_MODULE)
		(void)ky_address_space_put(&process->space, &range);
}

static void take_comm(struct ky_sample_processes *known, const struct ky_perf_record *record)
{
	struct ky_sample_thread *const thread = make_thread(known, record->pid, record->tid);
	if (thread)
		snprintf(thread->comm, sizeof(thread->comm), "%.15s", record->comm.name);
	struct ky_sample_process *const process = find_process(known, record->pid);
	if (process && record->comm.exec)
		process->space.count = 0;
}

static void take_fork(struct ky_sample_processes *known, const struct ky_perf_record *record)
{
	struct ky_sample_thread *const thread = make_thread(known, record->pid, record->tid);
	const struct ky_sample_thread *const maker = find_thread(known, record->task.parent_tid);
	if (thread && maker)
		memcpy(thread->comm, maker->comm, sizeof(thread->comm));
	struct ky_sample_process *const process = find_process(known, record->pid);
	const struct ky_sample_process *const parent = find_process(known, record->task.parent_pid);
	if (process && parent && process != parent)
		(void)ky_address_space_copy(&process->space, &parent->space);
}

static void take_exit(struct ky_sample_processes *known, const struct ky_perf_record *record)
{
	struct ky_sample_thread *const thread = find_thread(known, record->tid);
	if (!thread || !thread->alive)
		return;
	thread->alive = false;
	struct ky_sample_process *const process = find_process(known, thread->pid);
	if (process && process->threads && --process->threads == 0)
		process->ended = 1;
}

bool ky_sample_processes_wants(const struct perf_event_header *head)
{
	return head->type == PERF_RECORD_MMAP2 || head->type == PERF_RECORD_COMM ||
	       head->type == PERF_RECORD_FORK || head->type == PERF_RECORD_EXIT;
}

void ky_sample_processes_take(struct ky_sample_processes *known,
			      const struct perf_event_header *head)
{
	struct ky_perf_record record;
	if (!ky_sample_processes_wants(head) ||
	    !ky_perf_record_parse(&record, head, KY_PERF_SAMPLE_TYPE))
		return;
	if (record.type == PERF_RECORD_MMAP2)
		take_mapping(known, &record);
	else if (record.type == PERF_RECORD_COMM)
		take_comm(known, &record);
	else if (record.type == PERF_RECORD_FORK)
		take_fork(known, &record);
	else
		take_exit(known, &record);
}

/* ---- those that have ended ---- */

static void forget_process(struct ky_sample_processes *known, uint32_t number)
{
	struct ky_sample_process *const process = &known->processes[number];
	ky_u64_map_remove(&known->process_of, process->pid);
	ky_address_space_free(&process->space);
	*process = known->processes[--known->processes_count];
	if (number < known->processes_count)
		*ky_u64_map_find(&known->process_of, process->pid) = number;
}

static void forget_thread(struct ky_sample_processes *known, uint32_t number)
{
	struct ky_sample_thread *const thread = &known->threads[number];
	ky_u64_map_remove(&known->thread_of, thread->tid);
	*thread = known->threads[--known->threads_count];
	if (number < known->threads_count)
		*ky_u64_map_find(&known->thread_of, thread->tid) = number;
}

void ky_sample_processes_round(struct ky_sample_processes *known)
{
	for (uint32_t i = known->processes_count; i-- > 0;) {
		struct ky_sample_process *const process = &known->processes[i];
		if (process->ended && process->ended++ > ROUNDS_AFTER_END)
			forget_process(known, i);
	}
	for (uint32_t i = known->threads_count; i-- > 0;)
		if (!known->threads[i].alive)
			forget_thread(known, i);
}

/* ---- asked ---- */

bool ky_sample_processes_has(const struct ky_sample_processes *known, uint32_t pid)
{
	const struct ky_sample_process *const process = find_process(known, pid);
	return process && process->threads;
}

bool ky_sample_processes_has_thread(const struct ky_sample_processes *known, uint32_t tid)
{
	const struct ky_sample_thread *const thread = find_thread(known, tid);
	return thread && thread->alive;
}

const struct ky_address_range *ky_sample_processes_find(const struct ky_sample_processes *known,
							uint32_t pid, uint64_t address)
{
	const struct ky_sample_process *const process = find_process(known, pid);
	return process ? ky_address_space_find(&process->space, address) : NULL;
}

static void tell_ranges(const struct ky_sample_processes *known,
			const struct ky_sample_process *process, struct ky_perf_out *out)
{
	const struct ky_perf_who who = {process->pid, process->pid, 0};
	for (uint32_t i = 0; i < process->space.count; i++) {
		const struct ky_address_range *const range = &process->space.ranges[i];
		const struct ky_sample_module *const module = &known->modules->items[range->module];
		struct ky_proc_mapping mapping = {.start = range->start,
						  .end = range->end,
						  .offset = range->offset,
						  .protection = range->protection,
						  .flags = range->flags,
						  .device = module->device,
						  .inode = module->inode,
						  .build_id_bytes = module->build_id_bytes,
						  .path = module->path};
		memcpy(mapping.build_id, module->build_id, sizeof(mapping.build_id));
		ky_perf_out_mapping(out, who, &mapping);
	}
}

void ky_sample_processes_tell(const struct ky_sample_processes *known, struct ky_perf_out *out)
{
	for (uint32_t i = 0; i < known->processes_count; i++)
		tell_ranges(known, &known->processes[i], out);
	for (uint32_t i = 0; i < known->threads_count; i++) {
		const struct ky_sample_thread *const thread = &known->threads[i];
		const struct ky_perf_who who = {thread->pid, thread->tid, 0};
		if (thread->tid != thread->pid)
			ky_perf_out_thread(out, who);
		ky_perf_out_comm(out, who, thread->comm);
	}
}
