/* SPDX-License-Identifier: MIT */
/* proc_maps.c: see proc_maps.h. */
#include "process/proc_maps.h"

#include "base/array.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int ky_proc_maps_open(struct ky_proc_maps *maps, pid_t pid)
{
	char path[64];
	*maps = (struct ky_proc_maps){0};
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps->file = fopen(path, "re");
	return maps->file ? 0 : errno == ENOENT ? -ESRCH : -errno;
}

bool ky_proc_maps_next(struct ky_proc_maps *maps, struct ky_proc_mapping *mapping)
{
	while (maps->file && getline(&maps->line, &maps->room, maps->file) > 0)
		if (ky_proc_maps_parse(maps->line, mapping))
			return true;
	return false;
}

void ky_proc_maps_close(struct ky_proc_maps *maps)
{
	free(maps->line);
	if (maps->file)
		fclose(maps->file);
	*maps = (struct ky_proc_maps){0};
}

/* Open a plain file, of that inode unless inode is 0: -errno otherwise. It may be a pipe by now. */
static int open_inode(const char *path, uint64_t inode)
{
	struct stat status;
	const int fd = ky_file_open_plain(path);
	if (fd < 0 || !inode || (fstat(fd, &status) == 0 && status.st_ino == inode))
		return fd;
	close(fd);
	return -ESTALE;
}

int ky_proc_maps_open_file(pid_t pid, const struct ky_proc_mapping *mapping)
{
	char path[PATH_MAX + 64];
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		 mapping->start, mapping->end);
	int fd = open_inode(path, 0);
	if (fd < 0 && snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, mapping->path) <
			      (int)sizeof(path))
		fd = open_inode(path, mapping->inode);
	if (fd >= 0 || !mapping->inode)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	const int program = open_inode(path, mapping->inode);
	if (program >= 0)
		return program;
	/* When the process has ended, its path must do. Otherwise the inode alone may be that of another file system. */
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	const int here = access(path, F_OK) == 0 ? -1 : open_inode(mapping->path, mapping->inode);
	return here >= 0 ? here : fd;
}

bool ky_proc_maps_is_file(const char *path)
{
	static const char *const others[] = {"//", "/memfd:", "/dev/zero", "/anon_hugepage",
					     "/SYSV"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strncmp(path, others[i], strlen(others[i])) == 0)
			return false;
	return path[0] == '/';
}

/* Read a hexadecimal number and the character that must end it. */
static bool take_number(char **at, char end, uint64_t *number)
{
	char *behind;
	*number = strtoull(*at, &behind, 16);
	if (behind == *at || *behind != end)
		return false;
	*at = behind + 1;
	return true;
}

/* "55d0c0000000-55d0c0100000 r-xp 00001000 fd:01 1234      /usr/bin/x" */
bool ky_proc_maps_parse(char *line, struct ky_proc_mapping *mapping)
{
	uint64_t device_major, device_minor;
	char *at = line;
	*mapping = (struct ky_proc_mapping){0};
	line[strcspn(line, "\n")] = '\0';
	if (!take_number(&at, '-', &mapping->start) || !take_number(&at, ' ', &mapping->end) ||
	    strlen(at) < 5 || at[4] != ' ' || mapping->start >= mapping->end)
		return false;
	mapping->protection = (at[0] == 'r' ? PROT_READ : 0u) | (at[1] == 'w' ? PROT_WRITE : 0u) |
			      (at[2] == 'x' ? PROT_EXEC : 0u);
	mapping->flags = at[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	at += 5;
	if (!take_number(&at, ' ', &mapping->offset) || !take_number(&at, ':', &device_major) ||
	    !take_number(&at, ' ', &device_minor))
		return false;
	mapping->device = device_major << 32 | (uint32_t)device_minor;
	mapping->inode = strtoull(at, &at, 10);
	mapping->path = at + strspn(at, " ");
	return true;
}

/* ---- an address space that is followed ---- */

#define RANGES_MAX (1u << 20)

void ky_address_space_free(struct ky_address_space *space)
{
	KY_ARRAY_FREE(space->ranges, space->room);
	space->count = 0;
}

/* Return the first range that ends behind the address. */
static uint32_t first_behind(const struct ky_address_space *space, uint64_t address)
{
	return KY_ARRAY_SEARCH(0, space->count, at, space->ranges[at].end <= address);
}

bool ky_address_space_put(struct ky_address_space *space, const struct ky_address_range *range)
{
	if (range->start >= range->end || space->count >= RANGES_MAX ||
	    !KY_ARRAY_GROW(space->ranges, space->room, space->count + 2))
		return false;
	struct ky_address_range *const ranges = space->ranges;
	const uint32_t first = first_behind(space, range->start);
	uint32_t last = first; /* behind the last that is touched */
	while (last < space->count && ranges[last].start < range->end)
		last++;
	struct ky_address_range parts[3];
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
	memmove(ranges + first + count, ranges + last, (space->count - last) * sizeof(*ranges));
	memcpy(ranges + first, parts, count * sizeof(*ranges));
	space->count = space->count - (last - first) + count;
	return true;
}

const struct ky_address_range *ky_address_space_find(const struct ky_address_space *space,
						     uint64_t address)
{
	const uint32_t number = first_behind(space, address);
	return number < space->count && space->ranges[number].start <= address
		       ? &space->ranges[number]
		       : NULL;
}

bool ky_address_space_copy(struct ky_address_space *space, const struct ky_address_space *from)
{
	space->count = 0;
	if (!KY_ARRAY_GROW(space->ranges, space->room, from->count))
		return false;
	if (from->count)
		memcpy(space->ranges, from->ranges, from->count * sizeof(*space->ranges));
	space->count = from->count;
	return true;
}
