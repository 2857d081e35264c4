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

struct ky_proc_mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file, of start */
	uint64_t device; /* major << 32 | minor */
	uint64_t inode;  /* 0: of no file */
	bool readable, writable, executable, shared;
	/* As the process named the file (" (deleted)" behind it when it is), "[stack]", or "". Valid until the next. */
	const char *path;
};

struct ky_proc_maps {
	FILE *file;
	char *line;
	size_t room;
};

/* 0, -ESRCH, -EACCES ...: then there are no mappings, and there is nothing to close. */
int ky_proc_maps_open(struct ky_proc_maps *maps, pid_t pid);
/* Read the next mapping, in order of addresses; false at the end. */
bool ky_proc_maps_next(struct ky_proc_maps *maps, struct ky_proc_mapping *mapping);
void ky_proc_maps_close(struct ky_proc_maps *maps);

/* Parse a line, whose end is cut off; false when it is none. */
bool ky_proc_maps_parse(char *line, struct ky_proc_mapping *mapping);

#endif
