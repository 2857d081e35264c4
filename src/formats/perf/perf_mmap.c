/* SPDX-License-Identifier: MIT */
/*
 * perf_mmap.c: the mappings of each process and of the kernel. A process's space is its parent's at the
 * fork, and empty after exec.
 */
#include "base/array.h"
#include "formats/perf/perf_session.h"

#include "process/jit_files.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <stdlib.h>

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

void ky_perf_space_fork(struct ky_perf *perf, uint32_t parent, uint32_t child)
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

void ky_perf_space_exec(struct ky_perf *perf, uint32_t pid)
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
