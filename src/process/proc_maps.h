/* SPDX-License-Identifier: MIT */
/*
 * proc_maps.h: what a process has mapped: /proc/PID/maps, line by line.
 *
 *   struct ky_proc_maps maps;
 *   struct ky_proc_mapping mapping;
 *   int error = ky_proc_maps_open(&maps, pid);
 *   while (ky_proc_maps_next(&maps, &mapping))
 *           ...
 *   ky_proc_maps_close(&maps);
 */
#ifndef KY_PROCESS_PROC_MAPS_H
#define KY_PROCESS_PROC_MAPS_H

#include "process/proc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define KY_BUILD_ID_MAX 20u

/* A part of a process's memory, of a line of maps or of a perf record. */
struct ky_proc_mapping {
	uint64_t start, end;
	uint64_t offset;     /* in the file, of start */
	uint64_t device;     /* major << 32 | minor */
	uint64_t inode;      /* 0: of no file, or known by its build id */
	uint32_t protection; /* PROT_ */
	uint32_t flags;      /* MAP_SHARED or MAP_PRIVATE */
	uint8_t build_id[KY_BUILD_ID_MAX];
	uint8_t build_id_bytes; /* 0: unknown */
	/* As the process named the file (" (deleted)" behind it when it is), "[stack]", or "". */
	const char *path;
};

struct ky_proc_maps {
	FILE *file;
	char *line;
	size_t room;
};

/* 0, -ESRCH, -EACCES ...: then there are no mappings, and there is nothing to close. */
int ky_proc_maps_open(struct ky_proc_maps *maps, pid_t pid);
/* Read the next mapping, in order of addresses; false at the end. Its path is valid until the next. */
bool ky_proc_maps_next(struct ky_proc_maps *maps, struct ky_proc_mapping *mapping);
void ky_proc_maps_close(struct ky_proc_maps *maps);

/*
 * Open the file that the process has mapped there, whatever its name means by now: through /proc/PID/map_files (root), which
 * knows deleted files and other mount namespaces; else by its path under /proc/PID/root, through /proc/PID/exe, or by its
 * path, when that still is the same inode. A descriptor or -errno.
 */
int ky_proc_maps_open_file(pid_t pid, const struct ky_proc_mapping *mapping);
/* Report whether a mapping of this path is of a file, and not of memory where programs put code that they make. */
bool ky_proc_maps_is_file(const char *path);
/* Parse a line, whose newline is cut off; false when it has another form. */
bool ky_proc_maps_parse(char *line, struct ky_proc_mapping *mapping);

/* ---- an address space that is followed ---- */

/*
 * Ranges in order, none over another; a new one takes the place of what it covers. (Processes of a recording, which fork
 * and never go away, are kept in base/ranges.h.)
 *
 * A module is a number of the owner's: a file that code is mapped from.
 */

#define KY_NO_MODULE UINT32_MAX

struct ky_address_range {
	uint64_t start, end;
	uint64_t offset; /* in the module's file, of start */
	uint32_t module;
	uint32_t protection, flags; /* as the owner wants */
};

/* All zero is empty. */
struct ky_address_space {
	struct ky_address_range *ranges;
	uint32_t count, room;
};

void ky_address_space_free(struct ky_address_space *space);
/* Put a range; what it covers is cut or replaced. False without memory, or when there are too many. */
bool ky_address_space_put(struct ky_address_space *space, const struct ky_address_range *range);
/* Return the range that has the address; NULL: none is known. Valid until the next change. */
const struct ky_address_range *ky_address_space_find(const struct ky_address_space *space,
						     uint64_t address);
/* Make a space a copy of another (fork). False without memory: then it is empty. */
bool ky_address_space_copy(struct ky_address_space *space, const struct ky_address_space *from);

#endif
