/* SPDX-License-Identifier: MIT */
/*
 * pt_space.h: what is where in a traced process: its code, for the decoder, and its functions, for the names.
 *
 *   mapped     ranges of addresses, each with an offset in its file
 *     │
 *     └▶ modules   one for each file: a descriptor from when it was mapped, so that it may be deleted
 *                  functions: read when the first address in it is looked up; where its segments of code lie in the file
 *   image      copies of the code; what is in no file is read from the process
 *
 * An address is of a mapping; so many bytes into its file; that is an address of the file; which is of a function.
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
	struct ky_functions *functions; /* NULL: not yet, or none can be read */
	uint64_t *offsets;              /* in the file, of functions->code[] */
	uint32_t *sites;                /* of functions->functions[], for the caller; 0: none yet */
	uint8_t *wanted;                /* of the same: 0: not asked yet, 1: selected, 2: not */
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
	uint64_t vdso, vdso_bytes; /* the kernel's code in it; 0: not known */
	bool live;                 /* the process may be asked for what is in no file */
};

/* Empty. It stays where it is until it is closed. 0 or -errno. */
int ky_pt_space_open(struct ky_pt_space *space, pid_t pid, const struct ky_selection *selection);
void ky_pt_space_close(struct ky_pt_space *space);
/* What the process has mapped now and is not known. 0; -ESRCH, -EACCES ... */
int ky_pt_space_look(struct ky_pt_space *space);
/* Add a mapping from now on. 0 or -errno: then its code is not known. */
int ky_pt_space_map(struct ky_pt_space *space, const struct ky_proc_mapping *mapping);

/* The kernel's code in the process, as part of looking. */
void ky_pt_space_vdso(struct ky_pt_space *space);

/* As struct ky_pt_calls has it. */
bool ky_pt_space_function(struct ky_pt_space *space, uint64_t address,
			  struct ky_pt_function *function);
/* The function that starts there, and its module; NULL: none. */
const struct ky_function *ky_pt_space_named(struct ky_pt_space *space, uint64_t start,
					    struct ky_pt_module **module);

#endif
