/* SPDX-License-Identifier: MIT */
/* symbols.c: the life of struct ky_symbols, and the files it knows. */
#include "base/array.h"
#include "process/symbols_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int ky_symbols_open(struct ky_symbols **out, struct ky_strings *strings, const char *beside)
{
	struct ky_symbols *symbols = calloc(1, sizeof(*symbols));
	*out = symbols;
	if (!symbols)
		return -ENOMEM;
	symbols->strings = strings;
	if (beside) {
		const char *slash = strrchr(beside, '/');
		symbols->folder =
			slash ? strndup(beside, (size_t)(slash - beside) + 1) : strdup("./");
		if (!symbols->folder)
			ky_symbols_close(out);
	}
	return *out ? 0 : -ENOMEM;
}

void ky_symbols_on_damage(struct ky_symbols *symbols, ky_symbols_damaged_fn damaged, void *context)
{
	symbols->damaged = damaged;
	symbols->damaged_context = context;
}

void ky_symbols_close(struct ky_symbols **out)
{
	struct ky_symbols *symbols = *out;
	*out = NULL;
	if (!symbols)
		return;
	for (uint32_t i = 0; i < symbols->files_count; i++) {
		free(symbols->files[i].segments);
		ky_symbol_table_free(&symbols->files[i].table);
	}
	for (uint32_t i = 0; i < symbols->jits_count; i++)
		KY_ARRAY_FREE(symbols->jits[i].codes, symbols->jits[i].room);
	KY_ARRAY_FREE(symbols->files, symbols->files_room);
	KY_ARRAY_FREE(symbols->jits, symbols->jits_room);
	ky_symbol_table_free(&symbols->kernel);
	ky_u64_map_free(&symbols->file_of);
	ky_u64_map_free(&symbols->jit_of);
	ky_ranges_free(&symbols->ranges);
	free(symbols->folder);
	free(symbols);
}

/* Paths come from the recording: a device or a file of the kernel could block or never end. */
int ky_symbols_open_plain(const char *path)
{
	struct stat status;
	if (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0 ||
	    strncmp(path, "/dev/", 5) == 0)
		return -1;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return -1;
}

uint32_t ky_symbols_file(struct ky_symbols *symbols, uint32_t path, uint32_t build_id,
			 uint64_t device, uint64_t inode)
{
	bool made;
	if (!path || (!build_id && !inode))
		return KY_SYMBOLS_NO_FILE;
	uint32_t *number =
		ky_u64_map_add(&symbols->file_of, (uint64_t)path << 32 | build_id, &made);
	if (!number)
		return KY_SYMBOLS_NO_FILE;
	if (!made)
		return *number;
	*number = KY_SYMBOLS_NO_FILE;
	if (!KY_ARRAY_GROW_ZERO(symbols->files, symbols->files_room, symbols->files_count + 1))
		return KY_SYMBOLS_NO_FILE;
	symbols->files[symbols->files_count] = (struct ky_symbols_file){
		.path = path, .build_id = build_id, .device = device, .inode = inode};
	return *number = symbols->files_count++;
}

static bool address_of(const struct ky_symbols_file *file, uint64_t offset, uint64_t *address)
{
	for (uint32_t i = 0; i < file->segments_count; i++) {
		const struct ky_symbols_segment *segment = &file->segments[i];
		if (offset >= segment->offset && offset - segment->offset < segment->bytes) {
			*address = offset - segment->offset + segment->address;
			return true;
		}
	}
	return false;
}

uint32_t ky_symbols_in_file(struct ky_symbols *symbols, uint32_t number, uint64_t offset)
{
	if (number >= symbols->files_count)
		return 0;
	struct ky_symbols_file *file = &symbols->files[number];
	if (!file->tried) {
		file->tried = true;
		ky_symbols_load_elf(symbols, file);
	}
	uint64_t address;
	if (!address_of(file, offset, &address))
		return 0;
	return ky_symbol_table_find(&file->table, symbols->strings, address);
}
