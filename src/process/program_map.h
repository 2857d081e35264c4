/* SPDX-License-Identifier: MIT */
/* program_map.h: the files whose code a process has mapped: its program and libraries. */
#ifndef KY_PROCESS_PROGRAM_MAP_H
#define KY_PROCESS_PROGRAM_MAP_H

#include "process/proc_maps.h"

struct ky_program_map {
	pid_t pid;
	struct ky_proc_mapping *mappings; /* by address: the program comes first, as a rule */
	uint32_t count, room;
};

/* 0; -ESRCH, -EACCES ... */
int ky_program_map_read(struct ky_program_map *map, pid_t pid);
void ky_program_map_free(struct ky_program_map *map);

/* Report whether an earlier mapping is of the same file. */
bool ky_program_map_is_again(const struct ky_program_map *map, uint32_t index);
/* Return the address of a byte of the file in that process; 0: it is not mapped as code. */
uint64_t ky_program_map_address(const struct ky_program_map *map, uint64_t device, uint64_t inode,
				uint64_t offset);

#endif
