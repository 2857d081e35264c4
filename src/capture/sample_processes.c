/* SPDX-License-Identifier: MIT */
/* sample_processes.c: see sample_processes.h. */
#include "capture/sample_processes.h"

#include "base/array.h"
#include "base/file.h"
#include "process/jit_files.h"
#include "process/program_file.h"

#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULES_MAX 65536u
#define FILES_OPEN_MAX 200u

void ky_sample_modules_free(struct ky_sample_modules *modules)
{
	for (uint32_t i = 0; i < modules->count; i++) {
		free(modules->items[i].path);
		if (modules->items[i].fd >= 0)
			close(modules->items[i].fd);
	}
	KY_ARRAY_FREE(modules->items, modules->room);
	ky_u64_map_free(&modules->by_hash);
	*modules = (struct ky_sample_modules){0};
}

/* As the reader of perf.data tells code that a program made itself from that of files. */
static enum ky_sample_module_kind kind_of(const char *path)
{
	if (strcmp(path, "[vdso]") == 0)
		return KY_SAMPLE_VDSO;
	if (ky_jitdump_is_path(path))
		return KY_SAMPLE_JITDUMP;
	return ky_proc_maps_is_file(path) || strncmp(path, "[vsyscall]", 10) == 0 ? KY_SAMPLE_FILE
										  : KY_SAMPLE_MADE;
}

static uint64_t hash_of(const struct ky_proc_mapping *mapping)
{
	uint64_t hash = mapping->inode ^ mapping->device << 8;
	for (const char *p = mapping->path; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
	for (unsigned i = 0; i < mapping->build_id_bytes; i++)
		hash = (hash ^ mapping->build_id[i]) * 0x100000001b3u;
	return hash;
}

static bool is_same(const struct ky_sample_module *module, const struct ky_proc_mapping *mapping)
{
	if (strcmp(module->path, mapping->path) != 0 ||
	    module->build_id_bytes != mapping->build_id_bytes)
		return false;
	if (module->build_id_bytes)
		return memcmp(module->build_id, mapping->build_id, module->build_id_bytes) == 0;
	return module->inode == mapping->inode && module->device == mapping->device;
}

/* Return the number of the mapped file; KY_NO_MODULE when there are too many. */
static uint32_t module_of(struct ky_sample_modules *modules, const struct ky_proc_mapping *mapping)
{
	bool made;
	uint32_t *first = ky_u64_map_add(&modules->by_hash, hash_of(mapping), &made);
	if (!first)
		return KY_NO_MODULE;
	if (made)
		*first = KY_NO_MODULE;
	for (uint32_t i = *first; i != KY_NO_MODULE; i = modules->items[i].next)
		if (is_same(&modules->items[i], mapping))
			return i;
	char *path = modules->count < MODULES_MAX && KY_ARRAY_GROW(modules->items, modules->room,
								   modules->count + 1)
			     ? strdup(mapping->path)
			     : NULL;
	if (!path)
		return KY_NO_MODULE;
	struct ky_sample_module *module = &modules->items[modules->count];
	*module = (struct ky_sample_module){.path = path,
					    .build_id_bytes = mapping->build_id_bytes,
					    .device = mapping->device,
					    .inode = mapping->inode,
					    .kind = kind_of(path),
					    .fd = -1,
					    .next = *first};
	memcpy(module->build_id, mapping->build_id, sizeof(module->build_id));
	return *first = modules->count++;
}

int ky_sample_modules_open_path(const char *path, pid_t pid)
{
	char seen[PATH_MAX];
	if (path[0] != '/')
		return -1;
	const int bytes = snprintf(seen, sizeof(seen), "/proc/%d/root%s", (int)pid, path);
	const int fd = pid > 0 && bytes < (int)sizeof(seen) ? ky_file_open_plain(seen) : -1;
	return fd >= 0 ? fd : ky_file_open_plain(path);
}

void ky_sample_modules_build_id(int fd, struct ky_proc_mapping *mapping)
{
	const uint8_t *id;
	mapping->build_id_bytes = 0;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		const size_t bytes = ky_program_file_id(elf, &id);
		if (bytes && bytes <= sizeof(mapping->build_id)) {
			memcpy(mapping->build_id, id, bytes);
			mapping->build_id_bytes = (uint8_t)bytes;
		}
	}
	elf_end(elf);
}

/* Another file may have its path by now: names from that one would be wrong. */
static bool is_recorded(const struct ky_sample_module *module, int fd)
{
	struct ky_proc_mapping now = {0};
	struct stat status;
	if (module->build_id_bytes) {
		ky_sample_modules_build_id(fd, &now);
		return now.build_id_bytes == module->build_id_bytes &&
		       memcmp(now.build_id, module->build_id, now.build_id_bytes) == 0;
	}
	return fstat(fd, &status) == 0 && status.st_ino == module->inode;
}

static int open_recorded(const struct ky_sample_module *module, pid_t pid)
{
	const int fd = ky_sample_modules_open_path(module->path, pid);
	if (fd < 0 || is_recorded(module, fd))
		return fd;
	close(fd);
	return -1;
}

void ky_sample_modules_open(struct ky_sample_modules *modules, uint32_t number, pid_t pid)
{
	struct ky_sample_module *module = &modules->items[number];
	if (module->opened || module->kind != KY_SAMPLE_FILE ||
	    modules->open_count == FILES_OPEN_MAX)
		return;
	module->opened = true;
	module->fd = open_recorded(module, pid);
	modules->open_count += module->fd >= 0;
}

int ky_sample_modules_take(struct ky_sample_modules *modules, uint32_t number)
{
	struct ky_sample_module *module = &modules->items[number];
	const int fd = module->fd >= 0 ? module->fd : open_recorded(module, 0);
	module->fd = -1;
	return fd;
}

/* ---- processes ---- */

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
		.module = module_of(known->modules, &record->map),
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

static bool is_wanted(const struct perf_event_header *head)
{
	return head->type == PERF_RECORD_MMAP2 || head->type == PERF_RECORD_COMM ||
	       head->type == PERF_RECORD_FORK || head->type == PERF_RECORD_EXIT;
}

void ky_sample_processes_take(struct ky_sample_processes *known,
			      const struct perf_event_header *head)
{
	struct ky_perf_record record;
	if (!is_wanted(head) || !ky_perf_record_parse(&record, head, KY_PERF_SAMPLE_TYPE))
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

static void write_ranges(const struct ky_sample_processes *known,
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

void ky_sample_processes_write(const struct ky_sample_processes *known, struct ky_perf_out *out)
{
	for (uint32_t i = 0; i < known->processes_count; i++)
		write_ranges(known, &known->processes[i], out);
	for (uint32_t i = 0; i < known->threads_count; i++) {
		const struct ky_sample_thread *const thread = &known->threads[i];
		const struct ky_perf_who who = {thread->pid, thread->tid, 0};
		if (thread->tid != thread->pid)
			ky_perf_out_thread(out, who);
		ky_perf_out_comm(out, who, thread->comm);
	}
}

/* ---- a flight recorder ---- */

#define KEPT_BYTES_MAX ((size_t)256 << 20)
#define COMPACT_BYTES ((size_t)1 << 20)

/* The head of each record. */
struct kept {
	uint64_t time;
	uint32_t bytes; /* with this */
	uint32_t written;
};

void ky_sample_flight_free(struct ky_sample_flight *flight)
{
	ky_sample_processes_free(&flight->base);
	ky_perf_out_free(&flight->late);
	KY_ARRAY_FREE(flight->bytes, flight->room);
	*flight = (struct ky_sample_flight){0};
}

static struct kept *kept_at(const struct ky_sample_flight *flight, size_t place)
{
	return (struct kept *)(void *)(flight->bytes + place);
}

static const struct perf_event_header *record_of(const struct kept *kept)
{
	return (const struct perf_event_header *)(const void *)(kept + 1);
}

static void drop_first(struct ky_sample_flight *flight)
{
	const struct kept *kept = kept_at(flight, flight->first);
	const struct perf_event_header *record = record_of(kept);
	if (is_wanted(record)) {
		ky_sample_processes_take(&flight->base, record);
		if (flight->begun && !kept->written)
			ky_perf_out_add(&flight->late, record, record->size);
	}
	flight->first += kept->bytes;
}

static void compact(struct ky_sample_flight *flight)
{
	const bool worth = flight->first >= COMPACT_BYTES && flight->first >= flight->used / 2;
	if (!flight->first || (!worth && flight->first != flight->used))
		return;
	memmove(flight->bytes, flight->bytes + flight->first, flight->used - flight->first);
	flight->used -= flight->first;
	flight->first = 0;
}

static bool reserve(struct ky_sample_flight *flight, size_t bytes)
{
	return flight->used + bytes <= KEPT_BYTES_MAX &&
	       KY_ARRAY_GROW(flight->bytes, flight->room, flight->used + bytes);
}

void ky_sample_flight_keep(struct ky_sample_flight *flight, const struct perf_event_header *record)
{
	const uint32_t bytes = (uint32_t)sizeof(struct kept) + ((record->size + 7u) & ~7u);
	while (!reserve(flight, bytes)) {
		if (flight->used == 0)
			return;
		/* Drop half of it at once: each time costs moving the rest. */
		const size_t half = flight->first + (flight->used - flight->first) / 2;
		while (flight->first <= half && flight->first < flight->used) {
			const struct kept *kept = kept_at(flight, flight->first);
			flight->dropped += record_of(kept)->type == PERF_RECORD_SAMPLE;
			drop_first(flight);
		}
		compact(flight);
	}
	struct kept *kept = kept_at(flight, flight->used);
	*kept = (struct kept){.time = ky_perf_record_time(record, KY_PERF_SAMPLE_TYPE),
			      .bytes = bytes};
	memcpy(kept + 1, record, record->size);
	flight->used += bytes;
}

void ky_sample_flight_drop(struct ky_sample_flight *flight, uint64_t before)
{
	while (flight->first < flight->used && kept_at(flight, flight->first)->time < before)
		drop_first(flight);
	compact(flight);
	ky_sample_processes_round(&flight->base);
}

void ky_sample_flight_window(struct ky_sample_flight *flight, uint64_t from, uint64_t to,
			     struct ky_perf_out *out)
{
	flight->begun = true;
	for (size_t at = flight->first; at < flight->used;) {
		struct kept *kept = kept_at(flight, at);
		const struct perf_event_header *record = record_of(kept);
		at += kept->bytes;
		if (kept->written || kept->time > to || (kept->time < from && !is_wanted(record)))
			continue;
		ky_perf_out_add(out, record, record->size);
		kept->written = true;
	}
}

void ky_sample_flight_again(struct ky_sample_flight *flight)
{
	for (size_t at = flight->first; at < flight->used;) {
		struct kept *kept = kept_at(flight, at);
		at += kept->bytes;
		if (is_wanted(record_of(kept)))
			kept->written = false;
	}
}
