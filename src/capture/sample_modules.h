/* SPDX-License-Identifier: MIT */
/*
 * sample_modules.h: the files that code of sampled processes was mapped from, each once. A file is opened when an address in
 * it is first met, while there is a process that has it: it may be removed, replaced, or be in another mount namespace
 * when the capture ends and its names are looked for.
 */
#ifndef KY_CAPTURE_SAMPLE_MODULES_H
#define KY_CAPTURE_SAMPLE_MODULES_H

#include "base/map.h"
#include "capture/perf_out.h"
#include "process/address_space.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <sys/types.h>

enum ky_sample_module_kind {
	KY_SAMPLE_FILE,
	KY_SAMPLE_VDSO,
	KY_SAMPLE_MADE,   /* no file: code generated at run time */
	KY_SAMPLE_JITDUMP /* the same, and the file that describes it */
};

struct ky_sample_module {
	char *path;
	uint8_t build_id[KY_BUILD_ID_MAX];
	uint8_t build_id_bytes;
	uint64_t device, inode;
	enum ky_sample_module_kind kind;
	bool opened;   /* opening was tried */
	int fd;        /* -1: none */
	uint32_t next; /* of the same hash */
};

struct ky_sample_modules {
	struct ky_sample_module *items;
	uint32_t count;
	uint32_t room;
	uint32_t open_count;
	struct ky_u64_map by_hash;
};

void ky_sample_modules_free(struct ky_sample_modules *modules);
/* Return the number of the mapped file; KY_NO_MODULE when there are too many. */
uint32_t ky_sample_modules_of(struct ky_sample_modules *modules,
			      const struct ky_proc_mapping *mapping);
/* Opens the file as the process sees it, once. Of some hundred only: descriptors are needed for other things too. */
void ky_sample_modules_open(struct ky_sample_modules *modules, uint32_t module, pid_t pid);
/* A descriptor of the file, the caller's; when it is not open, of what is at its path now if that is the same. -1: none. */
int ky_sample_modules_take(struct ky_sample_modules *modules, uint32_t module);

/* Read the build id of an ELF file into mapping. */
void ky_sample_modules_build_id(int fd, struct ky_proc_mapping *mapping);
/* Open a regular file as the process sees it, else as kymo does; return -1 when there is none. */
int ky_sample_modules_open_path(const char *path, pid_t pid);

#endif
