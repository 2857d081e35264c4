/* SPDX-License-Identifier: MIT */
/*
 * symbols_elf.c: functions of ELF files, by libelf. A file is taken only when its build id is the recorded one, or
 * when none was recorded and it is still the same inode: one of the same name that was built again would give wrong
 * names.
 */
#include "process/symbols_parts.h"

#include "process/program_file.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SEGMENTS_MAX 64u

/* Writes the file's own build id in hexadecimal; false when it has none. */
static bool own_id(Elf *elf, char text[2 * KY_PROGRAM_FILE_ID_MAX + 1])
{
	const uint8_t *id;
	const size_t bytes = ky_program_file_id(elf, &id);
	ky_program_file_id_text(id, bytes, text);
	return bytes > 0;
}

/* Reports whether it is the file's build id, which may be padded with zeros to its usual size. */
static bool has_build_id(Elf *elf, const char *wanted)
{
	char text[2 * KY_PROGRAM_FILE_ID_MAX + 1];
	if (!own_id(elf, text))
		return false;
	const size_t bytes = strlen(text);
	return strncmp(text, wanted, bytes) == 0 &&
	       strspn(wanted + bytes, "0") == strlen(wanted + bytes);
}

static void take_segments(Elf *elf, struct ky_symbols_file *file)
{
	size_t count;
	if (file->segments || elf_getphdrnum(elf, &count) != 0)
		return;
	file->segments = calloc(SEGMENTS_MAX, sizeof(*file->segments));
	for (size_t i = 0; file->segments && i < count && file->segments_count < SEGMENTS_MAX;
	     i++) {
		GElf_Phdr head;
		if (!gelf_getphdr(elf, (int)i, &head) || head.p_type != PT_LOAD)
			continue;
		file->segments[file->segments_count++] = (struct ky_symbols_segment){
			.offset = head.p_offset, .bytes = head.p_filesz, .address = head.p_vaddr};
	}
}

/* Functions, and labels of assembler code: not those that mark data in it ("$d"). */
static bool is_code(Elf *elf, const GElf_Sym *symbol, const char *name)
{
	const int type = GELF_ST_TYPE(symbol->st_info);
	GElf_Shdr head;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	if (type != STT_NOTYPE || *name == '$' || *name == '.' || symbol->st_shndx >= SHN_LORESERVE)
		return false;
	Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
	return section && gelf_getshdr(section, &head) && head.sh_flags & SHF_EXECINSTR;
}

static bool take_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *head,
			 struct ky_symbol_table *table)
{
	Elf_Data *data = elf_getdata(section, NULL);
	if (!data || !head->sh_entsize)
		return false;
	const size_t count = data->d_size / head->sh_entsize;
	for (size_t i = 0; i < count && i < INT32_MAX; i++) {
		GElf_Sym symbol;
		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
			continue;
		const char *name = elf_strptr(elf, head->sh_link, symbol.st_name);
		if (name && *name && is_code(elf, &symbol, name) &&
		    !ky_symbol_table_add(table, symbol.st_value, symbol.st_size,
					 ky_symbol_table_rank(GELF_ST_BIND(symbol.st_info), name),
					 name, strlen(name)))
			return false;
	}
	return table->count != 0;
}

static bool take_table(Elf *elf, uint32_t type, struct ky_symbol_table *table)
{
	GElf_Shdr head;
	Elf_Scn *const section = ky_program_file_section(elf, type, NULL, &head);
	return section && take_symbols(elf, section, &head, table);
}

/* Reports whether the file has the recorded build id or, without one, is the same file on the same disk. */
static bool is_recorded(Elf *elf, int fd, const char *build_id, const struct ky_symbols_file *file)
{
	struct stat status;
	if (build_id)
		return has_build_id(elf, build_id);
	return file->inode && fstat(fd, &status) == 0 && status.st_ino == file->inode &&
	       major(status.st_dev) == file->device >> 32 &&
	       minor(status.st_dev) == (uint32_t)file->device;
}

/* Takes segments, and functions of that kind of table, from a file that may be the one. */
static bool take_file(const char *path, const char *build_id, uint32_t type,
		      struct ky_symbols_file *file)
{
	const int fd = ky_symbols_open_plain(path);
	if (fd < 0)
		return false;
	bool found = false;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && is_recorded(elf, fd, build_id, file)) {
		take_segments(elf, file);
		found = take_table(elf, type, &file->table);
	}
	elf_end(elf);
	close(fd);
	return found;
}

/* Makes the path by build id under some folder; false when it is too long. */
static bool path_of(char *path, const char *folder, const char *under, const char *build_id,
		    const char *tail)
{
	const int bytes = snprintf(path, KY_SYMBOLS_PATH_BYTES, "%s%s/%.2s/%s%s", folder, under,
				   build_id, build_id + 2, tail);
	return bytes > 0 && bytes < KY_SYMBOLS_PATH_BYTES;
}

/* Finds the build id of the file that is still there, when none was recorded. */
static bool find_id(const char *path, const struct ky_symbols_file *file,
		    char id[2 * KY_PROGRAM_FILE_ID_MAX + 1])
{
	const int fd = ky_symbols_open_plain(path);
	if (fd < 0)
		return false;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	const bool found = elf && elf_kind(elf) == ELF_K_ELF && is_recorded(elf, fd, NULL, file) &&
			   own_id(elf, id);
	elf_end(elf);
	close(fd);
	return found;
}

/* Looks where the file, its debug file and perf's own copy are. */
static bool take_any(const char *path, const char *build_id, uint32_t type,
		     struct ky_symbols_file *file)
{
	const char *home = getenv("HOME");
	char other[KY_SYMBOLS_PATH_BYTES];
	if (path[0] == '/' && take_file(path, build_id, type, file))
		return true;
	if (!build_id)
		return false;
	if (path_of(other, "/usr/lib/debug", "/.build-id", build_id, ".debug") &&
	    take_file(other, build_id, type, file))
		return true;
	return home && path_of(other, home, "/.debug/.build-id", build_id, "/elf") &&
	       take_file(other, build_id, type, file);
}

void ky_symbols_load_elf(struct ky_symbols *symbols, struct ky_symbols_file *file)
{
	const char *build_id =
		file->build_id ? ky_strings_text(symbols->strings, file->build_id) : NULL;
	const char *path = ky_strings_text(symbols->strings, file->path);
	char id[2 * KY_PROGRAM_FILE_ID_MAX + 1];
	if (elf_version(EV_CURRENT) == EV_NONE || !path)
		return;
	if (!build_id && find_id(path, file, id))
		build_id = id;
	if (build_id &&
	    (strlen(build_id) < 4 || strspn(build_id, "0123456789abcdef") != strlen(build_id)))
		return;
	if (!take_any(path, build_id, SHT_SYMTAB, file))
		(void)take_any(path, build_id, SHT_DYNSYM, file);
	ky_symbol_table_sort(&file->table);
}
