/* SPDX-License-Identifier: MIT */
/*
 * pt_space_vdso.c: the code that the kernel gives to every process, which is in no file: clock_gettime() and its like are there. It is
 * copied while the process lives, for it may have ended when it is decoded. All of it counts as one function.
 */
#include "functrace/pt_space.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#define VDSO_BYTES_MAX (64u << 10)

static bool find_range(pid_t pid, uint64_t *from, uint64_t *to)
{
	char path[64];
	char *line = NULL;
	size_t room = 0;
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "re");
	if (!maps)
		return false;
	while (!found && getline(&line, &room, maps) > 0)
		found = strstr(line, " [vdso]\n") &&
			sscanf(line, "%" SCNx64 "-%" SCNx64, from, to) == 2 && *from < *to &&
			*to - *from <= VDSO_BYTES_MAX;
	free(line);
	fclose(maps);
	return found;
}

/* Where another's memory may not be read, kymo's own: it is the same for all of the same kind. */
static bool read_code(pid_t pid, uint64_t from, uint8_t *code, size_t bytes)
{
	struct iovec here = {.iov_base = code, .iov_len = bytes};
	struct iovec there = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes)
		return true;
	const uint64_t own = getauxval(AT_SYSINFO_EHDR);
	uint64_t own_from, own_to;
	if (!own || !find_range(getpid(), &own_from, &own_to) || own_to - own_from != bytes)
		return false;
	memcpy(code, (const void *)(uintptr_t)own_from, bytes);
	return true;
}

void ky_pt_space_vdso(struct ky_pt_space *space)
{
	uint64_t from, to;
	if (!find_range(space->pid, &from, &to) || from == space->vdso)
		return;
	const size_t bytes = (size_t)(to - from);
	uint8_t *code = malloc(bytes);
	if (code && read_code(space->pid, from, code, bytes) &&
	    ky_pt_image_add(&space->image, code, bytes, from) == 0) {
		space->vdso = from;
		space->vdso_bytes = bytes;
	}
	free(code);
}
