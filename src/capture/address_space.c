/* SPDX-License-Identifier: MIT */
/* address_space.c: see address_space.h. */
#include "capture/address_space.h"

#include <stdlib.h>
#include <string.h>

#define RANGES_MAX (1u << 20)
#define ROUNDS_AFTER_END 2u

void ky_sample_spaces_free(struct ky_sample_spaces *spaces)
{
	for (uint32_t i = 0; i < spaces->processes_count; i++)
		free(spaces->processes[i].ranges);
	free(spaces->processes);
	free(spaces->threads);
	ky_u64_map_free(&spaces->process_of);
	ky_u64_map_free(&spaces->thread_of);
	*spaces = (struct ky_sample_spaces){.modules = spaces->modules};
}

static bool grow(void **items, uint32_t *room, uint32_t need, size_t item_bytes)
{
	if (need <= *room)
		return true;
	const uint32_t larger = need > 2 * *room ? need + 8 : 2 * *room;
	void *moved = realloc(*items, larger * item_bytes);
	if (!moved)
		return false;
	*items = moved;
	*room = larger;
	return true;
}

static struct ky_sample_process *find_process(const struct ky_sample_spaces *spaces, uint32_t pid)
{
	const uint32_t *number = ky_u64_map_find(&spaces->process_of, pid);
	return number && *number != UINT32_MAX ? &spaces->processes[*number] : NULL;
}

static struct ky_sample_process *process_of(struct ky_sample_spaces *spaces, uint32_t pid)
{
	bool made;
	uint32_t *number = ky_u64_map_add(&spaces->process_of, pid, &made);
	if (!number)
		return NULL;
	if (made || *number == UINT32_MAX) {
		*number = UINT32_MAX;
		if (!grow((void **)&spaces->processes, &spaces->processes_room,
			  spaces->processes_count + 1, sizeof(*spaces->processes)))
			return NULL;
		spaces->processes[spaces->processes_count] = (struct ky_sample_process){.pid = pid};
		*number = spaces->processes_count++;
	}
	return &spaces->processes[*number];
}

static struct ky_sample_thread *find_thread(const struct ky_sample_spaces *spaces, uint32_t tid)
{
	const uint32_t *number = ky_u64_map_find(&spaces->thread_of, tid);
	return number && *number != UINT32_MAX ? &spaces->threads[*number] : NULL;
}

/* The thread, alive and of that process. */
static struct ky_sample_thread *thread_of(struct ky_sample_spaces *spaces, uint32_t pid,
					  uint32_t tid)
{
	bool made;
	uint32_t *number = ky_u64_map_add(&spaces->thread_of, tid, &made);
	if (!number)
		return NULL;
	if (made || *number == UINT32_MAX) {
		*number = UINT32_MAX;
		if (!grow((void **)&spaces->threads, &spaces->threads_room,
			  spaces->threads_count + 1, sizeof(*spaces->threads)))
			return NULL;
		spaces->threads[spaces->threads_count] = (struct ky_sample_thread){.tid = tid};
		*number = spaces->threads_count++;
	}
	struct ky_sample_thread *thread = &spaces->threads[*number];
	struct ky_sample_process *process = process_of(spaces, pid);
	if (process && (!thread->alive || thread->pid != pid)) {
		process->threads++;
		process->ended = 0;
	}
	thread->alive = process != NULL;
	thread->pid = pid;
	return thread;
}

/* ---- what is mapped ---- */

/* The first range that ends behind the address. */
static uint32_t first_behind(const struct ky_sample_process *process, uint64_t address)
{
	uint32_t low = 0;
	uint32_t high = process->count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (process->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Takes the place of what was there; of that the parts before and behind remain. */
static void put_range(struct ky_sample_process *process, const struct ky_sample_range *range)
{
	if (process->count >= RANGES_MAX || !grow((void **)&process->ranges, &process->room,
						  process->count + 2, sizeof(*process->ranges)))
		return;
	struct ky_sample_range *ranges = process->ranges;
	const uint32_t first = first_behind(process, range->start);
	uint32_t last = first; /* behind the last that is touched */
	while (last < process->count && ranges[last].start < range->end)
		last++;
	struct ky_sample_range parts[3];
	uint32_t count = 0;
	if (last > first && ranges[first].start < range->start) {
		parts[count] = ranges[first];
		parts[count++].end = range->start;
	}
	parts[count++] = *range;
	if (last > first && ranges[last - 1].end > range->end) {
		parts[count] = ranges[last - 1];
		parts[count].offset += range->end - parts[count].start;
		parts[count++].start = range->end;
	}
	memmove(ranges + first + count, ranges + last, (process->count - last) * sizeof(*ranges));
	memcpy(ranges + first, parts, count * sizeof(*ranges));
	process->count = process->count - (last - first) + count;
}

static void copy_ranges(struct ky_sample_spaces *spaces, uint32_t from_pid, uint32_t to_pid)
{
	struct ky_sample_process *to = process_of(spaces, to_pid);
	const struct ky_sample_process *from = find_process(spaces, from_pid);
	if (!to || !from || to == from)
		return;
	to->count = 0;
	if (!from->count ||
	    !grow((void **)&to->ranges, &to->room, from->count, sizeof(*to->ranges)))
		return;
	memcpy(to->ranges, from->ranges, from->count * sizeof(*to->ranges));
	to->count = from->count;
}

/* ---- records ---- */

/* The part of a record that says what it is about. */
struct body {
	const uint8_t *at;
	size_t bytes;
};

static struct body body_of(const struct perf_event_header *record)
{
	const size_t around = sizeof(*record) + sizeof(struct ky_perf_trailer);
	return (struct body){(const uint8_t *)(record + 1),
			     record->size > around ? record->size - around : 0};
}

static uint32_t u32_at(struct body body, size_t place)
{
	uint32_t value;
	memcpy(&value, body.at + place, sizeof(value));
	return value;
}

static uint64_t u64_at(struct body body, size_t place)
{
	uint64_t value;
	memcpy(&value, body.at + place, sizeof(value));
	return value;
}

/* pid tid, start bytes offset, who it is, protection flags, path. */
enum { AT_START = 8, AT_BYTES = 16, AT_OFFSET = 24, AT_IDENTITY = 32, AT_PROT = 56, AT_PATH = 64 };

static void take_mapping(struct ky_sample_spaces *spaces, const struct perf_event_header *record)
{
	const struct body body = body_of(record);
	if (body.bytes <= AT_PATH || !memchr(body.at + AT_PATH, '\0', body.bytes - AT_PATH))
		return;
	struct ky_perf_mapping mapping = {.start = u64_at(body, AT_START),
					  .offset = u64_at(body, AT_OFFSET),
					  .path = (const char *)body.at + AT_PATH};
	if (u64_at(body, AT_BYTES) == 0 || u64_at(body, AT_BYTES) > UINT64_MAX - mapping.start)
		return;
	mapping.end = mapping.start + u64_at(body, AT_BYTES);
	if (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		const uint8_t bytes = body.at[AT_IDENTITY];
		mapping.build_id_bytes =
			bytes > KY_PERF_BUILD_ID_MAX ? KY_PERF_BUILD_ID_MAX : bytes;
		memcpy(mapping.build_id, body.at + AT_IDENTITY + 4, mapping.build_id_bytes);
	} else {
		mapping.major = u32_at(body, AT_IDENTITY);
		mapping.minor = u32_at(body, AT_IDENTITY + 4);
		mapping.inode = u64_at(body, AT_IDENTITY + 8);
	}
	struct ky_sample_process *process = process_of(spaces, u32_at(body, 0));
	const struct ky_sample_range range = {
		.start = mapping.start,
		.end = mapping.end,
		.offset = mapping.offset,
		.module = ky_sample_modules_of(spaces->modules, &mapping),
		.protection = u32_at(body, AT_PROT),
		.flags = u32_at(body, AT_PROT + 4),
	};
	if (process && range.module != KY_SAMPLE_NO_MODULE)
		put_range(process, &range);
}

static void take_comm(struct ky_sample_spaces *spaces, const struct perf_event_header *record)
{
	const struct body body = body_of(record);
	if (body.bytes < 9)
		return;
	const uint32_t pid = u32_at(body, 0);
	struct ky_sample_thread *thread = thread_of(spaces, pid, u32_at(body, 4));
	if (thread) {
		const size_t bytes = strnlen((const char *)body.at + 8, body.bytes - 8);
		const size_t kept = bytes < sizeof(thread->comm) ? bytes : sizeof(thread->comm) - 1;
		memcpy(thread->comm, body.at + 8, kept);
		thread->comm[kept] = '\0';
	}
	struct ky_sample_process *process = find_process(spaces, pid);
	if (process && record->misc & PERF_RECORD_MISC_COMM_EXEC)
		process->count = 0;
}

/* pid ppid, tid ptid, time. */
static void take_fork(struct ky_sample_spaces *spaces, const struct perf_event_header *record)
{
	const struct body body = body_of(record);
	if (body.bytes < 24)
		return;
	const uint32_t pid = u32_at(body, 0);
	const uint32_t parent = u32_at(body, 4);
	struct ky_sample_thread *thread = thread_of(spaces, pid, u32_at(body, 8));
	const struct ky_sample_thread *maker = find_thread(spaces, u32_at(body, 12));
	if (thread && maker)
		memcpy(thread->comm, maker->comm, sizeof(thread->comm));
	if (pid != parent)
		copy_ranges(spaces, parent, pid);
}

static void take_exit(struct ky_sample_spaces *spaces, const struct perf_event_header *record)
{
	const struct body body = body_of(record);
	if (body.bytes < 24)
		return;
	struct ky_sample_thread *thread = find_thread(spaces, u32_at(body, 8));
	if (!thread || !thread->alive)
		return;
	thread->alive = false;
	struct ky_sample_process *process = find_process(spaces, thread->pid);
	if (process && process->threads && --process->threads == 0)
		process->ended = 1;
}

bool ky_sample_spaces_wants(const struct perf_event_header *record)
{
	return record->type == PERF_RECORD_MMAP2 || record->type == PERF_RECORD_COMM ||
	       record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT;
}

void ky_sample_spaces_take(struct ky_sample_spaces *spaces, const struct perf_event_header *record)
{
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		take_mapping(spaces, record);
		break;
	case PERF_RECORD_COMM:
		take_comm(spaces, record);
		break;
	case PERF_RECORD_FORK:
		take_fork(spaces, record);
		break;
	case PERF_RECORD_EXIT:
		take_exit(spaces, record);
		break;
	default:
		break;
	}
}

/* ---- those that have ended ---- */

static void forget_process(struct ky_sample_spaces *spaces, uint32_t number)
{
	struct ky_sample_process *process = &spaces->processes[number];
	uint32_t *place = ky_u64_map_find(&spaces->process_of, process->pid);
	if (place)
		*place = UINT32_MAX;
	free(process->ranges);
	*process = spaces->processes[--spaces->processes_count];
	place = number < spaces->processes_count
			? ky_u64_map_find(&spaces->process_of, process->pid)
			: NULL;
	if (place)
		*place = number;
}

static void forget_thread(struct ky_sample_spaces *spaces, uint32_t number)
{
	struct ky_sample_thread *thread = &spaces->threads[number];
	uint32_t *place = ky_u64_map_find(&spaces->thread_of, thread->tid);
	if (place)
		*place = UINT32_MAX;
	*thread = spaces->threads[--spaces->threads_count];
	place = number < spaces->threads_count ? ky_u64_map_find(&spaces->thread_of, thread->tid)
					       : NULL;
	if (place)
		*place = number;
}

void ky_sample_spaces_round(struct ky_sample_spaces *spaces)
{
	for (uint32_t i = spaces->processes_count; i-- > 0;) {
		struct ky_sample_process *process = &spaces->processes[i];
		if (process->ended && process->ended++ > ROUNDS_AFTER_END)
			forget_process(spaces, i);
	}
	for (uint32_t i = spaces->threads_count; i-- > 0;)
		if (!spaces->threads[i].alive)
			forget_thread(spaces, i);
}

/* ---- asked ---- */

bool ky_sample_spaces_has(const struct ky_sample_spaces *spaces, uint32_t pid)
{
	const struct ky_sample_process *process = find_process(spaces, pid);
	return process && process->threads;
}

bool ky_sample_spaces_has_thread(const struct ky_sample_spaces *spaces, uint32_t tid)
{
	const struct ky_sample_thread *thread = find_thread(spaces, tid);
	return thread && thread->alive;
}

const struct ky_sample_range *ky_sample_spaces_find(const struct ky_sample_spaces *spaces,
						    uint32_t pid, uint64_t address)
{
	const struct ky_sample_process *process = find_process(spaces, pid);
	const uint32_t number = process ? first_behind(process, address) : 0;
	if (!process || number == process->count || process->ranges[number].start > address)
		return NULL;
	return &process->ranges[number];
}

static void tell_ranges(const struct ky_sample_spaces *spaces,
			const struct ky_sample_process *process, struct ky_perf_out *out)
{
	for (uint32_t i = 0; i < process->count; i++) {
		const struct ky_sample_range *range = &process->ranges[i];
		const struct ky_sample_module *module = &spaces->modules->items[range->module];
		struct ky_perf_mapping mapping = {.start = range->start,
						  .end = range->end,
						  .offset = range->offset,
						  .protection = range->protection,
						  .flags = range->flags,
						  .major = module->major,
						  .minor = module->minor,
						  .inode = module->inode,
						  .build_id_bytes = module->build_id_bytes,
						  .path = module->path};
		memcpy(mapping.build_id, module->build_id, sizeof(mapping.build_id));
		ky_perf_out_mapping(out, (struct ky_perf_who){process->pid, process->pid, 0},
				    &mapping);
	}
}

void ky_sample_spaces_tell(const struct ky_sample_spaces *spaces, struct ky_perf_out *out)
{
	for (uint32_t i = 0; i < spaces->processes_count; i++)
		tell_ranges(spaces, &spaces->processes[i], out);
	for (uint32_t i = 0; i < spaces->threads_count; i++) {
		const struct ky_sample_thread *thread = &spaces->threads[i];
		const struct ky_perf_who who = {thread->pid, thread->tid, 0};
		if (thread->tid != thread->pid)
			ky_perf_out_thread(out, who);
		ky_perf_out_comm(out, who, thread->comm);
	}
}
