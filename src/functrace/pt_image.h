/* SPDX-License-Identifier: MIT */
/*
 * pt_image.h: the code of a process, as libipt reads it.
 *
 *   memfd:    │ section 0 │ section 1 │ ...            copies: truncating a file does no harm
 *   sections: address, bytes, where in the memfd       a later one hides what it covers
 *   reader:   what is in no section (vDSO, JITs) is asked of the process itself
 *
 * libipt keeps what it learns of a section's blocks, when it is one of a file: so the memfd is given by its name under
 * /proc/self/fd. It takes a section only while the file's size stays the same: libipt's image is made again after an addition.
 */
#ifndef KY_FUNCTRACE_PT_IMAGE_H
#define KY_FUNCTRACE_PT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KY_PT_IMAGE_MAX (UINT64_C(1) << 30) /* bytes in all */

struct pt_image;

/* Reads up to so many bytes at an address of the process: how many, or negative. */
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
	struct pt_image *image; /* of the sections as they were; NULL: not made */
	ky_pt_image_read_fn read;
	void *context;
};

/* read may be NULL. 0 or -errno. */
int ky_pt_image_open(struct ky_pt_image *image, ky_pt_image_read_fn read, void *context);
void ky_pt_image_close(struct ky_pt_image *image);
/* Code that is mapped at an address: bytes in memory, or of a file from an offset on (as many of them as it has). 0 or -errno. */
int ky_pt_image_add(struct ky_pt_image *image, const void *code, uint64_t bytes, uint64_t address);
int ky_pt_image_add_file(struct ky_pt_image *image, int fd, uint64_t offset, uint64_t bytes,
			 uint64_t address);
/* The bytes of an earlier section of that number, mapped at another address. 0 or -errno. */
int ky_pt_image_add_again(struct ky_pt_image *image, uint32_t section, uint64_t address);
/* For a decoder, until the next addition; NULL: no memory. */
struct pt_image *ky_pt_image_get(struct ky_pt_image *image);

#endif
