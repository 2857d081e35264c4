/* SPDX-License-Identifier: MIT */
/* symbols.c: the life of struct ky_symbols, the ELF files it knows, and the kernel. symbols_jit.c has run-time code. */
#include "process/symbols_parts.h"

#include "base/array.h"
#include "base/file.h"
#include "process/program_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
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
	static const char *const others[] = {"/proc/", "/sys/", "/dev/"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strncmp(path, others[i], strlen(others[i])) == 0)
			return -1;
	}
	return ky_file_open_plain(path);
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

/* ---- ELF files ---- */

/*
 * A file is taken only when its build id is the recorded one, or when none was recorded and it is still the same inode: one
 * of the same name that was built again would give wrong names.
 */

#define SEGMENTS_MAX 64u

/* Write the file's own build id in hexadecimal; false when it has none. */
static bool own_id(Elf *elf, char text[2 * KY_PROGRAM_FILE_ID_MAX + 1])
{
	const uint8_t *id;
	const size_t bytes = ky_program_file_id(elf, &id);
	ky_program_file_id_text(id, bytes, text);
	return bytes > 0;
}

/* Report whether it is the file's build id, which may be padded with zeros to its usual size. */
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

/* Report whether the file has the recorded build id or, without one, is the same file on the same disk. */
static bool is_recorded(Elf *elf, int fd, const char *build_id, const struct ky_symbols_file *file)
{
	struct stat status;
	if (build_id)
		return has_build_id(elf, build_id);
	return file->inode && fstat(fd, &status) == 0 && status.st_ino == file->inode &&
	       major(status.st_dev) == file->device >> 32 &&
	       minor(status.st_dev) == (uint32_t)file->device;
}

/* Take segments, and functions of that kind of table, from a file that may be the one. */
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

/* Make the path by build id under some folder; false when it is too long. */
static bool path_of(char *path, const char *folder, const char *under, const char *build_id,
		    const char *tail)
{
	const int bytes = snprintf(path, KY_SYMBOLS_PATH_BYTES, "%s%s/%.2s/%s%s", folder, under,
				   build_id, build_id + 2, tail);
	return bytes > 0 && bytes < KY_SYMBOLS_PATH_BYTES;
}

/* Find the build id of the file that is still there, when none was recorded. */
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

/* Look where the file, its debug file and perf's own copy are. */
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

static void load_elf(struct ky_symbols *symbols, struct ky_symbols_file *file)
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
		load_elf(symbols, file);
	}
	uint64_t address;
	if (!address_of(file, offset, &address))
		return 0;
	return ky_symbol_table_find(&file->table, symbols->strings, address);
}

/* ---- the kernel ---- */

/*
 * Kernels are loaded at another address at each boot: the address that a known symbol had in the recording says how far
 * the functions have moved since.
 */

#define KALLSYMS "/proc/kallsyms"
#define KALLSYMS_BYTES_MAX (256u << 20)

/* Parse a line that ends before end; false when it has another form. */
static bool parse_kallsym(const char *line, const char *end, struct ky_kallsym *symbol)
{
	static const char digits[] = "0123456789abcdef";
	const char *p = line;
	symbol->address = 0;
	for (; p < end && *p != ' '; p++) {
		const char *const digit = *p ? strchr(digits, *p) : NULL;
		if (!digit || p - line > 15)
			return false;
		symbol->address = symbol->address << 4 | (uint64_t)(digit - digits);
	}
	if (end - p < 4 || p[2] != ' ')
		return false;
	symbol->type = p[1];
	symbol->name = p += 3;
	while (p < end && *p != '\t' && *p != ' ' && *p != '\n')
		p++;
	symbol->name_bytes = (size_t)(p - symbol->name);
	return symbol->name_bytes != 0;
}

void ky_symbols_kallsyms(ky_kallsym_fn each, void *context)
{
	FILE *const file = fopen(KALLSYMS, "re");
	struct ky_kallsym symbol;
	char *line = NULL;
	size_t room = 0;
	ssize_t bytes;
	while (file && (bytes = getline(&line, &room, file)) > 0)
		if (parse_kallsym(line, line + bytes, &symbol) && !each(context, line, &symbol))
			break;
	free(line);
	if (file)
		fclose(file);
}

struct kernel_reading {
	struct ky_symbol_table *table;
	const char *reference; /* NULL: none */
	uint64_t address;      /* of reference */
};

/* Add a symbol that is a function. */
static bool add_symbol(void *context, const char *line, const struct ky_kallsym *symbol)
{
	struct kernel_reading *const reading = context;
	(void)line;
	if (!symbol->address || !symbol->type || !strchr("tTwW", symbol->type))
		return true;
	if (reading->reference && strlen(reading->reference) == symbol->name_bytes &&
	    memcmp(reading->reference, symbol->name, symbol->name_bytes) == 0)
		reading->address = symbol->address;
	return ky_symbol_table_add(reading->table, symbol->address, 0, 0, symbol->name,
				   symbol->name_bytes);
}

static void add_lines(struct kernel_reading *reading, const char *text, size_t bytes)
{
	const char *const end = text + bytes;
	struct ky_kallsym symbol;
	while (text < end) {
		const char *const newline = memchr(text, '\n', (size_t)(end - text));
		const char *const stop = newline ? newline : end;
		if (parse_kallsym(text, stop, &symbol) && !add_symbol(reading, text, &symbol))
			return;
		text = stop + 1;
	}
}

void ky_symbols_add_kallsyms(struct ky_symbols *symbols, const char *text, size_t bytes)
{
	struct kernel_reading reading = {.table = &symbols->kernel};
	symbols->kernel_tried = true;
	if (text)
		add_lines(&reading, text, bytes);
	else
		ky_symbols_kallsyms(add_symbol, &reading);
	ky_symbol_table_sort(&symbols->kernel);
}

/* Report whether the running kernel, whose notes have its build id after "GNU", is the one. */
static bool is_running_kernel(const char *build_id)
{
	uint8_t notes[4096];
	const int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	const ssize_t count = fd < 0 ? -1 : read(fd, notes, sizeof(notes));
	if (fd >= 0)
		close(fd);
	for (ssize_t at = 0; at + 16 + 20 <= count; at += 4) {
		uint32_t head[3];
		memcpy(head, notes + at, sizeof(head));
		if (head[0] != 4 || head[1] != 20 || head[2] != 3 ||
		    memcmp(notes + at + 12, "GNU", 4) != 0)
			continue;
		char text[41];
		for (int i = 0; i < 20; i++)
			snprintf(text + 2 * i, 3, "%02x", notes[at + 16 + i]);
		return strcmp(text, build_id) == 0;
	}
	return false;
}

static bool is_running_release(const char *release)
{
	struct utsname names;
	return release && uname(&names) == 0 && strcmp(release, names.release) == 0;
}

/* Open the recorded kernel's kallsyms; -1 when they are missing. */
static int open_kallsyms(const char *build_id, const char *release)
{
	char path[KY_SYMBOLS_PATH_BYTES];
	const char *home = getenv("HOME");
	if (build_id ? is_running_kernel(build_id) : is_running_release(release))
		return open(KALLSYMS, O_RDONLY | O_CLOEXEC);
	if (!build_id || strspn(build_id, "0123456789abcdef") != strlen(build_id) || !home ||
	    snprintf(path, sizeof(path), "%s/.debug/[kernel.kallsyms]/%s/kallsyms", home,
		     build_id) >= (int)sizeof(path))
		return -1;
	return ky_symbols_open_plain(path);
}

void ky_symbols_kernel(struct ky_symbols *symbols, uint32_t build_id, const char *release,
		       const char *reference, uint64_t address)
{
	if (symbols->kernel_tried)
		return;
	symbols->kernel_tried = true;
	const int fd = open_kallsyms(build_id ? ky_strings_text(symbols->strings, build_id) : NULL,
				     release);
	if (fd < 0)
		return;
	size_t bytes;
	struct kernel_reading reading = {.table = &symbols->kernel, .reference = reference};
	char *text = ky_file_read_fd(fd, KALLSYMS_BYTES_MAX, &bytes);
	close(fd);
	if (!text)
		return;
	add_lines(&reading, text, bytes);
	free(text);
	const uint64_t now = reading.address;
	if (!build_id && (!now || now != address))
		ky_symbol_table_free(&symbols->kernel);
	if (now && address)
		symbols->kernel_shift = address - now;
	ky_symbol_table_sort(&symbols->kernel);
}

uint32_t ky_symbols_in_kernel(struct ky_symbols *symbols, uint64_t address)
{
	return ky_symbol_table_find(&symbols->kernel, symbols->strings,
				    address - symbols->kernel_shift);
}
