/* SPDX-License-Identifier: MIT */
/* stack_modules.c: see stack_names.h. */
#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "functrace/stack_names.h"
#include "process/proc_maps.h"

#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULES_MAX 4096u
#define SEGMENTS_MAX 64u
#define IMAGE_BYTES_MAX (16u << 20)
#define LOOK_SECONDS_MAX 5u
#define VDSO_PATH "[vdso]"
#define VDSO_BYTES_MAX (64u << 10)

int ky_stack_modules_open(struct ky_stack_modules *modules)
{
	*modules = (struct ky_stack_modules){0};
	elf_version(EV_CURRENT);
	/* symbolizer.c would do it, but on a thread: others may be reading the environment then. */
	unsetenv("DEBUGINFOD_URLS");
	return ky_strings_init(&modules->strings);
}

static void free_module(struct ky_stack_module *module)
{
	ky_symbolizer_close(&module->names);
	/* .eh_frame belongs to the module, .debug_frame to its debug information. */
	if (module->cfi[0])
		dwarf_cfi_end(module->cfi[0]);
	if (module->debug)
		dwarf_end(module->debug);
	elf_end(module->elf);
	free(module->image);
	if (module->fd >= 0)
		close(module->fd);
	ky_u64_map_free(&module->chains);
	free(module->segments);
	free(module->path);
}

void ky_stack_modules_close(struct ky_stack_modules *modules)
{
	for (uint32_t i = 0; i < modules->count; i++)
		free_module(&modules->items[i]);
	KY_ARRAY_FREE(modules->items, modules->room);
	ky_strings_free(&modules->strings);
	*modules = (struct ky_stack_modules){0};
}

/* ---- a file ---- */

static void read_segments(struct ky_stack_module *module)
{
	size_t count;
	if (elf_getphdrnum(module->elf, &count) != 0 || !count)
		return;
	count = count < SEGMENTS_MAX ? count : SEGMENTS_MAX;
	module->segments = calloc(count, sizeof(*module->segments));
	for (size_t i = 0; module->segments && i < count; i++) {
		GElf_Phdr head;
		if (gelf_getphdr(module->elf, (int)i, &head) && head.p_type == PT_LOAD)
			module->segments[module->segments_count++] = (struct ky_stack_segment){
				head.p_offset, head.p_filesz, head.p_vaddr};
	}
}

bool ky_stack_module_address(const struct ky_stack_module *module, uint64_t offset,
			     uint64_t *address)
{
	for (uint32_t i = 0; i < module->segments_count; i++) {
		const struct ky_stack_segment *segment = &module->segments[i];
		if (offset < segment->offset || offset - segment->offset >= segment->bytes)
			continue;
		*address = offset - segment->offset + segment->address;
		return true;
	}
	return false;
}

void ky_stack_module_at(const struct ky_stack_module *module, uint64_t offset,
			ky_symbolizer_fn function, void *context)
{
	if (!module->names)
		return;
	ky_symbolizer_until(module->names, (uint64_t)(ky_clock_monotonic() +
						      LOOK_SECONDS_MAX * KY_CLOCK_SECOND_NS));
	ky_symbolizer_at(module->names, offset, function, context);
}

static void ignore(void *context, const struct ky_symbolizer_function *function)
{
	(void)context;
	(void)function;
}

/* Make the indexes, as the first lookup does: now, and not when the rings are full of samples that wait for it. */
static void index_names(const struct ky_stack_module *module)
{
	for (uint32_t i = 0; i < module->segments_count; i++)
		ky_stack_module_at(module, module->segments[i].offset, ignore, NULL);
}

/*
 * Open a file by reading it, not mapping it: it may be cut short at any time. A small one is read at once: libelf
 * would read it section by section, and leaks memory with malformed files.
 */
static Elf *open_elf(struct ky_stack_module *module)
{
	struct stat status;
	const size_t bytes = fstat(module->fd, &status) == 0 && status.st_size > 0 &&
					     status.st_size <= (off_t)IMAGE_BYTES_MAX
				     ? (size_t)status.st_size
				     : 0;
	module->image = bytes ? malloc(bytes) : NULL;
	if (module->image && pread(module->fd, module->image, bytes, 0) == (ssize_t)bytes)
		return elf_memory(module->image, bytes);
	return elf_begin(module->fd, ELF_C_READ, NULL);
}

static void load_file(struct ky_stack_modules *modules, struct ky_stack_module *module, int fd)
{
	module->fd = fd;
	module->elf = open_elf(module);
	if (!module->elf || elf_kind(module->elf) != ELF_K_ELF)
		return;
	read_segments(module);
	ky_stack_starts_read(&module->starts, module->elf);
	module->cfi[0] = dwarf_getcfi_elf(module->elf);
	module->debug = dwarf_begin_elf(module->elf, DWARF_C_READ, NULL);
	module->cfi[1] = module->debug ? dwarf_getcfi(module->debug) : NULL;
	const int again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (again >= 0 && ky_symbolizer_open(&module->names, &modules->strings, module->path, again,
					     UINT64_MAX) == 0)
		index_names(module);
}

/* Return a memfd with kymo's own vDSO. */
static int open_vdso(void)
{
	const unsigned long at = getauxval(AT_SYSINFO_EHDR);
	const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	const int fd = at && memory >= 0 ? memfd_create("vdso", MFD_CLOEXEC) : -1;
	char page[4096];
	for (uint64_t done = 0; fd >= 0 && done < VDSO_BYTES_MAX; done += sizeof(page))
		if (pread(memory, page, sizeof(page), (off_t)(at + done)) != sizeof(page) ||
		    write(fd, page, sizeof(page)) != sizeof(page))
			break;
	if (memory >= 0)
		close(memory);
	return fd;
}

static uint32_t add_module(struct ky_stack_modules *modules, pid_t pid,
			   const struct ky_proc_mapping *mapping, bool made)
{
	if (modules->count == MODULES_MAX ||
	    !KY_ARRAY_GROW(modules->items, modules->room, modules->count + 1))
		return KY_NO_MODULE;
	struct ky_stack_module *module = &modules->items[modules->count];
	*module = (struct ky_stack_module){.path = strdup(made ? "[jit]" : mapping->path),
					   .device = mapping->device,
					   .inode = mapping->inode,
					   .made = made,
					   .fd = -1};
	if (!module->path)
		return KY_NO_MODULE;
	module->name = ky_file_name(module->path);
	const int fd = made ? -1
		       : strcmp(mapping->path, VDSO_PATH) == 0
			       ? open_vdso()
			       : ky_proc_maps_open_file(pid, mapping);
	if (fd >= 0)
		load_file(modules, module, fd);
	return modules->count++;
}

static uint32_t module_of(struct ky_stack_modules *modules, pid_t pid,
			  const struct ky_proc_mapping *mapping)
{
	const bool made =
		!ky_proc_maps_is_file(mapping->path) && strcmp(mapping->path, VDSO_PATH) != 0;
	for (uint32_t i = 0; i < modules->count; i++) {
		const struct ky_stack_module *module = &modules->items[i];
		if (made ? module->made
			 : module->device == mapping->device && module->inode == mapping->inode &&
				    strcmp(module->path, mapping->path) == 0)
			return i;
	}
	return add_module(modules, pid, mapping, made);
}

/* ---- mappings of a process ---- */

void ky_stack_modules_map(struct ky_stack_modules *modules, struct ky_address_space *space,
			  pid_t pid, const struct ky_proc_mapping *mapping)
{
	const struct ky_address_range range = {.start = mapping->start,
					       .end = mapping->end,
					       .offset = mapping->offset,
					       .module = module_of(modules, pid, mapping)};
	if (range.module != KY_NO_MODULE)
		(void)ky_address_space_put(space, &range);
}

int ky_stack_modules_read(struct ky_stack_modules *modules, struct ky_address_space *space,
			  pid_t pid)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	const int error = ky_proc_maps_open(&maps, pid);
	while (ky_proc_maps_next(&maps, &mapping))
		if (mapping.protection & PROT_EXEC)
			ky_stack_modules_map(modules, space, pid, &mapping);
	ky_proc_maps_close(&maps);
	return error;
}

/* ---- where functions of a stripped file begin ---- */

#define HEAD_BYTES 12u
#define ENTRY_BYTES 8u

static bool find_segment(Elf *elf, GElf_Phdr *head)
{
	size_t count;
	if (elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count && i < 256; i++)
		if (gelf_getphdr(elf, (int)i, head) && head->p_type == PT_GNU_EH_FRAME)
			return true;
	return false;
}

static bool is_understood(const uint8_t *bytes)
{
	const uint8_t pointer = bytes[1];
	return bytes[0] == 1 && pointer == (DW_EH_PE_pcrel | DW_EH_PE_sdata4) &&
	       bytes[2] == DW_EH_PE_udata4 && bytes[3] == (DW_EH_PE_datarel | DW_EH_PE_sdata4);
}

void ky_stack_starts_read(struct ky_stack_starts *starts, Elf *elf)
{
	GElf_Phdr head;
	uint32_t count;
	*starts = (struct ky_stack_starts){0};
	if (!find_segment(elf, &head) || head.p_filesz < HEAD_BYTES)
		return;
	const Elf_Data *data =
		elf_getdata_rawchunk(elf, (int64_t)head.p_offset, head.p_filesz, ELF_T_BYTE);
	if (!data || data->d_size < HEAD_BYTES || !is_understood(data->d_buf))
		return;
	memcpy(&count, (const uint8_t *)data->d_buf + 8, sizeof(count));
	const uint64_t room = (data->d_size - HEAD_BYTES) / ENTRY_BYTES;
	starts->table = (const uint8_t *)data->d_buf + HEAD_BYTES;
	starts->count = count < room ? count : room;
	starts->address = head.p_vaddr;
}

static uint64_t start_of(const struct ky_stack_starts *starts, uint64_t index)
{
	int32_t offset;
	memcpy(&offset, starts->table + ENTRY_BYTES * index, sizeof(offset));
	return starts->address + (uint64_t)(int64_t)offset;
}

bool ky_stack_starts_find(const struct ky_stack_starts *starts, uint64_t address, uint64_t *start)
{
	const uint64_t low = KY_ARRAY_SEARCH(0, starts->count, at, start_of(starts, at) <= address);
	if (!low)
		return false;
	*start = start_of(starts, low - 1);
	return *start <= address;
}
