/* SPDX-License-Identifier: MIT */
/*
 * program_file.c: see program_file.h. Files are read, not mapped: one that is cut short gives errors then, not a
 * SIGBUS.
 */
#include "process/program_file.h"
#include "base/array.h"
#include "base/clock.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENTS_MAX 32u
/* Symbols can share their names' bytes, so that long names cost time out of proportion to the file. */
#define NAME_BYTES_MAX 4096u

struct segment {
	uint64_t address, offset, bytes;
};

struct ky_program_file {
	Elf *elf;
	Elf *debug; /* NULL: none found */
	int debug_fd;
	struct segment segments[SEGMENTS_MAX]; /* with code */
	uint32_t segments_count;
};

static void take_segments(struct ky_program_file *file)
{
	size_t count;
	if (elf_getphdrnum(file->elf, &count) != 0)
		return;
	for (size_t i = 0; i < count && file->segments_count < SEGMENTS_MAX; i++) {
		GElf_Phdr head;
		if (gelf_getphdr(file->elf, (int)i, &head) && head.p_type == PT_LOAD &&
		    head.p_flags & PF_X)
			file->segments[file->segments_count++] =
				(struct segment){head.p_vaddr, head.p_offset, head.p_filesz};
	}
}

size_t ky_program_file_id(Elf *elf, const uint8_t **id)
{
	const void *bytes = NULL;
	const ssize_t count = dwelf_elf_gnu_build_id(elf, &bytes);
	*id = bytes;
	return count > 0 && count <= (ssize_t)KY_PROGRAM_FILE_ID_MAX ? (size_t)count : 0;
}

void ky_program_file_id_text(const uint8_t *id, size_t bytes,
			     char text[2 * KY_PROGRAM_FILE_ID_MAX + 1])
{
	text[0] = '\0';
	for (size_t i = 0; i < bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

/* /usr/lib/debug/.build-id/ab/cdef.debug; false without a build id. */
static bool debug_path(Elf *elf, char *path, size_t room)
{
	char text[2 * KY_PROGRAM_FILE_ID_MAX + 1];
	const uint8_t *id;
	const size_t bytes = ky_program_file_id(elf, &id);
	ky_program_file_id_text(id, bytes, text);
	snprintf(path, room, "/usr/lib/debug/.build-id/%.2s/%s.debug", text,
		 text + 2 * (bytes > 0));
	return bytes >= 2;
}

static void open_debug(struct ky_program_file *file)
{
	char path[64 + 2 * KY_PROGRAM_FILE_ID_MAX];
	if (!debug_path(file->elf, path, sizeof(path)))
		return;
	file->debug_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file->debug_fd < 0)
		return;
	file->debug = elf_begin(file->debug_fd, ELF_C_READ, NULL);
	if (file->debug && elf_kind(file->debug) != ELF_K_ELF) {
		elf_end(file->debug);
		file->debug = NULL;
	}
}

/*
 * A table of names must end with a zero byte: otherwise elf_strptr() searches for the last one at each call, which
 * takes hours for a hostile file of 30 MB.
 */
static bool names_end(Elf *elf, int fd)
{
	for (Elf_Scn *section = elf_nextscn(elf, NULL); section;
	     section = elf_nextscn(elf, section)) {
		GElf_Shdr head;
		char last = 0;
		if (!gelf_getshdr(section, &head) || head.sh_type != SHT_STRTAB || !head.sh_size)
			continue;
		/* Where there is nothing to read, elf_strptr() finds no name either. */
		if (pread(fd, &last, 1, (off_t)(head.sh_offset + head.sh_size - 1)) > 0 && last)
			return false;
		if (head.sh_flags & SHF_COMPRESSED)
			return false;
	}
	return true;
}

int ky_program_file_open(struct ky_program_file **out, int fd)
{
	struct ky_program_file *file = calloc(1, sizeof(*file));
	*out = NULL;
	if (!file)
		return -ENOMEM;
	file->debug_fd = -1;
	if (elf_version(EV_CURRENT) != EV_NONE)
		file->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF || !names_end(file->elf, fd)) {
		ky_program_file_close(&file);
		return -ENOEXEC;
	}
	take_segments(file);
	open_debug(file);
	*out = file;
	return 0;
}

void ky_program_file_close(struct ky_program_file **out)
{
	struct ky_program_file *file = *out;
	*out = NULL;
	if (!file)
		return;
	elf_end(file->debug);
	elf_end(file->elf);
	if (file->debug_fd >= 0)
		close(file->debug_fd);
	free(file);
}

bool ky_program_file_offset(const struct ky_program_file *file, uint64_t address, uint64_t *offset)
{
	for (uint32_t i = 0; i < file->segments_count; i++) {
		const struct segment *segment = &file->segments[i];
		if (address < segment->address || address - segment->address >= segment->bytes)
			continue;
		*offset = segment->offset + (address - segment->address);
		return true;
	}
	return false;
}

bool ky_program_file_loader(const struct ky_program_file *file, char *path, size_t room)
{
	size_t count;
	if (elf_getphdrnum(file->elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count && i < INT32_MAX; i++) {
		GElf_Phdr head;
		if (!gelf_getphdr(file->elf, (int)i, &head) || head.p_type != PT_INTERP)
			continue;
		const Elf_Data *data =
			head.p_filesz && head.p_filesz < room
				? elf_getdata_rawchunk(file->elf, (int64_t)head.p_offset,
						       head.p_filesz, ELF_T_BYTE)
				: NULL;
		if (!data || data->d_size != head.p_filesz)
			return false;
		memcpy(path, data->d_buf, data->d_size);
		path[data->d_size] = '\0';
		return path[0] == '/';
	}
	return false;
}

Elf_Scn *ky_program_file_next_section(Elf *elf, Elf_Scn *section, GElf_Shdr *head,
				      const char **name)
{
	size_t names;
	if (elf_getshdrstrndx(elf, &names) != 0)
		names = 0;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, head) && head->sh_type != SHT_NOBITS)
			break;
	*name = section ? elf_strptr(elf, names, head->sh_name) : NULL;
	return section;
}

Elf_Scn *ky_program_file_section(Elf *elf, uint32_t type, const char *name, GElf_Shdr *head)
{
	Elf_Scn *section = NULL;
	const char *own;
	size_t names;
	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((section = ky_program_file_next_section(elf, section, head, &own)))
		if (name ? own && strcmp(own, name) == 0 : head->sh_type == type)
			return section;
	return NULL;
}

static int each_symbol(const struct ky_program_file *file, Elf *elf, Elf_Scn *section,
		       const GElf_Shdr *head,
		       int (*each)(void *context, const struct ky_program_function *function),
		       void *context)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const size_t count = data && head->sh_entsize ? data->d_size / head->sh_entsize : 0;
	for (size_t i = 0; i < count && i < INT32_MAX; i++) {
		struct ky_program_function function;
		GElf_Sym symbol;
		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
		    !ky_program_file_offset(file, symbol.st_value, &function.offset))
			continue;
		function.linked = elf_strptr(elf, head->sh_link, symbol.st_name);
		function.bytes = symbol.st_size;
		const size_t bytes = function.linked ? strnlen(function.linked, NAME_BYTES_MAX) : 0;
		const int result = bytes && bytes < NAME_BYTES_MAX ? each(context, &function) : 0;
		if (result)
			return result;
	}
	return 0;
}

int ky_program_file_functions(const struct ky_program_file *file,
			      int (*each)(void *context,
					  const struct ky_program_function *function),
			      void *context)
{
	const struct {
		Elf *elf;
		uint32_t type;
	} tables[] = {{file->elf, SHT_SYMTAB}, {file->debug, SHT_SYMTAB}, {file->elf, SHT_DYNSYM}};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		GElf_Shdr head;
		Elf_Scn *section =
			ky_program_file_section(tables[i].elf, tables[i].type, NULL, &head);
		if (section)
			return each_symbol(file, tables[i].elf, section, &head, each, context);
	}
	return 0;
}

Elf *ky_program_file_lines(const struct ky_program_file *file)
{
	GElf_Shdr head;
	if (ky_program_file_section(file->elf, 0, ".debug_line", &head))
		return file->elf;
	return ky_program_file_section(file->debug, 0, ".debug_line", &head) ? file->debug : NULL;
}

Elf *ky_program_file_elf(const struct ky_program_file *file)
{
	return file->elf;
}

Elf *ky_program_file_debug(const struct ky_program_file *file)
{
	return file->debug;
}

/* ---- where a process has it ---- */

#define MAPPINGS_MAX 8192u

static int add(struct ky_program_map *map, const struct ky_proc_mapping *from)
{
	struct ky_proc_mapping mapping = *from;
	mapping.path = strdup(from->path);
	if (!mapping.path)
		return -ENOMEM;
	if (KY_ARRAY_ADD(map->mappings, map->count, map->room, mapping))
		return 0;
	free((char *)(uintptr_t)mapping.path);
	return -ENOMEM;
}

int ky_program_map_read(struct ky_program_map *map, pid_t pid)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	*map = (struct ky_program_map){.pid = pid};
	int error = ky_proc_maps_open(&maps, pid);
	while (!error && map->count < MAPPINGS_MAX && ky_proc_maps_next(&maps, &mapping))
		if ((mapping.protection & PROT_EXEC) && mapping.inode && mapping.path[0] == '/')
			error = add(map, &mapping);
	ky_proc_maps_close(&maps);
	if (error)
		ky_program_map_free(map);
	return error;
}

void ky_program_map_free(struct ky_program_map *map)
{
	for (uint32_t i = 0; i < map->count; i++)
		free((char *)(uintptr_t)map->mappings[i].path);
	KY_ARRAY_FREE(map->mappings, map->room);
	*map = (struct ky_program_map){0};
}

bool ky_program_map_is_again(const struct ky_program_map *map, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (map->mappings[i].device == map->mappings[index].device &&
		    map->mappings[i].inode == map->mappings[index].inode)
			return true;
	return false;
}

uint64_t ky_program_map_address(const struct ky_program_map *map, uint64_t device, uint64_t inode,
				uint64_t offset)
{
	for (uint32_t i = 0; i < map->count; i++) {
		const struct ky_proc_mapping *m = &map->mappings[i];
		if (m->device == device && m->inode == inode && offset >= m->offset &&
		    offset - m->offset < m->end - m->start)
			return m->start + (offset - m->offset);
	}
	return 0;
}

/* ---- its libraries ---- */

#define ANSWER_BYTES_MAX (256u * 1024)
#define ANSWER_MS 2000

extern char **environ;

static bool find_loader(const char *program, char *loader, size_t room)
{
	struct ky_program_file *file;
	const int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	bool found = false;
	if (ky_program_file_open(&file, fd) == 0) {
		found = ky_program_file_loader(file, loader, room);
		ky_program_file_close(&file);
	}
	close(fd);
	return found;
}

bool ky_program_libraries_are_safe(const char *program)
{
	char loader[4096];
	struct stat status;
	if (!find_loader(program, loader, sizeof(loader)))
		return true;
	return stat(loader, &status) == 0 && status.st_uid == 0 &&
	       !(status.st_mode & (S_IWGRP | S_IWOTH));
}

static pid_t start(const char *loader, const char *program, int out)
{
	const char *const argv[] = {loader, "--list", program, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	if (posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) !=
		    0 ||
	    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) !=
		    0 ||
	    posix_spawn(&pid, loader, &actions, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* Read to the end, or as long as there is time. */
static size_t read_answer(int fd, char *text, size_t room)
{
	const int64_t until = ky_clock_monotonic() / KY_CLOCK_MS_NS + ANSWER_MS;
	size_t used = 0;
	while (used < room) {
		struct pollfd ready = {fd, POLLIN, 0};
		const int64_t left = until - ky_clock_monotonic() / KY_CLOCK_MS_NS;
		const int polled = left > 0 ? poll(&ready, 1, (int)left) : 0;
		if (polled < 0 && errno == EINTR)
			continue;
		const ssize_t bytes = polled > 0 ? read(fd, text + used, room - used) : 0;
		if (bytes <= 0)
			break;
		used += (size_t)bytes;
	}
	return used;
}

/* "	libz.so.1 => /lib/libz.so.1 (0x7f...)", "	/lib64/ld-linux-x86-64.so.2 (0x7f...)" */
static void take_line(char *line, void (*each)(void *context, const char *path), void *context)
{
	char *path = strchr(line, '/');
	char *end = path ? strstr(path, " (0x") : NULL;
	char *arrow = strstr(line, " => /");
	if (arrow && end)
		path = arrow + strlen(" => ");
	if (!end || end < path)
		return;
	*end = '\0';
	each(context, path);
}

void ky_program_libraries(const char *program, void (*each)(void *context, const char *path),
			  void *context)
{
	char loader[4096];
	int out[2];
	if (!find_loader(program, loader, sizeof(loader)) || pipe2(out, O_CLOEXEC) != 0)
		return;
	char *text = malloc(ANSWER_BYTES_MAX + 1);
	const pid_t pid = text ? start(loader, program, out[1]) : -1;
	close(out[1]);
	const size_t bytes = pid > 0 ? read_answer(out[0], text, ANSWER_BYTES_MAX) : 0;
	close(out[0]);
	if (pid > 0) {
		kill(pid, SIGKILL); /* it has answered, or never will */
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	if (text)
		text[bytes] = '\0';
	char *rest = text;
	for (char *line = bytes ? strsep(&rest, "\n") : NULL; line; line = strsep(&rest, "\n"))
		take_line(line, each, context);
	free(text);
}
