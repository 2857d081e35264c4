/* SPDX-License-Identifier: MIT */
/*
 * perf_task.c: processes and threads: their mappings, names, begins and ends. perf records the end of a thread when it begins to
 * end: samples of what it still does come later. So its end waits until its tid is used again, or for the end of the
 * recording, and is then at the last that was seen of it.
 */
#include "formats/perf/perf_session.h"

#include "base/array.h"
#include "model/kernel.h"
#include "process/jit_files.h"
#include "process/proc_maps.h"

#include <errno.h>
#include <stdlib.h>

/* ---- mappings ---- */

/*
 * The mappings of each process and of the kernel. A process's space is its parent's at the fork, and empty after exec.
 */

#define KERNEL_PID UINT32_MAX
#define KERNEL_NAME "[kernel.kallsyms]"

static bool starts_with(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static uint32_t new_view(struct ky_perf *perf)
{
	return ++perf->views;
}

struct ky_perf_space *ky_perf_space(struct ky_perf *perf, uint32_t pid)
{
	bool made;
	uint32_t *number = ky_u64_map_add(&perf->space_of, pid, &made);
	if (!number)
		return NULL;
	if (made) {
		if (!KY_ARRAY_GROW_ZERO(perf->spaces, perf->spaces_room, perf->spaces_count + 1)) {
			*number = KY_NONE;
			return NULL;
		}
		perf->spaces[perf->spaces_count].view = new_view(perf);
		*number = perf->spaces_count++;
	}
	return *number == KY_NONE ? NULL : &perf->spaces[*number];
}

static void space_fork(struct ky_perf *perf, uint32_t parent, uint32_t child)
{
	if (parent == child || !ky_perf_space(perf, child))
		return;
	struct ky_perf_space *from = ky_perf_space(perf, parent);
	struct ky_perf_space *to = from ? ky_perf_space(perf, child) : NULL;
	if (!to)
		return;
	from = ky_perf_space(perf, parent);
	ky_ranges_copy(&perf->ranges, &from->space, &to->space);
	to->view = new_view(perf);
}

static void space_exec(struct ky_perf *perf, uint32_t pid)
{
	struct ky_perf_space *space = ky_perf_space(perf, pid);
	if (space)
		*space = (struct ky_perf_space){.view = new_view(perf)};
}

/* Name of memory that no file is behind, which is where programs put the code they make. */
static bool is_anonymous(const char *path)
{
	if (path[0] == '/')
		return !ky_proc_maps_is_file(path);
	return path[0] == '\0' || starts_with(path, "[anon") || starts_with(path, "[heap]") ||
	       starts_with(path, "anon_inode:");
}

struct found_build_id {
	uint32_t pid;
	const struct ky_proc_mapping *map;
	uint32_t build_id; /* string, 0: unknown */
	size_t path_bytes;
};

static uint32_t build_id_of(const struct ky_perf *perf, uint32_t name)
{
	const uint32_t *id = ky_u64_map_find(&perf->build_id_of, name);
	return id ? *id : 0;
}

/* "[kernel.kallsyms]_text": what follows the name is a symbol, and the offset is its address. */
static void take_kernel(struct ky_perf *perf, const struct found_build_id *found, uint32_t build_id)
{
	char reference[64];
	const size_t name = strlen(KERNEL_NAME);
	const size_t bytes = found->path_bytes - name;
	/* This machine's need not be read when the recording has its own. */
	if (!perf->symbols || (perf->given && ky_symbols_given_kernel(perf->given)))
		return;
	if (bytes == 0 || bytes >= sizeof(reference)) {
		ky_symbols_kernel(perf->symbols, build_id, NULL, NULL, 0);
		return;
	}
	memcpy(reference, found->map->path + name, bytes);
	reference[bytes] = '\0';
	ky_symbols_kernel(perf->symbols, build_id, ky_text_of(perf->trace, perf->release_text),
			  reference, found->map->offset);
}

static void describe(struct ky_perf *perf, const struct found_build_id *found,
		     struct ky_perf_mapped *mapped)
{
	const uint32_t name = ky_string(perf->trace, found->map->path, found->path_bytes);
	const size_t kernel_bytes = strlen(KERNEL_NAME);
	const bool kernel = found->path_bytes >= kernel_bytes &&
			    memcmp(found->map->path, KERNEL_NAME, kernel_bytes) == 0;
	uint32_t build_id = found->build_id ? found->build_id : build_id_of(perf, name);
	if (kernel && !build_id)
		build_id = build_id_of(perf, ky_string_z(perf->trace, KERNEL_NAME));
	const struct ky_mapping_spec spec = {
		.build_id = build_id,
		.name = name,
		.start = found->map->start,
		.end = found->map->end,
		.offset = kernel ? 0 : found->map->offset,
	};
	*mapped = (struct ky_perf_mapped){
		.start = kernel ? 0 : found->map->start,
		.offset = spec.offset,
		.mapping = ky_mapping(perf->trace, &spec),
		.file = KY_NONE,
	};
	const char *text = ky_text_of(perf->trace, name);
	mapped->anonymous = text && (is_anonymous(text) || ky_jitdump_is_path(text));
	if (kernel)
		take_kernel(perf, found, build_id);
	else if (perf->symbols && found->pid != KERNEL_PID && !mapped->anonymous)
		mapped->file = ky_symbols_file(perf->symbols, name, build_id, found->map->device,
					       found->map->inode);
}

static void add(struct ky_perf *perf, const struct found_build_id *found)
{
	struct ky_perf_space *space = ky_perf_space(perf, found->pid);
	if (!space || found->map->start >= found->map->end ||
	    !KY_ARRAY_GROW_ZERO(perf->mapped, perf->mapped_room, perf->mapped_count + 1))
		return;
	const uint32_t number = perf->mapped_count++;
	describe(perf, found, &perf->mapped[number]);
	if (ky_ranges_put(&perf->ranges, &space->space, found->map->start, found->map->end, number))
		space->view = new_view(perf);
	if (perf->symbols && perf->mapped[number].anonymous) {
		char *path = strndup(found->map->path, found->path_bytes);
		if (path && ky_jitdump_is_path(path))
			ky_symbols_jitdump(perf->symbols, found->pid, path,
					   perf->trace->clock == KY_CLOCK_MONOTONIC);
		free(path);
	}
}

void ky_perf_mmap(struct ky_perf *perf, const struct ky_perf_raw *raw,
		  const struct ky_perf_where *where)
{
	struct ky_perf_record record;
	if (!ky_perf_record_body(&record, raw, where->trailer_bytes, perf->big)) {
		ky_perf_record_short(perf, raw);
		return;
	}
	/* The kernel has no process. */
	const bool kernel = (raw->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	struct found_build_id found = {.pid = kernel ? KERNEL_PID : record.pid,
				       .map = &record.map,
				       .path_bytes = record.path_bytes};
	if (raw->type == PERF_RECORD_MMAP2 && raw->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		found.build_id =
			ky_perf_build_id_text(perf, record.map.build_id, record.map.build_id_bytes);
	add(perf, &found);
}

/* ---- names, begins and ends ---- */

struct ky_perf_ending {
	uint32_t tid;
	bool over; /* the tid was used again, and the end was put */
	uint64_t time;
};

/* The comm that a new task has from the one that made it. */
static uint32_t comm_of(const struct ky_perf *perf, uint32_t tid)
{
	const uint32_t *comm = ky_u64_map_find(&perf->comm_of, tid);
	return comm ? *comm : 0;
}

static void set_comm(struct ky_perf *perf, uint32_t tid, uint32_t comm)
{
	bool made;
	uint32_t *slot = ky_u64_map_add(&perf->comm_of, tid, &made);
	if (slot)
		*slot = comm;
}

static struct ky_perf_ending *ending_of(const struct ky_perf *perf, uint32_t tid)
{
	const uint32_t *number =
		perf->endings_count ? ky_u64_map_find(&perf->ending_of, tid) : NULL;
	return number && *number != KY_NONE ? &perf->endings[*number] : NULL;
}

void ky_perf_task_seen(struct ky_perf *perf, const struct ky_perf_where *where)
{
	struct ky_perf_ending *ending = ending_of(perf, where->tid);
	if (ending && !ending->over && where->time > ending->time)
		ending->time = where->time;
}

/* perf records an exit before the last switches of the thread, ftrace after them. */
static void put_end(struct ky_perf *perf, struct ky_perf_ending *ending)
{
	if (!ending->over && !ky_trace_is_kernel_twice(perf->trace))
		ky_put_task_exit(perf->trace, (int64_t)ending->time, (int32_t)ending->tid);
	ending->over = true;
}

void ky_perf_task_end(struct ky_perf *perf)
{
	for (uint32_t i = 0; i < perf->endings_count; i++)
		put_end(perf, &perf->endings[i]);
}

void ky_perf_task_comm(struct ky_perf *perf, const struct ky_perf_raw *raw,
		       const struct ky_perf_where *where)
{
	struct ky_perf_record record;
	if (!ky_perf_record_body(&record, raw, where->trailer_bytes, perf->big) ||
	    (int32_t)record.tid < 0 || (int32_t)record.pid < 0) {
		ky_perf_record_short(perf, raw);
		return;
	}
	const uint32_t pid = record.pid, tid = record.tid;
	const uint32_t comm = ky_string(perf->trace, record.comm.name, record.comm.bytes);
	set_comm(perf, tid, comm);
	if (record.comm.exec)
		space_exec(perf, pid);
	if (where->timed && where->time) {
		ky_put_task_group(perf->trace, (int64_t)where->time, (int32_t)tid, (int32_t)pid);
		ky_put_task_rename(perf->trace, (int64_t)where->time, (int32_t)tid, comm);
	} else if (tid) {
		const uint32_t thread = ky_thread(perf->trace, pid, tid);
		ky_thread_name(perf->trace, thread, comm, KY_NAME_KERNEL);
		if (pid == tid)
			ky_process_name(perf->trace, ky_process(perf->trace, pid), comm,
					KY_NAME_SYSTEM);
	}
}

static void begin(struct ky_perf *perf, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid,
		  uint64_t time)
{
	const bool thread = pid == ppid;
	struct ky_perf_ending *ending = ending_of(perf, tid);
	if (ending)
		put_end(perf, ending);
	const uint32_t comm = comm_of(perf, ptid);
	set_comm(perf, tid, comm);
	if (!thread)
		space_fork(perf, ppid, pid);
	if (!time) {
		if (tid)
			ky_thread(perf->trace, pid, tid);
		return;
	}
	ky_put_task_group(perf->trace, (int64_t)time, (int32_t)ptid, (int32_t)ppid);
	ky_put_task_new(perf->trace, (int64_t)time, (int32_t)ptid, (int32_t)tid, comm, thread);
}

static void end(struct ky_perf *perf, uint32_t tid, uint64_t time)
{
	bool made;
	if (!tid || !time)
		return;
	uint32_t *number = ky_u64_map_add(&perf->ending_of, tid, &made);
	if (number && made)
		*number = KY_NONE;
	if (number && *number == KY_NONE) {
		if (!KY_ARRAY_GROW_ZERO(perf->endings, perf->endings_room,
					perf->endings_count + 1)) {
			perf->trace->error = -ENOMEM;
			return;
		}
		*number = perf->endings_count++;
	}
	if (!number)
		return;
	perf->endings[*number] = (struct ky_perf_ending){.tid = tid, .time = time};
}

void ky_perf_task(struct ky_perf *perf, const struct ky_perf_raw *raw,
		  const struct ky_perf_where *where)
{
	struct ky_perf_record record;
	if (!ky_perf_record_body(&record, raw, 0, perf->big) || (int32_t)record.pid < 0 ||
	    (int32_t)record.tid < 0 || (int32_t)record.task.parent_tid < 0 ||
	    (int32_t)record.task.parent_pid < 0) {
		ky_perf_record_short(perf, raw);
		return;
	}
	uint64_t time = where->time;
	if (!where->timed)
		time = record.task.time ? ky_perf_trace_time(perf, record.task.time) : 0;
	if (raw->type == PERF_RECORD_FORK)
		begin(perf, record.pid, record.task.parent_pid, record.tid, record.task.parent_tid,
		      time);
	else
		end(perf, record.tid, time);
}

/* ---- switches ---- */

static int32_t running_on(const struct ky_perf *perf, uint32_t cpu)
{
	const uint32_t *tid = ky_u64_map_find(&perf->switched_to, cpu);
	return tid ? (int32_t)*tid : -1;
}

static void put(struct ky_perf *perf, const struct ky_perf_where *where, int32_t prev, int32_t next,
		bool preempted)
{
	bool made;
	const struct ky_switch event = {
		.cpu = where->cpu,
		.prev_tid = prev,
		.prev_priority = 0,
		.prev_state = ky_string_z(perf->trace, preempted   ? "R+"
						       : prev == 0 ? "R"
								   : "S"),
		.next_tid = next,
	};
	ky_put_switch(perf->trace, (int64_t)where->time, &event);
	uint32_t *tid = ky_u64_map_add(&perf->switched_to, where->cpu, &made);
	if (tid)
		*tid = (uint32_t)next;
}

void ky_perf_switch(struct ky_perf *perf, const struct ky_perf_raw *raw,
		    const struct ky_perf_where *where)
{
	struct ky_perf_record record;
	if (where->cpu == KY_NONE || where->tid == KY_NONE || perf->has_sched_switch)
		return;
	if (!ky_perf_record_body(&record, raw, where->trailer_bytes, perf->big)) {
		ky_perf_record_short(perf, raw);
		return;
	}
	const bool cpu_wide = record.type == PERF_RECORD_SWITCH_CPU_WIDE;
	const int32_t other = (int32_t)record.switched.other_tid;
	const int32_t now = running_on(perf, where->cpu);
	if (record.switched.out)
		put(perf, where, (int32_t)where->tid, other < 0 ? 0 : other,
		    record.switched.preempted);
	else if (now != (int32_t)where->tid)
		put(perf, where, cpu_wide ? other : now, (int32_t)where->tid, false);
}
