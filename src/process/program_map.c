/* SPDX-License-Identifier: MIT */
/* program_map.c: see program_map.h. */
#include "process/program_map.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAPPINGS_MAX 8192u

static int add(struct ky_program_map *map, const struct ky_proc_mapping *from)
{
	struct ky_proc_mapping mapping = *from;
	mapping.path = strdup(from->path);
	if (!mapping.path)
		return -ENOMEM;
	if (KY_ARRAY_ADD(map->mappings, map->count, map->room, mapping))
		return 0;
	free((char *)(uintptr_t)mapping.path);
	return -ENOMEM;
}

int ky_program_map_read(struct ky_program_map *map, pid_t pid)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	*map = (struct ky_program_map){.pid = pid};
	int error = ky_proc_maps_open(&maps, pid);
	while (!error && map->count < MAPPINGS_MAX && ky_proc_maps_next(&maps, &mapping))
		if ((mapping.protection & PROT_EXEC) && mapping.inode && mapping.path[0] == '/')
			error = add(map, &mapping);
	ky_proc_maps_close(&maps);
	if (error)
		ky_program_map_free(map);
	return error;
}

void ky_program_map_free(struct ky_program_map *map)
{
	for (uint32_t i = 0; i < map->count; i++)
		free((char *)(uintptr_t)map->mappings[i].path);
	KY_ARRAY_FREE(map->mappings, map->room);
	*map = (struct ky_program_map){0};
}

bool ky_program_map_is_again(const struct ky_program_map *map, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (map->mappings[i].device == map->mappings[index].device &&
		    map->mappings[i].inode == map->mappings[index].inode)
			return true;
	return false;
}

uint64_t ky_program_map_address(const struct ky_program_map *map, uint64_t device, uint64_t inode,
				uint64_t offset)
{
	for (uint32_t i = 0; i < map->count; i++) {
		const struct ky_proc_mapping *m = &map->mappings[i];
		if (m->device == device && m->inode == inode && offset >= m->offset &&
		    offset - m->offset < m->end - m->start)
			return m->start + (offset - m->offset);
	}
	return 0;
}
