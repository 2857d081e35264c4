/* SPDX-License-Identifier: MIT */
/* pt_image.c: see pt_image.h. */
#include "functrace/pt_image.h"

#include "base/array.h"
#include "base/file.h"

#include <errno.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define COPY_BYTES (256u << 10)

int ky_pt_image_open(struct ky_pt_image *image, ky_pt_image_read_fn read, void *context)
{
	*image = (struct ky_pt_image){.read = read, .context = context};
	image->fd = memfd_create("kymo-pt-image", MFD_CLOEXEC);
	return image->fd < 0 ? -errno : 0;
}

void ky_pt_image_close(struct ky_pt_image *image)
{
	pt_image_free(image->image);
	KY_ARRAY_FREE(image->sections, image->room);
	if (image->fd >= 0)
		close(image->fd);
	*image = (struct ky_pt_image){.fd = -1};
}

/* Check that there is room for more bytes. Return 0 or -errno. */
static int check_room(struct ky_pt_image *image, uint64_t bytes)
{
	if (!bytes)
		return -EINVAL;
	if (bytes > KY_PT_IMAGE_MAX || image->used > KY_PT_IMAGE_MAX - bytes)
		return -EFBIG;
	return KY_ARRAY_GROW(image->sections, image->room, image->count + 1) ? 0 : -ENOMEM;
}

static bool covers(const struct ky_pt_section *new_one, const struct ky_pt_section *old)
{
	return old->address >= new_one->address &&
	       old->address - new_one->address <= new_one->bytes &&
	       old->bytes <= new_one->bytes - (old->address - new_one->address);
}

/*
 * Count a section, and drop those that it hides: a library may be loaded and unloaded any number of times. Numbers
 * stay.
 */
static void count_section(struct ky_pt_image *image, const struct ky_pt_section *section)
{
	for (uint32_t i = 0; i < image->count; i++)
		if (covers(section, &image->sections[i]))
			image->sections[i].hidden = true;
	image->sections[image->count++] = *section;
	pt_image_free(image->image);
	image->image = NULL;
}

static void count_new(struct ky_pt_image *image, uint64_t bytes, uint64_t address)
{
	const struct ky_pt_section section = {
		.address = address, .bytes = bytes, .at = image->used};
	image->used += (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	count_section(image, &section);
}

int ky_pt_image_add(struct ky_pt_image *image, const void *code, uint64_t bytes, uint64_t address)
{
	int error = check_room(image, bytes);
	if (error == 0)
		error = ky_file_pwrite_all(image->fd, code, bytes, image->used);
	if (error == 0)
		count_new(image, bytes, address);
	return error;
}

/* Return how many bytes were copied, or -errno. */
static int64_t copy(const struct ky_pt_image *image, int fd, uint64_t offset, uint64_t bytes)
{
	uint64_t done = 0;
	uint8_t *piece = malloc(COPY_BYTES);
	int error = piece ? 0 : -ENOMEM;
	while (done < bytes && error == 0) {
		const uint64_t wanted = bytes - done < COPY_BYTES ? bytes - done : COPY_BYTES;
		const ssize_t got = pread(fd, piece, (size_t)wanted, (off_t)(offset + done));
		if (got <= 0) {
			error = got < 0 ? -errno : 0;
			break;
		}
		error = ky_file_pwrite_all(image->fd, piece, (uint64_t)got, image->used + done);
		done += (uint64_t)got;
	}
	free(piece);
	return error ? error : (int64_t)done;
}

int ky_pt_image_add_file(struct ky_pt_image *image, int fd, uint64_t offset, uint64_t bytes,
			 uint64_t address)
{
	const int error = check_room(image, bytes);
	if (error)
		return error;
	const int64_t got = copy(image, fd, offset, bytes);
	if (got <= 0)
		return got < 0 ? (int)got : -ENODATA;
	count_new(image, (uint64_t)got, address);
	return 0;
}

int ky_pt_image_add_again(struct ky_pt_image *image, uint32_t section, uint64_t address)
{
	if (section >= image->count)
		return -EINVAL;
	struct ky_pt_section again = image->sections[section];
	again.address = address;
	again.hidden = false;
	if (!KY_ARRAY_GROW(image->sections, image->room, image->count + 1))
		return -ENOMEM;
	count_section(image, &again);
	return 0;
}

static int read_process(uint8_t *data, size_t bytes, const struct pt_asid *asid, uint64_t address,
			void *context)
{
	const struct ky_pt_image *image = context;
	(void)asid;
	const int got = image->read(image->context, address, data, bytes);
	return got > 0 ? got : -pte_nomap;
}

struct pt_image *ky_pt_image_get(struct ky_pt_image *image)
{
	char path[64];
	if (image->image)
		return image->image;
	image->image = pt_image_alloc(NULL);
	if (!image->image)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", image->fd);
	for (uint32_t i = 0; i < image->count; i++) {
		const struct ky_pt_section *section = &image->sections[i];
		if (section->hidden)
			continue;
		/* A section that libipt does not take is unknown code: decoding reports it where it is met. */
		(void)pt_image_add_file(image->image, path, section->at, section->bytes, NULL,
					section->address);
	}
	if (image->read)
		pt_image_set_callback(image->image, read_process, image);
	return image->image;
}
