/* SPDX-License-Identifier: MIT */
/*
 * pt_image.h: the code of a process, as libipt reads it.
 *
 *   memfd:    │ section 0 │ section 1 │ ...            copies: a file that is cut off in the meantime does no harm
 *   sections: address, bytes, offset in the memfd      a later one hides what it covers
 *   reader:   bytes in no section (vDSO, JITs) are read from the process itself
 *
 * libipt keeps what it learns of a section's blocks if it belongs to a file: so the memfd is given by its name under
 * /proc/self/fd. It takes a section only while the file's size stays the same: libipt's image is made again after an
 * addition.
 */
#ifndef KY_FUNCTRACE_PT_IMAGE_H
#define KY_FUNCTRACE_PT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
/*
 * Add code that is mapped at an address: bytes in memory, or of a file from an offset on (as many of them as it has).
 * Return 0 or -errno.
 */
int ky_pt_image_add(struct ky_pt_image *image, const void *code, uint64_t bytes, uint64_t address);
int ky_pt_image_add_file(struct ky_pt_image *image, int fd, uint64_t offset, uint64_t bytes,
			 uint64_t address);
/* Add the bytes of an earlier section of that number, mapped at another address. Return 0 or -errno. */
int ky_pt_image_add_again(struct ky_pt_image *image, uint32_t section, uint64_t address);
/* Return the image for a decoder, valid until the next addition; NULL without memory. */
struct pt_image *ky_pt_image_get(struct ky_pt_image *image);

#endif
