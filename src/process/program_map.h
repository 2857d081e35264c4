/* SPDX-License-Identifier: MIT */
/*
 * program_map.h: the files whose code a process has mapped: its program and libraries, from /proc/PID/maps.
 *
 * A file is opened as the process has it, whatever its name means by now: through /proc/PID/map_files (root), which knows
 * deleted files and other mount namespaces; else through /proc/PID/exe or by its path under /proc/PID/root, when that still
 * is the same inode.
 */
#ifndef KY_PROCESS_PROGRAM_MAP_H
#define KY_PROCESS_PROGRAM_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ky_program_mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file, of start */
	uint64_t device; /* major << 32 | minor */
	uint64_t inode;
	char *path; /* as the process named it */
};

struct ky_program_map {
	pid_t pid;
	struct ky_program_mapping *mappings; /* by address: the program comes first, as a rule */
	uint32_t count;
};

/* 0; -ESRCH, -EACCES ... */
int ky_program_map_read(struct ky_program_map *map, pid_t pid);
void ky_program_map_free(struct ky_program_map *map);

/* A descriptor of the file that was mapped there, or -errno. */
int ky_program_map_open(const struct ky_program_map *map, const struct ky_program_mapping *mapping);
/* Whether an earlier mapping is of the same file. */
bool ky_program_map_is_again(const struct ky_program_map *map, uint32_t index);
/* The address of a byte of the file in that process; 0: not mapped as code. */
uint64_t ky_program_map_address(const struct ky_program_map *map, uint64_t device, uint64_t inode,
				uint64_t offset);

#endif
