/* SPDX-License-Identifier: MIT */
/*
 * pt_space.h: the contents of a traced process: its code, for the decoder, and its functions, for the names.
 *
 *   mapped     ranges of addresses, each with an offset in its file
 *     │
 *     └▶ modules   one for each file: a descriptor from when it was mapped, so that it may be deleted
 *                  functions: read when the first address in it is looked up; the offsets of its code segments in the file
 *   image      copies of the code; code in no file is read from the process
 *
 * An address leads to a mapping, from there to an offset in its file, to an address of the file, and to a function.
 */
#ifndef KY_FUNCTRACE_PT_SPACE_H
#define KY_FUNCTRACE_PT_SPACE_H

#include "functrace/functions.h"
#include "functrace/pt_image.h"
#include "functrace/pt_segment.h"
#include "process/address_space.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <sys/types.h>

struct ky_pt_module {
	uint64_t device, inode;
	int fd; /* -1: its functions were read */
	char *path;
	struct ky_functions *functions; /* NULL: not yet, or unreadable */
	uint64_t *offsets;              /* in the file, of functions->code[] */
	/* of functions->functions[], for the caller; 0: none yet */
	uint32_t *sites;
	uint8_t *wanted; /* of the same: 0: not checked yet, 1: selected, 2: not */
};

/* Code that was copied into the image. */
struct ky_pt_code {
	uint32_t module;
	uint32_t section; /* of the image */
	uint64_t offset, bytes;
};

struct ky_pt_space {
	pid_t pid;
	const struct ky_selection *selection; /* NULL: all */
	struct ky_pt_image image;
	struct ky_pt_module *modules;
	uint32_t modules_count, modules_room;
	struct ky_address_space mapped;
	struct ky_pt_code *codes;
	uint32_t codes_count, codes_room;
	uint64_t vdso, vdso_bytes; /* the kernel's code in it; 0: unknown */
	bool live;                 /* code in no file may be read from the process */
};

/* Open an empty space. It stays where it is until it is closed. Return 0 or -errno. */
int ky_pt_space_open(struct ky_pt_space *space, pid_t pid, const struct ky_selection *selection);
void ky_pt_space_close(struct ky_pt_space *space);
/* Add the process's present mappings that are unknown. Return 0; -ESRCH, -EACCES ... */
int ky_pt_space_look(struct ky_pt_space *space);
/* Add a mapping from now on. Return 0; or -errno: then its code is unknown. */
int ky_pt_space_map(struct ky_pt_space *space, const struct ky_proc_mapping *mapping);

/* Add the kernel's code in the process, as part of looking. */
void ky_pt_space_vdso(struct ky_pt_space *space);

/* Find a function, as in struct ky_pt_calls. */
bool ky_pt_space_function(struct ky_pt_space *space, uint64_t address,
			  struct ky_pt_function *function);
/* Return the function that starts there, and its module; NULL: none. */
const struct ky_function *ky_pt_space_named(struct ky_pt_space *space, uint64_t start,
					    struct ky_pt_module **module);

#endif
