/* SPDX-License-Identifier: MIT */
/*
 * pt_space.h: what is where in a traced process: its code, for the decoder, and its functions, for the names.
 *
 *   mappings   by when they were made, the newest last: it hides what it covers
 *     │          address, bytes, offset in the file
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
#include "functrace/pt_records.h"
#include "functrace/pt_segment.h"

#include <sys/types.h>

struct ky_pt_module {
	uint64_t device, inode;
	int fd; /* -1: its functions were read */
	char *path;
	struct ky_functions *functions; /* NULL: not yet, or none can be read */
	uint64_t *offsets;              /* in the file, of functions->code[] */
	uint32_t *sites; /* of functions->functions[], for whoever tells them; 0: none yet */
	uint8_t *wanted; /* of the same: 0: not asked yet, 1: selected, 2: not */
};

struct ky_pt_mapping {
	uint64_t address, bytes, offset;
	uint32_t module;
	uint32_t section; /* of the image; KY_PT_NO_SECTION: its code could not be read */
};
#define KY_PT_NO_SECTION UINT32_MAX

struct ky_pt_space {
	pid_t pid;
	const struct ky_selection *selection; /* NULL: all */
	struct ky_pt_image image;
	struct ky_pt_module *modules;
	uint32_t modules_count, modules_room;
	struct ky_pt_mapping *mappings;
	uint32_t mappings_count, mappings_room;
	uint64_t vdso, vdso_bytes; /* the kernel's code in it; 0: not known */
	bool live;                 /* the process may be asked for what is in no file */
};

/* Empty. It stays where it is until it is closed. 0 or -errno. */
int ky_pt_space_open(struct ky_pt_space *space, pid_t pid, const struct ky_selection *selection);
void ky_pt_space_close(struct ky_pt_space *space);
/* What the process has mapped now and is not known. 0; -ESRCH, -EACCES ... */
int ky_pt_space_look(struct ky_pt_space *space);
/* A mapping from now on, of a record. 0 or -errno: then its code is not known. */
int ky_pt_space_map(struct ky_pt_space *space, const struct ky_pt_record *record);

/* The kernel's code in the process, as part of looking. */
void ky_pt_space_vdso(struct ky_pt_space *space);

/* As struct ky_pt_calls has it. */
bool ky_pt_space_function(struct ky_pt_space *space, uint64_t address,
			  struct ky_pt_function *function);
/* The function that starts there, and its module; NULL: none. */
const struct ky_function *ky_pt_space_named(struct ky_pt_space *space, uint64_t start,
					    struct ky_pt_module **module);

#endif
