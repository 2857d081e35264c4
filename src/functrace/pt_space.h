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
#include "functrace/pt_stack.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <sys/types.h>

/* ---- the image ---- */

/*
 * The code of a process, as libipt reads it.
 *
 *   memfd:    │ section 0 │ section 1 │ ...            copies: a file that is cut off in the meantime does no harm
 *   sections: address, bytes, offset in the memfd      a later one hides what it covers
 *   reader:   bytes in no section (vDSO, JITs) are read from the process itself
 *
 * libipt keeps what it learns of a section's blocks if it belongs to a file: so the memfd is given by its name under
 * /proc/self/fd. It takes a section only while the file's size stays the same: libipt's image is made again after an
 * addition.
 */
#define KY_PT_IMAGE_MAX (UINT64_C(1) << 30) /* bytes in all */

struct pt_image;

/* Read up to this many bytes at an address of the process. Return how many, or a negative value. */
typedef int (*ky_pt_image_read_fn)(void *context, uint64_t address, void *data, size_t bytes);

struct ky_pt_section {
	uint64_t address, bytes;
	uint64_t at; /* in the memfd: several may have the same bytes */
	bool hidden; /* by a later one */
};

struct ky_pt_image {
	int fd;
	uint64_t used;
	struct ky_pt_section *sections;
	uint32_t count, room;
	struct pt_image *image; /* of the sections when it was made; NULL: not made */
	ky_pt_image_read_fn read;
	void *context;
};

/* Open an empty image. read may be NULL. Return 0 or -errno. */
int ky_pt_image_open(struct ky_pt_image *image, ky_pt_image_read_fn read, void *context);
void ky_pt_image_close(struct ky_pt_image *image);
/* Add code that is mapped at an address: bytes in memory. Return 0 or -errno. */
int ky_pt_image_add(struct ky_pt_image *image, const void *code, uint64_t bytes, uint64_t address);
/* Return the image for a decoder, valid until the next addition; NULL without memory. */
struct pt_image *ky_pt_image_get(struct ky_pt_image *image);

/* ---- modules and mappings ---- */

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
