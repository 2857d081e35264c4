/* SPDX-License-Identifier: MIT */
/*
 * pt_space_vdso.c: the code that the kernel gives to every process (vDSO), which is in no file: clock_gettime() and
 * others. It is copied while the process lives, because the process may have ended when it is decoded. All of it
 * counts as one function.
 */
#include "functrace/pt_space.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#define VDSO_BYTES_MAX (64u << 10)

static bool find_range(pid_t pid, uint64_t *from, uint64_t *to)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	bool found = false;
	(void)ky_proc_maps_open(&maps, pid);
	while (!found && ky_proc_maps_next(&maps, &mapping))
		found = strcmp(mapping.path, "[vdso]") == 0 &&
			mapping.end - mapping.start <= VDSO_BYTES_MAX;
	if (found) {
		*from = mapping.start;
		*to = mapping.end;
	}
	ky_proc_maps_close(&maps);
	return found;
}

/*
 * Read the code; where another process's memory is forbidden, kymo's own: it is the same for all processes of the
 * same kind.
 */
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
