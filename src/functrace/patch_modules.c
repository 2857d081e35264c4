/* SPDX-License-Identifier: MIT */
/*
 * patch_modules.c: the modules of a process: see patch_parts.h. A module is a file whose code is mapped. Its bias,
 * which applies to all its addresses, is the mapped address minus the address in its program headers.
 */
#include "base/array.h"
#include "base/file.h"
#include "functrace/patch_parts.h"

#include "process/proc.h"
#include "process/proc_maps.h"
#include "process/program_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEADERS_MAX 64u
#define DYNAMIC_MAX 256u

/* Return the address that the file gives the code at an offset. */
static bool file_address(int fd, uint64_t offset, uint64_t *address)
{
	Elf64_Ehdr head;
	Elf64_Phdr headers[HEADERS_MAX];
	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phnum > HEADERS_MAX ||
	    head.e_phentsize != sizeof(headers[0]))
		return false;
	const size_t bytes = head.e_phnum * sizeof(headers[0]);
	if (pread(fd, headers, bytes, (off_t)head.e_phoff) != (ssize_t)bytes)
		return false;
	for (uint32_t i = 0; i < head.e_phnum; i++) {
		const uint64_t first = headers[i].p_offset & ~(KY_PATCH_PAGE - 1);
		if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_X) ||
		    offset < first || offset >= headers[i].p_offset + headers[i].p_filesz)
			continue;
		*address = headers[i].p_vaddr - (headers[i].p_offset - first) + (offset - first);
		return true;
	}
	return false;
}

static struct ky_patch_module *find(struct ky_patch *patch, const struct ky_proc_mapping *mapping,
				    uint64_t bias)
{
	for (uint32_t i = 0; i < patch->modules_count; i++) {
		struct ky_patch_module *module = &patch->modules[i];
		if (module->device == mapping->device && module->inode == mapping->inode &&
		    module->bias == bias)
			return module;
	}
	return NULL;
}

static void forget(struct ky_patch_module *module)
{
	ky_functions_unshare(&module->functions);
	free(module->wants);
	free(module->name);
	*module = (struct ky_patch_module){0};
}

static bool wants_any(const struct ky_selection *selection, const struct ky_functions *functions)
{
	for (uint32_t i = 0; i < functions->count; i++)
		if (functions->functions[i].how != KY_FUNCTION_NOT &&
		    ky_selection_wants(selection, functions, &functions->functions[i]))
			return true;
	return false;
}

/* Read the functions, with source lines, which take longest, only if a function is wanted. */
static int read_functions(struct ky_patch *patch, struct ky_patch_module *module, int fd,
			  const char *path, char message[KY_MESSAGE_BYTES])
{
	const bool lines = ky_selection_needs_lines(patch->options.selection);
	const int error = ky_functions_share(&module->functions, fd, path, lines, message);
	if (error || lines || !wants_any(patch->options.selection, module->functions))
		return error;
	ky_functions_unshare(&module->functions);
	return ky_functions_share(&module->functions, fd, path, true, message);
}

static int add(struct ky_patch *patch, const struct ky_proc_mapping *mapping, int fd, uint64_t bias)
{
	char message[KY_MESSAGE_BYTES] = "";
	if (!KY_ARRAY_GROW(patch->modules, patch->modules_room, patch->modules_count + 1))
		return -ENOMEM;
	struct ky_patch_module *module = &patch->modules[patch->modules_count];
	*module = (struct ky_patch_module){.device = mapping->device,
					   .inode = mapping->inode,
					   .bias = bias,
					   .seen = true,
					   .region = KY_PATCH_REGIONS_MAX,
					   .name = strdup(ky_file_name(mapping->path))};
	if (!module->name)
		return -ENOMEM;
	patch->modules_count++;
	if (read_functions(patch, module, fd, mapping->path, message))
		ky_patch_note(patch, "the functions of %s are not traced: %s", module->name,
			      message);
	return 0;
}

/* Take a mapping of code into account. Return 1 when its module is new, 0, or -errno. */
static int see(struct ky_patch *patch, const struct ky_program_map *map,
	       const struct ky_proc_mapping *mapping, uint64_t bias)
{
	int added = 0;
	struct ky_patch_module *module = find(patch, mapping, bias);
	if (!module) {
		const int fd = ky_proc_maps_open_file(map->pid, mapping);
		added = fd < 0 ? fd : add(patch, mapping, fd, bias);
		if (fd >= 0)
			close(fd);
		if (added)
			return added;
		module = &patch->modules[patch->modules_count - 1];
		added = 1;
	}
	module->seen = true;
	if (!module->to || mapping->start < module->from)
		module->from = mapping->start;
	if (mapping->end > module->to)
		module->to = mapping->end;
	return added;
}

/* A mapping before its module is known. */
struct placed {
	bool usable;
	uint64_t bias;
};

static struct placed place(const struct ky_patch *patch, const struct ky_program_map *map,
			   const struct ky_proc_mapping *mapping)
{
	struct placed placed = {0};
	uint64_t address;
	if (strncmp(mapping->path, "/memfd:", 7) == 0)
		return placed;
	const int fd = ky_proc_maps_open_file(map->pid, mapping);
	if (fd < 0) {
		ky_patch_note(patch, "the functions of %s are not traced: cannot open it: %s",
			      mapping->path, strerror(-fd));
		return placed;
	}
	placed.usable = file_address(fd, mapping->offset, &address);
	placed.bias = mapping->start - address;
	close(fd);
	return placed;
}

/* Return the bytes of a mapping's file that are mapped with its bias. */
static uint64_t weight(const struct ky_program_map *map, const struct placed *placed, uint32_t of)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < map->count; i++)
		if (placed[i].usable && placed[i].bias == placed[of].bias &&
		    map->mappings[i].device == map->mappings[of].device &&
		    map->mappings[i].inode == map->mappings[of].inode)
			bytes += map->mappings[i].end - map->mappings[i].start;
	return bytes;
}

/* Report whether a mapping is a second one of parts of a file, elsewhere (V8 makes such): it is not a module. */
static bool is_copy(const struct ky_program_map *map, const struct placed *placed, uint32_t index)
{
	const uint64_t own = weight(map, placed, index);
	for (uint32_t i = 0; i < map->count; i++) {
		if (!placed[i].usable || placed[i].bias == placed[index].bias ||
		    map->mappings[i].device != map->mappings[index].device ||
		    map->mappings[i].inode != map->mappings[index].inode)
			continue;
		const uint64_t other = weight(map, placed, i);
		if (other > own || (other == own && i < index))
			return true;
	}
	return false;
}

static int see_all(struct ky_patch *patch, const struct ky_program_map *map)
{
	int result = 0, added = 0;
	struct placed *placed = calloc(map->count + 1, sizeof(*placed));
	if (!placed)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->count; i++)
		placed[i] = place(patch, map, &map->mappings[i]);
	for (uint32_t i = 0; result >= 0 && i < map->count; i++) {
		if (!placed[i].usable || is_copy(map, placed, i))
			continue;
		result = see(patch, map, &map->mappings[i], placed[i].bias);
		added += result > 0;
	}
	free(placed);
	return result < 0 ? result : added;
}

/* Drop a module that is gone: its functions are no longer wanted, and nothing of them is left to put back. */
static void drop_module(struct ky_patch *patch, uint32_t index)
{
	for (uint32_t i = 0; i < patch->table_count; i++) {
		struct ky_patch_spot *spot = &patch->spots[i];
		if (!spot->wanted || spot->module != index)
			continue;
		spot->wanted = false;
		spot->function = NULL;
		ky_patch_table_set(patch, i, false);
	}
	forget(&patch->modules[index]);
}

/* Report whether it was unmapped and mapped again at the same place: then its jumps are missing. */
static bool is_fresh(const struct ky_patch *patch, uint32_t index)
{
	uint8_t now[16];
	for (uint32_t i = 0; i < patch->table_count; i++) {
		const struct ky_agent_patch *entry = &patch->table[i];
		if (patch->spots[i].wanted && patch->spots[i].module == index && entry->set)
			return !ky_remote_read(&patch->remote, entry->address, now, entry->bytes) &&
			       memcmp(now, entry->before, entry->bytes) == 0;
	}
	return false;
}

int ky_patch_modules_read(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	struct ky_program_map map;
	int result = ky_program_map_read(&map, patch->remote.pid);
	if (result) {
		ky_remote_refusal(patch->remote.pid, -result, message);
		return result;
	}
	for (uint32_t i = 0; i < patch->modules_count; i++)
		patch->modules[i].seen = false;
	int added = result = see_all(patch, &map);
	ky_program_map_free(&map);
	if (result < 0)
		return ky_fail(message, result, "Cannot read the modules of process %d: %s",
			       (int)patch->remote.pid, strerror(-result));
	for (uint32_t i = 0; i < patch->modules_count; i++) {
		struct ky_patch_module *module = &patch->modules[i];
		if (module->name && !module->seen)
			drop_module(patch, i);
		else if (module->planned && is_fresh(patch, i)) {
			module->planned = module->led = false;
			added++;
		}
	}
	return added;
}

void ky_patch_modules_free(struct ky_patch *patch)
{
	for (uint32_t i = 0; i < patch->modules_count; i++)
		forget(&patch->modules[i]);
	KY_ARRAY_FREE(patch->modules, patch->modules_room);
	patch->modules_count = 0;
}

uint32_t ky_patch_modules_functions(const struct ky_patch *patch)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < patch->modules_count; i++)
		if (patch->modules[i].functions)
			count += patch->modules[i].functions->count;
	return count < KY_AGENT_FUNCTIONS_MAX ? (uint32_t)count : KY_AGENT_FUNCTIONS_MAX;
}

/*
 * Return the address of the program's dynamic section, which the kernel gave the program; the loader keeps the
 * address of r_debug there.
 */
static uint64_t dynamic_of(const struct ky_patch *patch)
{
	Elf64_Phdr header;
	uint64_t bias = 0, dynamic = 0;
	const uint64_t headers = ky_proc_aux_value(patch->remote.pid, AT_PHDR);
	const uint64_t count = ky_proc_aux_value(patch->remote.pid, AT_PHNUM);
	for (uint64_t i = 0; i < count && i < HEADERS_MAX; i++) {
		if (ky_remote_read(&patch->remote, headers + i * sizeof(header), &header,
				   sizeof(header)))
			return 0;
		if (header.p_type == PT_PHDR)
			bias = headers - header.p_vaddr;
		if (header.p_type == PT_DYNAMIC)
			dynamic = header.p_vaddr;
	}
	return dynamic ? dynamic + bias : 0;
}

uint64_t ky_patch_modules_r_debug(const struct ky_patch *patch)
{
	Elf64_Dyn entry;
	const uint64_t dynamic = dynamic_of(patch);
	for (uint64_t i = 0; dynamic && i < DYNAMIC_MAX; i++) {
		if (ky_remote_read(&patch->remote, dynamic + i * sizeof(entry), &entry,
				   sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			return 0;
		if (entry.d_tag == DT_DEBUG)
			return entry.d_un.d_ptr;
	}
	return 0;
}

static void add_range(struct ky_agent_home *home, uint64_t from, uint64_t to)
{
	if (to > from && home->ranges_count < KY_AGENT_RANGES_MAX)
		home->ranges[home->ranges_count++] =
			(struct ky_agent_range){.from = from, .bytes = to - from};
}

/* Report whether there is code outside files, made by a JIT. Our own stubs do not count. */
static bool has_strange_code(const struct ky_patch *patch)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	bool found = false;
	(void)ky_proc_maps_open(&maps, patch->remote.pid);
	while (!found && ky_proc_maps_next(&maps, &mapping)) {
		/* not vdso, vsyscall */
		found = (mapping.protection & PROT_EXEC) && !mapping.inode &&
			strncmp(mapping.path, "[v", 2) != 0;
		for (uint32_t i = 0; found && i < patch->keep.regions_count; i++)
			if (mapping.start >= patch->keep.regions[i].at &&
			    mapping.start <
				    patch->keep.regions[i].at + patch->keep.regions[i].bytes)
				found = false;
	}
	ky_proc_maps_close(&maps);
	return found;
}

void ky_patch_modules_ranges(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	bool builtins = false, makes_code = false;
	home->ranges_count = 0;
	for (uint32_t i = 0; i < patch->modules_count; i++) {
		const struct ky_patch_module *module = &patch->modules[i];
		if (!module->name)
			continue;
		makes_code |= module->functions && module->functions->makes_code;
		const struct ky_code_range none = {0};
		const struct ky_code_range out =
			module->functions ? module->functions->builtins : none;
		if (!out.bytes) {
			add_range(home, module->from, module->to);
			continue;
		}
		builtins = true;
		add_range(home, module->from, out.from + module->bias);
		add_range(home, out.from + module->bias + out.bytes, module->to);
	}
	home->check_callers = builtins || makes_code || has_strange_code(patch);
}
