/* SPDX-License-Identifier: MIT */
/* pt_space.c: see pt_space.h. */
#include "functrace/pt_space.h"

#include "process/program_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAPPINGS_MAX 65536u

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

static void *grow(void *items, uint32_t count, uint32_t *room, size_t bytes)
{
	if (count < *room)
		return items;
	const uint32_t larger = *room ? 2 * *room : 16;
	void *grown = realloc(items, larger * bytes);
	if (grown)
		*room = larger;
	return grown;
}

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

/* The module of a file, new when it was not there. Its number, or -errno. */
static int64_t find_module(struct ky_pt_space *space, const struct ky_program_mapping *mapping,
			   int fd)
{
	for (uint32_t i = 0; i < space->modules_count; i++)
		if (space->modules[i].device == mapping->device &&
		    space->modules[i].inode == mapping->inode)
			return i;
	struct ky_pt_module *modules =
		grow(space->modules, space->modules_count, &space->modules_room, sizeof(*modules));
	if (!modules)
		return -ENOMEM;
	space->modules = modules;
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

/* The code of a mapping into the image: from the file, or as it was when the same bytes were mapped before. */
static int add_code(struct ky_pt_space *space, const struct ky_pt_mapping *mapping, int fd)
{
	for (uint32_t i = 0; i < space->mappings_count; i++) {
		const struct ky_pt_mapping *one = &space->mappings[i];
		if (one->module == mapping->module && one->offset == mapping->offset &&
		    one->bytes == mapping->bytes && one->section != KY_PT_NO_SECTION)
			return ky_pt_image_add_again(&space->image, one->section, mapping->address);
	}
	return ky_pt_image_add_file(&space->image, fd, mapping->offset, mapping->bytes,
				    mapping->address);
}

/* Mappings that a new one hides are not looked at any more. */
static void drop_hidden(struct ky_pt_space *space, const struct ky_pt_mapping *mapping)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < space->mappings_count; i++) {
		const struct ky_pt_mapping *one = &space->mappings[i];
		if (one->address < mapping->address ||
		    one->address + one->bytes > mapping->address + mapping->bytes)
			space->mappings[kept++] = *one;
	}
	space->mappings_count = kept;
}

/* The descriptor stays the caller's. */
static int add_mapping(struct ky_pt_space *space, const struct ky_program_mapping *from, int fd)
{
	const int64_t module = find_module(space, from, fd);
	if (module < 0)
		return (int)module;
	struct ky_pt_mapping mapping = {.address = from->start,
					.bytes = from->end - from->start,
					.offset = from->offset,
					.module = (uint32_t)module,
					.section = space->image.count};
	const int error = add_code(space, &mapping, fd);
	if (error)
		mapping.section = KY_PT_NO_SECTION;
	drop_hidden(space, &mapping);
	struct ky_pt_mapping *mappings = NULL;
	if (space->mappings_count < MAPPINGS_MAX)
		mappings = grow(space->mappings, space->mappings_count, &space->mappings_room,
				sizeof(*mappings));
	if (!mappings)
		return -ENOMEM;
	space->mappings = mappings;
	space->mappings[space->mappings_count++] = mapping;
	return error;
}

/* Whether a mapping is there already, and nothing newer covers it. */
static bool is_known(const struct ky_pt_space *space, const struct ky_program_mapping *mapping)
{
	for (uint32_t i = space->mappings_count; i > 0; i--) {
		const struct ky_pt_mapping *one = &space->mappings[i - 1];
		const struct ky_pt_module *module = &space->modules[one->module];
		if (one->address >= mapping->end || mapping->start - one->address >= one->bytes)
			continue;
		return one->address == mapping->start && one->offset == mapping->offset &&
		       one->bytes == mapping->end - mapping->start &&
		       module->device == mapping->device && module->inode == mapping->inode;
	}
	return false;
}

/* Of a process that is gone, when its path still is the same file here. */
static int open_by_path(const struct ky_program_mapping *mapping)
{
	struct stat status;
	const int fd = open(mapping->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && mapping->inode &&
	    status.st_ino == mapping->inode)
		return fd;
	close(fd);
	return -ESTALE;
}

/* As the process has it mapped, unless it is known. 0 or -errno. */
static int take_mapping(struct ky_pt_space *space, const struct ky_program_map *map,
			const struct ky_program_mapping *mapping)
{
	if (is_known(space, mapping))
		return 0;
	int fd = ky_program_map_open(map, mapping);
	if (fd < 0)
		fd = open_by_path(mapping);
	if (fd < 0)
		return fd;
	const int error = add_mapping(space, mapping, fd);
	close(fd);
	return error;
}

/* A mapping whose file cannot be had is left out: decoding says so where its code is met. */
int ky_pt_space_look(struct ky_pt_space *space)
{
	struct ky_program_map map;
	const int error = ky_program_map_read(&map, space->pid);
	if (error)
		return error;
	for (uint32_t i = 0; i < map.count; i++)
		(void)take_mapping(space, &map, &map.mappings[i]);
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
	free(space->modules);
	free(space->mappings);
	ky_pt_image_close(&space->image);
	*space = (struct ky_pt_space){.image.fd = -1};
}

int ky_pt_space_map(struct ky_pt_space *space, const struct ky_pt_record *record)
{
	const struct ky_program_map map = {.pid = space->pid};
	char *path = strdup(record->map.path);
	if (!path)
		return -ENOMEM;
	const struct ky_program_mapping mapping = {.start = record->map.address,
						   .end = record->map.address + record->map.bytes,
						   .offset = record->map.offset,
						   .device = record->map.device,
						   .inode = record->map.inode,
						   .path = path};
	/* "//anon" and "[vdso]" are no files. */
	const bool is_file = path[0] == '/' && path[1] != '/';
	const int error = is_file ? take_mapping(space, &map, &mapping) : -ENOENT;
	free(path);
	return error;
}
