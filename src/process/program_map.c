/* SPDX-License-Identifier: MIT */
/* program_map.c: see program_map.h. */
#include "process/program_map.h"

#include "process/proc.h"
#include "process/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPPINGS_MAX 8192u /* of code; no program has so many that does not want to be a nuisance */
#define PROC_PATH_BYTES 4200

static int add(struct ky_program_map *map, uint32_t *room, const struct ky_proc_mapping *from)
{
	if (map->count == *room) {
		const uint32_t larger = *room ? *room * 2 : 32;
		struct ky_program_mapping *grown = realloc(map->mappings, larger * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		map->mappings = grown;
		*room = larger;
	}
	char *const path = strdup(from->path);
	if (!path)
		return -ENOMEM;
	map->mappings[map->count++] = (struct ky_program_mapping){.start = from->start,
								  .end = from->end,
								  .offset = from->offset,
								  .device = from->device,
								  .inode = from->inode,
								  .path = path};
	return 0;
}

int ky_program_map_read(struct ky_program_map *map, pid_t pid)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	uint32_t room = 0;
	*map = (struct ky_program_map){.pid = pid};
	int error = ky_proc_maps_open(&maps, pid);
	while (!error && map->count < MAPPINGS_MAX && ky_proc_maps_next(&maps, &mapping))
		if (mapping.executable && mapping.inode && mapping.path[0] == '/')
			error = add(map, &room, &mapping);
	ky_proc_maps_close(&maps);
	if (error)
		ky_program_map_free(map);
	return error;
}

void ky_program_map_free(struct ky_program_map *map)
{
	for (uint32_t i = 0; i < map->count; i++)
		free(map->mappings[i].path);
	free(map->mappings);
	*map = (struct ky_program_map){0};
}

/* A plain file, of that inode unless inode is 0: -errno otherwise. Never waits: it may be a pipe by now. */
static int open_plain(const char *path, uint64_t inode)
{
	struct stat status;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    (!inode || status.st_ino == inode))
		return fd;
	close(fd);
	return -ESTALE;
}

int ky_program_map_open(const struct ky_program_map *map, const struct ky_program_mapping *mapping)
{
	char path[PROC_PATH_BYTES];
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)map->pid,
		 mapping->start, mapping->end);
	int fd = open_plain(path, 0);
	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "/proc/%d/root%s", (int)map->pid, mapping->path) <
	    (int)sizeof(path))
		fd = open_plain(path, mapping->inode);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)map->pid);
	const int program = open_plain(path, mapping->inode);
	return program >= 0 ? program : fd;
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
		const struct ky_program_mapping *m = &map->mappings[i];
		if (m->device == device && m->inode == inode && offset >= m->offset &&
		    offset - m->offset < m->end - m->start)
			return m->start + (offset - m->offset);
	}
	return 0;
}
