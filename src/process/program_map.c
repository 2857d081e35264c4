/* SPDX-License-Identifier: MIT */
/* program_map.c: see program_map.h. */
#include "process/program_map.h"

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

/* A line of maps; false when it is no code of a file. path is what is left of the line. */
static bool parse_line(char *line, struct ky_program_mapping *mapping, char **path)
{
	char permissions[5];
	unsigned device_major, device_minor;
	int used = 0;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &mapping->start, &mapping->end, permissions, &mapping->offset, &device_major,
		   &device_minor, &mapping->inode, &used) < 7 ||
	    !used)
		return false;
	mapping->device = (uint64_t)device_major << 32 | device_minor;
	*path = line + used;
	(*path)[strcspn(*path, "\n")] = '\0';
	return permissions[2] == 'x' && mapping->inode && (*path)[0] == '/';
}

static int add(struct ky_program_map *map, uint32_t *room, struct ky_program_mapping mapping,
	       const char *path)
{
	if (map->count == *room) {
		const uint32_t larger = *room ? *room * 2 : 32;
		struct ky_program_mapping *grown = realloc(map->mappings, larger * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		map->mappings = grown;
		*room = larger;
	}
	mapping.path = strdup(path);
	if (!mapping.path)
		return -ENOMEM;
	map->mappings[map->count++] = mapping;
	return 0;
}

int ky_program_map_read(struct ky_program_map *map, pid_t pid)
{
	char name[64];
	char *line = NULL;
	size_t line_room = 0;
	uint32_t room = 0;
	int error = 0;
	*map = (struct ky_program_map){.pid = pid};
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(name, "re");
	if (!maps)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!error && map->count < MAPPINGS_MAX && getline(&line, &line_room, maps) > 0) {
		struct ky_program_mapping mapping;
		char *path;
		if (parse_line(line, &mapping, &path))
			error = add(map, &room, mapping, path);
	}
	free(line);
	fclose(maps);
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
