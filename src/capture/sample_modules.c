/* SPDX-License-Identifier: MIT */
/* sample_modules.c: see sample_modules.h. */
#include "capture/sample_modules.h"

#include "base/array.h"

#include "process/jit_files.h"

#include "process/proc.h"
#include "process/proc_maps.h"
#include "process/program_file.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULES_MAX 65536u
#define FILES_OPEN_MAX 200u

void ky_sample_modules_free(struct ky_sample_modules *modules)
{
	for (uint32_t i = 0; i < modules->count; i++) {
		free(modules->items[i].path);
		if (modules->items[i].fd >= 0)
			close(modules->items[i].fd);
	}
	KY_ARRAY_FREE(modules->items, modules->room);
	ky_u64_map_free(&modules->by_hash);
	*modules = (struct ky_sample_modules){0};
}

/* As the reader of perf.data tells code that a program made itself from that of files. */
static enum ky_sample_module_kind kind_of(const char *path)
{
	if (strcmp(path, "[vdso]") == 0)
		return KY_SAMPLE_VDSO;
	if (ky_jitdump_is_path(path))
		return KY_SAMPLE_JITDUMP;
	return ky_proc_maps_is_file(path) || strncmp(path, "[vsyscall]", 10) == 0 ? KY_SAMPLE_FILE
										  : KY_SAMPLE_MADE;
}

static uint64_t hash_of(const struct ky_proc_mapping *mapping)
{
	uint64_t hash = mapping->inode ^ mapping->device << 8;
	for (const char *p = mapping->path; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
	for (unsigned i = 0; i < mapping->build_id_bytes; i++)
		hash = (hash ^ mapping->build_id[i]) * 0x100000001b3u;
	return hash;
}

static bool is_same(const struct ky_sample_module *module, const struct ky_proc_mapping *mapping)
{
	if (strcmp(module->path, mapping->path) != 0 ||
	    module->build_id_bytes != mapping->build_id_bytes)
		return false;
	if (module->build_id_bytes)
		return memcmp(module->build_id, mapping->build_id, module->build_id_bytes) == 0;
	return module->inode == mapping->inode && module->device == mapping->device;
}

uint32_t ky_sample_modules_of(struct ky_sample_modules *modules,
			      const struct ky_proc_mapping *mapping)
{
	bool made;
	uint32_t *first = ky_u64_map_add(&modules->by_hash, hash_of(mapping), &made);
	if (!first)
		return KY_NO_MODULE;
	if (made)
		*first = KY_NO_MODULE;
	for (uint32_t i = *first; i != KY_NO_MODULE; i = modules->items[i].next)
		if (is_same(&modules->items[i], mapping))
			return i;
	char *path = modules->count < MODULES_MAX && KY_ARRAY_GROW(modules->items, modules->room,
								   modules->count + 1)
			     ? strdup(mapping->path)
			     : NULL;
	if (!path)
		return KY_NO_MODULE;
	struct ky_sample_module *module = &modules->items[modules->count];
	*module = (struct ky_sample_module){.path = path,
					    .build_id_bytes = mapping->build_id_bytes,
					    .device = mapping->device,
					    .inode = mapping->inode,
					    .kind = kind_of(path),
					    .fd = -1,
					    .next = *first};
	memcpy(module->build_id, mapping->build_id, sizeof(module->build_id));
	return *first = modules->count++;
}

static int open_plain(const char *path)
{
	struct stat status;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return -1;
}

int ky_sample_modules_open_path(const char *path, pid_t pid)
{
	char seen[PATH_MAX];
	if (path[0] != '/')
		return -1;
	const int bytes = snprintf(seen, sizeof(seen), "/proc/%d/root%s", (int)pid, path);
	const int fd = pid > 0 && bytes < (int)sizeof(seen) ? open_plain(seen) : -1;
	return fd >= 0 ? fd : open_plain(path);
}

void ky_sample_modules_build_id(int fd, struct ky_proc_mapping *mapping)
{
	const uint8_t *id;
	mapping->build_id_bytes = 0;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		const size_t bytes = ky_program_file_id(elf, &id);
		if (bytes && bytes <= sizeof(mapping->build_id)) {
			memcpy(mapping->build_id, id, bytes);
			mapping->build_id_bytes = (uint8_t)bytes;
		}
	}
	elf_end(elf);
}

/* Another file may have its path by now: names from that one would be wrong. */
static bool is_recorded(const struct ky_sample_module *module, int fd)
{
	struct ky_proc_mapping now = {0};
	struct stat status;
	if (module->build_id_bytes) {
		ky_sample_modules_build_id(fd, &now);
		return now.build_id_bytes == module->build_id_bytes &&
		       memcmp(now.build_id, module->build_id, now.build_id_bytes) == 0;
	}
	return fstat(fd, &status) == 0 && status.st_ino == module->inode;
}

static int open_recorded(const struct ky_sample_module *module, pid_t pid)
{
	const int fd = ky_sample_modules_open_path(module->path, pid);
	if (fd < 0 || is_recorded(module, fd))
		return fd;
	close(fd);
	return -1;
}

void ky_sample_modules_open(struct ky_sample_modules *modules, uint32_t number, pid_t pid)
{
	struct ky_sample_module *module = &modules->items[number];
	if (module->opened || module->kind != KY_SAMPLE_FILE ||
	    modules->open_count == FILES_OPEN_MAX)
		return;
	module->opened = true;
	module->fd = open_recorded(module, pid);
	modules->open_count += module->fd >= 0;
}

int ky_sample_modules_take(struct ky_sample_modules *modules, uint32_t number)
{
	struct ky_sample_module *module = &modules->items[number];
	const int fd = module->fd >= 0 ? module->fd : open_recorded(module, 0);
	module->fd = -1;
	return fd;
}
