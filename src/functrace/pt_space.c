/* SPDX-License-Identifier: MIT */
/* pt_space.c: see pt_space.h. */
#include "functrace/pt_space.h"

#include "base/array.h"
#include "process/proc.h"
#include "process/proc_maps.h"
#include "process/program_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- code in no file ---- */

static int read_process(void *context, uint64_t address, void *data, size_t bytes)
{
	const struct ky_pt_space *space = context;
	struct iovec here = {.iov_base = data, .iov_len = bytes};
	struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
	if (!space->live)
		return -1;
	return (int)process_vm_readv(space->pid, &here, 1, &there, 1, 0);
}

/* ---- modules ---- */

static void forget_module(struct ky_pt_module *module)
{
	if (module->fd >= 0)
		close(module->fd);
	free(module->path);
	ky_functions_free(&module->functions);
	free(module->offsets);
	free(module->sites);
	free(module->wanted);
}

/* Return the number of the file's module, made if it is new; or -errno. */
static int64_t find_module(struct ky_pt_space *space, const struct ky_proc_mapping *mapping, int fd)
{
	for (uint32_t i = 0; i < space->modules_count; i++)
		if (space->modules[i].device == mapping->device &&
		    space->modules[i].inode == mapping->inode)
			return i;
	if (!KY_ARRAY_GROW(space->modules, space->modules_room, space->modules_count + 1))
		return -ENOMEM;
	char *path = strdup(mapping->path);
	const int own = path ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (own < 0) {
		const int error = path ? -errno : -ENOMEM;
		free(path);
		return error;
	}
	space->modules[space->modules_count] = (struct ky_pt_module){
		.device = mapping->device, .inode = mapping->inode, .fd = own, .path = path};
	return space->modules_count++;
}

/* ---- mappings ---- */

/* Add the code of a range to the image: from the file, or as it was when the same bytes were mapped before. */
static int add_code(struct ky_pt_space *space, const struct ky_address_range *range, int fd)
{
	const struct ky_pt_code code = {.module = range->module,
					.section = space->image.count,
					.offset = range->offset,
					.bytes = range->end - range->start};
	for (uint32_t i = 0; i < space->codes_count; i++) {
		const struct ky_pt_code *one = &space->codes[i];
		if (one->module == code.module && one->offset == code.offset &&
		    one->bytes == code.bytes)
			return ky_pt_image_add_again(&space->image, one->section, range->start);
	}
	const int error =
		ky_pt_image_add_file(&space->image, fd, code.offset, code.bytes, range->start);
	if (!error)
		(void)KY_ARRAY_ADD(space->codes, space->codes_count, space->codes_room, code);
	return error;
}

/* Add a mapping. The descriptor stays the caller's. */
static int add_mapping(struct ky_pt_space *space, const struct ky_proc_mapping *from, int fd)
{
	const int64_t module = find_module(space, from, fd);
	if (module < 0)
		return (int)module;
	const struct ky_address_range range = {.start = from->start,
					       .end = from->end,
					       .offset = from->offset,
					       .module = (uint32_t)module};
	const int error = add_code(space, &range, fd);
	return ky_address_space_put(&space->mapped, &range) ? error : -ENOMEM;
}

/* Report whether a mapping is there already, and nothing newer covers its start. */
static bool is_known(const struct ky_pt_space *space, const struct ky_proc_mapping *mapping)
{
	const struct ky_address_range *range =
		ky_address_space_find(&space->mapped, mapping->start);
	return range && range->start == mapping->start && range->end == mapping->end &&
	       range->offset == mapping->offset &&
	       space->modules[range->module].device == mapping->device &&
	       space->modules[range->module].inode == mapping->inode;
}

/* Add a mapping of a file as the process has it, unless it is known. Return 0 or -errno. */
static int take_mapping(struct ky_pt_space *space, const struct ky_proc_mapping *mapping)
{
	if (is_known(space, mapping))
		return 0;
	const int fd = ky_proc_maps_open_file(space->pid, mapping);
	if (fd < 0)
		return fd;
	const int error = add_mapping(space, mapping, fd);
	close(fd);
	return error;
}

/* Skip mappings whose file is missing: decoding reports them where their code is met. */
int ky_pt_space_look(struct ky_pt_space *space)
{
	struct ky_program_map map;
	const int error = ky_program_map_read(&map, space->pid);
	if (error)
		return error;
	for (uint32_t i = 0; i < map.count; i++)
		(void)take_mapping(space, &map.mappings[i]);
	ky_pt_space_vdso(space);
	ky_program_map_free(&map);
	return 0;
}

int ky_pt_space_open(struct ky_pt_space *space, pid_t pid, const struct ky_selection *selection)
{
	*space = (struct ky_pt_space){.pid = pid, .selection = selection, .live = true};
	return ky_pt_image_open(&space->image, read_process, space);
}

void ky_pt_space_close(struct ky_pt_space *space)
{
	for (uint32_t i = 0; i < space->modules_count; i++)
		forget_module(&space->modules[i]);
	KY_ARRAY_FREE(space->modules, space->modules_room);
	KY_ARRAY_FREE(space->codes, space->codes_room);
	ky_address_space_free(&space->mapped);
	ky_pt_image_close(&space->image);
	*space = (struct ky_pt_space){.image.fd = -1};
}

int ky_pt_space_map(struct ky_pt_space *space, const struct ky_proc_mapping *mapping)
{
	/* "//anon" and "[vdso]" are not files. */
	const bool is_file = mapping->path[0] == '/' && mapping->path[1] != '/';
	return is_file ? take_mapping(space, mapping) : -ENOENT;
}
